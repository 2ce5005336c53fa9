"""Demonstrations in the workspace: the list of all, and a page for each; sets have pages of their own."""

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import helpers
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as Invalid
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from unfold.admin import ModelAdmin

from generation import demonstrating
from generation.admin import histories, sets, trials
from generation.admin.texts import blurred
from generation.demonstrating import (
    LONGEST_REASON,
    AlreadyInSet,
    MayNotFillToxicSet,
    NotADemonstration,
    ReasonMissing,
    may_fill,
    set_name,
    tidy,
)
from generation.models import Demonstration, Label


class DemonstrationForm(forms.ModelForm):
    """A sentence as prompts show it."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.label == Label.TOXIC and "text" in self.fields:
            self.fields["text"].widget.attrs["class"] = f"{self.fields['text'].widget.attrs.get('class', '')} blurred"

    def clean(self) -> dict:
        """Group and label are not on the form of one that there is, so that nothing else compares it to its set."""
        cleaned = super().clean()
        if self.instance.pk and "text" in cleaned:
            others = self.instance.group.demonstrations.exclude(pk=self.instance.pk)
            if others.filter(label=self.instance.label, text=cleaned["text"]).exists():
                self.add_error("text", "This sentence is in the set already.")
        return cleaned

    def clean_text(self) -> str:
        try:
            return tidy(self.cleaned_data["text"])
        except NotADemonstration as fault:
            raise Invalid(str(fault)) from fault


@admin.register(Demonstration)
class DemonstrationAdmin(ModelAdmin):
    form = DemonstrationForm
    list_display = ["blurred_text", "group", "label", "origin", "in_use"]
    list_filter = ["label", "group", "origin"]
    search_fields = ["text"]
    list_select_related = ["group"]
    actions = ["retire"]
    add_fields = [("group", "label"), "text"]
    fields = [
        "text", ("group", "label"), ("origin", "created_by", "created_at"), ("retired_at", "retired_reason"),
    ]  # fmt: skip
    readonly_fields = ["group", "label", "origin", "created_by", "created_at", "retired_at", "retired_reason"]

    @admin.display(description="text")
    def blurred_text(self, demonstration):
        return blurred(demonstration.text) if demonstration.label == Label.TOXIC else demonstration.text

    @admin.display(boolean=True, description="in use")
    def in_use(self, demonstration) -> bool:
        return demonstration.is_in_use

    def get_urls(self):
        return [*sets.urls(), *trials.urls(), *histories.urls(), *super().get_urls()]

    def get_fields(self, request, obj=None):
        if obj is None:
            return self.add_fields
        if obj.label == Label.TOXIC:
            return ["blurred_text", *self.fields] if self.has_change_permission(request, obj) else [
                "blurred_text", *self.fields[1:]
            ]  # fmt: skip
        return self.fields

    def get_readonly_fields(self, request, obj=None):
        return [] if obj is None else [*self.readonly_fields, "blurred_text"]

    def has_change_permission(self, request, obj=None) -> bool:
        """Toxic ones are edited by those who may fill their set; retired on the set's page, by others too."""
        may_change = super().has_change_permission(request, obj)
        return may_change and (obj is None or may_fill(label=obj.label, by=request.user))

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except MayNotFillToxicSet as refused:
            raise PermissionDenied(str(refused)) from refused
        except AlreadyInSet as fault:  # the form found nothing wrong: somebody was quicker, maybe a second click
            messages.error(request, str(fault))
            return redirect(request.get_full_path())

    def save_model(self, request, obj, form, change) -> None:
        if change:
            demonstrating.edit(demonstration_id=obj.pk, text=obj.text, by=request.user)
            return
        added = demonstrating.add(group=obj.group, label=obj.label, texts=[obj.text], by=request.user)
        if not added.new:
            raise AlreadyInSet(f"Nothing was added: this sentence is in {set_name(obj.group, obj.label)} already.")
        obj.pk = added.new[0].pk
        obj._state.adding = False

    def history_view(self, request, object_id, extra_context=None):
        return histories.demonstration_history(request, unquote(object_id))

    @admin.action(description="Retire: draw no more prompts from them", permissions=["retire"])
    def retire(self, request: HttpRequest, queryset) -> HttpResponse | None:
        """Ask why, then retire them."""
        reason, fault = request.POST.get("reason"), ""
        if reason is not None:
            try:
                retired = demonstrating.retire(
                    ids=list(queryset.values_list("pk", flat=True)), reason=reason, by=request.user
                )
            except ReasonMissing as missing:
                fault = str(missing)
            else:
                messages.success(request, f"Demonstrations retired: {len(retired)}.")
                return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Retire demonstrations",
            "members": queryset,
            "count": queryset.count(),
            "checkbox_name": helpers.ACTION_CHECKBOX_NAME,
            "longest_reason": LONGEST_REASON,
            "fault": fault,
        }
        return render(request, "admin/generation/set/retire.html", context, status=422 if fault else 200)

    def has_retire_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("generation.change_demonstration")
