"""Consent forms and help lines."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin

from annotator import consenting, helping, informing
from annotator.models import ConsentForm, HelpLine
from annotator.rendering import markdown_to_html

MARKDOWN = ["warning", "purpose", "risks", "pay", "contact", "withdrawal", "debrief"]


def as_read(name: str) -> Callable[[ConsentForm], str]:
    """A column of that name with its Markdown as people read it."""

    @admin.display(description=ConsentForm._meta.get_field(name).verbose_name)
    def part(form: ConsentForm) -> str:
        text = getattr(form, name).strip()
        return format_html('<div class="markdown">{}</div>', markdown_to_html(text)) if text else "–"

    part.__name__ = name
    return part


AS_READ = {name: as_read(name) for name in MARKDOWN}


@admin.register(ConsentForm)
class ConsentFormAdmin(ModelAdmin):
    list_display = ["title", "version", "published_at", "agreeing"]
    fieldsets = [
        (None, {"fields": [("title", "version")]}),
        (
            "Read before agreeing",
            {
                "description": "All of it is Markdown. Each part stands under a heading of its name.",
                "fields": ["warning", "purpose", "risks", "pay", "contact", "withdrawal"],
            },
        ),
        ("Read at the end", {"fields": ["debrief"]}),
        (None, {"fields": ["published_at"]}),
    ]
    change_form_outer_before_template = "admin/annotator/consentform/acts.html"

    def get_queryset(self, request):
        agreeing = Count("consents", filter=Q(consents__withdrawn_at=None))
        return super().get_queryset(request).annotate(agreeing=agreeing)

    def get_fieldsets(self, request, obj=None):
        """Of a form that cannot be changed, the texts as people read them."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.has_change_permission(request, obj):
            return fieldsets
        return [
            (heading, {"fields": [AS_READ.get(name, name) for name in part["fields"]]}) for heading, part in fieldsets
        ]

    @admin.display(description="workers who agree")
    def agreeing(self, form) -> int:
        return form.agreeing

    def get_changeform_initial_data(self, request):
        last = ConsentForm.objects.aggregate(version=Max("version", default=0))["version"]
        return {"version": last + 1, **super().get_changeform_initial_data(request)}

    def has_change_permission(self, request, obj=None) -> bool:
        """A published form is what people agreed to: it is never edited, a new version replaces it."""
        published = obj is not None and obj.published_at is not None
        return not published and super().has_change_permission(request, obj)

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_urls(self):
        def own(name, view):
            return path(
                f"<int:form_id>/{name.replace('_', '-')}/", self.admin_site.admin_view(view), name=f"consent_{name}"
            )

        acts = [own(name, require_POST(getattr(self, name))) for name in ("publish", "new_version")]
        return [*acts, own("preview", self.preview), *super().get_urls()]

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        form = self.get_object(request, unquote(object_id)) if object_id else None
        acts = {
            "consent_form": form,
            "may_publish": form is not None and self.has_change_permission(request, form),
            "may_copy": form is not None and self.has_add_permission(request),
        }
        return super().changeform_view(request, object_id, form_url, {**(extra_context or {}), **acts})

    def publish(self, request: HttpRequest, form_id: int) -> HttpResponse:
        """Put the form in force now."""
        if not super().has_change_permission(request):
            raise PermissionDenied
        form = get_object_or_404(ConsentForm, pk=form_id)
        try:
            consenting.publish_form(form=form)
        except consenting.CannotPublish as refused:
            messages.error(request, str(refused))
        else:
            messages.success(
                request, f"Version {form.version} is in force. Workers read it and agree before they are shown more."
            )
        return redirect(reverse("admin:annotator_consentform_change", args=[form.pk]))

    def new_version(self, request: HttpRequest, form_id: int) -> HttpResponse:
        """Copy the texts into a version that can be changed."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        made = consenting.make_new_version(form=get_object_or_404(ConsentForm, pk=form_id))
        messages.success(request, f"This is version {made.version}. Change it and publish it when it is ready.")
        return redirect(reverse("admin:annotator_consentform_change", args=[made.pk]))

    def preview(self, request: HttpRequest, form_id: int) -> HttpResponse:
        """The page as workers see it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        form = get_object_or_404(ConsentForm, pk=form_id)
        context = {**informing.consent_texts(form), "preview": True}
        return render(request, "annotator/consent.html", context)


@admin.register(HelpLine)
class HelpLineAdmin(ModelAdmin):
    """Pages of other processes name a changed line within a minute, those of this one at once."""

    list_display = ["name", "how", "url", "position"]
    list_editable = ["position"]

    def formfield_for_dbfield(self, db_field, request, **kwargs):
        if db_field.name == "url":
            kwargs["assume_scheme"] = "https"
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request, obj, form, change) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(helping.forget_help_lines)

    def delete_model(self, request, obj) -> None:
        super().delete_model(request, obj)
        transaction.on_commit(helping.forget_help_lines)

    def delete_queryset(self, request, queryset) -> None:
        super().delete_queryset(request, queryset)
        transaction.on_commit(helping.forget_help_lines)
