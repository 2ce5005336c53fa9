"""``humanval``: the statements whose places are all filled, with how far their annotators agree."""

from collections.abc import Mapping

from django.db.models import Count, F

from analysis.exports import answers
from analysis.exports.annotated import COLUMNS as OF_ANNOTATED
from analysis.exports.annotated import GROUPED_BY, STATEMENT, of_annotators
from analysis.exports.columns import READ_JUDGEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import OF_LABELS, of_annotations
from annotator.models import Annotation

COLUMNS = (
    *OF_ANNOTATED,
    Column("n_annotators", Kind.INTEGER, "How many annotators judged it."),
    Column("toxicity_class", Kind.WORD, "non-toxic, ambiguous or toxic: of the larger mean of the two harm scores."),
    Column("share_agreeing", Kind.NUMBER, "The share of annotators in the toxicity class that most of them gave."),
)


def _rows(filters: Mapping) -> list[Rows]:
    all_filled = {"assignment__hit__free_places": 0, "assignment__hit__open_assignments": 0}
    counted = Annotation.objects.counted().filter(of_annotations(filters), **all_filled)
    cells = (*of_annotators(), Count("pk"), answers.statement_class(), answers.share_agreeing())
    return [Rows(counted, F(f"{STATEMENT}pk"), cells, by=GROUPED_BY)]


HUMANVAL = Export(
    name="humanval",
    about="The statements that were judged as often as was wanted, and how far their annotators agree.",
    a_row="a statement",
    permissions=READ_JUDGEMENTS,
    takes=OF_LABELS,
    columns=lambda filters: COLUMNS,
    rows=_rows,
)
