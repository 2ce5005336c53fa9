"""Drawing HUMANVAL sets: strata, isolation, what leaves training, bad input, and workers that die or meet."""

import numpy as np
import pytest
from django.utils import timezone

from analysis.exports.filtering import WrongFilter
from analysis.humanval import comparing, drawing, sets
from analysis.humanval.sets import CannotDraw, ask_for_set
from analysis.humanval.wording import notes
from analysis.models import HumanvalSet, HumanvalStatement, RemovedFromTraining
from annotator.models import KnownAnswers
from generation import leases
from generation.models import AuditEntry, Embedding, Generation, Prompt, Reading
from generation.read_values import vectors
from tests.analysis.humanval_world import (
    apart,
    bfloat16_reader,
    draw,
    embed,
    ids_of,
    removed_for,
    scattered,
    statement,
    toy_reader,
)
from tests.factories import make_generation, make_group, make_hit, make_hit_type, make_run

pytestmark = pytest.mark.django_db


def cosine_matrix(ids):
    found = vectors(toy_reader(), ids).astype(np.float64)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found @ found.T


# --- What a set is


def test_no_statement_left_for_training_is_similar_to_one_of_the_set():
    scattered(20)
    drawn = draw(size=24)
    ids = list(Generation.objects.values_list("pk", flat=True))
    place = {pk: number for number, pk in enumerate(ids)}
    cosines = cosine_matrix(ids)
    own = [place[pk] for pk in ids_of(drawn)]
    removed = removed_for(drawn)
    training = [place[pk] for pk in ids if pk not in removed and place[pk] not in own]
    assert len(own) == 24
    assert 0 < len(removed) < 136
    assert cosines[np.ix_(training, own)].max() <= 0.7 - 1e-4
    # And nothing was removed without need.
    for pk, nearest in removed.items():
        assert place[nearest] in own
        assert cosines[place[pk], place[nearest]] == pytest.approx(cosines[place[pk], own].max())
        assert cosines[place[pk], place[nearest]] > 0.7 - 1e-4
    stored = dict(drawn.removed.values_list("generation", "cosine"))
    assert all(stored[pk] == pytest.approx(cosines[place[pk], place[near]]) for pk, near in removed.items())


def test_every_stratum_has_as_many_as_the_others():
    scattered(10)
    drawn = draw(size=26)
    counts = [row["found"] for row in drawn.report["strata"]]
    assert len(counts) == 8
    assert sorted(counts) == [3, 3, 3, 3, 3, 3, 4, 4]
    for row in drawn.report["strata"]:
        own = drawn.statements.filter(
            generation__group__slug=row["group"], generation__label=row["label"], generation__method=row["method"]
        )
        assert own.count() == row["found"]


def test_what_a_stratum_lacks_goes_to_the_others_and_is_reported():
    apart(1, group=make_group("asian"), dimensions=20)
    for place in range(1, 9):
        statement(np.eye(20)[place], label="toxic")
    drawn = draw(size=6, filters={"label": ["benign", "toxic"], "method": "topk"})
    found = {(row["group"], row["label"]): (row["wanted"], row["found"]) for row in drawn.report["strata"]}
    assert found["women", "toxic"][1] == 5
    assert found["asian", "benign"][1] == 1
    assert found["women", "benign"][1] == found["asian", "toxic"][1] == 0
    assert sum(wanted for wanted, _ in found.values()) == 6
    [short, *_] = notes(drawn)
    assert short == (
        "2 of 4 strata have fewer statements than an equal share. What they lack, 4 statements, the others have more, "
        "as far as there was room."
    )


def test_the_most_isolated_candidates_are_taken():
    crowd = [statement([1, 0.01 * number, 0, 0]) for number in range(6)]
    alone = [statement([0, 0, 1, 0]), statement([0, 0, 0, 1])]
    drawn = draw(size=2, candidates=4)
    assert ids_of(drawn) == [one.pk for one in alone]
    assert not drawn.removed.exists()
    drawn = draw(size=3, candidates=4)
    assert len(set(ids_of(drawn)) & {one.pk for one in crowd}) == 1
    assert drawn.removed.count() == 5
    assert sorted(drawn.statements.values_list("neighbours", flat=True)) == [0, 0, 5]


def test_the_same_seed_draws_the_same_texts_and_another_one_others():
    scattered(12)
    texts = [set(draw(size=8, seed=seed).statements.values_list("generation__text", flat=True)) for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]


def test_the_draw_depends_on_the_texts_and_not_on_the_order_in_which_they_came():
    scattered(6)
    first = set(draw(size=8, candidates=2).statements.values_list("generation__text", flat=True))
    rows = list(Generation.objects.values("text", "group", "label", "method", "embeddings__vector"))
    HumanvalSet.objects.all().delete()
    Generation.objects.all().delete()
    for row in reversed(rows):
        vector = np.frombuffer(row.pop("embeddings__vector"), dtype="<f4")
        row["group_id"] = row.pop("group")
        embed(Generation.objects.create(**row), vector)
    assert set(draw(size=8, candidates=2).statements.values_list("generation__text", flat=True)) == first


def test_only_what_models_wrote_and_nobody_knows_the_answers_of_is_taken():
    [taken] = apart(1)
    known = statement(np.eye(64)[1])
    KnownAnswers.objects.create(generation=known, expected={"lewd": ["no"]})
    checked = statement(np.eye(64)[2])
    make_hit(generation=checked, is_check=True)
    statement(np.eye(64)[3], method="written")
    drawn = draw(size=1)
    assert ids_of(drawn) == [taken.pk]
    assert (drawn.report["pool"], drawn.report["statements"]) == (1, 3)
    with pytest.raises(CannotDraw, match=r"There is only 1 statement to choose from\. Give a size of at most 1"):
        ask_for_set(size=2, seed=1)


def test_filters_choose_the_pool_but_everything_is_compared():
    women = statement([1, 0], group=make_group("women"))
    asian = statement([1, 0.1], group=make_group("asian"))
    drawn = draw(size=1, filters={"group": "women"})
    assert drawn.filters == {"group": ["women"]}
    assert ids_of(drawn) == [women.pk]
    assert removed_for(drawn) == {asian.pk: women.pk}


def test_versions_count_up_and_who_asked_is_noted():
    apart(4)
    assert [draw(size=2).version, draw(size=2).version] == [1, 2]
    acts = list(AuditEntry.objects.order_by("pk").values_list("act", "subject"))
    assert acts[:2] == [("humanval set asked for", "HUMANVAL 1"), ("humanval set drawn", "HUMANVAL 1")]


def test_statements_just_below_the_threshold_leave_training_too():
    base = np.array([1, 0])
    for cosine in (0.70005, 0.69995, 0.6998):
        statement([cosine, np.sqrt(1 - cosine**2)], f"at {cosine}", label="toxic")
    own = statement(base)
    drawn = draw(size=1, filters={"label": "benign"})
    assert ids_of(drawn) == [own.pk]
    assert set(drawn.removed.values_list("generation__text", flat=True)) == {"at 0.70005", "at 0.69995"}
    assert drawn.statements.get().neighbours == 1  # above the threshold itself


def test_of_a_text_that_many_statements_have_one_is_taken():
    """Also across strata: the same words need no second judgement."""
    for number in range(10):
        vector = np.random.default_rng(number).standard_normal(64)
        for place, label in enumerate(("benign", "toxic", "toxic")):
            prompt = Prompt.objects.create(text=f"prompt {place} of {number}", group=make_group(), label=label)
            statement(vector, f"text {number}", label=label, prompt=prompt)
    for candidates in (1, 4):
        drawn = draw(size=10, candidates=candidates, threshold=0.9)
        assert len(set(drawn.statements.values_list("generation__text", flat=True))) == 10
        assert drawn.removed.count() == 20
        assert drawn.report["pool"] == 10
    with pytest.raises(CannotDraw, match="There are only 10 statements to choose from"):
        ask_for_set(size=11, seed=1)


def test_how_many_pairs_of_the_set_are_similar_is_told():
    crowd = [statement([1, 0.01 * number], f"number {number}") for number in range(3)]
    statement([0, 1])
    drawn = draw(size=4)
    assert drawn.report["pairs_within"] == len(crowd)
    assert "3 pairs of its own statements have a cosine above 0.7" in notes(drawn)[1]
    assert draw(size=2).report["pairs_within"] == 0


def test_places_that_statements_without_a_direction_leave_are_shared_again():
    women, asian = make_group("women"), make_group("asian")
    for number in range(6):
        statement(np.zeros(16), f"zeros {number}", group=women)
    for number in range(10):
        statement(np.eye(16)[number], f"text {number}", group=asian)
    drawn = draw(size=8, filters={"label": "benign", "method": "topk"})
    assert drawn.report["chosen"] == drawn.statements.count() == 8
    found = {row["group"]: (row["available"], row["found"]) for row in drawn.report["strata"]}
    assert found == {"women": (0, 0), "asian": (10, 8)}


def test_a_pool_without_any_direction_is_told():
    statement([0, 0])
    wanted = ask_for_set(size=1, seed=1, wake=False)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert wanted.failure == "No statement to choose from has an embedding that could be compared."


# --- Bad input


@pytest.mark.parametrize(
    ("options", "field", "sentence"),
    [
        ({"size": 0}, "size", "A set has 1 to 50,000 statements, not 0."),
        ({"size": 9}, "size", "There are only 8 statements to choose from. Give a size of at most 8, or wider "
         "filters."),
        ({"threshold": 0.0}, "threshold", "The threshold is a cosine above 0 and up to 1, not 0."),
        ({"threshold": 1.5}, "threshold", "The threshold is a cosine above 0 and up to 1, not 1.5."),
        ({"threshold": float("nan")}, "threshold", "The threshold is a cosine above 0 and up to 1, not nan."),
        ({"candidates": 0}, "candidates", "Draw 1 to 100 candidates for each place, not 0."),
        ({"seed": -1}, "seed", "The seed is a whole number from 0 to 2,147,483,647."),
        ({"filters": {"label": "toxic"}}, "filters", "There is no statement to choose from. Have a model write some or "
         "import some, or choose wider filters. What people wrote, and what has known answers, is not taken."),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_with_a_sentence(options, field, sentence):
    apart(8)
    with pytest.raises(CannotDraw) as refusal:
        ask_for_set(**{"size": 4, "seed": 1} | options)
    assert (refusal.value.field, str(refusal.value)) == (field, sentence)
    assert not HumanvalSet.objects.exists()


def test_too_many_comparisons_are_refused():
    with pytest.raises(CannotDraw, match=r"50,000 places with 4 candidates each are 200,000 statements to compare"):
        ask_for_set(size=50_000, candidates=4, seed=1)


def test_an_unknown_filter_is_refused():
    apart(2)
    with pytest.raises(WrongFilter, match="There is no group “moon”"):
        ask_for_set(size=1, seed=1, filters={"group": "moon"})
    with pytest.raises(WrongFilter, match="has no filter “humanval”"):
        ask_for_set(size=1, seed=1, filters={"humanval": str(draw(size=1).version)})


def test_identical_statements_leave_nothing_for_training_and_it_says_so():
    for number in range(6):
        statement([0.6, 0.8], f"number {number}")
    drawn = draw(size=2)
    assert (drawn.statements.count(), drawn.removed.count(), drawn.report["training"]) == (2, 4, 0)
    assert notes(drawn)[-1] == ("Nothing is left for training: every other statement is too similar to one of the set.")


def test_statements_without_a_direction_are_neither_taken_nor_compared():
    statement([0, 0]), statement([0, 0])
    statement([1, 0])
    drawn = draw(size=3)
    assert drawn.statements.count() == 1
    assert not drawn.removed.exists()
    assert drawn.report["without_direction"] == 2
    assert notes(drawn)[-2:] == [
        "Only 1 of 3 statements were found: the others have no embedding that could be compared.",
        "2 statements have an embedding of zeros: they have no cosine, were not compared, and are not taken into the "
        "set.",
    ]


def test_an_embedding_that_is_no_number_fails_the_set_with_the_reason():
    statement([1, 0]), statement([np.nan, 0])
    wanted = ask_for_set(size=1, seed=1, wake=False)
    with pytest.raises(ValueError, match="not finite"):
        drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert (wanted.state, wanted.leases) == ("failed", 1)
    assert wanted.failure == (
        "The worker stopped with an error: ValueError: The vector in row 1 is not finite, or too long."
    )


# --- Embeddings that are missing


def test_a_set_waits_until_its_statements_are_embedded():
    apart(3)
    late = make_generation()
    wanted = ask_for_set(size=2, seed=1, wake=False)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    reading = Reading.objects.get()
    assert (wanted.state, wanted.reading, wanted.leases) == ("wanted", reading, 0)
    assert reading.statements == 1
    drawing.work_on_set(set_id=wanted.pk)  # nothing happens while it is read
    assert Reading.objects.count() == 1

    embed(late, np.eye(64)[9])
    newer = make_generation()  # what comes meanwhile does not put it off
    Reading.objects.update(finished_at=timezone.now())
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert wanted.state == "drawn"
    assert wanted.report["statements"] == 4
    assert wanted.compared_up_to < newer.pk


def test_what_was_embedded_in_another_precision_is_neither_used_nor_waited_for():
    """The margin is for float32."""
    apart(3)
    other = bfloat16_reader()
    drawn = draw(size=1)
    assert drawn.reader == toy_reader()
    near = statement(np.frombuffer(Embedding.objects.get(generation=ids_of(drawn)[0]).vector, dtype="<f4"))
    Embedding.objects.create(reader=other, generation=near, vector=np.eye(64)[50].astype("<f4").tobytes())
    assert comparing.ask_to_compare(humanval_set=drawn) is None
    comparing.work_on_comparison(set_id=drawn.pk)
    assert list(removed_for(drawn)) == [near.pk]
    assert not Reading.objects.exists()


def test_embeddings_that_vanish_during_the_drawing_are_made_again(monkeypatch):
    apart(3)
    wanted = ask_for_set(size=1, seed=1, wake=False)
    read = drawing.vectors

    def vanish(reader, ids):
        Embedding.objects.first().delete()
        return read(reader, ids)

    monkeypatch.setattr(drawing, "vectors", vanish)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert (wanted.state, wanted.lease_expires_at) == ("wanted", None)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert wanted.reading.statements == 1


def test_a_reading_that_failed_fails_the_set():
    make_generation()
    wanted = ask_for_set(size=1, seed=1, wake=False)
    drawing.work_on_set(set_id=wanted.pk)
    Reading.objects.update(finished_at=timezone.now(), failure="The model is broken.")
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert wanted.state == "failed"
    assert wanted.failure == f"The statements could not be embedded ({wanted.reading}): The model is broken."


# --- Workers


def test_a_set_in_other_hands_is_left_alone_until_the_lease_lapses():
    apart(3)
    wanted = ask_for_set(size=2, seed=1, wake=False)
    drawing.fix_statements(wanted)
    assert leases.take_up(HumanvalSet.objects.waiting(), pk=wanted.pk)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert wanted.state == "wanted"
    HumanvalSet.objects.update(lease_expires_at=timezone.now())
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert (wanted.state, wanted.leases) == ("drawn", 2)


def test_of_two_workers_only_one_stores():
    apart(3)
    wanted = ask_for_set(size=2, seed=1, wake=False)
    drawing.fix_statements(wanted)
    leases.take_up(HumanvalSet.objects.waiting(), pk=wanted.pk)
    slow = HumanvalSet.objects.get(pk=wanted.pk)
    drawn = drawing.draw(slow)
    HumanvalSet.objects.update(lease_expires_at=timezone.now())  # its lease lapsed, and another one takes it up
    leases.take_up(HumanvalSet.objects.waiting(), pk=wanted.pk)
    with pytest.raises(leases.FinishedElsewhere):
        drawing.store(slow, drawn)
    assert not HumanvalStatement.objects.exists()
    drawing.store(HumanvalSet.objects.get(pk=wanted.pk), drawn)
    assert HumanvalStatement.objects.count() == 2
    with pytest.raises(leases.FinishedElsewhere):
        drawing.store(HumanvalSet.objects.get(pk=wanted.pk), drawn)


def test_a_worker_that_lost_its_lease_does_not_fail_the_set():
    apart(3)
    wanted = ask_for_set(size=2, seed=1, wake=False)
    drawing.fix_statements(wanted)
    slow = drawing.take_up(wanted.pk)
    assert drawing.take_up(wanted.pk) is None
    HumanvalSet.objects.update(lease_expires_at=timezone.now())
    quick = drawing.take_up(wanted.pk)
    drawing.fail(slow, "Its own trouble.", state="failed")
    drawing.draw_leased(quick)
    quick.refresh_from_db()
    assert (quick.state, quick.failure) == ("drawn", "")


def test_what_breaks_off_while_storing_stores_nothing(monkeypatch):
    scattered(3)
    wanted = ask_for_set(size=4, seed=1, wake=False)
    monkeypatch.setattr(drawing, "store_removed", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert wanted.failure == "The worker stopped with an error: ZeroDivisionError: division by zero"
    assert not HumanvalStatement.objects.exists()
    assert not RemovedFromTraining.objects.exists()


def test_a_worker_that_stops_gives_the_set_back():
    apart(3)
    wanted = ask_for_set(size=2, seed=1, wake=False)
    drawing.work_on_set(set_id=wanted.pk, is_stopping=lambda: True)
    wanted.refresh_from_db()
    assert (wanted.state, wanted.lease_expires_at, wanted.leases) == ("wanted", None, 0)


def test_a_set_that_stops_every_worker_fails():
    apart(3)
    wanted = ask_for_set(size=2, seed=1, wake=False)
    HumanvalSet.objects.update(leases=leases.MAX_LEASES)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert (wanted.state, wanted.failure) == ("failed", leases.STOPPED_EACH_TIME)


def test_a_set_that_was_given_up_is_not_drawn():
    apart(3)
    wanted = ask_for_set(size=2, seed=1, wake=False)
    assert sets.give_up(humanval_set=wanted)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert (wanted.state, wanted.failure) == ("failed", "Its drawing was stopped.")
    assert not sets.give_up(humanval_set=draw(size=1))


# --- What is stored later


def test_newer_statements_are_compared_and_removed_also_for_a_set_that_is_with_annotators():
    own = statement([1, 0])
    drawn = draw(size=1)
    near, far = statement([1, 0.1]), statement([0, 1])
    assert comparing.not_compared(drawn) == 2
    compared = comparing.compare(humanval_set=drawn)
    assert (compared.statements, compared.removed) == (2, 1)
    assert removed_for(drawn) == {near.pk: own.pk}
    assert drawn.compared_up_to >= far.pk
    assert comparing.not_compared(drawn) == 0
    assert comparing.compare(humanval_set=drawn).removed == 0


def test_comparing_first_has_the_newer_statements_embedded():
    statement([1, 0])
    drawn = draw(size=1)
    newer = make_generation()
    reading = comparing.ask_to_compare(humanval_set=drawn)
    assert reading.statements == 1
    assert not comparing.waiting_to_be_compared().exists()
    Embedding.objects.create(reader=toy_reader(), generation=newer, vector=np.array([1, 0], dtype="<f4").tobytes())
    Reading.objects.update(finished_at=timezone.now())
    assert list(comparing.waiting_to_be_compared()) == [drawn]
    comparing.work_on_comparison(set_id=drawn.pk)
    assert list(removed_for(drawn)) == [newer.pk]
    assert not comparing.waiting_to_be_compared().exists()


def test_a_set_that_waited_for_embeddings_is_not_compared_again_after_its_drawing():
    late = [make_generation(f"late {number}") for number in range(3)]
    wanted = ask_for_set(size=2, seed=1, wake=False)
    drawing.work_on_set(set_id=wanted.pk)
    for number, generation in enumerate(late):
        embed(generation, np.eye(4)[number])
    Reading.objects.update(finished_at=timezone.now())
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert (wanted.state, wanted.reading) == ("drawn", None)
    assert not comparing.waiting_to_be_compared().exists()


def test_a_comparison_that_was_asked_for_is_made_however_often_it_is_put_off(monkeypatch):
    statement([1, 0])
    drawn = draw(size=1)
    near = statement([1, 0.1])
    comparing.ask_to_compare(humanval_set=drawn)

    def stored_just_now():
        raise comparing.StatementsBeingStored("An import is at it.")

    with monkeypatch.context() as patched:
        patched.setattr(comparing, "newest_statement", stored_just_now)
        comparing.work_on_comparison(set_id=drawn.pk)
    assert list(comparing.waiting_to_be_compared()) == [drawn]
    comparing.work_on_comparison(set_id=drawn.pk)
    assert list(removed_for(drawn)) == [near.pk]
    assert not comparing.waiting_to_be_compared().exists()


def test_a_comparison_that_was_asked_for_outlives_a_reading_that_failed():
    statement([1, 0])
    drawn = draw(size=1)
    newer = make_generation()
    first = comparing.ask_to_compare(humanval_set=drawn)
    assert comparing.ask_to_compare(humanval_set=drawn) == first
    Reading.objects.update(finished_at=timezone.now(), failure="The model is broken.")
    comparing.work_on_comparison(set_id=drawn.pk)
    assert Reading.objects.count() == 1  # it fails as long as nobody mends it
    second = comparing.ask_to_compare(humanval_set=drawn)
    assert second != first
    embed(newer, [1, 0])
    Reading.objects.update(finished_at=timezone.now(), failure="The model is broken.")
    comparing.work_on_comparison(set_id=drawn.pk)
    assert list(removed_for(drawn)) == [newer.pk]
    drawn.refresh_from_db()
    assert (drawn.compare_asked_at, drawn.reading) == (None, None)


def test_what_is_asked_for_during_a_comparison_is_made_after_it():
    statement([1, 0])
    drawn = draw(size=1)
    comparing.ask_to_compare(humanval_set=drawn)
    drawn.refresh_from_db()
    HumanvalSet.objects.update(compare_asked_at=timezone.now())
    comparing.compare(humanval_set=drawn)
    assert comparing.waiting_to_be_compared().exists()


def test_a_set_that_is_not_drawn_has_nothing_to_compare_with():
    apart(2)
    wanted = ask_for_set(size=1, seed=1, wake=False)
    with pytest.raises(comparing.WrongState, match="HUMANVAL 1 is being drawn: it has no statements"):
        comparing.compare(humanval_set=wanted)


def test_statements_of_a_run_are_a_pool_of_their_own():
    run = make_run(count=1)
    chunk = run.chunks.get()
    of_run = statement([1, 0], run=run, chunk=chunk, position=0, group=chunk.group, seed=1)
    statement([0, 1])
    assert ids_of(draw(size=1, filters={"run": str(run.pk)})) == [of_run.pk]


def test_a_study_is_a_pool_of_its_own():
    study = make_hit_type()
    in_study = statement([1, 0])
    make_hit(hit_type=study, generation=in_study)
    statement([0, 1])
    assert ids_of(draw(size=1, filters={"study": [str(study.pk)]})) == [in_study.pk]
