"""The workspace's pages of groups."""

from django.contrib import admin
from django.db.models import Count, Q
from django.utils.html import format_html

from generation.admin.lists import WorkspaceAdmin
from generation.admin.sets import address_of
from generation.auditing import note
from generation.models import Label, TargetGroup


def in_use(label: str) -> Count:
    return Count("demonstrations", filter=Q(demonstrations__label=label, demonstrations__retired_at=None))


@admin.register(TargetGroup)
class TargetGroupAdmin(WorkspaceAdmin):
    ordering = ["position", "slug"]
    list_display = ["name", "slug", "words", "benign_set", "toxic_set", "naming_words"]
    fields = ["name", "slug", "words", "naming_words", "position"]
    prepopulated_fields = {"slug": ["name"]}

    def get_queryset(self, request):
        counts = {f"{label}_count": in_use(label) for label in Label.values}
        return super().get_queryset(request).annotate(**counts)

    @admin.display(description="benign set", ordering="benign_count")
    def benign_set(self, group):
        return self._set(group, Label.BENIGN)

    @admin.display(description="toxic set", ordering="toxic_count")
    def toxic_set(self, group):
        return self._set(group, Label.TOXIC)

    def _set(self, group, label: str):
        return format_html(
            '<a class="text-link" href="{}">{} in use</a>', address_of(group, label), getattr(group, f"{label}_count")
        )

    def get_readonly_fields(self, request, obj=None):
        """The slug of a group that there is stands in files that were exported."""
        return [] if obj is None else ["slug"]

    def get_prepopulated_fields(self, request, obj=None):
        return self.prepopulated_fields if obj is None else {}

    def save_model(self, request, obj, form, change) -> None:
        super().save_model(request, obj, form, change)
        act = "group edited" if change else "group added"
        written = {name: form.cleaned_data[name] for name in form.changed_data}
        note(act, by=request.user, subject=f"group {obj.slug}", **written)
