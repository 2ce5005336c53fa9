"""``humanval``: the test set as it was frozen; before one is, the statements whose places are all filled.

The rows of a frozen set are those its checksum is of (``analysis.humanval.checksum``), whatever is answered later.
"""

from collections.abc import Mapping

from django.db.models import Count, F, FloatField, TextField, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, NullIf

from analysis.exports import answers
from analysis.exports.annotated import COLUMNS as OF_ANNOTATED
from analysis.exports.annotated import GROUPED_BY, STATEMENT, label_and_method, of_annotators
from analysis.exports.columns import READ_JUDGEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import OF_LABELS, WrongFilter, first_answers, of_statements
from analysis.models import HumanvalSet, HumanvalStatement

COLUMNS = (
    *OF_ANNOTATED,
    Column("n_annotators", Kind.INTEGER, "How many annotators judged it; 0: all said that it cannot be understood."),
    Column("toxicity_class", Kind.WORD, "non-toxic, ambiguous or toxic: of the larger mean of the two harm scores."),
    Column("share_agreeing", Kind.NUMBER, "The share of annotators in the toxicity class that most of them gave."),
)
FROZEN_WORDS = ("factual?", "ingroup_effect", "lewd", "framing", "predicted_group", "stereotyping")
FROZEN_ANSWERS = (*FROZEN_WORDS, "intent", "predicted_author")
"""What ``HumanvalStatement.answers`` has, by the names of the columns."""


def of_counted() -> tuple[Combinable, ...]:
    """The cells of a statement whose counted annotations are grouped, in the order of the columns."""
    return (*of_annotators(), Count("pk"), answers.statement_class(), answers.share_agreeing())


def frozen_rows(humanval_set: HumanvalSet) -> list[tuple]:
    """The rows of a frozen set in the order of the columns, as they are exported without filters."""
    cells = {f"c{number}": cell for number, cell in enumerate(_as_frozen())}
    return list(humanval_set.statements.order_by("generation").annotate(**cells).values_list(*cells))


def _rows(filters: Mapping) -> list[Rows]:
    frozen = filters.get("humanval_version") or HumanvalSet.objects.frozen().first()
    if frozen is None:
        return _not_frozen(filters)
    if days := filters.keys() & {"submitted_from", "submitted_to"}:
        sentence = f"{frozen} is frozen: its labels belong to no day. Leave the days out, or export annotated."
        raise WrongFilter({name: [sentence] for name in days})
    statements = HumanvalStatement.objects.filter(of_statements(filters, "generation__"), humanval_set=frozen)
    if "study" in filters:
        statements = statements.filter(humanval_set__hit_type__in=filters["study"])
    return [Rows(statements, F("generation_id"), _as_frozen())]


def _not_frozen(filters: Mapping) -> list[Rows]:
    all_filled = {"assignment__hit__free_places": 0, "assignment__hit__open_assignments": 0}
    return [Rows(first_answers(filters, **all_filled), F(f"{STATEMENT}pk"), of_counted(), by=GROUPED_BY)]


def _as_frozen() -> tuple[Combinable, ...]:
    return (
        answers.released_text("generation__text"),
        F("generation__group__slug"),
        *(KeyTextTransform(name, "answers") for name in FROZEN_WORDS),
        Cast(KeyTextTransform("intent", "answers"), FloatField()),
        F("harmful_if_ai"),
        F("harmful_if_human"),
        KeyTextTransform("predicted_author", "answers"),
        *label_and_method("generation__"),
        F("annotators"),
        NullIf("toxicity_class", Value(""), output_field=TextField()),
        F("share_agreeing"),
    )


HUMANVAL = Export(
    name="humanval",
    about="The test set as it was frozen, with its labels and how far the annotators agree. Before one is frozen: all "
    "statements that were judged as often as was wanted.",
    a_row="a statement",
    permissions=READ_JUDGEMENTS,
    takes=(*OF_LABELS, "humanval_version"),
    columns=lambda filters: COLUMNS,
    rows=_rows,
)
