"""Readings: each statement is read once by a model, whoever dies, stops or goes first, and what failed is said."""

import math
import platform
import threading
import time
from datetime import timedelta

import numpy as np
import psutil
import pytest
import torch
import transformers
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from generation import classifiers, reading, reading_chunks, reading_texts, readings, tasks, working
from generation.chunks import MAX_LEASES, LeaseLost
from generation.engines.perplexity import Predictor, Surprise
from generation.leases import LOADING
from generation.models import (
    AuditEntry,
    Embedding,
    Generation,
    Perplexity,
    ReaderKind,
    Reading,
    ReadingChunk,
    TextReader,
    ToxicityScore,
)
from generation.read_values import NotRead, current_reader, missing, readers, vectors
from generation.readings import NothingToRead, ReadingFailed, embed_missing, start_reading, stop_reading
from tests.factories import make_embedding, make_generation, make_group, make_reader, make_reading, make_run
from tests.generation import tiny
from tests.generation.concurrency import SECONDS, at_once, start

pytestmark = pytest.mark.django_db
concurrent = pytest.mark.django_db(transaction=True)

SENTENCES = ("my aunt drives a crane", "rain fell", "the choir sang in three languages")


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(readings, "STATEMENTS_A_CHUNK", dict.fromkeys(ReaderKind, 2))


@pytest.fixture
def tiny_folder(tmp_path):
    return tiny.save(tmp_path / "tiny")


def statements(*texts):
    return [make_generation(text).pk for text in texts or SENTENCES]


def work(started, **options):
    reading.work_on_reading(reading_id=started.pk, **options)
    started.refresh_from_db()
    return started


def lease(started):
    return reading_chunks.lease_next_chunk(reading_id=started.pk)


def let_lapse(chunk):
    ReadingChunk.objects.filter(pk=chunk.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def store(chunk, reader):
    values = {pk: {"vector": b"\0" * 8} for pk in chunk.generations}
    reading_chunks.store_chunk(chunk=chunk, reader=reader, values=values, seconds=1)


# --- Starting -----------------------------------------------------------------------------


def test_a_reading_has_the_statements_in_chunks_is_noted_and_wakes_a_worker(
    small_chunks, sent, admin_user, django_capture_on_commit_callbacks
):
    ids = statements("one", "two", "three")
    with django_capture_on_commit_callbacks(execute=True):
        started = start_reading(
            kind="encoder", model=readings.ENCODER, generation_ids=reversed(ids), about="three", by=admin_user
        )
    assert [chunk.generations for chunk in started.chunks.all()] == [ids[:2], ids[2:]]
    assert (started.statements, started.read, started.created_by) == (3, 0, admin_user)
    assert sent == [("generation.read_statements", [started.pk], "generation")]
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.subject) == ("reading started", admin_user, str(started))
    assert entry.details == {"reader": "encoder", "model": readings.ENCODER, "statements": 3, "about": "three"}


def test_a_queryset_says_which_statements_as_well_as_ids_and_one_that_comes_twice_is_read_once(small_chunks):
    ids = statements("one", "two", "three")
    make_generation("of others", group=make_group("asian"))
    by_query = make_reading(generation_ids=Generation.objects.filter(group__slug="women").order_by("-text"))
    by_ids = make_reading(generation_ids=[*ids, ids[0], 10**9])
    for started in (by_query, by_ids):
        assert started.statements == 3
        assert [pk for chunk in started.chunks.all() for pk in chunk.generations] == ids


def test_starting_takes_as_many_queries_for_many_statements_as_for_two(django_assert_max_num_queries):
    ids = [make_generation().pk for _ in range(300)]
    with django_assert_max_num_queries(10):
        make_reading(generation_ids=Generation.objects.filter(pk__in=ids))


def test_what_the_model_has_read_is_left_out_and_nothing_left_is_refused():
    ids = statements("one", "two")
    reader = make_reader(name=readings.ENCODER)
    make_embedding(Generation.objects.get(pk=ids[0]), reader=reader)
    assert [chunk.generations for chunk in make_reading(generation_ids=ids).chunks.all()] == [ids[1:]]
    make_embedding(Generation.objects.get(pk=ids[1]), reader=reader)
    with pytest.raises(NothingToRead, match="has read all of these statements"):
        make_reading(generation_ids=ids)
    with pytest.raises(NothingToRead, match="There are no such statements"):
        make_reading(generation_ids=[10**9])
    with pytest.raises(NothingToRead, match="There are no such statements"):
        make_reading(generation_ids=Generation.objects.none())
    assert Reading.objects.count() == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "oracle"}, "no kind of reader 'oracle'"),
        ({"precision": "int4"}, "no precision 'int4'"),
        ({"model": "  "}, "Name the model"),
        ({"model": "m" * 301}, "301 characters"),
        ({"model": "http://localhost:8000/v1#m"}, "completions server does not tell"),
        ({"model": "all-mpnet-base-v2"}, "no sentence encoder 'all-mpnet-base-v2'"),
    ],
)
def test_what_no_worker_can_do_is_refused_in_words(wrong, words):
    order = {"kind": "encoder", "model": readings.ENCODER, "generation_ids": statements("one")}
    with pytest.raises(ValueError, match=words):
        start_reading(**order | wrong)
    assert not Reading.objects.exists()


def test_the_embedded_models_are_called_as_they_are_loaded(settings):
    assert readings.ENCODER == classifiers.EMBEDDED_ENCODER
    assert readings.default_model("language_model") == settings.LANGUAGE_MODEL
    settings.LANGUAGE_MODEL = "http://localhost:8000/v1#m"
    from generation.language_models import EMBEDDED_MODEL

    assert readings.default_model("language_model") == EMBEDDED_MODEL


def test_statements_are_chosen_by_group_label_method_and_run_and_told_in_words():
    women, asian = make_group("women"), make_group("asian")
    wanted = make_generation(group=women, label="toxic", method="alice")
    for fields in ({"group": asian}, {"label": "benign"}, {"method": "topk"}):
        make_generation(**{"group": women, "label": "toxic", "method": "alice"} | fields)
    chosen, about = readings.chosen_statements(groups=[women], labels=["toxic"], methods=["alice"])
    assert list(chosen) == [wanted]
    assert about == "Women, toxic, ALICE"
    assert readings.chosen_statements()[1] == "all statements"
    run = make_run()
    assert not readings.chosen_statements(run=run)[0].exists()


def test_what_a_reading_has_before_it_is_not_started_again(small_chunks, sent, django_capture_on_commit_callbacks):
    ids = statements("one", "two", "three", "four")
    first = make_reading(generation_ids=ids)
    store(lease(first), make_reader())
    with django_capture_on_commit_callbacks(execute=True):
        second = make_reading(generation_ids=Generation.objects.filter(pk__in=ids[2:]), wake=True)
    assert (second, second.was_under_way, first.was_under_way) == (first, True, False)
    assert sent == [("generation.read_statements", [first.pk], "generation")]
    others = [
        make_reading(generation_ids=ids[1:]),  # the second is done there
        make_reading(generation_ids=ids[2:], precision="bfloat16"),
        make_reading(generation_ids=ids[2:], kind="classifier"),
    ]
    assert len({first, *others}) == Reading.objects.count() == 4
    stop_reading(reading=first)
    stop_reading(reading=others[0])
    assert make_reading(generation_ids=ids[2:]) not in (first, *others)


def test_a_reading_that_other_files_were_begun_with_is_none_under_way():
    ids = statements("one")
    old, new = make_reader(name=readings.ENCODER), make_reader(name=readings.ENCODER, revision="2")
    first = make_reading(generation_ids=ids)
    Reading.objects.filter(pk=first.pk).update(reader=old)
    assert current_reader("encoder") == new
    assert make_reading(generation_ids=ids) != first


@concurrent
def test_a_double_click_starts_one_reading():
    ids = statements("one", "two")
    pks = at_once(*[lambda: make_reading(generation_ids=ids).pk] * 4)
    assert pks == [Reading.objects.get().pk] * 4


# --- Reading ------------------------------------------------------------------------------


def test_the_encoder_stores_a_unit_vector_a_statement(small_chunks):
    ids = statements()
    started = work(make_reading(generation_ids=ids))
    assert (started.read, started.failure, started.state) == (3, "", "finished")
    assert started.reader == current_reader("encoder", readings.ENCODER)
    assert started.device == "cpu"
    assert started.seconds > 0
    found = vectors(started.reader, ids)
    encoder = classifiers.load_encoder(device=torch.device("cpu"))
    np.testing.assert_allclose(found, encoder.embed(SENTENCES).numpy(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)


def test_the_classifier_stores_its_probability_of_toxic():
    ids = statements()
    started = work(make_reading(kind="classifier", generation_ids=ids))
    stored = ToxicityScore.objects.filter(reader=started.reader).order_by("generation")
    classifier = working.load_classifier(started.model)
    expected = classifier.log_probs(SENTENCES)[:, 1].exp().tolist()
    assert [score.toxic_prob for score in stored] == pytest.approx(expected, rel=1e-5)


def test_the_language_model_stores_perplexities_and_none_where_no_token_is_predicted(tiny_folder):
    ids = statements("rain fell at the harbor", "rain")
    started = work(make_reading(kind="language_model", model=tiny_folder, generation_ids=ids))
    assert started.failure == ""
    first, second = Perplexity.objects.filter(reader=started.reader).order_by("generation")
    model = transformers.GPT2LMHeadModel.from_pretrained(tiny_folder).eval()
    tokens = tiny.make_tokenizer()("rain fell at the harbor", return_tensors="pt")["input_ids"]
    assert first.value == pytest.approx(math.exp(model(input_ids=tokens, labels=tokens).loss.item()), rel=1e-4)
    assert (first.tokens, second.value, second.tokens) == (4, None, 0)


def test_what_another_reading_stored_meanwhile_is_not_read_again(tiny_folder, monkeypatch):
    ids = statements()
    more = statements("the choir fell")
    of_tiny = {"kind": "language_model", "model": tiny_folder}
    first, second = (make_reading(generation_ids=some, **of_tiny) for some in (ids, [*ids, *more]))
    work(first)
    read, seen = Predictor.read, []
    monkeypatch.setattr(Predictor, "read", lambda self, texts: seen.extend(texts) or read(self, texts))
    assert work(second).read == 4
    assert seen == ["the choir fell"]
    assert Perplexity.objects.count() == 4
    assert [pace.statements_a_second for pace in readings.paces()] == [1 / second.seconds]
    assert second.progress()["statements_a_second"] == 1 / second.seconds


def test_each_precision_is_a_reader_of_its_own(tiny_folder):
    ids = statements()
    for precision in ("float32", "bfloat16"):
        work(make_reading(kind="language_model", model=tiny_folder, generation_ids=ids, precision=precision))
    assert [reader.precision for reader in readers("language_model")] == ["bfloat16", "float32"]
    assert Perplexity.objects.count() == 6
    assert str(current_reader("language_model")).endswith(", bfloat16)")
    assert current_reader("language_model", precision="float32").precision == "float32"


def test_other_files_under_the_same_name_end_the_reading_and_the_next_one_reads_all_anew(tmp_path):
    folder = tiny.save(tmp_path / "tiny")
    ids = statements()
    work(make_reading(kind="language_model", model=folder, generation_ids=ids))
    more = statements("the choir fell")
    second = make_reading(kind="language_model", model=folder, generation_ids=[*ids, *more])
    changed = tiny.gpt2()
    torch.nn.init.ones_(changed.transformer.wpe.weight)
    tiny.save(tmp_path / "tiny", changed)
    working_anew = pytest.MonkeyPatch()
    with working_anew.context() as patch:
        patch.setattr(working, "load_language_model", load_afresh)
        assert "are others than those that the reading was started with" in work(second).failure
        third = work(make_reading(kind="language_model", model=folder, generation_ids=[*ids, *more]))
    assert (third.failure, third.read) == ("", 4)
    assert Perplexity.objects.filter(reader=third.reader).count() == 4
    assert TextReader.objects.count() == 2


def load_afresh(name, *, precision):
    """As a worker that starts now does."""
    from generation import language_models

    return language_models.load.__wrapped__(name, cache_folder=None, device=torch.device("cpu"), precision=precision)


# --- What goes wrong ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "model", "words"),
    [
        ("classifier", "/nowhere", "The classifier '/nowhere' cannot be loaded from this machine"),
        ("language_model", "/nowhere", "The language model '/nowhere' cannot be loaded from this machine"),
    ],
)
def test_a_model_that_cannot_be_loaded_ends_the_reading_with_what_to_do(kind, model, words):
    started = work(make_reading(kind=kind, model=model))
    assert started.failure.startswith(words)
    assert (started.state, started.read) == ("incomplete", 0)
    assert not Reading.objects.waiting().exists()


def test_a_model_without_a_toxic_label_ends_the_reading(tmp_path):
    config = transformers.BertConfig(
        vocab_size=18, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    tiny.make_tokenizer().save_pretrained(tmp_path)
    assert "means toxic cannot be told" in work(make_reading(kind="classifier", model=str(tmp_path))).failure


def test_cuda_where_there_is_none_ends_the_reading(settings):
    if torch.cuda.is_available():
        pytest.skip("There is a CUDA device.")
    settings.DEVICE = "cuda"
    assert "torch finds no CUDA device" in work(make_reading()).failure


def test_a_model_that_makes_no_number_of_any_statement_ends_the_reading_at_once(tmp_path, small_chunks):
    model = tiny.gpt2()
    torch.nn.init.constant_(model.transformer.h[0].mlp.c_fc.weight, math.nan)
    folder = tiny.save(tmp_path / "broken", model)
    ids = statements()
    started = work(make_reading(kind="language_model", model=folder, generation_ids=ids))
    assert f"makes no number of 2 statements ({ids[0]}, {ids[1]}): its weights are broken" in started.failure
    assert (started.state, started.read) == ("incomplete", 0)
    assert not Perplexity.objects.exists()


class Fake:
    """An encoder that does with the texts what a test says."""

    name, revision, device, tokens_a_forward = "fake", "1", torch.device("cpu"), 1024

    def __init__(self, does=lambda texts: None):
        self.does = does

    def embed(self, texts):
        self.does(texts)
        return torch.tensor([[math.nan if "overflow" in text else 1.0] for text in texts])


@pytest.fixture
def fake(monkeypatch):
    model = Fake()
    monkeypatch.setattr(reading, "load_model", lambda *_, **__: model)
    return model


def test_a_statement_of_no_number_is_left_out_and_told_and_keeps_no_later_one_from_being_read(fake, small_chunks):
    ids = statements("one", "two that overflows", "three", "four")
    started = work(make_reading(generation_ids=ids))
    assert f"makes no number of 1 statement ({ids[1]}): its weights" in started.failure
    assert (started.state, started.read) == ("incomplete", 3)
    more = statements("five")
    again = work(make_reading(generation_ids=[*ids, *more]))
    assert (again.statements, again.read) == (2, 1)
    assert set(Embedding.objects.values_list("generation", flat=True)) == {*ids, *more} - {ids[1]}


@pytest.mark.parametrize("kind", ReaderKind.values)
def test_no_number_is_never_stored(kind):
    reader, [pk] = make_reader(kind), statements("one")
    reading_chunks.store_values(reader=reader, values={pk: None})
    assert missing(reader, [pk]) == [pk]


@pytest.mark.parametrize(("total", "tokens"), [(math.nan, 2), (math.inf, 2), (10_000.0, 2)])
def test_a_perplexity_that_is_no_number_or_too_large_to_be_one_is_none(total, tokens):
    class Overflowing:
        name, tokens_a_forward = "overflowing", 1

        def read(self, texts):
            return [Surprise(total, tokens) for _ in texts]

    found = reading_texts.read_all(
        [(1, "one")], model=Overflowing(), on_step=lambda: None, portion=reading_texts.Portion()
    )
    assert found == {1: None}


@concurrent
def test_a_statement_that_is_deleted_while_it_is_read_is_left_out(fake):
    kept, deleted = statements("one", "two")
    fake.does = lambda texts: Generation.objects.filter(pk=deleted).delete()
    started = work(make_reading(generation_ids=[kept, deleted]))
    assert (started.state, started.failure) == ("finished", "")
    assert Embedding.objects.get().generation_id == kept


class Short:
    """A reader that has room for so many tokens a forward."""

    name, tokens_a_forward = "short", 1024

    def __init__(self, room, error):
        self.room, self.error, self.tried = room, error, []

    def embed(self, texts):
        self.tried.append(self.tokens_a_forward)
        if self.tokens_a_forward > self.room:
            raise self.error
        return torch.ones((len(texts), 2))


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError(), MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")],
    ids=["of the GPU", "of Python", "of torch on the CPU"],
)
def test_too_many_tokens_at_once_are_halved_for_the_rest_of_the_stint(error):
    short, portion = Short(300, error), reading_texts.Portion()
    for pk in (1, 2):
        assert [*reading_texts.read_all([(pk, "one")], model=short, on_step=lambda: None, portion=portion)] == [pk]
    assert short.tried == [1024, 512, 256, 256]
    assert short.tokens_a_forward == 1024  # the model stays loaded: others are not slowed down


def test_how_many_texts_are_read_at_once_grows_from_two_and_is_kept_from_chunk_to_chunk(fake, monkeypatch):
    monkeypatch.setattr(readings, "STATEMENTS_A_CHUNK", dict.fromkeys(ReaderKind, 7))
    parts = []
    fake.does = lambda texts: parts.append(len(texts))
    work(make_reading(14))
    assert parts == [2, 4, 1, 7]


def test_fewer_texts_are_read_at_once_where_they_take_long(fake, monkeypatch):
    monkeypatch.setattr(reading_texts, "SECONDS_AT_ONCE", 0)
    parts = []
    fake.does = lambda texts: parts.append(len(texts))
    work(make_reading(4))
    assert parts == [2, 1, 1]


class Scattering:
    """A reader that leaves a piece in use at the end of all that it freed, as forwards of ever new sizes do."""

    name, tokens_a_forward = "scattering", 1

    def embed(self, texts):
        pieces = [bytearray(64 * 1024) for _ in range(3000)]
        self.last = pieces[-1]
        return torch.ones((len(texts), 2))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others' allocators free memory their own way")
def test_what_a_reading_freed_is_given_back_to_the_system():
    process = psutil.Process()
    before = process.memory_info().rss
    reading_texts.read_all([(1, "one")], model=Scattering(), on_step=lambda: None, portion=reading_texts.Portion())
    assert process.memory_info().rss - before < 50e6


def test_too_little_memory_for_one_statement_is_said_and_other_errors_are_not_taken_for_it():
    from generation.devices import OutOfMemory

    with pytest.raises(OutOfMemory, match="even one statement at a time"):
        reading_texts.read_all(
            [(1, "one")], model=Short(0, MemoryError()), on_step=lambda: None, portion=reading_texts.Portion()
        )
    with pytest.raises(RuntimeError, match="shapes"):
        reading_texts.read_all(
            [(1, "one")], model=Short(0, RuntimeError("shapes")), on_step=lambda: None, portion=reading_texts.Portion()
        )


def test_an_error_that_nobody_foresaw_is_on_the_page_and_in_the_log(monkeypatch):
    started = make_reading()
    monkeypatch.setattr(classifiers, "load_encoder", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work(started)
    started.refresh_from_db()
    assert started.failure == "The worker stopped with an error: ZeroDivisionError: division by zero"


# --- Leases -------------------------------------------------------------------------------


def test_a_chunk_that_stopped_its_worker_each_time_fails_the_reading():
    started = make_reading()
    for _ in range(MAX_LEASES):
        let_lapse(lease(started))
    assert lease(started) is None
    started.refresh_from_db()
    assert "were taken up 5 times and their worker stopped each time" in started.failure


def test_a_chunk_whose_lease_lapsed_is_stored_by_the_one_who_has_it_now_alone():
    started, reader = make_reading(), make_reader()
    first = lease(started)
    assert lease(started) is None
    let_lapse(first)
    second = lease(started)
    with pytest.raises(LeaseLost):
        store(first, reader)
    assert not Embedding.objects.exists()
    store(second, reader)
    started.refresh_from_db()
    assert (started.read, started.state) == (2, "finished")
    with pytest.raises(LeaseLost):
        store(second, reader)
    assert Embedding.objects.count() == 2


def test_a_reading_is_stopped_once_and_what_is_under_way_is_not_stored(admin_user):
    started, reader = make_reading(), make_reader()
    chunk = lease(started)
    assert stop_reading(reading=started, by=admin_user)
    assert not stop_reading(reading=started, by=admin_user)
    for act in (lambda: store(chunk, reader), lambda: reading_chunks.begin(chunk=chunk)):
        with pytest.raises(LeaseLost):
            act()
    started.refresh_from_db()
    assert (started.failure, started.read) == (readings.STOPPED, 0)
    assert not Reading.objects.waiting().exists()
    assert AuditEntry.objects.filter(act="reading stopped", by=admin_user).count() == 1


def test_a_worker_that_is_asked_to_stop_gives_its_chunk_back(small_chunks):
    started = make_reading(4)
    asked = iter([False, True])
    work(started, is_stopping=lambda: next(asked, True))
    assert started.state == "running"
    assert [chunk.leases for chunk in started.chunks.all()] == [0, 0]
    assert Reading.objects.waiting().get() == started
    assert work(started).state == "finished"


def test_only_the_first_chunk_is_held_for_as_long_as_a_model_takes_to_load(small_chunks, monkeypatch, settings):
    started = make_reading(generation_ids=statements())
    lasted = []

    def note_lease(*, chunk, is_first):
        lasted.append((chunk.lease_expires_at - timezone.now()).total_seconds())
        return begin_with(chunk, is_first=is_first)

    begin_with = reading.begin_with
    monkeypatch.setattr(reading, "begin_with", lambda chunk, is_first: note_lease(chunk=chunk, is_first=is_first))
    assert work(started).state == "finished"
    first, second = lasted
    assert second <= settings.LEASE_SECONDS < first <= LOADING.total_seconds()


@concurrent
def test_the_lease_is_kept_also_while_texts_take_longer_than_it(fake, settings):
    settings.LEASE_SECONDS = 1
    started, at_it, may_end = make_reading(), threading.Event(), threading.Event()
    fake.does = lambda texts: at_it.set() or may_end.wait(SECONDS)
    future = start(lambda: reading.work_on_reading(reading_id=started.pk))
    assert at_it.wait(SECONDS)
    time.sleep(1.5 * settings.LEASE_SECONDS)
    others = lease(started)
    may_end.set()
    future.result(SECONDS)
    assert others is None
    started.refresh_from_db()
    assert (started.state, started.chunks.get().leases) == ("finished", 1)


def test_a_worker_that_lost_its_lease_and_lives_does_not_count_against_the_chunk():
    started = make_reading()
    slow = lease(started)
    let_lapse(slow)
    quick = lease(started)
    assert quick.leases == 2
    reading_chunks.give_back_chunk(chunk=slow)
    held = started.chunks.get()
    assert (held.leases, held.lease_token, held.lease_expires_at) == (1, quick.lease_token, quick.lease_expires_at)
    reading_chunks.give_back_chunk(chunk=quick)
    given_back = started.chunks.get()
    assert (given_back.leases, given_back.lease_token, given_back.lease_expires_at) == (0, None, None)


def test_the_lease_is_kept_while_a_chunk_is_read_and_lost_if_the_reading_was_stopped(settings):
    settings.LEASE_SECONDS = 0  # half of it has gone at once
    started = make_reading(4)
    steps = []

    def is_stopping():
        steps.append(1)
        if len(steps) == 3:
            stop_reading(reading=started)
        return False

    work(started, is_stopping=is_stopping)
    assert started.failure == readings.STOPPED
    assert not Embedding.objects.exists()


@concurrent
def test_two_workers_share_a_reading_and_each_statement_is_stored_once(small_chunks):
    started = make_reading(12)
    reading_texts.load_model("encoder", readings.ENCODER)
    at_once(*[lambda: reading.work_on_reading(reading_id=started.pk)] * 2)
    started.refresh_from_db()
    assert (started.read, started.state, started.failure) == (12, "finished", "")
    assert Embedding.objects.count() == 12


@concurrent
def test_two_readings_of_the_same_statements_at_once_do_not_wait_for_each_other(small_chunks):
    ids = statements(*[f"number {number} is about the weather" for number in range(12)])
    both = [make_reading(generation_ids=some) for some in (ids[:11], ids)]
    reading_texts.load_model("encoder", readings.ENCODER)
    results = at_once(*[lambda started=started: reading.work_on_reading(reading_id=started.pk) for started in both])
    assert results == [None, None]
    assert [Reading.objects.get(pk=started.pk).read for started in both] == [11, 12]
    assert Embedding.objects.count() == 12


def test_values_are_stored_in_the_order_of_the_statements_so_that_no_two_workers_wait_for_each_other():
    ids = statements()
    values = {pk: {"vector": b""} for pk in reversed(ids)}
    reading_chunks.store_values(reader=make_reader(), values=values)
    assert list(Embedding.objects.order_by("pk").values_list("generation", flat=True)) == ids


@concurrent
def test_of_two_workers_that_store_the_last_chunks_at_once_one_ends_the_reading(small_chunks):
    started, reader = make_reading(4), make_reader()
    chunks = [lease(started), lease(started)]
    barrier = threading.Barrier(2)

    def store_together(chunk):
        with transaction.atomic():
            barrier.wait(10)
            store(chunk, reader)

    assert at_once(*[lambda chunk=chunk: store_together(chunk) for chunk in chunks]) == [None, None]
    started.refresh_from_db()
    assert (started.read, started.state) == (4, "finished")


# --- Taking turns -------------------------------------------------------------------------


def test_a_run_that_waits_goes_first(small_chunks):
    started = make_reading(6)
    run = make_run()
    tasks.read_statements(started.pk)
    started.refresh_from_db()
    assert started.read == 0
    type(run).objects.update(state="paused")
    tasks.read_statements(started.pk)
    started.refresh_from_db()
    assert (started.read, started.state) == (6, "finished")


def test_between_chunks_a_worker_looks_for_what_goes_first(small_chunks):
    started = make_reading(6)
    waits = iter([False, False, True])
    reading.work_on_readings(first=started.pk, others_wait=lambda: next(waits, True))
    started.refresh_from_db()
    assert started.read == 4


def test_readings_take_turns_of_a_stint_each(small_chunks, monkeypatch):
    monkeypatch.setattr(reading, "STINT", 0)
    monkeypatch.setattr(reading, "LOADS_WORTH", 0)
    both = [make_reading(4), make_reading(4)]
    order = []
    read_chunk = reading.read_chunk
    monkeypatch.setattr(
        reading, "read_chunk", lambda **given: (order.append(given["chunk"].reading_id), read_chunk(**given))
    )
    reading.work_on_readings(first=both[1].pk)
    assert order == [both[1].pk, both[0].pk, both[1].pk, both[0].pk]
    assert not Reading.objects.unended().exists()


def test_an_error_in_what_is_done_between_chunks_is_not_the_readings():
    started = work(make_reading(), between_chunks=lambda: 1 / 0)
    assert (started.state, started.failure) == ("finished", "")


def test_the_periodic_task_wakes_a_worker_for_a_reading_with_a_free_chunk(sent, django_capture_on_commit_callbacks):
    started = make_reading()
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_open_runs()
    assert ("generation.read_statements", [started.pk], "generation") in sent
    sent.clear()
    lease(started)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_open_runs()
    assert sent == []


# --- Progress -----------------------------------------------------------------------------


def test_progress_tells_speed_workers_and_time_left(small_chunks):
    started = make_reading(6)
    assert started.progress() == {"percent": 0, "workers": 0, "statements_a_second": None, "seconds_left": None}
    store(lease(started), make_reader())
    lease(started)
    lease(started)
    started.refresh_from_db()
    assert started.progress() == {"percent": 33, "workers": 2, "statements_a_second": 2, "seconds_left": 1}
    [pace] = readings.paces()
    assert (pace.model, pace.statements_a_second, pace.seconds_for(10)) == (readings.ENCODER, 2, 5)


# --- Reading values back --------------------------------------------------------------------


def test_vectors_come_in_the_order_of_the_ids(monkeypatch):
    monkeypatch.setattr("generation.read_values.IDS_AT_ONCE", 2)
    reader, other = make_reader(), make_reader()
    stored = [make_embedding(vector=(number, -number, 0.5), reader=reader) for number in range(5)]
    make_embedding(stored[0].generation, vector=(9, 9, 9), reader=other)
    ids = [stored[number].generation_id for number in (3, 0, 4)]
    found = vectors(reader, ids)
    assert found.dtype == np.float32
    assert found.tolist() == [[3, -3, 0.5], [0, 0, 0.5], [4, -4, 0.5]]
    assert vectors(reader, []).shape == (0, 3)


def test_vectors_that_are_missing_or_asked_for_twice_are_said():
    reader = make_reader()
    generation = make_embedding(reader=reader).generation
    with pytest.raises(NotRead, match="1 of 2 statements have no embedding"):
        vectors(reader, [generation.pk, make_generation().pk])
    with pytest.raises(NotRead, match="1 of 1 statements"):
        vectors(make_reader(), [generation.pk])
    with pytest.raises(ValueError, match="comes twice"):
        vectors(reader, [generation.pk, generation.pk])


def test_missing_are_those_that_this_reader_has_not_read():
    reader = make_reader()
    generation, other = make_embedding(reader=reader).generation_id, make_embedding().generation_id
    assert missing(reader, [other, generation, 10**9]) == [other]
    assert missing(None, [other, generation]) == [generation, other]


def test_the_current_reader_is_the_one_used_last():
    assert current_reader("encoder") is None
    old, new = make_reader(name="m", revision="1"), make_reader(name="m", revision="2")
    make_reader("classifier", name="m")
    TextReader.objects.filter(pk=old.pk).update(used_at=timezone.now() + timedelta(hours=1))
    assert current_reader("encoder", "m") == old
    assert list(readers("encoder")) == [old, new]
    assert current_reader("encoder", "other") is None


# --- In this process ------------------------------------------------------------------------


def test_embed_missing_embeds_what_is_missing_once_and_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(reading, "EMBEDDED_AT_ONCE", 2)
    ids = statements()
    steps = []
    reader = embed_missing(ids, on_step=lambda done, total: steps.append((done, total)))
    assert steps == [(0, 3), (0, 3), (2, 3), (2, 3), (3, 3)]
    assert vectors(reader, ids).shape == (3, 384)
    steps.clear()
    assert embed_missing(Generation.objects.all(), on_step=lambda *step: steps.append(step)) == reader
    assert steps == [(0, 0)]


def test_embed_missing_says_why_it_cannot(settings):
    settings.DEVICE = "abacus"
    with pytest.raises(ReadingFailed, match="HUMANVAL_DEVICE is 'abacus'"):
        embed_missing(statements())


def test_the_command_reads_says_how_many_and_has_nothing_to_do_the_second_time(capsys):
    statements()
    call_command("read_statements", "encoder", "--group", "women", "--label", "benign", "--method", "topk")
    assert "has read 3 statements in" in capsys.readouterr().out
    call_command("read_statements", "encoder")
    assert "has read all of these statements" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["oracle"], "no kind of reader 'oracle'"),
        (["encoder", "--group", "martians"], "no group 'martians'"),
        (["encoder", "--label", "rude"], "no label 'rude'"),
        (["encoder", "--method", "guess"], "no method 'guess'"),
        (["encoder", "--run", "99999"], "no run 99999"),
        (["encoder", "--precision", "int4"], "no precision 'int4'"),
        (["language_model", "--model", "/nowhere"], "cannot be loaded from this machine"),
    ],
)
def test_the_command_refuses_in_words(arguments, words):
    statements()
    with pytest.raises(CommandError, match=words):
        call_command("read_statements", *arguments)
