"""Statements with known answers in the workspace."""

from django import forms
from django.contrib import admin
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
)

from annotator.models import KnownAnswers
from annotator.questions import QUESTIONS, Option, Question
from generation.admin import WorkspaceAdmin, blurred
from generation.models import Generation, Label, Method, TargetGroup

ONE_STATEMENT = "Choose a statement that there is, or write one: one of the two."
AT_LEAST_ONE = "Tick the right answers of at least one question."


def label_of(question: Question, option: Option) -> str:
    """What the annotator reads of an answer; the ends of a scale with their meaning."""
    least_and_most = (question.options[0], question.options[-1])
    if not question.is_scale or option not in least_and_most:
        return option.label
    return f"{option.label}: {question.ends[least_and_most.index(option)].lower()}"


def right_answers(question: Question) -> forms.TypedMultipleChoiceField:
    return forms.TypedMultipleChoiceField(
        label=f"{question.number}. {question.wording}",
        choices=[(option.value, label_of(question, option)) for option in question.options],
        coerce=int if question.is_scale else str,
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )


RightAnswers = type("RightAnswers", (forms.Form,), {question.key: right_answers(question) for question in QUESTIONS})
"""For each of the nine questions the answers that are right; one without any may be answered in any way."""


class KnownAnswersForm(forms.ModelForm, RightAnswers):
    """A statement, chosen or written here, and the answers to it that are right."""

    text = forms.CharField(
        label="or a new text",
        required=False,
        widget=UnfoldAdminTextareaWidget,
        help_text="Your own, as an attention check: annotators must be able to tell the right answers.",
    )
    group = forms.ModelChoiceField(
        TargetGroup.objects.all(),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Which group the annotators are told that the new text is about.",
    )
    label = forms.ChoiceField(
        choices=Label.choices,
        initial=Label.BENIGN,
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Whether the new text is harmless or not; annotators do not see it.",
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.initial = (self.instance.expected or {}) | self.initial
        if self.instance.pk:
            for name in ("text", "group", "label"):
                del self.fields[name]  # the statement stays
        else:
            self.fields["generation"].required = False
            self.fields["generation"].help_text = "Search by its words."

    def clean(self) -> dict:
        cleaned = super().clean()
        if self.instance.pk is None:
            self._check_statement(cleaned)
        expected = {question.key: cleaned[question.key] for question in QUESTIONS if cleaned.get(question.key)}
        if not expected and not any(question.key in self.errors for question in QUESTIONS):
            self.add_error(None, AT_LEAST_ONE)
        self.instance.expected = expected
        return cleaned

    def _check_statement(self, cleaned: dict) -> None:
        if "generation" in self.errors or "text" in self.errors:
            return
        if bool(cleaned.get("generation")) == bool(cleaned.get("text")):
            self.add_error("generation", ONE_STATEMENT)
        elif cleaned.get("text") and not cleaned.get("group") and "group" not in self.errors:
            self.add_error("group", "Choose the group that the annotators are told the new text is about.")

    def _post_clean(self) -> None:
        """Check the row once all that makes it is right: what it complains of has no field of its own here."""
        if not self.errors:
            super()._post_clean()


@admin.register(KnownAnswers)
class KnownAnswersAdmin(WorkspaceAdmin):
    form = KnownAnswersForm
    list_display = ["__str__", "statement", "group_of_statement", "right", "used_in", "note"]
    list_filter = ["generation__group", "generation__method", "studies"]
    list_select_related = ["generation__group"]
    search_fields = ["generation__text", "note"]
    autocomplete_fields = ["generation"]
    readonly_fields = ["statement", "group_of_statement"]

    def get_queryset(self, request):
        return super().get_queryset(request).prefetch_related("studies")

    def get_fieldsets(self, request, obj=None):
        new = ["generation", "text", ("group", "label"), "note"]
        return [
            ("Statement", {"fields": new if obj is None else ["statement", "group_of_statement", "note"]}),
            (
                "Right answers",
                {
                    "fields": [question.key for question in QUESTIONS],
                    "description": "Tick every answer that a careful annotator might give. A question without a tick "
                    "may be answered in any way.",
                },
            ),
        ]

    @admin.display
    def statement(self, known):
        return blurred(known.generation.text)

    @admin.display(description="group", ordering="generation__group")
    def group_of_statement(self, known) -> str:
        return str(known.generation.group)

    @admin.display(description="right answers")
    def right(self, known) -> str:
        return "; ".join(
            f"{question.number}: {' or '.join(labels_of(question, known.expected[question.key]))}"
            for question in QUESTIONS
            if question.key in known.expected
        )

    @admin.display(description="used in")
    def used_in(self, known) -> str:
        return ", ".join(str(study) for study in known.studies.all()) or "–"

    def save_model(self, request, obj, form, change) -> None:
        if not change:
            obj.created_by = request.user
        if text := form.cleaned_data.get("text"):
            obj.generation = Generation.objects.create(
                text=text,
                group=form.cleaned_data["group"],
                label=form.cleaned_data["label"] or Label.BENIGN,
                method=Method.WRITTEN,
            )
        super().save_model(request, obj, form, change)

    def has_delete_permission(self, request, obj=None) -> bool:
        """Studies' checks and test results rest on them."""
        return False


def labels_of(question: Question, values: list) -> list[str]:
    return [option.label for option in question.options if option.value in values]
