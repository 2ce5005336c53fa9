"""The proof of ALICE: random worlds of six words, in which the search has to find what two plain readings find.

In half of the worlds all log-probabilities and weights are multiples of a quarter, so that sums
are exact and ties abound; in the others they are any 32-bit number.
"""

import functools
import hashlib
import math
import random
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from generation.decoding import alice
from generation.decoding.protocols import BENIGN, TOXIC, NextTokens, statement
from generation.decoding.topk import gumbel_noise
from generation.parameters import AliceParameters, Direction, Selection
from tests.generation.alice_references import Seen, Task, exhaustive, plain_beam_search

SCORE_TOLERANCE = 1e-6

# --- Worlds -----------------------------------------------------------------------------

WORDS = (b" rain", b" snow", b" Hail", b"fall", b" 7", b" fog\0", b"- sun")
GROUP_WORD = b" women"
STOP_WORDS = (b" the", b" of")
MARKS = (b".", b",", b" -", b" ", b"\0", b"?!")
ENDS = (b"\n", b".\n", b" sun\n", b" \n- ", b"\n\n")
END_OF_TEXT = b"<end>"
HALVES = (b" \xf0\x9f", b"\x98\x80", b"\xc3", b"\xa9")

ALWAYS_FREE = {*STOP_WORDS, *MARKS, *ENDS, END_OF_TEXT, *HALVES}
"""The pieces that may be said although the prompt has them."""


@functools.lru_cache(maxsize=50_000)
def chance(*key: object) -> float:
    """A number from 0 to 1 that depends on ``key`` alone."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest()) / 2**64


def single(number: float) -> float:
    """The nearest 32-bit number."""
    return struct.unpack("f", struct.pack("f", number))[0]


@dataclass(frozen=True)
class World:
    """A language model and a classifier as hash tables."""

    seed: int
    pieces: tuple[bytes, ...]
    exact: bool
    blank: bool = True
    """Whether a text starts with its first token's blank, as it does not with some tokenizers."""

    def next_log_probs(self, prompt: Sequence[int], tokens: Sequence[int], temperature: float) -> list[float]:
        draws = [chance("lm", self.seed, *prompt, "-", *tokens, option) for option in range(len(self.pieces))]
        logits = [-math.inf if draw < 0.08 else 5 * draw / temperature for draw in draws]
        if self.exact:
            return [-math.floor(logit) / 4 if logit > -math.inf else logit for logit in logits]
        whole = sum(math.exp(logit) for logit in logits)
        return [single(logit - math.log(whole)) if whole else logit for logit in logits]

    def likeliest(self, prompt: Sequence[int], tokens: Sequence[int], temperature: float) -> list[tuple[int, float]]:
        return sorted(enumerate(self.next_log_probs(prompt, tokens, temperature)), key=lambda option: -option[1])

    def judge(self, text: str) -> tuple[float, float]:
        """The log-probabilities of benign and of toxic."""
        draw = chance("classifier", self.seed, text)
        if draw < 0.1:
            return (0.0, -math.inf) if draw < 0.05 else (-math.inf, 0.0)
        if self.exact:
            return -math.floor(12 * draw) / 4, -math.floor(12 * (1 - draw)) / 4
        return single(math.log(draw)), single(math.log1p(-draw))

    def text(self, tokens: Sequence[int]) -> str:
        said = b"".join(self.pieces[token] for token in tokens if self.pieces[token] != END_OF_TEXT)
        return said.removeprefix(b"" if self.blank else b" ").decode(errors="replace")

    def ending(self) -> frozenset[int]:
        return frozenset(t for t, piece in enumerate(self.pieces) if b"\n" in piece or piece == END_OF_TEXT)


class ToyModel:
    """A world's language model. It refuses to be asked for more than a search needs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls = 0
        self.rows: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def encode(self, text: str) -> list[int]:
        """``#`` and the numbers of some tokens, or a text that pieces make up."""
        if text.startswith("#"):
            return [int(number) for number in text[1:].split()]
        rest, tokens = text.encode(), []
        while rest:
            fitting = [t for t, piece in enumerate(self.world.pieces) if rest.startswith(piece)]
            if fitting:
                tokens.append(max(fitting, key=lambda token: len(self.world.pieces[token])))
            rest = rest[len(self.world.pieces[tokens[-1]]) :] if fitting else rest[1:]
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return self.world.text(tokens)

    def ends(self, tokens: Tensor) -> Tensor:
        return torch.isin(tokens, torch.tensor(sorted(self.world.ending()), dtype=torch.int64))

    def start(self, prompts: Sequence[Sequence[int]], *, best: int, temperature: float, steps: int) -> NextTokens:
        self.calls, self.steps, self.temperature = 1, steps, temperature
        self.best = min(best, len(self.world.pieces))
        self.rows = [(tuple(prompt), ()) for prompt in prompts]
        return self._next()

    def step(self, parents: Tensor, tokens: Tensor) -> NextTokens:
        self.calls += 1
        assert self.calls <= self.steps, "a step after the last token"
        assert len(parents), "a step of no hypotheses"
        assert not self.ends(tokens).any(), "a step of ended hypotheses"
        pairs = zip(parents.tolist(), tokens.tolist(), strict=True)
        self.rows = [(self.rows[parent][0], (*self.rows[parent][1], token)) for parent, token in pairs]
        return self._next()

    def _next(self) -> NextTokens:
        found = [self.world.likeliest(prompt, tokens, self.temperature)[: self.best] for prompt, tokens in self.rows]
        return NextTokens(
            tokens=torch.tensor([[token for token, _ in row] for row in found], dtype=torch.int64),
            log_probs=torch.tensor([[log_prob for _, log_prob in row] for row in found], dtype=torch.float32),
        )


class ToyClassifier:
    """A world's classifier, which counts what it reads."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.read: Counter[str] = Counter()

    def log_probs(self, texts: Sequence[str]) -> Tensor:
        assert len(texts), "the classifier was asked about no text"
        self.read.update(texts)
        return torch.tensor([self.world.judge(text) for text in texts], dtype=torch.float32)


# --- Cases ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Some prompts in a world."""

    world: World
    prompts: tuple[tuple[int, ...], ...]
    seeds: tuple[int, ...]
    parameters: AliceParameters
    group_words: tuple[str, ...] = ()

    def search(self, *, pruning: bool = True, **more) -> tuple[alice.Decoding, ToyClassifier]:
        classifier = ToyClassifier(self.world)
        decoding = alice.decode(
            ToyModel(self.world),
            classifier,
            [f"#{' '.join(map(str, prompt))}" for prompt in self.prompts],
            seeds=self.seeds,
            parameters=self.parameters,
            group_words=self.group_words,
            pruning=pruning,
            **more,
        )
        return decoding, classifier

    def task(self, prompt: tuple[int, ...]) -> Task:
        world, parameters = self.world, self.parameters
        free = ALWAYS_FREE | ({GROUP_WORD} if self.group_words and parameters.group_words_allowed else set())
        return Task(
            likeliest=lambda tokens: world.likeliest(prompt, tokens, parameters.temperature),
            text=lambda tokens: statement(world.text(tokens)),
            sought=lambda text: world.judge(text)[self.sought_column],
            ending=world.ending(),
            barred=frozenset(token for token in prompt if world.pieces[token] not in free),
            lm_weight=parameters.lm_weight,
            classifier_weight=parameters.classifier_weight,
            vocabulary=parameters.vocabulary,
            length=parameters.max_new_tokens,
            no_repeat_ngram_size=parameters.no_repeat_ngram_size,
        )

    @property
    def sought_column(self) -> int:
        return TOXIC if self.parameters.direction is Direction.FALSE_POSITIVES else BENIGN

    def expected(self, number: int, watch=lambda kept: None):
        """What the plain beam search says of one prompt."""
        stream = torch.Generator().manual_seed(self.seeds[number])
        sampling = self.parameters.selection is Selection.SAMPLE
        found = plain_beam_search(
            self.task(self.prompts[number]),
            beam=self.parameters.beam,
            noise=(lambda rows, columns: gumbel_noise([stream], rows, columns)[0].tolist()) if sampling else None,
            watch=watch,
        )
        return found[: self.parameters.n_best]


def draw_case(number: int) -> Case:
    draw = random.Random(number)
    exact = draw.random() < 0.5
    pieces = [*draw.sample(WORDS, draw.randint(1, 3)), *draw.sample(ENDS, draw.choice((0, 1, 1, 1)))]
    others = [*STOP_WORDS, *MARKS, *ENDS, *HALVES, *WORDS, GROUP_WORD, GROUP_WORD, END_OF_TEXT, *HALVES]
    pieces += draw.sample(sorted(set(others) - set(pieces)), 6 - len(pieces))
    draw.shuffle(pieces)
    prompts = [tuple(draw.choices(range(6), k=draw.choice((0, 0, 1, 2, 3, 6)))) for _ in range(draw.randint(1, 4))]
    if exact:
        weights = draw.choice(((0.5, 0.5), (0.25, 1.0), (0.0, 1.0), (1.0, 0.0), (2.0, 0.25)))
    else:
        weights = (draw.uniform(0.05, 2), draw.choice((0.0, *(draw.uniform(0.05, 2) for _ in range(4)))))
    return Case(
        world=World(seed=number, pieces=tuple(pieces), exact=exact, blank=draw.random() < 0.7),
        prompts=tuple(prompts),
        seeds=tuple(draw.randrange(1000) for _ in prompts),
        parameters=AliceParameters(
            direction=draw.choice(list(Direction)),
            lm_weight=weights[0],
            classifier_weight=weights[1],
            beam=draw.randint(1, 12),
            vocabulary=draw.choice((1, 2, 3, 4, 5, 6, 7, 100)),
            temperature=draw.choice((0.5, 0.9, 1.0, 2.0)),
            max_new_tokens=draw.randint(1, 5),
            selection=draw.choice(list(Selection)),
            no_repeat_ngram_size=draw.choice((0, 0, 1, 2)),
            group_words_allowed=draw.random() < 0.7,
            n_best=draw.choice((1, 3, 10, 12)),
        ),
        group_words=draw.choice(((), ("women",))),
    )


def assert_equal(found, expected, case: Case) -> None:
    """Tokens, texts and reasons exactly, and in order; numbers to the tolerance."""

    def words(hypotheses):
        return [(h.tokens, h.text, h.finish_reason) for h in hypotheses]

    assert words(found) == words(expected), case
    for one, other in zip(found, expected, strict=True):
        asked = other.sought_log_probs if case.parameters.classifier_weight else ()
        toxic = math.exp(case.world.judge(other.text)[TOXIC])
        assert close([one.score, one.toxic_prob], [other.score, toxic]), (one, other, case)
        assert close(one.log_probs, other.log_probs), (one, other, case)
        assert close(one.sought_log_probs, asked), (one, other, case)


def close(found: Sequence[float], expected: Sequence[float]) -> bool:
    """Whether there are as many numbers and all are equal to the tolerance, infinite ones exactly."""
    return len(found) == len(expected) and all(
        math.isclose(one, other, rel_tol=0, abs_tol=SCORE_TOLERANCE) for one, other in zip(found, expected, strict=True)
    )


# --- The proof --------------------------------------------------------------------------

CASES, BLOCKS = 1200, 24
BLOCK = CASES // BLOCKS
MOST_STATEMENTS = 1300
"""More than four tokens of six words make; the few cases with more take most of the time."""


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_search_finds_what_a_plain_beam_search_finds(block):
    for number in range(block * BLOCK, (block + 1) * BLOCK):
        case = draw_case(number)
        expected = [case.expected(prompt) for prompt in range(len(case.prompts))]
        runs = {}
        for pruning in (True, False):
            decoding, classifier = case.search(pruning=pruning)
            for found, hypotheses in zip(decoding.found, expected, strict=True):
                assert_equal(found, hypotheses, case)
            assert decoding.classifier_runs == classifier.read.total(), case
            runs[pruning] = decoding.classifier_runs
        assert runs[True] <= runs[False], case


@pytest.mark.parametrize("block", range(8))
def test_with_room_for_every_hypothesis_the_search_finds_every_hypothesis(block):
    for number in range(10_000 + block * 40, 10_000 + (block + 1) * 40):
        case = draw_case(number)
        if min(case.parameters.vocabulary, 6) ** case.parameters.max_new_tokens > MOST_STATEMENTS:
            continue
        every = [exhaustive(case.task(prompt)) for prompt in case.prompts]
        room = max(map(len, every))
        case = replace(case, parameters=replace(case.parameters, beam=room, n_best=room))
        for found, expected in zip(case.search(pruning=number % 2 == 0)[0].found, every, strict=True):
            assert [h.score for h in found] == sorted((h.score for h in found), reverse=True), case
            assert_equal(by_tokens(found), by_tokens(expected), case)


def by_tokens(hypotheses):
    """Without the order of equal scores, of which an enumeration knows nothing."""
    return sorted(hypotheses, key=lambda hypothesis: hypothesis.tokens)


def test_the_cases_are_as_varied_as_the_proof_needs():
    cases = [draw_case(number) for number in range(CASES)]
    for name in ("direction", "selection", "beam", "vocabulary", "max_new_tokens", "no_repeat_ngram_size"):
        fewest = Counter(getattr(case.parameters, name) for case in cases).most_common()[-1]
        assert fewest[1] > 50, (name, fewest)
    assert Counter(len(case.prompts) for case in cases).keys() == {1, 2, 3, 4}
    assert set().union(*(case.world.pieces for case in cases)) == {*WORDS, GROUP_WORD, *ALWAYS_FREE}
    assert sum(case.parameters.lm_weight == 0 for case in cases) > 50
    assert sum(case.parameters.classifier_weight == 0 for case in cases) > 50

    found = [h for case in cases for number in range(len(case.prompts)) for h in case.expected(number)]
    reasons = Counter(hypothesis.finish_reason for hypothesis in found)
    assert min(reasons[reason] for reason in ("stop", "length", "none_allowed")) > 100
    assert sum(not hypothesis.tokens for hypothesis in found) > 50
    assert sum(hypothesis.score == -math.inf for hypothesis in found) > 100


@pytest.mark.parametrize("block", range(4))
def test_who_watches_is_told_each_step_and_whom_the_classifier_kept_out(block):
    for number in range(block * BLOCK, (block + 1) * BLOCK):
        case = draw_case(number)
        if not case.parameters.classifier_weight:
            continue
        told: list[list] = [[] for _ in case.prompts]
        watched, _ = case.search(watch=lambda prompt, step, told=told: told[prompt].append(step))
        assert watched == case.search()[0], case
        for prompt, steps in enumerate(told):
            expected: list[list[Seen]] = []
            case.expected(prompt, watch=expected.append)
            assert [step.position for step in steps] == list(range(len(expected))), case
            for step, seen in zip(steps, expected, strict=True):
                assert_same_step(step.votes, seen, case)


def assert_same_step(votes, expected: list[Seen], case: Case) -> None:
    """The beam in order; what was crowded out of it in any order."""

    def told(hypotheses, *, kept):
        return [(h.text, h.parent, h.rank_without, h.ended) for h in hypotheses if h.kept is kept]

    texts = [statement(case.world.text(seen.tokens)) for seen in expected]
    expected = [SimpleNamespace(text=text, **vars(seen)) for text, seen in zip(texts, expected, strict=True)]
    assert told(votes, kept=True) == told(expected, kept=True), case
    assert sorted(told(votes, kept=False)) == sorted(told(expected, kept=False)), case
    kept = sum(seen.kept for seen in expected)
    assert all(vote.kept for vote in votes[:kept]), case
    assert close([vote.score for vote in votes[:kept]], [seen.score for seen in expected[:kept]]), case


# --- What a result depends on -----------------------------------------------------------

DIVERSE = World(seed=3, pieces=(b" rain", b" snow", b" the", b" women", b".\n", b"\xc3"), exact=False)
PROMPTS = [((), 1), ((0,), 1), ((0,), 2), ((1, 4), 3), ((3, 3, 2), 4), ((0, 1, 3), 5), ((5,), 6)]


@given(
    batch=st.lists(st.sampled_from(PROMPTS), min_size=1, max_size=8),
    selection=st.sampled_from(Selection),
    direction=st.sampled_from(Direction),
    beam=st.integers(1, 6),
    pruning=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_a_result_depends_on_its_prompt_and_seed_and_not_on_its_batch_nor_on_pruning(
    batch, selection, direction, beam, pruning
):
    parameters = AliceParameters(direction=direction, selection=selection, beam=beam, max_new_tokens=5)

    def search(prompts, *, pruning):
        case = Case(DIVERSE, tuple(p for p, _ in prompts), tuple(s for _, s in prompts), parameters, ("women",))
        return case.search(pruning=pruning)[0].found

    assert search(batch, pruning=pruning) == [search([one], pruning=True)[0] for one in batch]


@given(st.integers(0, CASES), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_order_of_a_batch_changes_no_result(number, draw):
    case = draw_case(number)
    order = draw.sample(range(len(case.prompts)), len(case.prompts))
    shuffled = replace(case, prompts=tuple(case.prompts[i] for i in order), seeds=tuple(case.seeds[i] for i in order))
    found = case.search()[0].found
    assert shuffled.search()[0].found == [found[i] for i in order]


@pytest.mark.parametrize("selection", Selection)
def test_equal_prompts_with_equal_seeds_give_equal_results(selection):
    case = Case(DIVERSE, ((0,),) * 3, (4, 4, 4), AliceParameters(Direction.FALSE_POSITIVES, selection=selection))
    first, *others = case.search()[0].found
    assert others == [first, first]


def test_the_seed_matters_to_sampling_only():
    case = Case(DIVERSE, ((),) * 5, (1, 2, 3, 4, 5), AliceParameters(Direction.FALSE_POSITIVES, beam=1))
    assert len(set(case.search()[0].found)) == 1
    sampling = replace(case, parameters=replace(case.parameters, selection=Selection.SAMPLE))
    assert len(set(sampling.search()[0].found)) > 1


@pytest.mark.parametrize("selection", Selection)
def test_searching_leaves_torch_s_own_random_stream_alone(selection):
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    Case(DIVERSE, ((),), (1,), AliceParameters(Direction.FALSE_POSITIVES, selection=selection)).search()
    assert torch.equal(torch.random.get_rng_state(), before)


# --- While it works ---------------------------------------------------------------------


def test_on_step_is_called_before_each_step_of_the_model():
    class Watched(ToyModel):
        def start(self, *arguments, **options):
            events.append("model")
            return super().start(*arguments, **options)

        def step(self, *arguments):
            events.append("model")
            return super().step(*arguments)

    events: list[str] = []
    for world in (DIVERSE, World(seed=1, pieces=(b" rain", b" snow", b" hail"), exact=False)):
        alice.decode(
            Watched(world),
            ToyClassifier(world),
            ["#", "#0"],
            seeds=[1, 2],
            parameters=AliceParameters(Direction.FALSE_POSITIVES, beam=3, max_new_tokens=4),
            on_step=lambda: events.append("on_step"),
        )
    assert events[-8:] == ["on_step", "model"] * 4
    assert events == ["on_step", "model"] * (len(events) // 2)


def test_what_on_step_raises_ends_the_search():
    class Stop(Exception):
        pass

    def stop_at_the_third():
        calls.append("step")
        if len(calls) == 3:
            raise Stop

    calls: list[str] = []
    world = World(seed=1, pieces=(b" rain", b" snow", b" hail"), exact=False)
    case = Case(world, ((),), (1,), AliceParameters(Direction.FALSE_POSITIVES, max_new_tokens=9))
    with pytest.raises(Stop):
        case.search(on_step=stop_at_the_third)
    assert len(calls) == 3


# --- Edges ------------------------------------------------------------------------------


class Always(World):
    """A world in which only the last token counts for the model, and every text is judged alike."""

    def __init__(self, *pieces: bytes, log_probs: Sequence[float], judgement: tuple[float, float] = (-0.5, -1.0)):
        super().__init__(0, pieces, exact=True)
        object.__setattr__(self, "log_probs", log_probs)
        object.__setattr__(self, "judgement", judgement)

    def next_log_probs(self, prompt, tokens, temperature):
        return list(self.log_probs)

    def judge(self, text):
        return self.judgement


def best(world: World, prompt: tuple[int, ...] = (), **parameters) -> alice.ScoredHypothesis:
    parameters = {"direction": Direction.FALSE_POSITIVES} | parameters
    return Case(world, (prompt,), (1,), AliceParameters(**parameters)).search()[0].found[0][0]


def test_no_prompts_give_no_results_and_read_nothing():
    case = Case(DIVERSE, (), (), AliceParameters(Direction.FALSE_POSITIVES))
    assert case.search()[0] == alice.Decoding(found=[], classifier_runs=0)


def test_another_number_of_seeds_than_of_prompts_is_refused():
    with pytest.raises(ValueError) as refusal:
        Case(DIVERSE, ((), ()), (1,), AliceParameters(Direction.FALSE_POSITIVES)).search()
    assert str(refusal.value) == "There are 2 prompts and 1 seeds; give one seed a prompt."


def test_half_a_character_is_neither_an_error_nor_part_of_the_text():
    half = best(Always(b" rain", b" \xf0\x9f", log_probs=[-1.0, -0.25]), max_new_tokens=3, beam=1)
    assert (half.tokens, half.text) == ((1, 1, 1), "\ufffd \ufffd")


def test_a_character_made_of_two_tokens_is_read_whole():
    world = Always(b"\xf0\x9f", b"\x98\x80", log_probs=[-0.25, -0.5])
    found = Case(world, ((),), (1,), AliceParameters(Direction.FALSE_POSITIVES, max_new_tokens=2)).search()[0].found[0]
    assert {h.tokens: h.text for h in found}[(0, 1)] == "\N{GRINNING FACE}"


def test_an_empty_prompt_bars_no_token():
    assert best(Always(b" rain", b"\n", log_probs=[-0.25, -3.0]), prompt=(), max_new_tokens=2).text == "rain rain"


def test_a_word_of_the_prompt_is_not_said_again():
    world = Always(b" rain", b" snow", log_probs=[-0.25, -3.0])
    assert best(world, prompt=(0,), max_new_tokens=2).text == "snow snow"


def test_without_an_allowed_candidate_at_the_first_step_the_result_is_an_empty_statement():
    nothing = best(Always(b" rain", b" snow", log_probs=[-0.25, -3.0]), prompt=(0, 1))
    assert (nothing.text, nothing.tokens, nothing.log_probs, nothing.sought_log_probs) == ("", (), (), ())
    assert (nothing.score, nothing.finish_reason) == (0.0, "none_allowed")
    assert nothing.toxic_prob == pytest.approx(math.exp(-1.0))


def test_a_vocabulary_smaller_than_asked_for_is_searched_whole():
    world = Always(b" rain", b" snow", b"\n", log_probs=[-0.25, -3.0, -1.0])
    assert best(world, vocabulary=100) == best(world, vocabulary=3)


@pytest.mark.parametrize("pruning", [True, False])
@pytest.mark.parametrize("selection", Selection)
def test_a_classifier_that_returns_exactly_0_for_everything_leaves_the_language_model_s_order(selection, pruning):
    world = Always(b" rain", b" snow", b"\n", log_probs=[-0.25, -3.0, -1.0], judgement=(0.0, -math.inf))
    case = Case(world, ((),), (1,), AliceParameters(Direction.FALSE_POSITIVES, max_new_tokens=2, selection=selection))
    found = case.search(pruning=pruning)[0].found[0]
    assert {h.score for h in found} == {-math.inf}
    assert {h.toxic_prob for h in found} == {0.0}
    assert found[0].tokens == (2,)  # it had ended already, and ended ones come first among equals


def test_without_the_classifier_s_weight_the_search_is_a_plain_beam_search_whatever_the_classifier_says():
    for number in range(60):
        case = draw_case(number)
        case = replace(case, parameters=replace(case.parameters, lm_weight=0.75, classifier_weight=0.0))
        other = replace(case, world=replace(case.world))
        object.__setattr__(other.world, "judge", lambda text: (-math.inf, 0.0))

        def ranked(case):
            found = case.search()[0].found
            return [[(h.tokens, h.text, h.score, h.finish_reason) for h in hypotheses] for hypotheses in found]

        assert ranked(case) == ranked(other)
        assert [[h[0] for h in row] for row in ranked(case)] == [
            [h.tokens for h in case.expected(prompt)] for prompt in range(len(case.prompts))
        ]


def test_without_the_classifier_s_weight_the_classifier_reads_no_more_than_what_is_returned():
    for number in range(60):
        case = draw_case(number)
        case = replace(case, parameters=replace(case.parameters, lm_weight=0.75, classifier_weight=0.0))
        decoding, classifier = case.search()
        returned = {
            statement(case.world.text(h.tokens[:length]))
            for hypotheses in decoding.found
            for h in hypotheses
            for length in range(len(h.tokens) + 1)
        }
        assert set(classifier.read) <= returned


def test_without_the_language_model_s_weight_only_the_classifier_ranks():
    class Fond(Always):
        def judge(self, text):
            return (-1.0, -0.25) if text.endswith("snow") else (-0.25, -1.0)

    world = Fond(b" rain", b" snow", b" hail", log_probs=[-0.25, -9.0, -1.0])
    found = best(world, lm_weight=0.0, classifier_weight=1.0, max_new_tokens=3, beam=1)
    assert (found.text, found.score) == ("snow snow snow", -0.25)


def test_each_direction_seeks_its_own_class():
    class Fond(Always):
        def judge(self, text):
            return (-2.0, -0.25) if text.endswith("snow") else (-0.25, -2.0)

    world = Fond(b" rain", b" snow", log_probs=[-1.0, -1.0])
    assert best(world, direction=Direction.FALSE_POSITIVES, max_new_tokens=2).text == "snow snow"
    assert best(world, direction=Direction.FALSE_NEGATIVES, max_new_tokens=2).text == "rain rain"


def test_the_newline_counts_among_the_tokens_and_the_classifier_votes_on_it():
    ended = best(Always(b" rain", b"\n", log_probs=[-3.0, -0.25], judgement=(-0.5, -1.0)), beam=1, max_new_tokens=2)
    assert (ended.text, ended.tokens, ended.score) == ("", (1,), 0.5 * -0.25 + 0.5 * -1.0)
    assert ended.sought_log_probs == (-1.0,)


def test_pruning_reads_a_small_share_of_the_candidates():
    class Hundred(World):
        def next_log_probs(self, prompt, tokens, temperature):
            draws = [chance("lm", *prompt, "-", *tokens, option) for option in range(100)]
            logits = [-3 * math.log(draw) for draw in draws]
            whole = sum(map(math.exp, logits))
            return [single(logit - math.log(whole)) for logit in logits]

    world = Hundred(seed=9, pieces=(*(f" word{number}".encode() for number in range(99)), b"\n"), exact=False)
    case = Case(world, ((), (3,)), (1, 2), AliceParameters(Direction.FALSE_POSITIVES, max_new_tokens=6))
    pruned, everything = case.search()[0], case.search(pruning=False)[0]
    assert pruned.found == everything.found
    assert everything.classifier_runs > 5 * 10 * 90
    assert pruned.classifier_runs < 0.1 * everything.classifier_runs


def test_what_has_ended_raises_the_bar_for_what_the_classifier_reads():
    class EndsAtOnce(Always):
        def next_log_probs(self, prompt, tokens, temperature):
            return [-0.25, -3.0, -math.inf if tokens else -1.0]

    world = EndsAtOnce(b" rain", b" snow", b"\n", log_probs=[])
    case = Case(world, ((),), (1,), AliceParameters(Direction.FALSE_POSITIVES, beam=2, max_new_tokens=2))
    decoding, classifier = case.search()
    assert [h.tokens for h in decoding.found[0]] == [(0, 0), (2,)]
    assert "rain snow" not in classifier.read


@pytest.mark.parametrize("selection", Selection)
@pytest.mark.parametrize("log_probs", [[-0.25, math.nan], [math.nan, math.nan]])
def test_a_language_model_that_returns_no_number_is_an_error(log_probs, selection):
    with pytest.raises(ValueError, match="no number"):
        best(Always(b" rain", b" snow", log_probs=log_probs), selection=selection)


@pytest.mark.parametrize("pruning", [True, False])
@pytest.mark.parametrize("judgement", [(math.nan, -1.0), (-1.0, math.nan), (math.nan, math.nan)])
def test_a_classifier_that_returns_no_number_is_an_error(judgement, pruning):
    world = Always(b" rain", b" snow", log_probs=[-0.25, -1.0], judgement=judgement)
    with pytest.raises(ValueError, match="no number"):
        Case(world, ((),), (1,), AliceParameters(Direction.FALSE_POSITIVES)).search(pruning=pruning)
