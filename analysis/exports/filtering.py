"""Which statements and annotations an export holds: one form for the page, the API and the command line."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.datastructures import MultiValueDict
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldBooleanSwitchWidget,
)

from analysis.exports.fields import ReaderField, SlugsField, day, score, version, words
from analysis.models import HumanvalSet, HumanvalStatement, RemovedFromTraining
from annotator.models import COUNTED_STATUSES, HIT, Annotation, HITType
from generation.models import GenerationRun, Label, Method, TargetGroup, TextReader, ToxicityScore

OF_STATEMENTS = ("group", "label", "method", "run", "imported", "study", "score_min", "score_max")
OF_TRAINING = (*OF_STATEMENTS, "humanval", "classifier")
OF_LABELS = (*OF_STATEMENTS, "submitted_from", "submitted_to")
OF_ANNOTATIONS = (*OF_LABELS, "counted")
YES_NO = {"yes": True, "no": False}


class WrongFilter(ValueError):
    """A filter has a value that it cannot have; ``faults`` are sentences by the name of the filter.

    ``on_page`` are the same in the words of the form, where these are others.
    """

    def __init__(self, faults: Mapping[str, list[str]], *, on_page: Mapping[str, list[str]] | None = None) -> None:
        super().__init__(" ".join(sentence for sentences in faults.values() for sentence in sentences))
        self.faults = dict(faults)
        self.on_page = dict(on_page or faults)


class FilterForm(forms.Form):
    """The filters by their names. What is left empty leaves nothing out."""

    group = SlugsField()
    label = words("Prompt labels", Label.choices, what="label")
    method = words("Methods", Method.choices, what="method")
    run = forms.ModelChoiceField(
        GenerationRun.objects.all(),
        required=False,
        label="Run",
        help_text="Its number.",
        widget=UnfoldAdminIntegerFieldWidget,
        error_messages={"invalid_choice": "There is no run “%(value)s”. Give the number of one that there is."},
    )
    imported = forms.TypedChoiceField(
        choices=[("", "All"), ("yes", "Imported only"), ("no", "Not imported")],
        coerce=YES_NO.get,
        empty_value=None,
        required=False,
        label="Imported statements",
        widget=UnfoldAdminSelectWidget,
        error_messages={"invalid_choice": "Give “yes” for imported statements alone, or “no” for all others."},
    )
    study = forms.ModelMultipleChoiceField(
        HITType.objects.all(),
        required=False,
        label="Studies",
        widget=UnfoldAdminSelectMultipleWidget,
        error_messages={
            name: f"There is no study “%({parameter})s”. Give the number of one that there is."
            for name, parameter in (("invalid_choice", "value"), ("invalid_pk_value", "pk"))
        },
    )
    score_min = score("Classifier's score, from")
    score_max = score("Classifier's score, to")
    submitted_from = day("Submitted from", "The first day, in UTC.")
    submitted_to = day("Submitted to", "The last day, in UTC.")
    classifier = ReaderField()
    counted = forms.TypedChoiceField(
        choices=[("", "All"), ("yes", "Counted as labels only"), ("no", "Not counted only")],
        coerce=YES_NO.get,
        empty_value=None,
        required=False,
        label="Annotations",
        widget=UnfoldAdminSelectWidget,
        error_messages={"invalid_choice": "Give “yes” for annotations that count as labels, or “no” for all others."},
    )

    humanval = version(
        HumanvalSet.objects.drawn(),
        "Leave out a test set",
        "The version of a HUMANVAL set: its statements, those too similar to them, and those not compared with them.",
        what="HUMANVAL set that was drawn",
    )
    humanval_version = version(
        HumanvalSet.objects.frozen(),
        "HUMANVAL version",
        "The newest one that is frozen, unless you choose another.",
        what="frozen HUMANVAL set",
    )

    def clean(self) -> dict:
        filled = super().clean()
        for first, last, what in (("score_min", "score_max", "score"), ("submitted_from", "submitted_to", "day")):
            low, high = filled.get(first), filled.get(last)
            if low is not None and high is not None and low > high:
                self.add_error(last, f"The last {what} lies before the first: {high} is less than {low}.")
        return filled


class ExportForm(FilterForm):
    """The filters, and how text cells are written."""

    excel_safe = forms.BooleanField(
        required=False,
        label="Safe for spreadsheets (CSV)",
        help_text="A cell that a spreadsheet would run as a formula gets an apostrophe in front. "
        "Leave it off for anything but a spreadsheet: the text is then exactly as it was written.",
        widget=UnfoldBooleanSwitchWidget,
    )


def filters_from(data: Mapping, *, takes: tuple[str, ...], export: str) -> dict:
    """The filters that ``data``, a form's or a plain mapping, sets, by name, for an export that takes these.

    Raises ``WrongFilter`` for a value that cannot be and for a filter that the export does not take.
    """
    form = FilterForm(given(data))
    if not form.is_valid():
        raise WrongFilter({name: list(sentences) for name, sentences in form.errors.items()})
    chosen = {name: value for name, value in form.cleaned_data.items() if not is_empty(value)}
    foreign = [name for name in chosen if name not in takes]
    if foreign:
        labels = {name: field.label for name, field in form.fields.items()}
        raise WrongFilter(
            {name: [_not_taken(name, takes, export)] for name in foreign},
            on_page={name: [_not_taken(labels[name], [labels[one] for one in takes], export)] for name in foreign},
        )
    return chosen


def _not_taken(name: str, takes: Sequence[str], export: str) -> str:
    separator = "; " if any("," in one for one in takes) else ", "
    return f"The export {export} has no filter “{name}”. It takes: {separator.join(takes)}."


def given(data: Mapping) -> MultiValueDict:
    """What is not left empty, as a form takes it."""
    each = data.lists() if isinstance(data, MultiValueDict) else data.items()
    given = {name: value if isinstance(value, list | tuple) else [value] for name, value in each}
    return MultiValueDict({name: [one for one in values if one != ""] for name, values in given.items()})


def is_empty(value) -> bool:
    return value in (None, "") or (hasattr(value, "__len__") and not len(value))


def in_words(filters: Mapping) -> dict:
    """Filters as the audit trail keeps them: JSON, things by the name or number that the filter takes."""
    return {name: _told(value) for name, value in filters.items()}


def _told(value):
    if isinstance(value, QuerySet | list | tuple):
        return [_told(one) for one in value]
    if isinstance(value, TargetGroup):
        return value.slug
    if isinstance(value, GenerationRun | HITType | TextReader):
        return value.pk
    if isinstance(value, HumanvalSet):
        return value.version
    return value if isinstance(value, bool | int | float | str) else str(value)


def of_statements(filters: Mapping, to_statement: str = "") -> Q:
    """What the filters ask of a statement; ``to_statement`` is the way to it, ending in two underscores."""
    asked = Q()
    for name, lookup in (("group", "group__in"), ("label", "label__in"), ("method", "method__in"), ("run", "run")):
        if name in filters:
            asked &= Q(**{to_statement + lookup: filters[name]})
    asked &= _scored(filters, to_statement)
    if "imported" in filters:
        imported = Q(**{f"{to_statement}run": None}) & ~Q(**{f"{to_statement}method": Method.WRITTEN})
        asked &= imported if filters["imported"] else ~imported
    if "humanval" in filters:
        asked &= for_training(filters["humanval"], to_statement)
    return asked


def _scored(filters: Mapping, to_statement: str) -> Q:
    """That its score is in the range: the classifier's that is chosen, or else the one that was stored with it."""
    limits = (("score_min", "toxic_prob__gte"), ("score_max", "toxic_prob__lte"))
    asked = {lookup: filters[name] for name, lookup in limits if name in filters}
    if asked and "classifier" in filters:
        scores = ToxicityScore.objects.filter(reader=filters["classifier"], **asked)
        return Q(Exists(scores.filter(generation=OuterRef(f"{to_statement}pk"))))
    return Q(**{to_statement + lookup: limit for lookup, limit in asked.items()})


def for_training(humanval_set: HumanvalSet, to_statement: str = "") -> Q:
    """That a statement was compared with a test set, is not of it, and not too similar to one of it."""
    its_own = {"humanval_set": humanval_set, "generation": OuterRef(f"{to_statement}pk")}
    compared = {f"{to_statement}pk__lte": humanval_set.compared_up_to}
    return (
        Q(**compared)
        & ~Q(**{f"{to_statement}method": Method.WRITTEN})
        & ~Q(Exists(HumanvalStatement.objects.filter(**its_own)))
        & ~Q(Exists(RemovedFromTraining.objects.filter(**its_own)))
    )


def in_studies(filters: Mapping) -> Q:
    """That a statement is in one of the studies that were asked for."""
    if "study" not in filters:
        return Q()
    return Q(Exists(HIT.objects.filter(generation=OuterRef("pk"), hit_type__in=filters["study"])))


def of_annotations(filters: Mapping) -> Q:
    """What the filters ask of an annotation and of its statement."""
    asked = of_statements(filters, "assignment__hit__generation__")
    if "study" in filters:
        asked &= Q(assignment__hit__hit_type__in=filters["study"])
    if "submitted_from" in filters:
        asked &= Q(assignment__submitted_at__gte=datetime.combine(filters["submitted_from"], time.min, UTC))
    if "submitted_to" in filters:
        asked &= Q(assignment__submitted_at__lte=datetime.combine(filters["submitted_to"], time.max, UTC))
    if "counted" in filters:
        asked &= IS_COUNTED if filters["counted"] else ~IS_COUNTED
    return asked


def first_answers(filters: Mapping, **besides) -> QuerySet[Annotation]:
    """The counted annotations that labels are made of: of those that are left, each annotator's first of a statement.

    Somebody may judge a statement again in another study. ``besides`` is asked of annotations like the filters.
    """
    counted = Annotation.objects.counted().filter(of_annotations(filters), **besides)
    same = {name: OuterRef(name) for name in ("assignment__worker", "assignment__hit__generation")}
    return counted.filter(~Exists(counted.order_by().filter(pk__lt=OuterRef("pk"), **same)))


IS_COUNTED = Q(
    not_understood=False,
    assignment__hit__is_check=False,
    assignment__holds_place=True,
    assignment__status__in=COUNTED_STATUSES,
)
"""The rule of ``AnnotationQuerySet.counted`` as a condition; a test holds the two together."""
