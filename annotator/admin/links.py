"""The links that workers come in by: one for each, and of panels one for many."""

from django.contrib import admin, messages
from django.db.models import Count
from django.utils import timezone
from django.utils.html import format_html

from annotator import inviting
from annotator.admin.inlines import ReadOnlyInline
from annotator.models import Invitation, Panel, Worker
from generation.admin import WorkspaceAdmin


def shown_link(address: str) -> str:
    """The whole of it; where it is cut for its length, pointing at it shows the rest, and copying takes all."""
    return format_html('<span class="invite-link" title="{0}">{0}</span>', address)


class InvitationInline(ReadOnlyInline):
    model = Invitation
    verbose_name_plural = "personal links"
    fields = readonly_fields = ["link", "note", "used_at", "revoked_at"]

    @admin.display
    def link(self, invitation) -> str:
        return shown_link(inviting.link(invitation))


@admin.register(Invitation)
class InvitationAdmin(WorkspaceAdmin):
    list_display = ["worker", "note", "link", "used_at", "revoked_at"]
    list_select_related = ["worker"]
    search_fields = ["worker__pseudonym", "worker__pay_reference", "note"]
    fields = ["note", "worker", "link", "used_at", "revoked_at"]
    readonly_fields = ["worker", "link", "used_at", "revoked_at"]
    actions = ["revoke", "replace"]

    def get_fields(self, request, obj=None):
        return self.fields if obj else ["note"]

    @admin.display
    def link(self, invitation) -> str:
        return shown_link(inviting.link(invitation))

    @admin.action(description="Revoke: the links let nobody in any more", permissions=["change"])
    def revoke(self, request, queryset) -> None:
        revoked = queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
        messages.success(request, f"Invitations revoked: {revoked}.")

    @admin.action(description="Replace: revoke the links, make new ones for the same workers", permissions=["change"])
    def replace(self, request, queryset) -> None:
        replaced = [inviting.replace(invitation=invitation) for invitation in queryset.select_related("worker")]
        messages.success(request, f"Invitations replaced: {len(replaced)}. Send the new links.")

    def save_model(self, request, obj, form, change) -> None:
        if not change:
            obj.worker = Worker.objects.create()
        super().save_model(request, obj, form, change)

    def has_delete_permission(self, request, obj=None) -> bool:
        return False


@admin.register(Panel)
class PanelAdmin(WorkspaceAdmin):
    list_display = ["name", "joined", "link", "created_at", "revoked_at"]
    search_fields = ["name"]
    fields = ["name", "max_workers", "joined", "link", "created_at", "revoked_at"]
    readonly_fields = ["joined", "link", "created_at", "revoked_at"]
    actions = ["revoke"]

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(joined=Count("workers"))

    def get_fields(self, request, obj=None):
        return self.fields if obj else ["name", "max_workers"]

    @admin.display(ordering="joined")
    def joined(self, panel) -> str:
        return str(panel.joined) if panel.max_workers is None else f"{panel.joined} of {panel.max_workers}"

    @admin.display
    def link(self, panel) -> str:
        return shown_link(inviting.panel_link(panel))

    @admin.action(
        description="Revoke: nobody joins by the links any more; who has joined works on", permissions=["change"]
    )
    def revoke(self, request, queryset) -> None:
        revoked = queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
        messages.success(request, f"Panels revoked: {revoked}.")

    def has_delete_permission(self, request, obj=None) -> bool:
        return False
