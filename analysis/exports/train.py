"""``train``: every statement that a language model wrote, with its prompt, as the release has it."""

from collections.abc import Mapping
from dataclasses import replace

from django.db.models import Case, F, OuterRef, QuerySet, Subquery, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from analysis.exports.columns import READ_STATEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import OF_TRAINING, in_studies, of_statements
from analysis.released import TRAIN_LABELS, TRAIN_METHODS
from generation.models import Generation, Label, Method, ToxicityScore
from generation.read_values import unread

COLUMNS = (
    Column("prompt", Kind.TEXT, "What the language model continued; empty where it is not known."),
    Column("generation", Kind.TEXT, "The statement."),
    Column("generation_method", Kind.WORD, "ALICE or TopK."),
    Column("group", Kind.WORD, "The slug of the group that the prompt is about."),
    Column("prompt_label", Kind.INTEGER, "1 for a toxic prompt, 0 for a benign one."),
    Column("roberta_prediction", Kind.NUMBER, "A classifier's probability that the statement is toxic."),
)


def statements_of(filters: Mapping) -> QuerySet[Generation]:
    """The statements that the filters leave."""
    return Generation.objects.exclude(method=Method.WRITTEN).filter(of_statements(filters), in_studies(filters))


def without_score(filters: Mapping) -> int:
    """How many of them the classifier among the filters has not scored; 0 without one."""
    return unread(statements_of(filters), filters["classifier"]).count() if "classifier" in filters else 0


def _columns(filters: Mapping) -> tuple[Column, ...]:
    if "classifier" not in filters:
        return COLUMNS
    *others, prediction = COLUMNS
    meaning = f"The probability that the statement is toxic by {filters['classifier']}; empty where there is none."
    return (*others, replace(prediction, meaning=meaning))


def _rows(filters: Mapping) -> list[Rows]:
    cells = (
        Coalesce("prompt__text", Value(""), output_field=TextField()),
        F("text"),
        Case(*(When(method=method, then=Value(TRAIN_METHODS[method])) for method in (Method.ALICE, Method.TOPK))),
        F("group__slug"),
        Case(*(When(label=label, then=Value(int(TRAIN_LABELS[label]))) for label in Label)),
        _prediction(filters),
    )
    return [Rows(statements_of(filters), F("pk"), cells)]


def _prediction(filters: Mapping) -> Combinable:
    """The classifier's probability: looked up by an index for each row, whatever other classifiers have scored."""
    if "classifier" not in filters:
        return F("toxic_prob")
    scores = ToxicityScore.objects.filter(reader=filters["classifier"], generation=OuterRef("pk"))
    return Subquery(scores.values("toxic_prob"))


TRAIN = Export(
    name="train",
    about="Every statement that a language model wrote, with its prompt and the classifier's verdict.",
    a_row="a statement",
    permissions=READ_STATEMENTS,
    takes=OF_TRAINING,
    columns=_columns,
    rows=_rows,
)
