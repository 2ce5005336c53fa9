"""``annotations``: one row an annotation, with its statement, its worker's hash and its nine answers."""

from collections.abc import Iterator, Mapping

from django.db.models import BooleanField, Case, F, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce

from analysis.exports import answers
from analysis.exports.columns import READ_JUDGEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import IS_COUNTED, OF_ANNOTATIONS, of_annotations
from analysis.exports.workers import hash_of_worker
from annotator.models import Annotation
from annotator.questions import QUESTIONS

HIT = "assignment__hit__"
STATEMENT = f"{HIT}generation__"


def _answers() -> Iterator[tuple[Column, Combinable]]:
    for question in QUESTIONS:
        kind = Kind.INTEGER if question.is_scale else Kind.WORD
        yield Column(question.key, kind, question.wording), F(question.key)
        if question.free_text:
            yield Column(question.free_text.key, Kind.TEXT, question.free_text.label), F(question.free_text.key)


OF_THE_STATEMENT: tuple[tuple[Column, Combinable], ...] = (
    (Column("annotation_id", Kind.INTEGER, "The annotation's number."), F("pk")),
    (Column("study", Kind.TEXT, "The study's title."), F(f"{HIT}hit_type__title")),
    (Column("hit_id", Kind.INTEGER, "The HIT's number."), F("assignment__hit_id")),
    (Column("statement_id", Kind.INTEGER, "The statement's number."), F(f"{HIT}generation_id")),
    (Column("text", Kind.TEXT, "The statement."), F(f"{STATEMENT}text")),
    (Column("target_group", Kind.WORD, "The slug of the group it is about."), F(f"{STATEMENT}group__slug")),
    (Column("prompt_label", Kind.WORD, "benign or toxic."), F(f"{STATEMENT}label")),
    (Column("generation_method", Kind.WORD, "topk, alice, or written."), F(f"{STATEMENT}method")),
)
OF_THE_ASSIGNMENT: tuple[tuple[Column, Combinable], ...] = (
    (
        Column("accepted_at", Kind.WORD, "When the statement was accepted, in UTC."),
        answers.in_utc("assignment__accepted_at"),
    ),
    (
        Column("submitted_at", Kind.WORD, "When the answers were submitted, in UTC."),
        answers.in_utc("assignment__submitted_at"),
    ),
    (
        # Imported work is stored as decided; a file may say that it was not.
        Column("assignment_status", Kind.WORD, "submitted, approved or rejected."),
        Coalesce(
            KeyTextTransform("assignment_status", "imported__columns"), "assignment__status", output_field=TextField()
        ),
    ),
    (
        Column("counted", Kind.BOOLEAN, "Whether it is a label: understood, in time, not rejected and not a check."),
        Case(When(IS_COUNTED, then=Value(True)), default=Value(False), output_field=BooleanField()),
    ),
    (
        Column("not_understood", Kind.BOOLEAN, "The annotator had a lot of trouble understanding the text."),
        F("not_understood"),
    ),
)
WHAT_FOLLOWS: tuple[tuple[Column, Combinable], ...] = (
    (Column("toxicity", Kind.INTEGER, "The larger of the two harm scores, 1 to 5."), answers.toxicity()),
    (
        Column("toxicity_class", Kind.WORD, "non-toxic below 3, ambiguous at 3, toxic above."),
        answers.class_of(answers.toxicity()),
    ),
    (
        Column("prompt", Kind.TEXT, "What the language model continued; empty where it is not known."),
        Coalesce(f"{STATEMENT}prompt__text", Value(""), output_field=TextField()),
    ),
)


def _cells() -> Iterator[tuple[Column, Combinable]]:
    yield from OF_THE_STATEMENT
    worker = Column("hashed_worker_id", Kind.WORD, "A salted hash that stands for the annotator.")
    yield worker, hash_of_worker("assignment__worker")
    yield from OF_THE_ASSIGNMENT
    yield from _answers()
    yield from WHAT_FOLLOWS


def _rows(filters: Mapping) -> list[Rows]:
    annotations = Annotation.objects.filter(of_annotations(filters))
    return [Rows(annotations, F("pk"), tuple(cell for _, cell in _cells()))]


ANNOTATIONS = Export(
    name="annotations",
    about="Every annotation: the statement, the nine answers, the toxicity class, and who gave it as a salted hash.",
    a_row="an annotation",
    permissions=READ_JUDGEMENTS,
    takes=OF_ANNOTATIONS,
    columns=lambda filters: tuple(column for column, _ in _cells()),
    rows=_rows,
)
