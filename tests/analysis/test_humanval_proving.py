"""Proving a set again from the texts, with the real encoder; the commands; and what they must find wrong."""

import json
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper
from django.db import connection
from django.utils import timezone

from analysis import tasks
from analysis.humanval import drawing, freezing, proving
from analysis.humanval.proving import ask_for_proof, prove, work_on_proof
from analysis.management.commands import build_humanval, verify_humanval
from analysis.management.progress import Progress
from analysis.models import HumanvalProof, HumanvalSet
from annotator.models import HIT, HITType, KnownAnswers
from generation import embedding_anew, leases
from generation.models import Embedding, Generation, Reading
from generation.readings import ReadingFailed
from tests.analysis.exported import csv_rows
from tests.analysis.humanval_world import ids_of, judge, removed_for
from tests.factories import make_generation

pytestmark = pytest.mark.django_db

TEXTS = (
    "my aunt drives a crane at the harbor",
    "the chess club meets on thursdays",
    "her bakery opens at five in the morning",
    "our neighbor repairs old radios",
    "the choir sang in three languages",
    "she measured the depth of the lake",
    "my sister plants tomatoes on the roof",
    "the ferry leaves at noon",
)
NEARLY = "my aunt drives a big crane at the harbor"


def command(name, *arguments):
    out = StringIO()
    call_command(name, *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def build(*arguments):
    return command("build_humanval", "--size", "4", "--seed", "5", *arguments)


@pytest.fixture
def drawn():
    """A set with the crane among its statements, and what is near it removed."""
    for text in TEXTS:
        make_generation(text)
    make_generation(NEARLY)
    for seed in range(50):
        command("build_humanval", "--size", "4", "--candidates", "1", "--seed", str(seed))
        found = HumanvalSet.objects.latest("version")
        if found.statements.filter(generation__text=TEXTS[0]).exists():
            return found
        HumanvalSet.objects.all().delete()
    pytest.fail("no seed draws the crane")


def sentences(proof):
    return [problem.sentence for problem in proof.problems]


def delete_removed_row(humanval_set, statement):
    """As somebody with the database's password could, past the triggers."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "DELETE FROM analysis_removedfromtraining WHERE humanval_set_id = %s AND generation_id = %s",
            [humanval_set.pk, statement],
        )
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


# --- The real thing


def test_a_set_that_was_just_drawn_holds(drawn, tmp_path):
    assert Generation.objects.get(text=NEARLY).pk in removed_for(drawn)
    said = command("verify_humanval", "--out", str(tmp_path / "proof.json"))
    assert f"HUMANVAL {drawn.version} holds: of 4 statements for training none has a cosine above 0.7 with any" in said
    found = json.loads((tmp_path / "proof.json").read_text())
    assert (found["holds"], found["problems"], found["statements"], found["removed"]) == (True, [], 4, 1)
    assert found["closest"] is None or found["closest"] <= 0.7


def test_it_fails_on_a_near_duplicate_that_was_stored_later(drawn, tmp_path):
    planted = make_generation("My aunt drives a crane at the harbour.")
    with pytest.raises(CommandError, match=r"HUMANVAL 1 does not hold: 1 thing is wrong\.") as failed:
        command("verify_humanval", "--out", str(tmp_path / "proof.json"))
    assert failed.value.returncode == 1
    [problem] = json.loads((tmp_path / "proof.json").read_text())["problems"]
    own = Generation.objects.get(text=TEXTS[0]).pk
    assert (problem["statement"], problem["nearest"]) == (planted.pk, own)
    assert problem["cosine"] > 0.9
    assert problem["sentence"] == (
        f"Statement {planted.pk} is for training and has a cosine of {problem['cosine']:.4f} with statement {own} of "
        "the set, above 0.7. It was stored after the last comparison: manage.py build_humanval --update-removed 1 "
        "removes it from training."
    )
    # Files for training have it neither before nor after it is removed.
    assert planted.text not in {row["generation"] for row in csv_rows("train", {"humanval": "1"})}
    said = command("build_humanval", "--update-removed", "1")
    assert "1 of them were too similar" in said
    assert "holds" in command("verify_humanval")
    assert planted.text not in {row["generation"] for row in csv_rows("train", {"humanval": "1"})}


def test_it_fails_on_a_removed_row_that_was_deleted(drawn):
    near = Generation.objects.get(text=NEARLY).pk
    delete_removed_row(drawn, near)
    proof = prove(drawn)
    assert not proof.holds
    assert [problem.statement for problem in proof.problems] == [near]
    assert "Compare again: manage.py build_humanval --update-removed 1." in proof.problems[0].sentence
    command("build_humanval", "--update-removed", "1")
    assert prove(HumanvalSet.objects.get()).holds


def test_it_rests_on_the_texts_and_not_on_what_was_stored_of_them(drawn):
    """A statement whose text was changed after it was embedded."""
    [changed] = Generation.objects.filter(text__in=TEXTS).exclude(pk__in=ids_of(drawn))[:1]
    Generation.objects.filter(pk=changed.pk).update(text="my aunt drives her crane at the harbor")
    assert [problem.statement for problem in prove(drawn).problems] == [changed.pk]


def test_it_fails_on_stored_vectors_that_hid_a_near_duplicate(drawn):
    far = Embedding.objects.exclude(generation__in=ids_of(drawn)).exclude(generation__text=NEARLY).first()
    delete_removed_row(drawn, Generation.objects.get(text=NEARLY).pk)
    Embedding.objects.filter(generation__text=NEARLY).update(vector=far.vector)
    assert len(prove(drawn).problems) == 1


# --- What else can be wrong


@pytest.fixture
def frozen(drawn):
    freezing.publish(humanval_set=drawn, title="Test set", max_assignments=2)
    judge(drawn, (1, 1), (5, 4), (3, 3), (1, 2))
    return freezing.freeze(humanval_set=drawn)


def past_the_triggers(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(statement, parameters)
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


def test_a_frozen_set_holds_with_its_checksum(frozen):
    assert "SHA-256 of its rows: " + frozen.checksum in command("verify_humanval", "--version", "1")


def test_it_fails_on_a_label_that_was_changed_past_the_database(frozen):
    past_the_triggers(
        "UPDATE analysis_humanvalstatement SET toxicity_class = 'toxic' WHERE toxicity_class = 'ambiguous'"
    )
    [sentence] = sentences(prove(frozen))
    assert sentence.startswith("The rows of the set have the checksum ")
    assert sentence.endswith(f"; frozen was {frozen.checksum}.")


def test_it_fails_on_a_statement_that_is_gone_from_the_set(frozen):
    past_the_triggers("DELETE FROM analysis_humanvalstatement WHERE generation_id = %s", ids_of(frozen)[0])
    found = sentences(prove(frozen))
    assert "The set has 3 statements; drawn were 4." in found
    assert "Of women, benign, topk the set has 3; drawn were 4." in found


def test_it_fails_on_a_statement_whose_answers_are_known(drawn):
    KnownAnswers.objects.create(generation_id=ids_of(drawn)[0], expected={"lewd": ["no"]})
    assert sentences(prove(drawn)) == [
        f"Statement {ids_of(drawn)[0]} of the set has known answers: annotators may have been told them."
    ]


def test_known_answers_that_were_made_after_the_freezing_are_a_note(frozen):
    KnownAnswers.objects.create(
        generation_id=ids_of(frozen)[0],
        expected={"lewd": ["no"]},
        created_at=frozen.frozen_at + timedelta(seconds=1),
    )
    found = prove(frozen)
    assert found.holds, sentences(found)
    assert "Since it was frozen, 1 of its statements have known answers: its labels were given before." in found.notes


def test_it_fails_on_a_statement_that_is_in_the_set_and_removed_for_it(drawn):
    first, second, *_ = ids_of(drawn)
    drawn.removed.create(generation_id=first, nearest_id=second, cosine=0.9)
    assert f"Statement {first} is of the set and removed for it at once." in sentences(prove(drawn))


def test_it_fails_on_a_set_of_what_no_model_wrote(drawn):
    Generation.objects.filter(pk=ids_of(drawn)[0]).update(method="written")
    assert f"Statement {ids_of(drawn)[0]} of the set is no machine-generated one: its method is written." in sentences(
        prove(drawn)
    )


def test_statements_deleted_during_the_check_are_told(drawn):
    def embed_later(texts):
        Generation.objects.filter(text__in=TEXTS).exclude(pk__in=ids_of(drawn)).last().delete()
        yield from embedding_anew.embed(texts)

    embedder = SimpleNamespace(encoder=embedding_anew.encoder, embed=embed_later)
    with pytest.raises(proving.WrongState, match=r"stored or deleted during the check\. Run it again"):
        prove(drawn, embedder=embedder)


def test_the_encoder_that_embedded_the_texts_is_told_and_a_difference_noted(drawn):
    real = embedding_anew.encoder()
    assert prove(drawn).encoder == str(real) == str(drawn.reader)
    real.revision = "2.0"
    proof = prove(drawn, embedder=SimpleNamespace(encoder=lambda: real, embed=embedding_anew.embed))
    assert proof.encoder == "all-minilm-l6-v2 (2.0)"
    assert proof.notes[-1] == (
        f"The texts were embedded by all-minilm-l6-v2 (2.0), and the set was drawn by {drawn.reader}: its cosines are "
        "others. To check those, install what the set was drawn by."
    )


def test_it_fails_on_a_statement_removed_for_one_that_is_not_of_the_set(drawn):
    near = Generation.objects.get(text=NEARLY).pk
    [other, *_] = Generation.objects.exclude(pk__in=[near, *ids_of(drawn)])
    past_the_triggers("UPDATE analysis_removedfromtraining SET nearest_id = %s", other.pk)
    assert sentences(prove(drawn)) == [
        f"Statement {near} was removed as too similar to statement {other.pk}, which is not of the set."
    ]
    past_the_triggers("UPDATE analysis_removedfromtraining SET nearest_id = %s", ids_of(drawn)[0])


def test_it_notes_what_was_removed_without_need(drawn):
    removed = set(removed_for(drawn))
    far = Generation.objects.exclude(pk__in=[*removed, *ids_of(drawn)]).first()
    drawn.removed.create(generation=far, nearest_id=ids_of(drawn)[0], cosine=0.9)
    proof = prove(drawn)
    assert proof.holds
    assert proof.notes[-1].startswith(
        f"1 statements were removed from training although their cosine with the nearest "
        f"of the set is below 0.7: {far.pk}."
    )


def test_it_notes_a_wrong_number_of_neighbours(drawn):
    assert not [note for note in prove(drawn).notes if "neighbours" in note]
    make_generation(TEXTS[0], label="toxic")  # what is stored later is no neighbour of then
    assert not [note for note in prove(drawn).notes if "neighbours" in note]
    drawn.statements.filter(generation=ids_of(drawn)[0]).update(neighbours=5)
    assert (
        prove(drawn)
        .notes[-1]
        .startswith(
            f"The number of neighbours of 1 statements of the set is not what is found now: {ids_of(drawn)[0]}."
        )
    )


# --- Commands


def test_the_command_draws_also_while_the_queue_looks_for_sets_to_draw(monkeypatch):
    """Embeddings are missing, and workers look for waiting sets all the time."""
    for text in TEXTS:
        make_generation(text)
    fix = drawing.fix_statements

    def look_and_fix(wanted):
        tasks.wake_humanval()
        drawing.work_on_set(set_id=wanted.pk)
        return fix(wanted)

    monkeypatch.setattr(drawing, "fix_statements", look_and_fix)
    assert "HUMANVAL 1: 4 statements" in build()
    assert HumanvalSet.objects.get().leases == 1
    assert not Reading.objects.exists()


def test_the_command_tells_and_stores_why_nothing_was_embedded(monkeypatch):
    make_generation(), make_generation(), make_generation(), make_generation()

    def fail(*_):
        raise ReadingFailed("The model's folder is empty.")

    monkeypatch.setattr(build_humanval, "embed_missing", fail)
    with pytest.raises(CommandError, match=r"HUMANVAL 1 was not drawn\. The model's folder is empty\."):
        build()
    assert HumanvalSet.objects.get().failure == "The model's folder is empty."


def test_a_command_that_is_stopped_leaves_a_set_that_others_took_up_alone(monkeypatch):
    for text in TEXTS:
        make_generation(text)

    def lose_and_stop(*_):
        HumanvalSet.objects.update(lease_expires_at=timezone.now())
        assert drawing.take_up(HumanvalSet.objects.get().pk)
        raise KeyboardInterrupt

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(build_humanval, "embed_missing", lose_and_stop)
    with pytest.raises(KeyboardInterrupt):
        build()
    assert HumanvalSet.objects.get().state == "wanted"
    monkeypatch.setattr(build_humanval, "embed_missing", stop)
    with pytest.raises(KeyboardInterrupt):
        build()
    assert HumanvalSet.objects.get(version=2).failure == "The command that drew it was stopped."


def test_the_command_prints_its_report_and_publishes(drawn):
    said = command(
        "build_humanval", "--size", "3", "--seed", "1", "--publish", "--title", "Test set 2", "--reward", "0.3"
    )
    assert "HUMANVAL 2: 3 statements, drawn from 9 different ones with the seed 1, the most isolated of " in said
    assert "Encoder: all-minilm-l6-v2" in said
    study = HITType.objects.get()
    assert f"Published as study {study.pk}, “Test set 2”: 3 HITs, 3 annotators each, $2.70 in all." in said
    assert HIT.objects.count() == 3


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--size", "99"], 2, "There are only 9 statements to choose from. Give a size of at most 9, or wider "
         "filters."),
        (["--candidates", "0"], 2, "Draw 1 to 100 candidates for each place, not 0."),
        (["--group", "moon"], 2, "There is no group “moon”. Give the slug of one that there is."),
        (["--size", "2", "--title", "A study"], 2, "--title is about the study: give --publish, too."),
        (["--size", "2", "--publish", "--reward", "much"], 2, "--reward much: Enter a number."),
        (["--size", "2", "--publish", "--reward", "NaN"], 2, "--reward NaN: Enter a number."),
        (["--size", "2", "--publish", "--reward", "-1"], 2, "--reward -1: Ensure this value is greater than or equal "
         "to 0."),
        (["--size", "2", "--publish", "--reward", "0.255"], 2, "--reward 0.255: Ensure that there are no more than 2 "
         "decimal places."),
        (["--size", "2", "--publish", "--expected-seconds", "nan"], 2, "--expected-seconds nan: Enter a whole number."),
        (["--size", "2", "--publish", "--expected-seconds", "0"], 2, "--expected-seconds 0: Ensure this value is "
         "greater than or equal to 1."),
        (["--size", "2", "--publish", "--title", " "], 2, "--title  : This field is required."),
        (["--size", "2", "--publish", "--reward", "0.01"], 2, "--reward 0.01: This pays $0.34 an hour, if a statement "
         "takes 1 minute 45 seconds as expected (n = 0, too few to measure it); the wage floor is "
         "$8.00. Raise the reward to at least $0.24, or correct the expected time if a trial took less."),
        (["--update-removed", "1", "--size", "5"], 2, "--size is about drawing a set, and --update-removed draws none. "
         "Leave one of them out."),
        (["--update-removed", "1", "--publish"], 2, "--publish is about drawing a set, and --update-removed draws "
         "none. Leave one of them out."),
        (["--update-removed", "9"], 2, "There is no HUMANVAL set 9."),
    ],
)  # fmt: skip
def test_the_command_refuses_with_a_sentence_and_keeps_nothing(drawn, arguments, code, sentence):
    with pytest.raises(CommandError) as refusal:
        command("build_humanval", *arguments)
    assert (refusal.value.returncode, str(refusal.value)) == (code, sentence)
    assert HumanvalSet.objects.count() == 1


def test_there_must_be_a_set_to_verify():
    for arguments, code, sentence in (
        ([], 3, "There is no HUMANVAL set yet"),
        (["4"], 2, r"There is no HUMANVAL set 4\."),
    ):
        with pytest.raises(CommandError, match=sentence) as refusal:
            command("verify_humanval", *(f"--version={version}" for version in arguments))
        assert refusal.value.returncode == code


def test_a_proof_that_cannot_be_written_is_told_before_it_is_made(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(verify_humanval, "prove", lambda *_, **__: 1 / 0)
    with pytest.raises(
        CommandError, match=r"cannot be written: No such file or directory\. Choose another place\."
    ) as refusal:
        command("verify_humanval", "--out", str(tmp_path / "nowhere" / "proof.json"))
    assert refusal.value.returncode == 2
    with pytest.raises(ZeroDivisionError):
        command("verify_humanval", "--out", str(tmp_path / "proof.json"))
    assert not list(tmp_path.iterdir())


def test_a_check_that_cannot_be_made_is_told_from_a_set_that_does_not_hold(drawn, monkeypatch):
    def refuse(*_, **__):
        raise proving.WrongState("Statements were stored.")

    monkeypatch.setattr(verify_humanval, "prove", refuse)
    with pytest.raises(CommandError, match=r"Statements were stored\.") as refusal:
        command("verify_humanval")
    assert refusal.value.returncode == 3


class Terminal(StringIO):
    def isatty(self):
        return True


def test_how_far_it_is_counts_up_on_a_terminal_and_is_not_written_to_a_pipe():
    terminal, pipe = OutputWrapper(Terminal()), OutputWrapper(StringIO())
    for out in (terminal, pipe):
        progress = Progress(out)
        for done, total in ((0, 0), (1, 2), (1, 2), (2, 2), (2, 2)):
            progress(done, total)
    assert pipe.getvalue() == ""
    assert terminal.getvalue() == "\rembedded 1 of 2 statements\rembedded 2 of 2 statements\n"


# --- On the queue


def test_a_check_asked_for_twice_is_made_once_and_stored(drawn):
    proof = ask_for_proof(humanval_set=drawn)
    assert ask_for_proof(humanval_set=drawn) == proof
    work_on_proof(proof_id=proof.pk)
    proof.refresh_from_db()
    assert proof.found["holds"]
    assert proof.found["sentence"].startswith("HUMANVAL 1 holds")
    work_on_proof(proof_id=proof.pk)  # which does nothing
    assert ask_for_proof(humanval_set=drawn) != proof


def test_a_worker_that_stops_gives_the_check_back(drawn):
    proof = ask_for_proof(humanval_set=drawn)
    work_on_proof(proof_id=proof.pk, is_stopping=lambda: True)
    proof.refresh_from_db()
    assert (proof.finished_at, proof.lease_expires_at, proof.leases) == (None, None, 0)
    HumanvalProof.objects.update(leases=leases.MAX_LEASES)
    work_on_proof(proof_id=proof.pk)
    proof.refresh_from_db()
    assert proof.failure == leases.STOPPED_EACH_TIME


def test_a_check_that_breaks_off_says_why(drawn, monkeypatch):
    proof = ask_for_proof(humanval_set=drawn)
    monkeypatch.setattr(proving, "import_module", lambda name: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work_on_proof(proof_id=proof.pk)
    proof.refresh_from_db()
    assert proof.failure == "The worker stopped with an error: ZeroDivisionError: division by zero"
