"""The workspace's Annotate pages."""

from django.contrib import admin, messages
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.html import format_html
from unfold.admin import ModelAdmin

from annotator import inviting, publishing
from annotator.models import (
    HIT,
    Annotation,
    Assignment,
    ConsentForm,
    HITType,
    Invitation,
    Qualification,
    Worker,
)
from annotator.questions import QUESTIONS
from generation.admin import ReadOnlyAdmin, blurred


@admin.register(HITType)
class HITTypeAdmin(ModelAdmin):
    list_display = ["title", "reward", "max_assignments", "run", "hits_made", "annotations"]
    list_select_related = ["run"]
    autocomplete_fields = ["qualifications"]

    def get_queryset(self, request):
        return (
            super()
            .get_queryset(request)
            .annotate(
                hits_made=Count("hits", distinct=True),
                annotations=Count(
                    "hits__assignments", filter=Q(hits__assignments__submitted_at__isnull=False), distinct=True
                ),
            )
        )

    @admin.display(description="HITs")
    def hits_made(self, hit_type) -> int:
        return hit_type.hits_made

    @admin.display(description="submitted")
    def annotations(self, hit_type) -> int:
        return hit_type.annotations

    def save_model(self, request, obj, form, change) -> None:
        super().save_model(request, obj, form, change)
        if obj.run_id:
            publishing.publish_new_statements()


@admin.register(HIT)
class HITAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "statement", "hit_type", "state", "held_places", "max_assignments"]
    list_filter = ["hit_type", "generation__group"]
    list_select_related = ["generation", "hit_type"]
    fields = ["statement", "hit_type", "state", "held_places", "max_assignments", "created_at", "expires_at"]
    readonly_fields = ["statement", "state"]

    @admin.display
    def statement(self, hit):
        return blurred(hit.generation.text)

    @admin.display
    def state(self, hit) -> str:
        return hit.status.label


class AnnotationInline(admin.StackedInline):
    """What was submitted, below its assignment."""

    model = Annotation
    can_delete = False
    extra = 0
    fields = [
        "not_understood",
        *(question.key for question in QUESTIONS),
        "other_groups",
        "other_framing",
        "created_at",
    ]
    readonly_fields = fields

    def has_add_permission(self, request, obj=None) -> bool:
        return False


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "status", "holds_place", "accepted_at", "submitted_at"]
    list_filter = ["status", "hit__hit_type"]
    list_select_related = ["worker", "hit"]
    inlines = [AnnotationInline]


@admin.register(Worker)
class WorkerAdmin(ModelAdmin):
    list_display = ["pseudonym", "created_at", "submitted", "blocked_at"]
    search_fields = ["pseudonym"]
    fields = ["pseudonym", "created_at", "blocked_at", "blocked_reason"]
    readonly_fields = ["pseudonym", "created_at"]

    def get_queryset(self, request):
        submitted = Count("assignments", filter=Q(assignments__submitted_at__isnull=False))
        return super().get_queryset(request).annotate(submitted=submitted)

    @admin.display
    def submitted(self, worker) -> int:
        return worker.submitted

    def has_add_permission(self, request) -> bool:
        """Workers are made with their invitation: one without a link could not come in."""
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False


@admin.register(Invitation)
class InvitationAdmin(ModelAdmin):
    list_display = ["worker", "note", "link", "used_at", "revoked_at"]
    list_select_related = ["worker"]
    fields = ["note", "worker", "link", "used_at", "revoked_at"]
    readonly_fields = ["worker", "link", "used_at", "revoked_at"]
    actions = ["revoke", "replace"]

    def get_fields(self, request, obj=None):
        return self.fields if obj else ["note"]

    @admin.display
    def link(self, invitation) -> str:
        return format_html('<span class="invite-link">{}</span>', inviting.link(invitation))

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


@admin.register(ConsentForm)
class ConsentFormAdmin(ModelAdmin):
    list_display = ["title", "version", "published_at"]

    def has_change_permission(self, request, obj=None) -> bool:
        """A published form is what people agreed to: it is never edited, a new version replaces it."""
        published = obj is not None and obj.published_at is not None
        return not published and super().has_change_permission(request, obj)

    def has_delete_permission(self, request, obj=None) -> bool:
        return False


@admin.register(Qualification)
class QualificationAdmin(ModelAdmin):
    list_display = ["name", "description"]
    search_fields = ["name"]
    autocomplete_fields = ["workers"]
