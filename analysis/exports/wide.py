"""``wide``: one row a statement with the toxicity class that each annotator gave, as HateCheck's file has it."""

from collections.abc import Mapping

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, F, Func, Max, TextField

from analysis.exports import answers
from analysis.exports.annotated import GROUPED_BY, STATEMENT
from analysis.exports.columns import READ_JUDGEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import OF_LABELS, first_answers

BEFORE = (
    Column("id", Kind.INTEGER, "The statement's number."),
    Column("text", Kind.TEXT, "The statement."),
    Column("target_group", Kind.WORD, "The slug of the group that the prompt is about."),
    Column("prompt_label", Kind.WORD, "benign or toxic."),
    Column("generation_method", Kind.WORD, "topk, alice, or written."),
    Column("n", Kind.INTEGER, "How many annotators judged it."),
)
AFTER = (Column("majority_label", Kind.WORD, "The class that more than half of them gave, or disagreement."),)


def _most_annotators(filters: Mapping) -> int:
    each = first_answers(filters).order_by().values(f"{STATEMENT}pk").annotate(number=Count("pk"))
    return each.aggregate(most=Max("number"))["most"] or 0


def _columns(filters: Mapping) -> tuple[Column, ...]:
    labels = (
        Column(f"label_{number}", Kind.WORD, f"The toxicity class that annotator {number} of the statement gave.")
        for number in range(1, _most_annotators(filters) + 1)
    )
    return (*BEFORE, *labels, *AFTER)


def _rows(filters: Mapping) -> list[Rows]:
    given = ArrayAgg(answers.class_of(answers.toxicity()), order_by=answers.IN_ORDER)
    labels = (
        Func(given, template=f"(%(expressions)s)[{number}]", output_field=TextField())
        for number in range(1, _most_annotators(filters) + 1)
    )
    of_statement = (F(f"{STATEMENT}{field}") for field in ("pk", "text", "group__slug", "label", "method"))
    cells = (*of_statement, Count("pk"), *labels, answers.class_of_most())
    return [Rows(first_answers(filters), F(f"{STATEMENT}pk"), cells, by=GROUPED_BY)]


WIDE = Export(
    name="wide",
    about="Every statement that people judged, with each annotator's toxicity class in a column of its own.",
    a_row="a statement",
    permissions=READ_JUDGEMENTS,
    takes=OF_LABELS,
    columns=_columns,
    rows=_rows,
    shown_columns="id, text, target_group, prompt_label, generation_method, n, label_1 … label_n, majority_label",
)
