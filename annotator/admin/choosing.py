"""The page on which statements of a study are chosen: which ones, how many, a preview, and publishing just these."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
)

from annotator import choosing, publishing, wages
from annotator.durations import HOUR, in_words
from annotator.models import HITType
from generation.models import GenerationRun, Label, Method, TargetGroup

RUNS_OFFERED = 200
SAMPLE = 12
A_CELL = 10
IMPORTED = "imported"
NOWHERE, NOT_HERE = "nowhere", "not_here"
WRONG_WAY_ROUND = "The score begins above its end: exchange the two."
PERMISSIONS = ["annotator.change_hittype", "generation.view_generation"]


class ChoiceForm(forms.Form):
    """Which statements to draw from, how many of each cell, and the seed of the draw."""

    groups = forms.ModelMultipleChoiceField(
        TargetGroup.objects.all(),
        required=False,
        to_field_name="slug",
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="Target groups",
        help_text="None ticked: all.",
    )
    labels = forms.MultipleChoiceField(
        choices=Label.choices,
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="Prompt labels",
        help_text="None ticked: both.",
    )
    methods = forms.MultipleChoiceField(
        choices=[(method.value, method.label) for method in choosing.METHODS],
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="Methods",
        help_text="None ticked: both.",
    )
    source = forms.ChoiceField(required=False, widget=UnfoldAdminSelectWidget, label="Where they come from")
    judged = forms.ChoiceField(
        choices=[(NOWHERE, "In no study, and without human labels"), (NOT_HERE, "Not in this study")],
        initial=NOWHERE,
        widget=UnfoldAdminSelectWidget,
        label="Not yet annotated",
    )
    toxic_from = forms.FloatField(
        required=False,
        min_value=0,
        max_value=1,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any", "placeholder": "0"}),
        label="Classifier score from",
        help_text="Probability that the text is toxic, 0 to 1.",
    )
    toxic_to = forms.FloatField(
        required=False,
        min_value=0,
        max_value=1,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any", "placeholder": "1"}),
        label="to",
        help_text="With either, statements without a score are left out.",
    )
    a_cell = forms.IntegerField(
        min_value=1,
        max_value=choosing.MOST_A_CELL,
        initial=A_CELL,
        widget=UnfoldAdminIntegerFieldWidget,
        label="Statements of each cell",
        help_text="So many of each group, label and method.",
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=choosing.SEED_LIMIT - 1,
        initial=choosing.new_seed,
        widget=UnfoldAdminIntegerFieldWidget,
        label="Seed",
        help_text="The same one draws the same statements again.",
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        runs = GenerationRun.objects.order_by("-pk")[:RUNS_OFFERED]
        self.fields["source"].choices = [
            ("", "Anywhere"),
            (IMPORTED, "Imported"),
            *((str(run.pk), f"Run {run.pk}: {run.get_method_display()}, {run.created_at:%-d %B %Y}") for run in runs),
        ]

    def clean(self) -> dict:
        cleaned = super().clean()
        low, high = cleaned.get("toxic_from"), cleaned.get("toxic_to")
        if low is not None and high is not None and low > high:
            self.add_error("toxic_from", WRONG_WAY_ROUND)
        return cleaned

    def order(self) -> dict:
        """What ``choosing.draw`` and ``choosing.publish_draw`` take."""
        chosen, source = self.cleaned_data, self.cleaned_data["source"]
        filters = choosing.Filters(
            groups=tuple(group.slug for group in chosen["groups"]),
            labels=tuple(chosen["labels"]),
            methods=tuple(chosen["methods"]),
            run=int(source) if source.isdecimal() else None,
            imported=source == IMPORTED,
            toxic_from=chosen["toxic_from"],
            toxic_to=chosen["toxic_to"],
            is_new=chosen["judged"] == NOWHERE,
        )
        return {"filters": filters, "a_cell": chosen["a_cell"], "seed": chosen["seed"]}


@dataclass(frozen=True)
class Preview:
    """What publishing a draw would take."""

    draw: choosing.Draw
    study: HITType
    wage: wages.Wage

    @property
    def hits(self) -> int:
        return len(self.draw.ids)

    @property
    def places(self) -> int:
        return self.hits * self.study.max_assignments

    @property
    def cost(self):
        return self.places * self.study.reward

    @property
    def time(self) -> str:
        return in_words(self.places * self.wage.time, largest=HOUR)

    @cached_property
    def columns(self) -> list[tuple[Label, Method]]:
        """The labels and methods that were asked for."""
        asked = {(cell.label, cell.method) for cell in self.draw.cells}
        return [column for column in product(Label, choosing.METHODS) if column in asked]

    @cached_property
    def rows(self) -> list[tuple[TargetGroup, list[choosing.Cell | None], int]]:
        """Of each group its cells in the order of the columns, None for one that the run does not write; their sum."""
        cells = {(cell.group.pk, cell.label, cell.method): cell for cell in self.draw.cells}
        groups = {cell.group.pk: cell.group for cell in self.draw.cells}
        rows = ((group, [cells.get((pk, *column)) for column in self.columns]) for pk, group in groups.items())
        return [(group, row, sum(cell.found for cell in row if cell)) for group, row in rows]

    @property
    def totals(self) -> list[int]:
        """What was found in each column."""
        columns = zip(*(row for _, row, _ in self.rows), strict=True)
        return [sum(cell.found for cell in column if cell) for column in columns]

    @property
    def wanted(self) -> int:
        return sum(cell.wanted for cell in self.draw.cells)

    @property
    def sample(self) -> list:
        return self.draw.sample(SAMPLE)


def filters_in_words(filters: dict) -> str:
    """What a stored draw chose from.

    >>> filters_in_words({"groups": ["asian", "women"], "methods": ["topk"], "toxic_from": 0.5, "is_new": True})
    'asian, women; topk; score 0.5 to 1; in no study before'
    >>> filters_in_words({})
    'all statements'
    """
    said = [", ".join(filters[name]) for name in ("groups", "labels", "methods") if name in filters]
    if "run" in filters:
        said.append(f"run {filters['run']}")
    if "imported" in filters:
        said.append("imported")
    if "toxic_from" in filters or "toxic_to" in filters:
        said.append(f"score {filters.get('toxic_from', 0):g} to {filters.get('toxic_to', 1):g}")
    if "is_new" in filters:
        said.append("in no study before")
    return "; ".join(said) or "all statements"


def choose(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    """GET asks, and previews what the address asks for; POST publishes exactly what was previewed."""
    if not request.user.has_perms(PERMISSIONS):
        raise PermissionDenied
    study = get_object_or_404(HITType, pk=hit_type_id)
    refusal = standing = _refusal(study)
    form = ChoiceForm((request.POST or request.GET) if request.method == "POST" or request.GET else None)
    if request.method == "POST" and not refusal and form.is_valid():
        try:
            kept = choosing.publish_draw(
                hit_type=study, **form.order(), agreed=request.POST.get("fingerprint", ""), by=request.user
            )
        except choosing.PublishedBefore as before:
            messages.info(request, str(before))
            return _to_the_study(study)
        except (choosing.CannotPublishDraw, publishing.StudyClosed, wages.PayTooLow) as refused:
            refusal = str(refused)
        else:
            messages.success(request, f"{kept.made:,} HIT{pluralize(kept.made)} published, with the seed {kept.seed}.")
            return _to_the_study(study)
    context = {
        **admin.site.each_context(request),
        "title": "Choose statements",
        "study": study,
        "form": form,
        "refusal": refusal,
        "may_publish": not standing,
        "preview": _preview(study, form),
    }
    status = 409 if request.method == "POST" and refusal else 422 if form.is_bound and form.errors else 200
    return render(request, "admin/annotator/hittype/choose.html", context, status=status)


def _preview(study: HITType, form: ChoiceForm) -> Preview | None:
    if not form.is_bound or not form.is_valid():
        return None
    return Preview(choosing.draw(hit_type=study, **form.order()), study, wages.as_of_now(study))


def _refusal(study: HITType) -> str:
    """Why nothing can be published in the study, whatever the statements."""
    try:
        publishing.refuse_to_publish(study)
    except (publishing.StudyClosed, publishing.KnownAnswersOnly, wages.PayTooLow) as refused:
        return str(refused)
    return ""


def _to_the_study(study: HITType) -> HttpResponse:
    return redirect(reverse("admin:annotator_hittype_change", args=[study.pk]))
