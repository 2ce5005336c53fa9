"""``annotated``: one row a statement with what its annotators made of it, in the words of the release.

A statement with counted annotations is told from these. One whose human label was imported, and that nobody judged
here, has the label as the file gave it.
"""

from collections.abc import Mapping

from django.db.models import Case, Exists, F, OuterRef, TextField, Value, When
from django.db.models.expressions import Combinable

from analysis.exports import answers
from analysis.exports.columns import READ_JUDGEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import OF_LABELS, first_answers, of_statements
from analysis.models import HumanLabel
from analysis.released import ANNOTATED_LABELS, ANNOTATED_METHODS
from annotator.models import Annotation

STATEMENT = "assignment__hit__generation__"
GROUPED_BY = tuple(
    STATEMENT.removesuffix("__") if not field else STATEMENT + field
    for field in ("", "text", "group__slug", "label", "method")
)
"""A statement, and what else of it is told, which follows from it."""

COLUMNS = (
    Column("text", Kind.TEXT, "The statement."),
    Column("target_group", Kind.WORD, "The slug of the group that the prompt is about."),
    Column("factual?", Kind.WORD, "Whether it claims to be factual: the answer of more than half, or disagreement."),
    Column("ingroup_effect", Kind.WORD, "As imported. The study's questions do not ask for it."),
    Column("lewd", Kind.WORD, "Whether it contains sexual content: the answer of more than half, or disagreement."),
    Column("framing", Kind.WORD, "How it frames the group: the answer of more than half, or disagreement."),
    Column("predicted_group", Kind.TEXT, "Whom annotators saw referred to: one sentence, or a Python list of them."),
    Column("stereotyping", Kind.WORD, "Positive stereotyping: the answer of more than half, or disagreement."),
    Column("intent", Kind.NUMBER, "Mean of HARMFULINTENT, 1 to 5."),
    Column("toxicity_ai", Kind.NUMBER, "Mean of HARMFULIFAI, 1 to 5."),
    Column("toxicity_human", Kind.NUMBER, "Mean of HARMFULIFHUMAN, 1 to 5."),
    Column("predicted_author", Kind.WORD, "Who annotators think wrote it: human or ai, or disagreement."),
    Column("label", Kind.WORD, "The prompt's label: hate for a toxic prompt, neutral for a benign one."),
    Column("actual_method", Kind.WORD, "TopK, CBS (ALICE), or written by a person."),
)


def of_annotators(to_statement: str = STATEMENT) -> tuple[Combinable, ...]:
    """The cells of a statement whose annotations are grouped."""
    slug = f"{to_statement}group__slug"
    return (
        answers.released_text(f"{to_statement}text"),
        F(slug),
        answers.word_of_most("fact_or_opinion"),
        Value(""),
        answers.word_of_most("lewd"),
        answers.word_of_most("group_framing"),
        answers.predicted_group(slug),
        answers.word_of_most("pos_stereo"),
        answers.mean("harmful_intent"),
        answers.mean("harmful_if_ai"),
        answers.mean("harmful_if_human"),
        answers.word_of_most("human_or_ai"),
        *label_and_method(to_statement),
    )


def _as_imported() -> tuple[Combinable, ...]:
    """The cells of a statement whose human label was imported."""
    return (
        answers.released_text("generation__text"),
        F("generation__group__slug"),
        *map(F, ("factual", "ingroup_effect", "lewd", "framing", "predicted_group", "stereotyping")),
        *map(F, ("intent", "toxicity_ai", "toxicity_human", "predicted_author")),
        *label_and_method("generation__"),
    )


def label_and_method(to_statement: str) -> tuple[Case, Case]:
    return tuple(
        Case(
            *(When(**{to_statement + field: ours}, then=Value(theirs)) for ours, theirs in words.items()),
            output_field=TextField(),
        )
        for field, words in (("label", ANNOTATED_LABELS), ("method", ANNOTATED_METHODS))
    )


def _rows(filters: Mapping) -> list[Rows]:
    rows = [Rows(first_answers(filters), F(f"{STATEMENT}pk"), of_annotators(), by=GROUPED_BY)]
    # An imported label belongs to no study and no day.
    if not filters.keys() & {"study", "submitted_from", "submitted_to"}:
        judged_here = Annotation.objects.counted().filter(assignment__hit__generation=OuterRef("generation"))
        labels = HumanLabel.objects.filter(~Exists(judged_here), of_statements(filters, "generation__"))
        rows.append(Rows(labels, F("generation_id"), _as_imported()))
    return rows


ANNOTATED = Export(
    name="annotated",
    about="Every statement that people judged, with what most of them answered and the means of their scores.",
    a_row="a statement",
    permissions=READ_JUDGEMENTS,
    takes=(*OF_LABELS, "humanval"),
    columns=lambda filters: COLUMNS,
    rows=_rows,
)
