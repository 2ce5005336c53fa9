"""What annotations say, as expressions of the database: the toxicity, and what most annotators answered."""

from collections.abc import Iterator

from django.contrib.postgres.aggregates import StringAgg
from django.db.models import Avg, Case, Count, F, FloatField, Func, IntegerField, Max, Min, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Concat, Greatest, Round, StrIndex
from django.db.models.lookups import Exact, GreaterThan

from analysis.labels import SCALE_MIDDLE, TOXICITY_CLASSES
from analysis.released import ANNOTATED_WORDS, DISAGREEMENT, PREDICTED_GROUP

MOMENT = 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'
DIGITS_OF_A_MEAN = 9
"""As many as the release has."""
LOOKS_LIKE_BYTES = r"""^b(['"]).*\1$"""
IN_ORDER = ("assignment__submitted_at", "pk")
"""The order in which annotations of a statement came."""


def in_utc(moment: str) -> Func:
    """A moment as ISO 8601 has it, always in UTC and to the microsecond."""
    return Func(
        F(moment), Value(MOMENT), template="to_char(%(expressions)s)", arg_joiner=" AT TIME ZONE 'UTC', ",
        output_field=TextField(),
    )  # fmt: skip


def toxicity() -> Case:
    """``labels.toxicity`` of an annotation: the larger of its two harm ratings, null where one is missing."""
    both = Q(harmful_if_ai__isnull=False, harmful_if_human__isnull=False)
    return Case(When(both, then=Greatest("harmful_if_ai", "harmful_if_human")), output_field=IntegerField())


def class_of(toxicity: Combinable) -> Case:
    """``labels.toxicity_class`` by name; ``toxicity`` is a whole number or an exact mean."""
    below, middle, above = TOXICITY_CLASSES
    side = Func(toxicity, template=f"sign(%(expressions)s - {SCALE_MIDDLE})", output_field=IntegerField())
    return Case(
        *(When(Exact(side, sign), then=Value(name)) for sign, name in ((-1, below), (0, middle), (1, above))),
        output_field=TextField(),
    )


def mean(question: str) -> Cast:
    """The mean of a scale over annotations, rounded as in the release."""
    return Cast(Round(Avg(question), DIGITS_OF_A_MEAN), FloatField())


def statement_class() -> Case:
    """``labels.statement_class`` by name: of the larger of the two mean harm ratings."""
    return class_of(Greatest(Avg("harmful_if_ai"), Avg("harmful_if_human")))


def word_of_most(question: str) -> Case:
    """The word of the release for the answer that more than half of the annotators gave, or that they disagree."""
    chosen = (
        When(_most(Q(**{question: answer})), then=Value(word)) for answer, word in ANNOTATED_WORDS[question].items()
    )
    return Case(*chosen, default=Value(DISAGREEMENT), output_field=TextField())


def class_of_most() -> Case:
    """The toxicity class that more than half of the annotators gave, or that they disagree."""
    chosen = (When(_most(of_class), then=Value(name)) for name, of_class in _each_class())
    return Case(*chosen, default=Value(DISAGREEMENT), output_field=TextField())


def share_agreeing() -> Cast:
    """The share of annotators in the toxicity class that most of them gave, from 0 to 1."""
    most = Greatest(*(Count("pk", filter=of_class) for _, of_class in _each_class()))
    share = Func(most, Count("pk"), template="%(expressions)s", arg_joiner="::numeric / ", output_field=FloatField())
    return Cast(Round(share, DIGITS_OF_A_MEAN), FloatField())


def predicted_group(slug: str) -> Case:
    """Whom the annotators saw referred to: one sentence if all say the same, else a Python list in their order."""
    said = _sentence(slug)
    one = Min(said)
    listed = StringAgg(_python_literal(said), ", ", order_by=IN_ORDER)
    is_one = Exact(one, Max(said))
    return Case(
        When(is_one, then=one), default=Concat(Value("["), listed, Value("]"), output_field=TextField()),
        output_field=TextField(),
    )  # fmt: skip


def _sentence(slug: str) -> Case:
    """What the release says for an answer to which_group: about the statement's group, or about those listed."""
    told = []
    for answer, sentence in PREDICTED_GROUP.items():
        before, _, after = sentence.partition("{group}")
        about = F("other_groups") if answer == "other_groups" else F(slug)
        words = Concat(Value(before), about, Value(after), output_field=TextField())
        told.append(When(which_group=answer, then=words if "{group}" in sentence else Value(sentence)))
    return Case(*told, output_field=TextField())


def released_text(text: str) -> Case:
    """A statement as the release and Mechanical Turk's files have it.

    They write some texts as Python bytes literals, and who reads them takes these for what they stand for. So a text
    that looks like one is written as the literal that stands for it.
    """
    escaped = Func(F(text), template="encode(convert_to(%(expressions)s, 'UTF8'), 'escape')", output_field=TextField())
    for plain, written in (("'", "\\'"), ("\n", "\\n"), ("\r", "\\r")):
        escaped = Func(escaped, Value(plain), Value(written), function="replace", output_field=TextField())
    literal = Concat(Value("b'"), escaped, Value("'"), output_field=TextField())
    looks_like_one = {f"{text}__regex": LOOKS_LIKE_BYTES}
    return Case(When(**looks_like_one, then=literal), default=F(text), output_field=TextField())


def _python_literal(text: Combinable) -> Func:
    """A text as Python's ``repr`` writes it, for all that people type; so a list of them can be read again."""
    escaped = text
    for plain, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        escaped = Func(escaped, Value(plain), Value(written), function="replace", output_field=TextField())
    quoted = Func(escaped, Value("'"), Value("\\'"), function="replace", output_field=TextField())
    in_double_quotes = Concat(Value('"'), escaped, Value('"'), output_field=TextField())
    in_single_quotes = Concat(Value("'"), quoted, Value("'"), output_field=TextField())
    has_single = Q(GreaterThan(StrIndex(text, Value("'")), 0))
    has_double = Q(GreaterThan(StrIndex(text, Value('"')), 0))
    return Case(
        When(has_single & ~has_double, then=in_double_quotes), default=in_single_quotes, output_field=TextField()
    )


def _most(condition: Q) -> GreaterThan:
    """That ``condition`` holds for more than half of the annotations."""
    return GreaterThan(Count("pk", filter=condition) * 2, Count("pk"))


def _each_class() -> Iterator[tuple[str, Q]]:
    """The toxicity classes with the condition that an annotation is of each."""
    low, middle, high = TOXICITY_CLASSES
    no_more = Q(harmful_if_ai__lte=SCALE_MIDDLE, harmful_if_human__lte=SCALE_MIDDLE)
    less = Q(harmful_if_ai__lt=SCALE_MIDDLE, harmful_if_human__lt=SCALE_MIDDLE)
    yield low, less
    yield middle, no_more & ~less
    yield high, ~no_more
