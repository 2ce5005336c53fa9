"""What a reviewer sees of submitted work: answers beside the majority's, time beside the usual one, flags, tallies."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, OuterRef, Q, QuerySet
from django.db.models.functions import JSONObject

from annotator import wages
from annotator.durations import in_words
from annotator.flags import IN_A_ROW, Raised, fits, majority, raised
from annotator.models import Annotation, Assignment, AssignmentStatus, Worker
from annotator.questions import QUESTIONS, Question

RECENT = 20
"""So many of a worker's newest submissions are looked at for the share that is flagged."""

ANSWERS = JSONObject(not_understood="not_understood", **{question.key: question.key for question in QUESTIONS})


@dataclass(frozen=True)
class Comparison:
    """A question's answer beside the majority of others, or beside what is expected where that is known."""

    question: Question
    answer: str
    beside: str
    basis: str
    differs: bool


@dataclass(frozen=True)
class Evidence:
    """A submitted assignment with all that there is to judge it by."""

    assignment: Assignment
    usual: wages.Wage
    flags: list[Raised]
    comparisons: list[Comparison]
    """Empty for a text that was not understood, and where the worker had the answers deleted."""
    is_known: bool
    """Whether the answers are compared with known ones."""
    others: int
    """How many others' counted annotations of the HIT there are."""

    @property
    def time_taken(self) -> str:
        return in_words(self.assignment.time_taken)

    @property
    def usual_time(self) -> str:
        return in_words(self.usual.time)


@dataclass(frozen=True)
class Tally:
    """A worker's work as it stands: how it was decided, and how many of the newest submissions are flagged."""

    worker: Worker
    waiting: int
    approved: int
    rejected: int
    flagged: int
    looked_at: int

    @property
    def percent_flagged(self) -> int:
        return round(100 * self.flagged / self.looked_at) if self.looked_at else 0


def evidence_on(ids: Iterable[int]) -> list[Evidence]:
    """The evidence on submitted assignments in the order of ``ids``; in as many queries for one as for many."""
    ids = list(ids)
    found = _with_answers_around(Assignment.objects.filter(pk__in=ids).submitted()).in_bulk()
    usual = wages.of_studies({row.hit.hit_type_id: row.hit.hit_type for row in found.values()}.values())
    return [_evidence(found[pk], usual[found[pk].hit.hit_type_id]) for pk in ids if pk in found]


def tallies(worker_ids: Iterable[int]) -> list[Tally]:
    """The tallies of workers; who has most waiting comes first."""
    newest = Assignment.objects.filter(worker=OuterRef("pk")).submitted().order_by("-accepted_at").values("pk")
    workers = list(
        Worker.objects.filter(pk__in=list(worker_ids))
        .annotate(
            newest=ArraySubquery(newest[:RECENT]),
            waiting=_number_that_are(AssignmentStatus.SUBMITTED),
            approved=_number_that_are(AssignmentStatus.APPROVED),
            rejected=_number_that_are(AssignmentStatus.REJECTED),
        )
        .order_by("-waiting", "pseudonym")
    )
    evidence = evidence_on(pk for worker in workers for pk in worker.newest)
    flagged = {row.assignment.pk for row in evidence if row.flags}
    return [
        Tally(
            worker=worker,
            waiting=worker.waiting,
            approved=worker.approved,
            rejected=worker.rejected,
            flagged=len(flagged.intersection(worker.newest)),
            looked_at=len(worker.newest),
        )
        for worker in workers
    ]


def _number_that_are(status: AssignmentStatus) -> Count:
    return Count("assignments", filter=Q(assignments__status=status))


def _with_answers_around(assignments: QuerySet[Assignment]) -> QuerySet[Assignment]:
    """Assignments with the answers to the worker's statements before, and those of others to the same HIT."""
    before = (
        Annotation.objects.filter(
            assignment__worker=OuterRef("worker"), assignment__accepted_at__lt=OuterRef("accepted_at")
        )
        .order_by("-assignment__accepted_at")
        .values(answers=ANSWERS)
    )
    others = (
        Annotation.objects.counted()
        .filter(assignment__hit=OuterRef("hit"))
        .exclude(assignment=OuterRef("pk"))
        .order_by("pk")
        .values(answers=ANSWERS)
    )
    return assignments.annotate(before=ArraySubquery(before[:IN_A_ROW]), others=ArraySubquery(others)).select_related(
        "annotation",
        "decided_by",
        "hit__generation__group",
        "hit__generation__known_answers",
        "hit__hit_type",
        "worker",
    )


def _evidence(assignment: Assignment, usual: wages.Wage) -> Evidence:
    annotation = getattr(assignment, "annotation", None)  # the worker may have had the answers deleted
    expected = _expected(assignment)
    flags, comparisons = [], []
    if annotation:
        answers = {"not_understood": annotation.not_understood, **annotation.answers}
        flags = raised(
            answers=answers,
            before=assignment.before,
            others=assignment.others,
            expected=expected,
            time_taken=assignment.time_taken,
            usual=usual.time,
        )
        if not annotation.not_understood:
            comparisons = _comparisons(answers, assignment.others, expected)
    return Evidence(
        assignment=assignment,
        usual=usual,
        flags=flags,
        comparisons=comparisons,
        is_known=bool(expected),
        others=len(assignment.others),
    )


def _expected(assignment: Assignment) -> dict:
    """The right answers by question, of a HIT that tests the annotator; empty for any other."""
    known = getattr(assignment.hit.generation, "known_answers", None)
    return known.expected if known and assignment.hit.is_check else {}


def _comparisons(answers: dict, others: list[dict], expected: dict) -> list[Comparison]:
    if expected:
        return [_beside_expected(question, answers, expected) for question in QUESTIONS]
    return [_beside_others(question, answers, others) for question in QUESTIONS]


def _beside_expected(question: Question, answers: dict, expected: dict) -> Comparison:
    right = expected.get(question.key)
    return Comparison(
        question=question,
        answer=_labels(question, [answers[question.key]]),
        beside=_labels(question, right) if right else "any answer",
        basis="",
        differs=not fits(question, answers, expected),
    )


def _beside_others(question: Question, answers: dict, others: list[dict]) -> Comparison:
    own = answers[question.key]
    most = majority(other[question.key] for other in others)
    if most is None:
        beside, basis = "–", ""
    elif most.is_tie:
        beside, basis = f"tie: {_labels(question, most.values)}", f"{most.count} of {most.n} each"
    else:
        beside, basis = _labels(question, most.values), f"{most.count} of {most.n}"
    return Comparison(
        question=question,
        answer=_labels(question, [own]),
        beside=beside,
        basis=basis,
        differs=most is not None and not most.is_tie and own not in most.values,
    )


def _labels(question: Question, values: Iterable[str | int]) -> str:
    """Answers as the annotator read them, in the order of the page."""
    return " or ".join(option.label for option in question.options if option.value in values)
