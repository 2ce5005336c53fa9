"""``mturk``: one row an annotation, in the columns of a Mechanical Turk batch's results.

What was imported is given back as its file had it. For work done here the columns are filled as Mechanical Turk
does, but for the three approval rates: Humanval rates nobody.
"""

from collections.abc import Iterator, Mapping

from django.db.models import BooleanField, Case, F, Func, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce, Concat, NullIf, Upper

from analysis.exports.answers import in_utc, released_text
from analysis.exports.columns import READ_JUDGEMENTS, Column, Export, Kind, Rows
from analysis.exports.filtering import OF_ANNOTATIONS, of_annotations
from analysis.exports.workers import hash_of_worker, salted_hash
from analysis.released import (
    ANNOTATED_LABELS,
    FREE_TEXTS,
    KEPT,
    MTURK,
    NOT_UNDERSTOOD,
    SELECTS,
    TRAIN_LABELS,
    TRAIN_METHODS,
    one_hot_columns,
    select_words,
)
from annotator.models import Annotation, AssignmentStatus

MOMENT = "Dy Mon DD HH24:MI:SS UTC YYYY"
DIGITS_OF_AN_ID = 30
STUDY = "assignment__hit__hit_type__"
STATEMENT = "assignment__hit__generation__"
STATUS_WORDS = {
    AssignmentStatus.SUBMITTED: "Submitted",
    AssignmentStatus.APPROVED: "Approved",
    AssignmentStatus.REJECTED: "Rejected",
}


def _moment(moment: Combinable) -> Func:
    """A moment as Mechanical Turk writes it, in UTC."""
    parts = {"template": "to_char(%(expressions)s)", "arg_joiner": " AT TIME ZONE 'UTC', "}
    return Func(moment, Value(MOMENT), **parts, output_field=TextField())


def _seconds(duration: Combinable) -> Func:
    template = "floor(extract(epoch FROM %(expressions)s))::bigint::text"
    return Func(duration, template=template, output_field=TextField())


def _id(kind: str, pk: str) -> Upper:
    """Thirty characters, as Mechanical Turk's ids have, which no other installation gives to anything."""
    return Upper(salted_hash(Concat(Value(f"{kind} "), Cast(pk, TextField())), DIGITS_OF_AN_ID))


def _decided(status: AssignmentStatus) -> Case:
    moment = _moment(F("assignment__decided_at"))
    return Case(When(assignment__status=status, then=moment), output_field=TextField())


def _words(field: str, words: Mapping[str, str]) -> Case:
    return Case(
        *(When(**{field: ours}, then=Value(theirs)) for ours, theirs in words.items()), output_field=TextField()
    )


def _fixed() -> dict[str, Combinable]:
    """What stands in the fixed columns of work done here; the others stay empty."""
    dollars = Func(F("assignment__reward"), Value("FM999990.00"), function="to_char", output_field=TextField())
    return {
        "HITId": _id("hit", "assignment__hit_id"),
        "HITTypeId": _id("hit type", "assignment__hit__hit_type_id"),
        "Title": F(f"{STUDY}title"),
        "Description": F(f"{STUDY}description"),
        "Keywords": F(f"{STUDY}keywords"),
        "Reward": Concat(Value("$"), dollars),
        "CreationTime": _moment(F("assignment__hit__created_at")),
        "MaxAssignments": Cast("assignment__hit__max_assignments", TextField()),
        "AssignmentDurationInSeconds": _seconds(F(f"{STUDY}assignment_duration")),
        "AutoApprovalDelayInSeconds": _seconds(F(f"{STUDY}auto_approval_delay")),
        "Expiration": _moment(F("assignment__hit__expires_at")),
        "LifetimeInSeconds": _seconds(F(f"{STUDY}lifetime")),
        "AssignmentId": _id("assignment", "assignment_id"),
        "WorkerId": hash_of_worker("assignment__worker"),
        "AssignmentStatus": _words("assignment__status", STATUS_WORDS),
        "AcceptTime": _moment(F("assignment__accepted_at")),
        "SubmitTime": _moment(F("assignment__submitted_at")),
        "AutoApprovalTime": _moment(F("assignment__submitted_at") + F(f"{STUDY}auto_approval_delay")),
        "ApprovalTime": _decided(AssignmentStatus.APPROVED),
        "RejectionTime": _decided(AssignmentStatus.REJECTED),
        "RequesterFeedback": F("assignment__rejection_reason"),
        "WorkTimeInSeconds": _seconds(F("assignment__submitted_at") - F("assignment__accepted_at")),
    }


def _inputs() -> dict[str, Combinable]:
    return {
        "Input.prompt": F(f"{STATEMENT}prompt__text"),
        "Input.text": released_text(f"{STATEMENT}text"),
        "Input.time": in_utc(f"{STATEMENT}created_at"),
        "Input.generation_method": _words(f"{STATEMENT}method", TRAIN_METHODS),
        "Input.prompt_label": _words(f"{STATEMENT}label", ANNOTATED_LABELS),
        "Input.target_group": F(f"{STATEMENT}group__slug"),
        "Input.binary_prompt_label": _words(f"{STATEMENT}label", TRAIN_LABELS),
    }


def _answers() -> Iterator[tuple[Column, Combinable]]:
    yield (
        Column(NOT_UNDERSTOOD, Kind.FLAG, "The annotator had a lot of trouble understanding the text."),
        F("not_understood"),
    )
    for name, (question, answer) in one_hot_columns().items():
        yield Column(name, Kind.FLAG, f"Whether the answer to {question} is {answer}."), _is(question, answer)
    for question, (name, _) in SELECTS.items():
        yield Column(name, Kind.WORD, f"The answer to {question}."), _words(question, select_words(question))
    for field, name in FREE_TEXTS.items():
        yield Column(name, Kind.TEXT, f"What was written: {field}."), F(field)
    for name in KEPT:
        yield Column(name, Kind.WORD, "As imported. The study's questions do not ask for it."), _imported(name)


def _is(question: str, answer: str | int) -> Case:
    """Whether an answer was given; null where none was."""
    given = Q(**{f"{question}__isnull": False})
    return Case(
        When(Q(**{question: answer}), then=Value(True)), When(given, then=Value(False)), output_field=BooleanField()
    )


def _imported(name: str) -> KeyTextTransform:
    return KeyTextTransform(name, "imported__columns")


def _cells() -> Iterator[tuple[Column, Combinable]]:
    fixed = _fixed()
    for name in MTURK:
        yield Column(name, Kind.TEXT, "As in Mechanical Turk's file."), _as_in_the_batch(name, fixed.get(name))
    for name, own in _inputs().items():
        value = Coalesce(_imported(name), own, output_field=TextField())
        yield Column(name, Kind.TEXT, "What the task was given."), value
    yield from _answers()


def _as_in_the_batch(name: str, own: Combinable | None) -> Combinable:
    """What the batch's file had for an annotation that came with one; what is so here for any other."""
    if name == "WorkerId":
        return own  # the file's hash, or that of the id that it had
    came_with_a_batch = When(imported__columns__has_key="HITId", then=_imported(name))
    value = Case(came_with_a_batch, default=own or Value(None), output_field=TextField())
    return NullIf(value, Value(""), output_field=TextField())


def _rows(filters: Mapping) -> list[Rows]:
    annotations = Annotation.objects.filter(of_annotations(filters))
    return [Rows(annotations, F("pk"), tuple(cell for _, cell in _cells()))]


IN_MTURK = Export(
    name="mturk",
    about="Every annotation in the columns of a Mechanical Turk batch's results, for tools that read these.",
    a_row="an annotation",
    permissions=READ_JUDGEMENTS,
    takes=OF_ANNOTATIONS,
    columns=lambda filters: tuple(column for column, _ in _cells()),
    rows=_rows,
    shown_columns="HITId, HITTypeId, Title … (27 in all), Input.prompt, Input.text … (7), Answer.writer.1 … (33)",
)
