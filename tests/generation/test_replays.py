"""Replaying a search: asked for once, done by a worker, stored with every step, safe to run twice."""

import json
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from generation import leases, replaying, tasks, working
from generation.decoding import alice
from generation.decoding.search import SearchStep, Vote
from generation.language_models import LanguageModelUnavailable
from generation.models import AuditEntry, Generation, Replay
from generation.parameters import AliceParameters, Direction
from generation.replaying import work_on_replay
from generation.replays import NotASearch, lease_replay, request_replay, store_replay
from generation.search_steps import Search, packed
from generation.working import work_on_run
from tests.factories import DEMONSTRATIONS, make_generation, make_run, make_searched_generation
from tests.generation import toys

pytestmark = pytest.mark.django_db

BEAM = 3


def parameters(**changes):
    values = {"direction": Direction.FALSE_POSITIVES, "beam": BEAM, "vocabulary": 8, "max_new_tokens": 4, "n_best": 2}
    return AliceParameters(**values | changes)


@pytest.fixture
def moody(toy):
    """A language model with changing likings, so that the classifier has something to change."""
    toy.model = toys.moody(*" ".join(DEMONSTRATIONS).split())
    return toy


@pytest.fixture
def generation(moody):
    """A statement of a run of ALICE."""
    run = make_run(count=2, method="alice", alice=parameters())
    work_on_run(run_id=run.pk)
    return run.generations.order_by("position").first()


def replayed(generation) -> Replay:
    request_replay(generation=generation)
    work_on_replay(replay_id=generation.replay.pk)
    return Replay.objects.get(generation=generation)


# --- Asking -----------------------------------------------------------------------------


def test_asking_for_a_replay_stores_who_asked_and_wakes_a_worker(sent, admin_user, django_capture_on_commit_callbacks):
    generation = make_searched_generation()
    with django_capture_on_commit_callbacks(execute=True):
        assert request_replay(generation=generation, requested_by=admin_user)
    replay = Replay.objects.get()
    assert (replay.generation, replay.requested_by, replay.finished_at) == (generation, admin_user, None)
    assert sent == [("generation.replay", [replay.pk], "generation")]
    assert list(AuditEntry.objects.filter(act="replay asked for").values_list("by", "subject")) == [
        (admin_user.pk, f"replay of statement {generation.pk}")
    ]


def test_asking_again_while_it_is_under_way_or_done_changes_nothing(
    sent, generation, django_capture_on_commit_callbacks
):
    request_replay(generation=generation)
    with django_capture_on_commit_callbacks(execute=True):
        assert not request_replay(generation=generation)
        work_on_replay(replay_id=Replay.objects.get().pk)
        assert not request_replay(generation=generation)
    assert (Replay.objects.count(), sent) == (1, [])


@pytest.mark.parametrize("fields", [{"method": "topk"}, {"run": None}])
def test_only_what_alice_wrote_in_a_run_can_be_replayed(fields):
    generation = make_searched_generation(**fields) if "method" in fields else make_generation(method="alice")
    with pytest.raises(NotASearch) as refusal:
        request_replay(generation=generation)
    assert str(refusal.value) == f"Statement {generation.pk} cannot be replayed: ALICE did not write it in a run."
    assert not Replay.objects.exists()


# --- Working ----------------------------------------------------------------------------


def test_a_replay_finds_the_stored_statement_and_stores_each_step_of_its_search(generation):
    replay = replayed(generation)
    assert (replay.failure, replay.text, replay.found_the_same) == ("", generation.text, True)
    assert replay.environment["dtype"] == "float32"
    assert (replay.lease_expires_at, replay.leases) == (None, 1)
    watched = []
    alice.decode(
        toys.moody(*" ".join(DEMONSTRATIONS).split()),
        toys.ToyClassifier(),
        [generation.prompt.text],
        seeds=[generation.seed],
        parameters=parameters(),
        group_words=generation.group.naming_words.split(),
        watch=lambda _, step: watched.append(packed(step.votes)),
    )
    assert replay.steps == watched
    search = Search(replay.steps, beam=BEAM, text=replay.text)
    assert 1 <= len(search) <= 4
    last = search.rows(len(search))[search.path[-1]]
    assert (last.vote.text, last.on_path) == (generation.text, True)
    assert last.vote.score == pytest.approx(generation.score, abs=1e-6)


def test_a_replay_of_a_search_that_draws_is_the_same_search(moody):
    run = make_run(count=3, method="alice", alice=parameters(selection="sample"))
    work_on_run(run_id=run.pk)
    for generation in run.generations.all():
        assert replayed(generation).found_the_same


def test_a_replay_without_the_classifier_s_weight_has_no_votes_of_it(moody):
    run = make_run(count=1, method="alice", alice=parameters(classifier_weight=0))
    work_on_run(run_id=run.pk)
    replay = replayed(run.generations.get())
    search = Search(replay.steps, beam=BEAM, text=replay.text)
    assert {vote.sought_prob for step in search.steps for vote in step} == {None}
    assert (search.steps_changed, search.all_brought_in) == (0, 0)


def test_another_result_than_the_stored_one_is_noted(generation):
    Generation.objects.filter(pk=generation.pk).update(text="what another machine wrote")
    assert not replayed(generation).found_the_same


def test_a_finished_replay_is_not_done_again(generation, toy):
    replayed(generation)
    read = len(toy.classifier.texts_read)
    tasks.replay(Replay.objects.get().pk)
    assert len(toy.classifier.texts_read) == read


def test_a_replay_that_is_gone_is_no_error():
    tasks.replay(12345)


def test_a_replay_in_other_hands_is_left_alone_until_its_lease_lapses(generation):
    request_replay(generation=generation)
    replay = Replay.objects.get()
    assert lease_replay(replay_id=replay.pk)
    assert lease_replay(replay_id=replay.pk) is None
    Replay.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert list(Replay.objects.waiting()) == [replay]
    assert lease_replay(replay_id=replay.pk).leases == 2


def test_a_replay_whose_workers_die_fails_in_the_end_with_the_reason(generation):
    request_replay(generation=generation)
    for _ in range(4):
        Replay.objects.update(lease_expires_at=None)
        lease_replay(replay_id=Replay.objects.get().pk)
    assert Replay.objects.get().failure == (
        "Its worker stopped 3 times before the end. See the workers' logs; a machine short of memory does this."
    )


def test_of_two_workers_at_one_replay_the_first_result_stays(generation):
    request_replay(generation=generation)
    replay = lease_replay(replay_id=Replay.objects.get().pk)
    assert store_replay(replay=replay, text="first", steps=[[]], environment={})
    assert not store_replay(replay=replay, text="second", steps=[[]], environment={})
    assert Replay.objects.get().text == "first"
    replay.lease_expires_at = timezone.now()
    with pytest.raises(leases.FinishedElsewhere):
        leases.keep(replay)


def test_a_worker_that_keeps_at_it_keeps_its_lease(generation):
    request_replay(generation=generation)
    replay = lease_replay(replay_id=Replay.objects.get().pk)
    replay.lease_expires_at = timezone.now() + timedelta(seconds=1)
    leases.keep(replay)
    assert Replay.objects.get().lease_expires_at > timezone.now() + timedelta(seconds=30)


def test_a_worker_that_is_asked_to_stop_gives_the_replay_back(generation):
    request_replay(generation=generation)
    work_on_replay(replay_id=Replay.objects.get().pk, is_stopping=lambda: True)
    replay = Replay.objects.get()
    assert (replay.lease_expires_at, replay.leases, replay.finished_at) == (None, 0, None)


def test_a_model_that_cannot_be_loaded_fails_the_replay_with_its_reason_and_it_can_be_asked_for_again(
    generation, monkeypatch
):
    def unavailable(name, **_):
        raise LanguageModelUnavailable("The model is not here.")

    with monkeypatch.context() as patch:
        patch.setattr(working, "load_language_model", unavailable)
        replay = replayed(generation)
    assert (replay.failure, replay.steps) == ("The model is not here.", [])
    assert replay.finished_at
    replay = replayed(generation)
    assert (replay.failure, replay.found_the_same, replay.leases) == ("", True, 1)


def test_an_unforeseen_error_is_on_the_replay_and_in_the_log(generation, monkeypatch):
    def explode(**_):
        raise ZeroDivisionError("of a sort")

    monkeypatch.setattr(replaying, "decoder_for", explode)
    request_replay(generation=generation)
    with pytest.raises(ZeroDivisionError):
        work_on_replay(replay_id=Replay.objects.get().pk)
    assert Replay.objects.get().failure == "The worker stopped with an error: ZeroDivisionError: of a sort"


def test_the_periodic_task_wakes_a_worker_for_a_replay_whose_wake_up_was_lost(sent, django_capture_on_commit_callbacks):
    generation = make_searched_generation()
    generation.run.chunks.update(finished_at=timezone.now())
    request_replay(generation=generation)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_open_runs()
    assert sent == [("generation.replay", [Replay.objects.get().pk], "generation")]


@pytest.mark.parametrize(
    "fields",
    [
        {"finished_at": None, "failure": "It failed."},
        {"finished_at": None, "steps": [[1]]},
        {"finished_at": timezone.now()},
        {"finished_at": timezone.now(), "failure": "It failed.", "steps": [[1]]},
        {"finished_at": timezone.now(), "failure": "It failed.", "lease_expires_at": timezone.now()},
    ],
)
def test_the_database_refuses_a_replay_that_is_neither_under_way_nor_done_nor_failed(fields):
    with pytest.raises(IntegrityError), transaction.atomic():
        Replay.objects.create(generation=make_searched_generation(), **fields)


# --- What is stored and drawn -----------------------------------------------------------


def vote(text="a sea", token=" sea", parent=0, *, kept=True, rank=0, ended=False, **numbers):
    numbers = {"log_prob": -1.0, "sought_log_prob": -0.5, "score": -0.75} | numbers
    return Vote(text=text, token=token, parent=parent, rank_without=rank, kept=kept, ended=ended, **numbers)


def stored(*steps):
    return [packed(SearchStep(position, votes).votes) for position, votes in enumerate(steps)]


SEARCH = stored(
    (vote("a", " a"), vote("b", " b", rank=5), vote("c", " c", kept=False, rank=1)),
    (vote("b d", " d", parent=1), vote("a", "\n", ended=True, rank=1)),
    (vote("a", "", parent=1, ended=True), vote("b d e", " e", rank=9), vote("b d f", " f", kept=False, rank=1)),
)


def search(text="b d e"):
    return Search(SEARCH, beam=2, text=text)


def test_what_json_and_databases_cannot_hold_is_stored_as_what_they_can():
    votes = [vote(token="\0x", log_prob=float("-inf"), sought_log_prob=None, score=float("-inf"))]
    [row] = packed(votes)
    assert row == ["a sea", "x", 0, 0.0, None, None, 0, True, False]
    assert json.loads(json.dumps(row)) == row


def test_the_path_of_the_result_is_followed_back_through_the_beams():
    assert search().path == [1, 0, 1]
    assert search("a").path == [0, 1, 0]


def test_rows_say_what_the_classifier_changed():
    fates = [[row.fate_in_words for row in search().rows(number)] for number in (1, 2, 3)]
    assert fates == [
        ["kept", "brought in by the classifier", "kept out by the classifier"],
        ["kept", "kept; ends here"],
        ["kept, complete before", "brought in by the classifier", "kept out by the classifier"],
    ]
    assert (search().steps_changed, search().all_brought_in) == (2, 2)


def test_lines_lead_from_each_hypothesis_to_what_continues_it_the_result_s_on_top():
    assert [(line.start, line.end, line.row.on_path) for line in search().lines(2)] == [
        (0.5, 1.5, False),
        (1.5, 0.5, True),
    ]


def test_the_strip_ends_where_the_result_is_complete():
    assert [mark.vote and mark.vote.token_in_sight for mark in search("a").marks] == ["a", "↵", None]


@pytest.mark.parametrize(("token", "shown"), [(" sea", "sea"), ("\n", "↵"), (" ", "␣"), ("", "end")])
def test_every_token_can_be_seen(token, shown):
    [[row]] = [search.rows(1) for search in [Search(stored((vote(token=token),)), beam=1, text="a sea")]]
    assert row.vote.token_in_sight == shown
