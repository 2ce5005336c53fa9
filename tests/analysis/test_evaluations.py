"""Evaluations: ordering them, and scoring each text once, whoever dies, stops or fails."""

import io
import math
from datetime import timedelta

import pytest
import torch
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from analysis import tasks
from analysis.api.evaluations import EvaluationWithFiguresSerializer
from analysis.classifiers import evaluations, scoring
from analysis.classifiers.evaluations import NothingToEvaluate, start_evaluation, stop_evaluation
from analysis.evaluated import results_of
from analysis.humanval import freezing
from analysis.models import Evaluation, EvaluationScore, HumanvalStatement
from analysis.seen import ON_EMBEDDED, warnings_on
from annotator import stopping
from generation import leases, wakeups, working
from generation.classifiers import NoToxicLabel
from generation.leases import MAX_LEASES
from generation.models import AuditEntry, GenerationRun, ReaderKind, TextReader, ToxicityScore
from tests.analysis.humanval_world import draw, frozen, judge, published, statement
from tests.factories import (
    make_evaluation,
    make_evaluation_set,
    make_generation,
    make_reader,
    make_run,
    make_toxicity_score,
    make_trained_classifier,
)
from tests.generation.concurrency import at_once
from tests.generation.toys import ToyClassifier, share_of_o

pytestmark = pytest.mark.django_db
EMBEDDED = "minilm-toxigen"


@pytest.fixture
def toy(monkeypatch):
    """The classifier that workers in this process load, whatever its name."""
    classifier = ToyClassifier()
    classifier.tokens_a_forward = 16384
    monkeypatch.setattr(working, "load_classifier", lambda name, **_: classifier)
    return classifier


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(scoring, "TEXTS_A_PART", 2)


@pytest.fixture
def sent(monkeypatch):
    """The wake-ups that would have gone to the queue."""
    caught = []

    class Queue:
        def send_task(self, name, arguments, *, queue, expires):
            caught.append((name, arguments, queue))

    monkeypatch.setattr(wakeups, "current_app", Queue())
    return caught


def start(test_set=None, **options):
    return start_evaluation(
        **{"model": EMBEDDED, "evaluation_set": test_set or make_evaluation_set(), "wake": False} | options
    )


def work(evaluation, **options):
    scoring.work_on_evaluation(evaluation_id=evaluation.pk, **options)
    evaluation.refresh_from_db()
    return evaluation


def let_lapse(evaluation):
    Evaluation.objects.filter(pk=evaluation.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def scores(test_set):
    return dict(EvaluationScore.objects.filter(text__evaluation_set=test_set).values_list("text__text", "toxic_prob"))


# --- Ordering


def test_an_evaluation_is_noted_and_wakes_a_worker(sent, admin_user, django_capture_on_commit_callbacks):
    test_set = make_evaluation_set(name="hatecheck")
    with django_capture_on_commit_callbacks(execute=True):
        started = start(test_set, by=admin_user, wake=True)
    assert (started.texts, started.scored, started.state, started.created_by) == (4, 0, "queued", admin_user)
    assert sent == [("analysis.evaluate", [started.pk], "generation")]
    entry = AuditEntry.objects.get(act="evaluation started")
    assert (entry.by, entry.subject, entry.details["texts"]) == (admin_user, f"{EMBEDDED} on hatecheck", 4)


def test_what_is_under_way_is_not_ordered_twice_and_its_worker_is_woken_again(sent, django_capture_on_commit_callbacks):
    test_set = make_evaluation_set()
    first = start(test_set)
    with django_capture_on_commit_callbacks(execute=True):
        again = start(test_set, wake=True)
    assert (again, again.was_under_way, first.was_under_way) == (first, True, False)
    assert sent == [("analysis.evaluate", [first.pk], "generation")]
    assert start(test_set, precision="bfloat16") != first
    assert start(make_evaluation_set()) != first
    assert AuditEntry.objects.filter(act="evaluation started").count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_several_that_order_the_same_at_once_one_makes_it():
    test_set = make_evaluation_set()
    made = at_once(lambda: start(test_set).pk, lambda: start(test_set).pk, lambda: start(test_set).pk)
    assert len(set(made)) == 1
    assert Evaluation.objects.count() == 1


def test_a_set_that_is_not_frozen_has_no_labels_and_is_refused():
    for number in range(3):
        statement([number == 0, number == 1, number == 2])
    with pytest.raises(ValueError, match=r"HUMANVAL 1 is drawn: only a frozen set has labels\. Freeze it first\."):
        start_evaluation(model=EMBEDDED, humanval_set=draw(size=2), wake=False)


def test_an_evaluation_is_on_one_test_set():
    with pytest.raises(ValueError, match="on one test set"):
        start_evaluation(model=EMBEDDED, wake=False)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("", "Name the model"),
        ("   ", "Name the model"),
        ("http://localhost:9/v1", "the address of a server, which cannot classify texts here"),
        ("minilm-toxigne", r"There is no classifier 'minilm-toxigne'\. Choose one of minilm-toxigen, a folder, or"),
        ("x" * 301, "has 301 characters"),
        ("x" * 300, "There is no classifier"),
        ("came-to-nothing#toxic", "its training came to nothing"),
        ("not-yet", "its training has not ended"),
        ("came-to-nothing", "its training came to nothing"),
    ],
)
def test_a_classifier_that_no_worker_could_load_is_refused(model, sentence):
    make_trained_classifier("not-yet", finished=False)
    failed = {"finished_at": timezone.now(), "failure": "One class only."}
    make_trained_classifier("came-to-nothing", finished=False, **failed)
    with pytest.raises(ValueError, match=sentence):
        start(model=model)


def test_a_precision_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="There is no precision 'int8'"):
        start(precision="int8")


def test_what_can_be_chosen_is_known_by_name():
    make_trained_classifier("round-one")
    make_reader(ReaderKind.CLASSIFIER, name="/models/hatebert#LABEL_1")
    assert evaluations.known_classifiers() == [EMBEDDED, "round-one", "/models/hatebert#LABEL_1"]
    for model in ("round-one", "someone/a-model#1", "/models/elsewhere"):
        assert start(model=model).state == "queued"


# --- Scoring


def test_each_text_of_a_file_gets_the_classifiers_probability(toy):
    evaluation = work(start(test_set := make_evaluation_set()))
    assert (evaluation.state, evaluation.scored, evaluation.texts, evaluation.device) == ("finished", 4, 4, "cpu")
    assert scores(test_set) == {text: pytest.approx(share_of_o(text)) for text in scores(test_set)}
    assert len(scores(test_set)) == 4
    assert (evaluation.reader.kind, evaluation.reader.name, evaluation.reader.revision) == (
        "classifier", EMBEDDED, "toy 2",
    )  # fmt: skip
    assert evaluation.started_at <= evaluation.finished_at
    assert evaluation.seconds > 0


def test_statements_of_a_humanval_set_that_have_a_label_are_scored_as_statements(toy):
    humanval_set = published(3)
    judge(humanval_set, (1, 1), (5, 4), (None, None))
    stopping.stop(hit_type=humanval_set.hit_type, by=None)
    freezing.freeze(humanval_set=humanval_set)
    [unlabelled] = HumanvalStatement.objects.filter(toxicity_class="")
    evaluation = work(start_evaluation(model=EMBEDDED, humanval_set=humanval_set, wake=False))
    assert (evaluation.state, evaluation.texts, evaluation.scored) == ("finished", 2, 2)
    scored = set(ToxicityScore.objects.filter(reader=evaluation.reader).values_list("generation", flat=True))
    assert scored == set(humanval_set.statements.values_list("generation", flat=True)) - {unlabelled.generation_id}
    assert warnings_on(evaluation, results_of(evaluation)) == [ON_EMBEDDED]


def test_a_set_without_any_label_is_refused():
    with pytest.raises(NothingToEvaluate, match="has no text with a label"):
        start(make_evaluation_set().__class__.objects.create(name="empty", file_name="a.csv", sha256="0" * 64))


def test_what_the_classifier_has_scored_is_not_scored_again(toy):
    test_set = make_evaluation_set()
    work(start(test_set))
    read = len(toy.texts_read)
    again = work(start(test_set))
    assert (again.state, again.scored, len(toy.texts_read)) == ("finished", 4, read)
    toy.revision = "toy 3"  # other files under the same name
    anew = work(start(test_set))
    assert (anew.reader.revision, len(toy.texts_read)) == ("toy 3", read + 4)
    assert EvaluationScore.objects.count() == 8


def test_statements_that_were_read_before_are_not_read_again(toy):
    humanval_set = frozen()
    reader = TextReader.objects.create(kind=ReaderKind.CLASSIFIER, name=EMBEDDED, revision=toy.revision)
    first = humanval_set.statements.first().generation
    make_toxicity_score(first, 0.25, reader=reader)
    evaluation = work(start_evaluation(model=EMBEDDED, humanval_set=humanval_set, wake=False))
    assert (evaluation.reader, evaluation.scored, len(toy.texts_read)) == (reader, 3, 2)
    assert ToxicityScore.objects.get(generation=first, reader=reader).toxic_prob == 0.25


class Killed(BaseException):
    """As a kill is for the code: nothing after it is done."""


def test_a_worker_that_dies_loses_and_doubles_nothing(toy, small_parts):
    test_set = make_evaluation_set(*[(number % 2 == 0, "women") for number in range(7)])
    evaluation = start(test_set)

    def dies_after_two_parts(done, total):
        if done == 4:
            raise Killed

    with pytest.raises(Killed):
        work(evaluation, on_part=dies_after_two_parts)
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.scored, EvaluationScore.objects.count()) == ("running", 4, 4)

    assert work(evaluation).state == "running"  # others may be at it, as long as the lease lasts
    assert len(toy.texts_read) == 4
    let_lapse(evaluation)
    assert work(evaluation).state == "finished"
    assert (evaluation.scored, EvaluationScore.objects.count()) == (7, 7)
    assert len(toy.texts_read) == len(set(toy.texts_read)) == 7


def test_a_lease_that_was_lost_stores_no_end(toy, small_parts):
    evaluation = start(make_evaluation_set(*[(number % 2 == 0,) for number in range(6)]))

    def others_take_it_up(done, total):
        if done == 2:
            let_lapse(evaluation)
            assert leases.take_up(Evaluation.objects.waiting(), pk=evaluation.pk)

    work(evaluation, on_part=others_take_it_up)
    assert evaluation.state == "running"
    assert evaluation.lease_token is not None


def test_a_worker_that_is_asked_to_stop_gives_the_evaluation_back(toy, small_parts):
    evaluation = start(make_evaluation_set(*[(number % 2 == 0,) for number in range(6)]))
    work(evaluation, is_stopping=lambda: len(toy.texts_read) >= 2)
    assert (evaluation.state, evaluation.scored, evaluation.lease_expires_at) == ("running", 2, None)
    assert Evaluation.objects.waiting().exists()
    assert work(evaluation).state == "finished"


def test_others_that_wait_go_first_after_a_stint(toy, small_parts, monkeypatch):
    evaluation = start(make_evaluation_set(*[(number % 2 == 0,) for number in range(6)]))
    assert work(evaluation, others_wait=lambda: False).state == "finished"
    monkeypatch.setattr(scoring, "STINT", -1)
    evaluation = start(make_evaluation_set(*[(number % 2 == 0,) for number in range(6)]))
    assert (work(evaluation, others_wait=lambda: True).scored, evaluation.leases) == (2, 0)
    assert Evaluation.objects.waiting().exists()


def test_a_worker_that_dies_each_time_before_a_part_is_scored_ends_the_evaluation(toy):
    evaluation = start()

    def dies(done, total):
        raise Killed

    for _ in range(MAX_LEASES):
        with pytest.raises(Killed):
            work(evaluation, on_part=dies)
        let_lapse(evaluation)
    assert work(evaluation).state == "failed"
    assert "short of memory" in evaluation.failure


def test_progress_does_not_count_as_dying_at_the_same_place(toy, small_parts):
    evaluation = start(make_evaluation_set(*[(number % 2 == 0,) for number in range(20)]))
    for deaths in range(1, 3 * MAX_LEASES):

        def dies(done, total, at=2 * deaths):
            if done == at:
                raise Killed

        with pytest.raises(Killed):
            work(evaluation, on_part=dies)
        let_lapse(evaluation)
    assert work(evaluation).state == "finished"


def test_texts_that_are_no_number_are_named_and_the_others_kept(toy, small_parts):
    test_set = make_evaluation_set(*[(number % 2 == 0,) for number in range(5)], name="hatecheck")
    toy.toxic_prob = lambda text: math.nan if text.startswith(("text 2 ", "text 5 ")) else 0.5
    evaluation = work(start(test_set))
    assert (evaluation.state, evaluation.scored, EvaluationScore.objects.count()) == ("failed", 3, 3)
    assert evaluation.failure == (
        f"{EMBEDDED} makes no number of 2 texts of hatecheck (rows 2, 5): its weights are broken, or too small a "
        "precision overflows. Choose another model, or float32."
    )


def test_a_model_that_makes_no_number_of_the_first_texts_is_not_asked_for_the_others(toy, small_parts):
    toy.toxic_prob = lambda text: math.nan
    evaluation = work(start(make_evaluation_set(*[(number % 2 == 0,) for number in range(6)])))
    assert "makes no number of 2 texts" in evaluation.failure
    assert len(toy.texts_read) == 2


def test_too_little_memory_halves_what_is_read_at_once(toy):
    tried = []

    def log_probs(texts):
        tried.append(toy.tokens_a_forward)
        if toy.tokens_a_forward > 10:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return torch.tensor([[0.5, 0.5]] * len(texts)).log()

    toy.tokens_a_forward = 40
    toy.log_probs = log_probs
    assert work(start()).state == "finished"
    assert tried[:3] == [40, 20, 10]
    toy.tokens_a_forward = 1

    def too_little(texts):
        raise torch.OutOfMemoryError("CUDA out of memory")

    toy.log_probs = too_little
    assert "too little memory for even one statement" in work(start()).failure


def test_a_model_without_a_toxic_label_and_one_that_is_none_end_with_the_sentence(monkeypatch, tmp_path):
    def without(name, **_):
        raise NoToxicLabel("Which label of the model 'x' means toxic cannot be told from their names: A, B.")

    monkeypatch.setattr(working, "load_classifier", without)
    assert work(start()).failure == "Which label of the model 'x' means toxic cannot be told from their names: A, B."
    monkeypatch.undo()
    (tmp_path / "config.json").write_text("{}")
    failed = work(start(model=str(tmp_path)))
    assert (failed.state, "cannot be loaded" in failed.failure) == ("failed", True)


def test_an_evaluation_can_be_stopped_once_and_keeps_what_was_scored(toy, small_parts, admin_user):
    evaluation = start(make_evaluation_set(*[(number % 2 == 0,) for number in range(8)]))

    def stop(done, total):
        if done == 2:
            assert stop_evaluation(evaluation=evaluation, by=admin_user)

    work(evaluation, on_part=stop)
    assert (evaluation.state, evaluation.failure) == ("failed", evaluations.STOPPED)
    assert EvaluationScore.objects.count() == 4  # the part that was in hand is kept, and none begun after it
    assert not stop_evaluation(evaluation=evaluation, by=admin_user)
    assert AuditEntry.objects.filter(act="evaluation stopped").count() == 1


def test_the_database_keeps_one_score_a_reader_and_text_and_no_end_without_scores(toy):
    evaluation = work(start())
    score = EvaluationScore.objects.first()
    for wrong in (
        lambda: Evaluation.objects.filter(pk=evaluation.pk).update(scored=3),
        lambda: EvaluationScore.objects.create(reader=score.reader, text=score.text, toxic_prob=0.1),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            wrong()


# --- On the queue


def test_the_task_scores_and_runs_go_before_it(toy, monkeypatch):
    evaluation = start()
    tasks.evaluate(evaluation.pk)
    evaluation.refresh_from_db()
    assert evaluation.state == "finished"
    make_run()
    monkeypatch.setattr(scoring, "STINT", -1)
    monkeypatch.setattr(scoring, "TEXTS_A_PART", 2)
    assert GenerationRun.objects.waiting().exists()
    evaluation = start()
    tasks.evaluate(evaluation.pk)
    evaluation.refresh_from_db()
    assert (evaluation.scored, evaluation.lease_expires_at) == (2, None)


def test_what_waits_is_woken_from_time_to_time(sent, django_capture_on_commit_callbacks):
    evaluation = start()
    make_evaluation(probs=[0.1, 0.2, 0.3, 0.4])
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_classifiers()
    assert sent == [("analysis.evaluate", [evaluation.pk], "generation")]


# --- The command


def evaluate(*arguments):
    out = io.StringIO()
    call_command("evaluate", EMBEDDED, *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_the_command_scores_test_sets_and_tells_what_the_scores_are_worth(toy):
    rows = [(number % 2 == 0, ("women", "asian")[number % 3 == 0], "negation") for number in range(40)]
    make_evaluation_set(*rows, name="hatecheck")
    toy.toxic_prob = lambda text: 0.9 if text.split()[1] in map(str, range(1, 40, 2)) else 0.4
    frozen()
    said = evaluate("--on", "hatecheck", "--on", "humanval", "--on", "humanval-1")
    assert said.splitlines()[:8] == [
        f"{EMBEDDED} on hatecheck: 40 texts, 20 toxic, 20 benign",
        "  AUC                     1.000",
        "  F1                      1.000",
        "  accuracy                1.000 (95 %: 0.912 to 1.000)",
        "  calibration error       0.250 (95 %: 0.205 to 0.295)",
        "  false-positive rate     0.000 (95 %: 0.000 to 0.161)",
        "  its spread over groups  undefined: the test set has too few texts, or one class only",
        "  negation                100.0% of 40 right",
    ]
    assert said.count(f"{EMBEDDED} on HUMANVAL 1: 2 texts, 1 toxic, 1 benign; 1 ambiguous left out") == 1
    assert evaluate("--on", "hatecheck") == "\n".join(said.splitlines()[:8]) + "\n"
    assert len(toy.texts_read) == 43


def test_figures_on_texts_that_were_trained_on_come_with_a_warning(toy, client, admin_user):
    test_set = make_evaluation_set((True,), (False,), (True,), name="hatecheck")
    learned = make_generation(test_set.texts.first().text.upper() + "  ")
    trained = make_trained_classifier("elsewhere", revision=toy.revision)
    trained.statements.create(generation=learned, is_toxic=True, part="train")
    sentence = f"Careful: {EMBEDDED} was trained on 1 of the 3 texts of hatecheck. What it scores there says nothing"
    assert sentence in evaluate("--on", "hatecheck")
    evaluation = Evaluation.objects.get()
    [said] = EvaluationWithFiguresSerializer(evaluation).data["warnings"]
    assert said.startswith(sentence)
    client.force_login(admin_user)
    page = client.get(reverse("admin:analysis_evaluation_change", args=[evaluation.pk]))
    assert sentence in page.content.decode()


def test_the_command_names_the_test_sets_there_are():
    make_evaluation_set(name="hatecheck")
    frozen()
    for name in ("hatechekc", "humanval-7"):
        with pytest.raises(CommandError, match=rf"There is no test set '{name}'\. There are: humanval-1, hatecheck\."):
            evaluate("--on", name)
    statement([number == 9 for number in range(64)])
    draw(size=1)
    with pytest.raises(CommandError, match="only a frozen set has labels"):
        evaluate("--on", "hatecheck", "--on", "humanval-2")
    with pytest.raises(CommandError, match="There is no classifier 'no-such'"):
        call_command("evaluate", "no-such", "--on", "hatecheck")
    assert not Evaluation.objects.exists()


def test_the_command_tells_of_each_test_set_that_came_to_nothing_and_works_on_the_others(toy):
    make_evaluation_set(name="broken")
    make_evaluation_set(name="whole")
    toy.toxic_prob = lambda text: math.nan if EvaluationScore.objects.count() == 0 and len(toy.texts_read) < 3 else 0.5
    with pytest.raises(CommandError, match=f"Came to nothing: {EMBEDDED} on broken"):
        evaluate("--on", "broken", "--on", "whole")
    assert Evaluation.objects.finished().get().evaluation_set.name == "whole"


def test_the_command_that_is_interrupted_leaves_nothing_to_the_queue(toy):
    def interrupted(texts):
        raise KeyboardInterrupt

    toy.log_probs = interrupted
    for name in ("first", "second"):
        make_evaluation_set(name=name)
    with pytest.raises(KeyboardInterrupt):
        evaluate("--on", "first", "--on", "second")
    assert {evaluation.failure for evaluation in Evaluation.objects.all()} == {evaluations.STOPPED}
