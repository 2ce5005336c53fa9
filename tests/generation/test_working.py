"""What a worker does with a run, with toys in the models' place."""

import math
import platform
import random
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
import torch
import transformers
from django.db import IntegrityError, OperationalError
from django.utils import timezone

from generation import tasks, working
from generation.chunks import lease_next_chunk, store_chunk
from generation.classifiers import ClassifierUnavailable, NoToxicLabel
from generation.devices import DeviceUnavailable
from generation.drawing import Draw
from generation.engines.completions import PromptTooLong, ServerAnswerInvalid, ServerUnavailable, TooFewLogProbs
from generation.engines.transformers_model import TextTooLong
from generation.language_models import LanguageModelUnavailable
from generation.models import Demonstration, GenerationChunk
from generation.parameters import AliceParameters, TopKParameters
from generation.runs import Cell, cancel_run, pause_run, resume_run, start_run
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_group, make_run
from tests.generation import toys
from tests.generation.completions_server import CompletionsServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("toy")]


QUICK = AliceParameters(direction="false_positives", beam=3, vocabulary=10, max_new_tokens=4, n_best=2)


def moody():
    """A toy that knows the demonstrations' words, so that each prompt has its own best continuation."""
    return toys.moody(*" ".join(DEMONSTRATIONS).split())


def work(run):
    working.work_on_run(run_id=run.pk)
    run.refresh_from_db()


def texts(run):
    return list(run.generations.order_by("chunk__index", "position").values_list("text", flat=True))


def at_the_first_step(toy, happening):
    """Let something happen while the model computes for the first time."""
    start = toy.model.start

    def start_and_let_it_happen(prompts, **options):
        toy.model.start = start
        happening()
        return start(prompts, **options)

    toy.model.start = start_and_let_it_happen


class OnceThen:
    """The first function for the first call, the second from then on."""

    def __init__(self, first, second):
        self.functions = [first, second]

    def __call__(self, **arguments):
        return (self.functions.pop(0) if len(self.functions) > 1 else self.functions[0])(**arguments)


# --- Through to the end -----------------------------------------------------------------


def test_a_run_is_worked_on_until_it_is_finished():
    run = make_run(count=20, slugs=("women", "asian"))
    work(run)
    assert (run.state, run.failure) == ("finished", "")
    assert run.generations.count() == len({text.lower() for text in texts(run)}) == 40
    for chunk in run.chunks.all():
        positions = chunk.generations.order_by("position").values_list("position", flat=True)
        assert list(positions) == list(range(chunk.size))
        assert {generation.group_id for generation in chunk.generations.all()} == {chunk.group_id}


def test_each_statement_has_a_prompt_of_five_demonstrations_of_its_group():
    run = make_run(count=4)
    work(run)
    usable = set(Demonstration.objects.values_list("text", flat=True))
    for generation in run.generations.all():
        *lines, last = generation.prompt.text.split("\n")
        assert last == "-"
        assert len({line.removeprefix("- ") for line in lines} & usable) == 5


def test_working_on_a_finished_run_again_does_nothing():
    run = make_run(count=4)
    work(run)
    before = (texts(run), run.ended_at)
    work(run)
    assert (texts(run), run.ended_at) == before


def test_a_run_that_does_not_exist_is_no_error():
    working.work_on_run(run_id=12345)


def test_the_same_seed_gives_the_same_statements():
    first, second = make_run(count=20, seed=11), make_run(count=20, seed=11)
    work(first)
    work(second)
    assert texts(first) == texts(second)


def test_another_seed_gives_other_statements():
    first, second = make_run(count=20, seed=11), make_run(count=20, seed=12)
    work(first)
    work(second)
    assert not set(texts(first)) & set(texts(second))


def test_a_run_whose_worker_died_ends_with_the_statements_of_an_undisturbed_one():
    undisturbed, disturbed = make_run(count=40, seed=11), make_run(count=40, seed=11)
    work(undisturbed)
    dead = lease_next_chunk(run_id=disturbed.pk)
    work(disturbed)
    assert (disturbed.state, disturbed.generations.count()) == ("running", 24)
    GenerationChunk.objects.filter(pk=dead.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    work(disturbed)
    assert disturbed.state == "finished"
    assert texts(disturbed) == texts(undisturbed)


def test_the_parameters_of_the_run_are_those_of_the_decoding():
    run = make_run(count=2, topk=TopKParameters(max_new_tokens=3))
    work(run)
    assert [len(text.split()) for text in texts(run)] == [3, 3]
    assert set(run.generations.values_list("tokens", "finish_reason")) == {(3, "length")}


def test_the_run_notes_what_it_was_worked_on_with():
    run = make_run(count=1)
    work(run)
    assert run.environment == {
        "humanval": "0.1.0",
        "language_model_revision": "toy 1",
        "device": "cpu",
        "dtype": "float32",
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def test_a_run_of_alice_notes_its_classifier_too(toy):
    toy.model = moody()
    run = make_run(count=1, method="alice", alice=QUICK)
    work(run)
    about = {name: value for name, value in run.environment.items() if name.startswith("classifier")}
    assert about == {
        "classifier": "toy classifier",
        "classifier_revision": "toy 2",
        "classifier_device": "cpu",
        "classifier_dtype": "float32",
    }


def test_a_run_on_a_server_notes_how_the_server_told_the_tokens_of_prompts(toy):
    toy.model.device, toy.model.dtype, toy.model.prompt_tokens = "server", "", "echo"
    run = make_run(count=1)
    work(run)
    assert (run.environment["device"], run.environment["dtype"], run.environment["prompt_tokens"]) == (
        "server",
        "",
        "echo",
    )


def test_models_are_loaded_in_the_precision_of_the_run(monkeypatch, toy):
    asked = []
    monkeypatch.setattr(working, "load_language_model", lambda *name, **options: asked.append(options) or toy.model)
    monkeypatch.setattr(working, "load_classifier", lambda *name, **options: asked.append(options) or toy.classifier)
    toy.model = moody()
    work(make_run(count=1, method="alice", alice=QUICK, precision="bfloat16"))
    assert len(asked) >= 2
    assert all(options == {"precision": "bfloat16"} for options in asked)


# --- ALICE ------------------------------------------------------------------------------


def test_a_run_of_alice_stores_what_it_found_and_how_it_was_ranked(toy):
    toy.model = moody()
    run = make_run(count=20, method="alice", alice=QUICK)
    work(run)
    assert (run.state, run.failure, run.generations.count()) == ("finished", "", 20)
    for generation in run.generations.all():
        best = generation.hypotheses[0]
        assert (generation.method, len(generation.hypotheses)) == ("alice", 2)
        assert (best["text"], best["finish_reason"]) == (generation.text, generation.finish_reason)
        assert "".join(best["tokens"]).strip() == generation.text
        assert generation.tokens == len(best["tokens"]) == len(best["log_probs"]) == len(best["sought_log_probs"])
        assert (best["score"], best["toxic_prob"]) == pytest.approx((generation.score, generation.toxic_prob), abs=1e-6)
        votes = zip(best["log_probs"], best["sought_log_probs"], strict=True)
        assert generation.score == pytest.approx(
            sum(0.5 * lm + 0.5 * clf for lm, clf in votes) / generation.tokens, abs=1e-5
        )
        assert generation.toxic_prob == pytest.approx(toys.share_of_o(generation.text))
        assert best["score"] >= generation.hypotheses[1]["score"]


def test_the_classifier_s_runs_are_those_of_the_searches(toy):
    toy.model = moody()
    run = make_run(count=3, method="alice", alice=QUICK)
    work(run)
    assert run.progress()["classifier_runs"] == len(toy.classifier.texts_read)
    assert run.progress()["classifier_runs_a_statement"] == len(toy.classifier.texts_read) / 3


def test_a_paired_run_has_two_statements_of_each_prompt_and_both_are_classified(toy):
    toy.model = moody()
    run = make_run(count=20, method="paired", alice=QUICK, topk=TopKParameters(max_new_tokens=4))
    work(run)
    assert (run.state, run.failure) == ("finished", "")
    topk, alice = (run.generations.filter(method=method).order_by("chunk", "position") for method in ("topk", "alice"))
    places = [(generation.chunk_id, generation.position, generation.prompt_id) for generation in topk]
    assert places == [(generation.chunk_id, generation.position, generation.prompt_id) for generation in alice]
    assert len(set(places)) == 20
    assert len({text.lower() for text in texts(run)}) == 40
    for generation in topk:
        assert generation.toxic_prob == pytest.approx(toys.share_of_o(generation.text))
        assert (generation.score, generation.hypotheses) == (None, [])
    assert {len(generation.hypotheses) for generation in alice} == {2}


def test_the_top_k_of_a_paired_run_is_that_of_a_run_of_its_own(toy):
    toy.model = moody()
    topk = TopKParameters(max_new_tokens=4)
    alone, paired = make_run(count=5, topk=topk), make_run(count=5, method="paired", topk=topk, alice=QUICK)
    work(alone)
    work(paired)
    assert list(paired.generations.filter(method="topk").values_list("text", flat=True)) == texts(alone)
    assert set(alone.generations.values_list("score", "toxic_prob")) == {(None, None)}


@pytest.mark.parametrize(("allowed", "text"), [(True, "radios else"), (False, "else")])
def test_words_that_name_the_group_may_be_taken_from_the_prompt(toy, allowed, text):
    group = make_group("hams", naming_words="antennas radios")
    make_demonstrations(group, texts=[f"{letter} lakes radios" for letter in "abcdefg"])
    toy.model = toys.always(b" lakes", b" radios", b" else", logits=[2.0, 1.0, 0.0])
    run = start_run(
        cells=[Cell(group, "benign", 1)],
        language_model="toy",
        method="alice",
        classifier="toy classifier",
        alice=replace(QUICK, beam=1, no_repeat_ngram_size=1, group_words_allowed=allowed),
    )
    work(run)
    assert texts(run) == [text]


def test_words_that_name_the_group_are_those_of_the_start_or_where_none_were_kept_those_of_now():
    run = make_run(method="alice")
    group = make_group()
    group.naming_words = "words of now"
    group.save()

    def words():
        cell = working.cell_of(run=run, group_id=group.pk, label="benign")
        return working.decoder_for(cell=cell).group_words

    assert words() == ["woman", "women", "female", "females", "girl", "girls", "lady", "ladies"]
    run.cells.update(demonstrations=[])  # a run that had ended before they were kept
    assert words() == ["words", "of", "now"]


# --- Drawing again ----------------------------------------------------------------------


def test_statements_that_an_earlier_chunk_has_are_drawn_again(toy):
    # Seventeen of eighteen sayings: the last chunk has to find one of two that the first left.
    toy.model = toys.sayings(*(f"day {day} was dry" for day in range(18)))
    run = make_run(count=17)
    work(run)
    assert (run.state, run.failure) == ("finished", "")
    assert len(set(texts(run))) == 17
    assert sum(run.chunks.values_list("duplicate", flat=True)) > 0


@pytest.mark.parametrize("letter", ["İ", "Σ", "É"])
def test_capitals_that_databases_lower_in_different_ways_are_drawn_again_too(toy, letter):
    toy.model = toys.sayings(*(f"{letter}{day} WAS dry" for day in range(18)))
    run = make_run(count=17)
    work(run)
    assert (run.state, run.failure) == ("finished", "")


def test_a_text_that_another_worker_stores_meanwhile_is_drawn_again(monkeypatch):
    run = make_run(count=32)
    first, second = (lease_next_chunk(run_id=run.pk) for _ in range(2))
    cell = run.cells.get()
    drawn_first, drawn_second = (
        working.draw_chunk(chunk=chunk, cell=cell, decoder=working.decoder_for(cell=cell)) for chunk in (first, second)
    )

    def draw_while_the_other_worker_stores(**_):
        same = [*drawn_second.statements[:1], *drawn_first.statements[1:]]
        store_chunk(chunk=first, draw=Draw(same), decoding_seconds=1)
        return drawn_second

    monkeypatch.setattr(working, "draw_chunk", OnceThen(draw_while_the_other_worker_stores, working.draw_chunk))
    working.work_on_chunk(chunk=second)

    second.refresh_from_db()
    assert (second.generations.count(), second.duplicate) == (16, 1)
    kept = [statement.text for statement in drawn_second.statements[1:]]
    assert list(second.generations.order_by("position").values_list("text", flat=True))[1:] == kept


# --- Too little memory ------------------------------------------------------------------


def with_room_for(toy, room):
    """Let the toy's memory hold so many prompts; return a list of the batches that it is given."""
    batches = []
    start = toy.model.start

    def start_if_there_is_room(prompts, **options):
        batches.append(len(prompts))
        if len(prompts) > room:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return start(prompts, **options)

    toy.model.start = start_if_there_is_room
    return batches


@pytest.mark.parametrize("options", [{}, {"method": "alice", "alice": QUICK}], ids=["topk", "alice"])
def test_a_batch_that_does_not_fit_is_halved_until_it_does_with_the_same_statements(toy, options):
    toy.model = moody()
    roomy, tight = make_run(count=16, **options), make_run(count=16, **options)
    work(roomy)
    batches = with_room_for(toy, 5)
    work(tight)
    assert (tight.state, tight.failure) == ("finished", "")
    assert batches[:6] == [16, 8, 4, 4, 4, 4]
    assert texts(tight) == texts(roomy)


def test_the_next_chunk_begins_with_what_did_fit(toy):
    batches = with_room_for(toy, 8)
    work(make_run(count=32))
    assert batches == [16, 8, 8, 8, 8]


def test_a_run_of_which_not_one_prompt_fits_is_paused_and_can_be_resumed(toy):
    batches = with_room_for(toy, 0)
    run = make_run(count=4)
    work(run)
    assert batches == [4, 2, 1]
    assert (run.state, run.failure) == (
        "paused",
        "The device has too little memory for even one prompt at a time. Use a smaller model, beam or vocabulary, "
        "fewer new tokens, bfloat16, or a device with more memory that nobody else uses.",
    )
    toy.model = toys.chatterbox()
    resume_run(run=run)
    work(run)
    assert (run.state, run.failure, run.generations.count()) == ("finished", "", 4)


def test_a_chunk_larger_than_a_processor_is_quick_with_is_decoded_in_parts(toy, settings):
    settings.CHUNK_SIZE = 40
    batches = with_room_for(toy, 16)
    work(make_run(count=40))
    assert batches == [16, 16, 8]


def test_a_server_is_given_the_whole_chunk(toy, settings):
    settings.CHUNK_SIZE = 40
    toy.model.device = "server"
    batches = with_room_for(toy, 40)
    work(make_run(count=40))
    assert batches == [40]


# --- Stopping ---------------------------------------------------------------------------


def test_a_run_that_is_cancelled_stops_at_the_next_step_and_stores_nothing_more(toy, settings):
    settings.LEASE_SECONDS = 0  # looks at its lease at every step
    run = make_run(count=40)
    at_the_first_step(toy, lambda: cancel_run(run=run))
    steps = []
    step = toy.model.step
    toy.model.step = lambda *arguments: steps.append("step") or step(*arguments)
    work(run)
    assert (run.state, texts(run), steps) == ("cancelled", [], [])


def test_a_run_that_is_cancelled_while_its_chunk_is_drawn_stores_nothing_more(toy):
    run = make_run(count=40)
    at_the_first_step(toy, lambda: cancel_run(run=run))
    work(run)
    assert (run.state, texts(run)) == ("cancelled", [])


def test_a_run_that_is_paused_stops_at_the_next_step_and_goes_on_once_resumed(toy, settings):
    settings.LEASE_SECONDS = 0
    run = make_run(count=40)
    at_the_first_step(toy, lambda: pause_run(run_id=run.pk))
    work(run)
    assert (run.state, texts(run)) == ("paused", [])
    assert not run.chunks.exclude(lease_token=None).exists()
    resume_run(run=run)
    work(run)
    assert (run.state, run.generations.count()) == ("finished", 40)


def test_a_worker_that_is_asked_to_stop_gives_its_chunk_back_at_once():
    run = make_run(count=40)
    questions = iter([False, False, True])
    working.work_on_run(run_id=run.pk, is_stopping=lambda: next(questions))
    run.refresh_from_db()
    assert (run.state, texts(run)) == ("running", [])
    assert list(run.chunks.values_list("leases", "lease_token", "lease_expires_at")) == [(0, None, None)] * 3
    work(run)
    assert run.state == "finished"


def test_a_worker_that_lost_a_chunk_goes_on_with_the_next(toy):
    run = make_run(count=40)
    others = {"lease_token": uuid4(), "lease_expires_at": timezone.now() + timedelta(hours=1)}
    at_the_first_step(toy, lambda: run.chunks.filter(index=0).update(**others))
    work(run)
    assert run.state == "running"
    assert list(run.chunks.unfinished().values_list("index", "lease_token")) == [(0, others["lease_token"])]
    assert run.generations.count() == 24


def test_a_worker_whose_database_went_away_leaves_the_run_open_for_the_next(toy):
    run = make_run(count=4)

    def lose_the_database():
        raise OperationalError("server closed the connection unexpectedly")

    at_the_first_step(toy, lose_the_database)
    with pytest.raises(OperationalError):
        work(run)
    run.refresh_from_db()
    assert (run.state, run.failure) == ("running", "")
    run.chunks.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    work(run)
    assert (run.state, run.generations.count()) == ("finished", 4)


def test_the_task_tries_again_when_the_database_is_away(monkeypatch):
    calls = []

    def away_twice(*, run_id, is_stopping, between_chunks):
        calls.append(run_id)
        if len(calls) < 3:
            raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(working, "work_on_run", away_twice)
    assert tasks.work_on_run.apply([12]).state == "SUCCESS"
    assert calls == [12, 12, 12]


# --- Pausing and failing, and saying why --------------------------------------------------


def raising(error):
    """A function that does nothing else."""

    def fail(*_, **__):
        raise error

    return fail


@pytest.mark.parametrize(
    "error",
    [
        LanguageModelUnavailable,
        ClassifierUnavailable,
        DeviceUnavailable,
        ServerUnavailable,
        ServerAnswerInvalid,
        TooFewLogProbs,
        torch.OutOfMemoryError,
    ],
)
def test_what_an_operator_can_mend_pauses_the_run_with_its_sentence_until_it_is_resumed(monkeypatch, toy, error):
    run = make_run(method="alice", alice=QUICK)
    toy.model = moody()
    with monkeypatch.context() as broken:
        broken.setattr(working, "load_classifier", raising(error("Something has to be mended.")))
        work(run)
    assert (run.state, run.failure, texts(run)) == ("paused", "Something has to be mended.", [])
    assert list(run.chunks.values_list("leases", "lease_token", "lease_expires_at")) == [(0, None, None)]
    work(run)
    assert run.state == "paused"
    resume_run(run=run)
    work(run)
    assert (run.state, run.failure, run.generations.count()) == ("finished", "", 3)


@pytest.mark.parametrize("error", [NoToxicLabel, TextTooLong, PromptTooLong])
def test_what_needs_another_run_fails_this_one_with_its_sentence(monkeypatch, error):
    monkeypatch.setattr(working, "load_classifier", raising(error("Start another run.")))
    run = make_run(method="alice", alice=QUICK)
    work(run)
    assert (run.state, run.failure) == ("failed", "Start another run.")
    assert list(run.chunks.values_list("lease_token", flat=True)) == [None]


def test_cuda_that_is_asked_for_and_absent_pauses_the_run(monkeypatch, settings):
    monkeypatch.undo()  # no toys
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    settings.DEVICE = "cuda"
    run = make_run(language_model="smollm2-135m-instruct")
    work(run)
    assert run.state == "paused"
    assert run.failure.startswith("HUMANVAL_DEVICE is 'cuda', and torch finds no CUDA device on this worker's machine.")


def test_a_server_s_key_is_the_one_of_the_settings_and_is_neither_stored_nor_logged(monkeypatch, settings, toy, caplog):
    keys = []

    def connect(name, *, api_key):
        keys.append(api_key)
        return toy.model

    monkeypatch.undo()
    monkeypatch.setattr("generation.engines.completions.connect", connect)
    settings.COMPLETIONS_KEY = "a-key-that-nobody-may-see"
    settings.LANGUAGE_MODEL = "http://localhost:1/v1"
    run = make_run(count=40, language_model="http://localhost:1/v1#of-this-test")
    work(run)
    assert (run.state, keys) == ("finished", ["a-key-that-nobody-may-see"])
    assert "a-key" not in f"{vars(run)} {caplog.text}"


def moody_log_probs(text):
    """What a server says of the next token: of twenty words each, and the likings hang on the text."""
    likings = torch.tensor(random.Random(text).choices(range(9), k=20), dtype=torch.float).log_softmax(-1)
    return {f" word{number}".encode(): liking for number, liking in enumerate(likings.tolist())}


@pytest.mark.parametrize("method", ["topk", "alice", "paired"])
def test_a_run_on_a_server_that_held_back_is_paused_and_goes_on_once_that_is_mended(monkeypatch, toy, method):
    monkeypatch.undo()
    monkeypatch.setattr(working, "load_classifier", lambda name, **_: toy.classifier)
    parameters = {"topk": TopKParameters(k=10, max_new_tokens=4), "alice": QUICK}
    used = {name: parameters[name] for name in parameters if method in (name, "paired")}
    with CompletionsServer(moody_log_probs, models=["old"], most=5) as server:
        run = make_run(count=4, method=method, language_model=server.address, **used)
        work(run)
        assert run.state == "paused"
        assert "was asked for the 10 likeliest tokens and" in run.failure
        server.most, server.models = 1000, ["new"]
        resume_run(run=run)
        work(run)
    assert (run.state, run.failure) == ("finished", "")
    assert run.generations.count() == 4 * len(run.methods)
    assert (run.environment["language_model_revision"], run.environment["device"]) == ("new", "server")


def test_an_address_that_is_none_pauses_the_run_with_its_sentence(monkeypatch):
    monkeypatch.undo()
    run = make_run(language_model="http://#model")
    work(run)
    assert (run.state, run.failure) == (
        "paused",
        "'http://#model' is no address of a completions server. Write it as http://host:8000/v1#model-id.",
    )


@pytest.mark.parametrize("options", [{"method": "alice"}, {"method": "paired"}], ids=["alice", "paired"])
def test_a_classifier_that_returns_no_numbers_fails_the_run(toy, options):
    toy.model = moody()
    toy.classifier = toys.ToyClassifier(lambda text: math.nan)
    run = make_run(alice=QUICK, **options)
    work(run)
    assert (run.state, run.failure) == (
        "failed",
        "The classifier returned a log-probability that is no number.",
    )


@pytest.mark.parametrize("method", ["topk", "alice"])
def test_a_language_model_that_returns_no_numbers_fails_the_run(toy, method):
    toy.model = toys.always(b" rain", b" snow", logits=[math.nan, math.nan])
    run = make_run(method=method, **({"alice": QUICK} if method == "alice" else {}))
    work(run)
    assert (run.state, run.failure) == (
        "failed",
        "The language model returned a log-probability that is no number.",
    )


def test_models_are_loaded_before_each_chunk_is_leased_since_others_may_have_been_needed_meanwhile(monkeypatch):
    run = make_run(count=17)
    held_when_loaded = []
    load, seen = working.load_language_model, []

    def load_and_look(name, **options):
        seen.append(run.chunks.exclude(lease_token=None).count())
        return load(name, **options)

    def look_again():
        held_when_loaded.append(seen[:1])
        seen.clear()

    monkeypatch.setattr(working, "load_language_model", load_and_look)
    working.work_on_run(run_id=run.pk, between_chunks=look_again)
    run.refresh_from_db()
    assert held_when_loaded == [[], [0], [0]]
    assert run.state == "finished"


def test_an_error_between_chunks_is_not_the_run_s():
    run = make_run(count=17)

    def explode():
        raise ZeroDivisionError("of a sort")

    working.work_on_run(run_id=run.pk, between_chunks=explode)
    run.refresh_from_db()
    assert (run.state, run.failure, run.generations.count()) == ("finished", "", 17)


@pytest.mark.parametrize(
    ("name", "key"),
    [("http://ours:8000/v1#other", "secret"), ("http://theirs:8000/v1#m", ""), ("https://ours:8000/v1#m", "")],
)
def test_the_key_is_sent_to_the_server_of_the_settings_alone(monkeypatch, settings, name, key):
    settings.LANGUAGE_MODEL, settings.COMPLETIONS_KEY = "http://ours:8000/v1#m", "secret"
    keys = []
    monkeypatch.setattr("generation.engines.completions.connect", lambda name, *, api_key: keys.append(api_key))
    working._connect.cache_clear()
    working._connect(name)
    working._connect.cache_clear()
    assert keys == [key]


def test_a_language_model_that_repeats_itself_fails_the_run_with_what_to_do(toy):
    toy.model = toys.sayings("rain fell")
    run = make_run(count=2)
    work(run)
    assert (run.state, texts(run)) == ("failed", [])
    assert run.failure == (
        "After 20 rounds the language model had written 1 of 2 new statements (0 were empty, 20 duplicates, "
        "0 copies of their prompt). Raise the temperature, add demonstrations or ask for fewer."
    )


def test_what_was_stored_before_a_failure_stays(monkeypatch):
    # Loaded before each chunk is leased, and once more with it.
    models = [toys.chatterbox()] * 2 + [toys.sayings(" ")] * 2
    monkeypatch.setattr(working, "load_language_model", lambda name, **_: models.pop(0))
    run = make_run(count=17)
    work(run)
    assert (run.state, run.generations.count()) == ("failed", 16)


def test_a_set_that_changes_after_the_start_changes_nothing():
    undisturbed, disturbed = make_run(count=20), make_run(count=20)
    work(undisturbed)
    Demonstration.objects.filter(text__startswith="the ").update(retired_at=timezone.now())
    make_demonstrations(texts=["a demonstration of later"])
    work(disturbed)
    assert (disturbed.state, texts(disturbed)) == ("finished", texts(undisturbed))


def test_a_run_begun_before_sets_were_kept_goes_on_with_its_set_as_it_is_now():
    kept, begun = make_run(count=20), make_run(count=20)
    begun.cells.update(demonstrations=[])
    work(kept)
    work(begun)
    assert (begun.state, texts(begun)) == ("finished", texts(kept))


def test_a_run_begun_before_sets_were_kept_fails_with_what_to_do_if_its_set_is_empty_now():
    run = make_run()
    run.cells.update(demonstrations=[])
    Demonstration.objects.update(retired_at=timezone.now())
    work(run)
    assert run.failure == "A prompt needs 5 demonstrations and the benign set of Women has 0. Add 5 more."


def test_alice_seeks_from_each_label_what_its_prompts_are_not(toy):
    toy.model = moody()
    run = make_run(labels=("benign", "toxic"), method="alice", alice=replace(QUICK, direction=None))
    work(run)
    assert run.state == "finished"
    for cell in run.cells.all():
        decoder = working.decoder_for(cell=working.cell_of(run=run, group_id=cell.group_id, label=cell.label))
        assert decoder.parameters["alice"].sought_class == {"benign": "toxic", "toxic": "benign"}[cell.label]
    from_benign, from_toxic = (
        sum(run.generations.filter(label=label).values_list("toxic_prob", flat=True)) for label in ("benign", "toxic")
    )
    assert from_benign > from_toxic


def test_a_run_of_before_that_stored_its_direction_goes_on(toy):
    toy.model = moody()
    new, old = make_run(method="alice", alice=QUICK), make_run(method="alice", alice=QUICK)
    old.parameters["alice"]["direction"] = "false_positives"
    old.save()
    work(new)
    work(old)
    assert (old.state, texts(old)) == ("finished", texts(new))


def test_each_cell_counts_what_was_stored_of_it_and_drawn_again(toy):
    toy.model = toys.sayings(*(f"day {day} was dry" for day in range(40)))
    run = make_run(count=17, slugs=("women", "asian"))
    work(run)
    assert run.state == "finished"
    for cell in run.cells.all():
        chunks = run.chunks.filter(group=cell.group)
        assert cell.stored == run.generations.filter(group=cell.group).count() == 17
        assert cell.duplicate == sum(chunk.duplicate for chunk in chunks)
        assert cell.decoding_seconds == pytest.approx(sum(chunk.decoding_seconds for chunk in chunks))
    assert run.progress()["drawn_again_duplicate"] > 0


def test_an_error_nobody_thought_of_is_on_the_run_s_page_and_in_the_log(toy):
    run = make_run()
    at_the_first_step(toy, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work(run)
    run.refresh_from_db()
    assert (run.state, run.failure) == (
        "failed",
        "The worker stopped with an error: ZeroDivisionError: division by zero",
    )


def test_an_error_without_words_fails_the_run_too(toy):
    run = make_run()

    def fail():
        raise ValueError

    at_the_first_step(toy, fail)
    with pytest.raises(ValueError):
        work(run)
    run.refresh_from_db()
    assert (run.state, run.failure) == ("failed", "The worker stopped with an error: ValueError: ")


def test_a_chunk_that_the_database_refuses_three_times_fails_the_run(monkeypatch):
    tries = []

    def refuse(**_):
        tries.append("try")
        raise IntegrityError("generation_text_once_a_run")

    monkeypatch.setattr(working, "store_chunk", refuse)
    run = make_run()
    with pytest.raises(IntegrityError):
        work(run)
    run.refresh_from_db()
    assert (run.state, len(tries)) == ("failed", 3)
    assert run.failure == "The worker stopped with an error: IntegrityError: generation_text_once_a_run"
