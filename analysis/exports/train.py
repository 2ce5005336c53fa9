"""``train``: every statement that a language model wrote, with its prompt, as the release has it."""

from collections.abc import Mapping

from django.db.models import Case, F, TextField, Value, When
from django.db.models.functions import Coalesce

from analysis.exports.columns import READ_STATEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import OF_TRAINING, in_studies, of_statements
from analysis.released import TRAIN_LABELS, TRAIN_METHODS
from generation.models import Generation, Label, Method

COLUMNS = (
    Column("prompt", Kind.TEXT, "What the language model continued; empty where it is not known."),
    Column("generation", Kind.TEXT, "The statement."),
    Column("generation_method", Kind.WORD, "ALICE or TopK."),
    Column("group", Kind.WORD, "The slug of the group that the prompt is about."),
    Column("prompt_label", Kind.INTEGER, "1 for a toxic prompt, 0 for a benign one."),
    Column("roberta_prediction", Kind.NUMBER, "A classifier's probability that the statement is toxic."),
)


def _rows(filters: Mapping) -> list[Rows]:
    cells = (
        Coalesce("prompt__text", Value(""), output_field=TextField()),
        F("text"),
        Case(*(When(method=method, then=Value(TRAIN_METHODS[method])) for method in (Method.ALICE, Method.TOPK))),
        F("group__slug"),
        Case(*(When(label=label, then=Value(int(TRAIN_LABELS[label]))) for label in Label)),
        F("toxic_prob"),
    )
    statements = Generation.objects.exclude(method=Method.WRITTEN).filter(of_statements(filters), in_studies(filters))
    return [Rows(statements, F("pk"), cells)]


TRAIN = Export(
    name="train",
    about="Every statement that a language model wrote, with its prompt and the classifier's verdict.",
    a_row="a statement",
    permissions=READ_STATEMENTS,
    takes=OF_TRAINING,
    columns=lambda filters: COLUMNS,
    rows=_rows,
)
