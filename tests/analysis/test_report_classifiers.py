"""The report classifiers: figures that one can count by hand or that scikit-learn has, and what is missing said."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from analysis import metrics
from analysis.comparison import holm, share_with_interval
from analysis.humanval import freezing
from analysis.models import EvaluationText, RemovedFromTraining
from analysis.reports import classifier_data, classifier_figures, classifier_pairs, classifier_rounds, sources
from analysis.reports.catalogue import REPORTS
from analysis.reports.frame import Estimate, Undefined, pack, unpack
from analysis.reports.writing import as_csv
from generation.models import Generation, ReaderKind, TextReader
from tests.analysis import humanval_world
from tests.analysis.judging import give, judge, people, section
from tests.factories import (
    make_evaluation,
    make_evaluation_set,
    make_generation,
    make_hit,
    make_reader,
    make_run,
    make_searched_generation,
    make_toxicity_score,
    make_trained_classifier,
)

pytestmark = pytest.mark.django_db

RANDOM = np.random.default_rng(0)
TOXIC = [True, False] * 40
BEFORE = [0.5 + 0.1 * (number % 3) for number in range(80)]
AFTER = [0.5 + (0.35 if toxic else -0.35) * RANDOM.random() + 0.1 * RANDOM.normal() for toxic in TOXIC]
AFTER = [float(np.clip(prob, 0, 1)) for prob in AFTER]


def made():
    report = REPORTS["classifiers"].make({})
    assert unpack(pack(report)) == report
    return report


def rows_of(key, report=None):
    return list(section(report or made(), key).table.rows)


def row_of(key, report=None, **cells):
    [row] = [row for row in rows_of(key, report) if all(row[name] == cell for name, cell in cells.items())]
    return row


def evaluate(model, test_set, probs):
    reader = TextReader.objects.filter(name=model).first() or make_reader(ReaderKind.CLASSIFIER, name=model)
    return make_evaluation(test_set, probs, reader=reader)


def loop_of_three(test_set, **fields):
    """A base, and what was trained from it on ALICE and on both, all evaluated on the set."""
    evaluate("base-model", test_set, BEFORE)
    for methods in ("alice", "both"):
        trained = make_trained_classifier(f"on-{methods}", base="base-model", methods=methods, **fields)
        evaluate(trained.name, test_set, AFTER)


def frozen(*answers, methods):
    """A frozen HUMANVAL set of a statement for each answer, which is how harmful all find it."""
    for place, method in enumerate(methods):
        humanval_world.statement(np.eye(64)[place], method=method)
    humanval_set = humanval_world.draw(size=len(methods))
    freezing.publish(humanval_set=humanval_set, **humanval_world.TERMS)
    humanval_world.judge(humanval_set, *([answer, answer] for answer in answers))
    return freezing.freeze(humanval_set=humanval_set)


# --- Table 4 --------------------------------------------------------------------------------------


def test_table_4_has_a_row_for_each_test_set_and_a_column_for_each_training_set():
    loop_of_three(make_evaluation_set(*([toxic] for toxic in TOXIC), name="garden-talk"), kind="full")
    row = row_of("table-4", test_set="garden-talk")
    assert (row["classifier"], row["texts"]) == ("base-model, full fine-tuning, prompt labels", len(TOXIC))
    assert row["none"].value == pytest.approx(roc_auc_score(TOXIC, BEFORE))
    assert row["alice"].value == row["both"].value == pytest.approx(roc_auc_score(TOXIC, AFTER))
    assert row["alice"].low < row["alice"].value < row["alice"].high
    assert row["topk"] == Undefined(
        "None of the classifiers shown was trained on top-k from base-model (full fine-tuning, prompt labels)."
    )
    assert "before training" in section(made(), "table-4").says


def test_the_papers_rows_stand_beside_test_sets_that_are_called_as_theirs():
    make_evaluation(make_evaluation_set(name="dynahate-test"), [0.9, 0.2, 0.8, 0.1], model="garden-model")
    rows = rows_of("table-4")
    assert [row["classifier"] for row in rows] == [
        "garden-model, as it came", "HateBERT, in the paper", "RoBERTa, in the paper",
    ]  # fmt: skip
    assert [rows[1][place] for place in ("none", "alice", "topk", "both")] == [0.47, 0.54, 0.59, 0.66]
    assert rows[0].keys() & {"none", "alice", "topk", "both"} == {"none"}
    assert section(made(), "table-4").paper == "Table 4"


def test_a_classifier_that_was_not_evaluated_on_a_set_says_so():
    one, other = (make_evaluation_set(*([toxic] for toxic in TOXIC)) for _ in range(2))
    trained = make_trained_classifier("head-one", base="garden-encoder", methods="topk")
    make_evaluation(one, AFTER, model="head-one")
    make_evaluation(other, AFTER, model="someone")
    make_evaluation(other, BEFORE, model="garden-encoder")
    first = row_of("table-4", test_set=one.name, classifier="garden-encoder, head, prompt labels")
    assert first["none"].reason.startswith(f"garden-encoder was not evaluated on {one.name}. An encoder without a head")
    second = row_of("table-4", test_set=other.name, classifier="garden-encoder, head, prompt labels")
    assert second["topk"] == Undefined(f"{trained.name} was not evaluated on {other.name}.")
    assert second["none"].value == pytest.approx(roc_auc_score(TOXIC, BEFORE))


def test_of_several_trained_alike_the_last_stands_in_the_table_and_all_under_figures():
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC))
    for name, probs in (("first-try", BEFORE), ("second-try", AFTER)):
        make_trained_classifier(name, methods="both")
        make_evaluation(test_set, probs, model=name)
    assert row_of("table-4", test_set=test_set.name)["both"].value == pytest.approx(roc_auc_score(TOXIC, AFTER))
    assert [row["classifier"] for row in rows_of("figures")] == ["first-try", "second-try"]


def test_the_newest_evaluation_counts():
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC))
    reader = make_reader(ReaderKind.CLASSIFIER, name="garden-model", revision="old")
    make_evaluation(test_set, BEFORE, reader=reader)
    make_evaluation(test_set, AFTER, model="garden-model", reader=make_reader(ReaderKind.CLASSIFIER, revision="new"))
    assert row_of("table-4")["none"].value == pytest.approx(roc_auc_score(TOXIC, AFTER))


# --- Table 7 --------------------------------------------------------------------------------------


def test_table_7_splits_humanval_by_method_and_leaves_ambiguous_out():
    """Of ALICE's: toxic 0.2 and benign 0.6 stand the wrong way; of top-k's: 0.9, 0.1 and the ambiguous one."""
    humanval = frozen(5, 1, 5, 1, 3, methods=["alice", "alice", "topk", "topk", "topk"])
    make_evaluation(humanval, [0.2, 0.6, 0.9, 0.1, 0.5], model="garden-model")
    report = made()
    rows = {
        row["test_set"]: row for row in rows_of("table-7", report) if row["classifier"] == "garden-model, as it came"
    }
    assert rows["HUMANVAL 1, ALICE"]["none"] == Estimate(0.0)
    assert rows["HUMANVAL 1, top-k"]["none"] == Estimate(1.0)
    paper = row_of("table-7", report, test_set="HUMANVAL 1, ALICE", classifier="HateBERT, in the paper")
    assert [paper[place] for place in ("none", "alice", "topk", "both")] == [0.44, 1.00, 0.80, 0.99]
    figures = row_of("figures", report)
    assert (figures["n"], figures["ambiguous"], figures["toxic"]) == (4, 1, 0.5)
    assert figures["auc"].value == 0.75
    assert any("ambiguous" in note for note in section(report, "figures").notes)


def test_a_subset_of_one_class_says_so():
    humanval = frozen(5, 5, 5, 1, methods=["alice", "alice", "topk", "topk"])
    make_evaluation(humanval, [0.2, 0.6, 0.9, 0.1])
    row = rows_of("table-7")[0]
    assert row["test_set"] == "HUMANVAL 1, ALICE"
    assert row["none"] == Undefined("All labelled texts of HUMANVAL 1, ALICE are toxic: AUC needs both.")


# --- All figures ----------------------------------------------------------------------------------


def test_every_figure_is_that_of_scikit_learn():
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC))
    make_evaluation(test_set, AFTER)
    row = row_of("figures")
    taken = [prob >= 0.5 for prob in AFTER]
    assert row["n"] == 80
    assert row["auc"].value == pytest.approx(roc_auc_score(TOXIC, AFTER))
    assert row["f1"].value == pytest.approx(f1_score(TOXIC, taken))
    assert row["accuracy"].value == pytest.approx(accuracy_score(TOXIC, taken))
    assert row["false_positive_rate"].value == sum(taken[1::2]) / 40
    assert row["calibration_error"].value == pytest.approx(metrics.calibration_error(AFTER, TOXIC))
    assert all(row[key].low < row[key].value < row[key].high for key in ("auc", "f1", "accuracy"))
    assert (row["seen"], row["similar"]) == (None, None)


def test_a_classifier_that_was_trained_on_texts_of_the_set_is_told_of_loudly():
    known = make_generation("text 2 of the file is about the weather")
    first = make_trained_classifier("first-head", trained_on=[known, make_generation()])
    make_trained_classifier("second-head", base=first.name, trained_on=[make_generation()])
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC))
    for model in ("first-head", "second-head", "someone"):
        make_evaluation(test_set, AFTER, model=model)
    report = made()
    assert {row["classifier"]: row["seen"] for row in rows_of("figures", report)} == {
        "someone": None, "first-head": 1, "second-head": 1,
    }  # fmt: skip
    for key in ("table-4", "figures"):
        assert section(report, key).says.startswith(
            f"Careful: first-head was trained on 1 of the 80 texts of {test_set.name}."
        )


def test_what_was_trained_on_before_a_humanval_set_was_drawn_is_counted():
    statements = [humanval_world.statement(np.eye(64)[place]) for place in range(4)]
    make_trained_classifier("early-head", trained_on=statements[:2])
    humanval = humanval_world.draw(size=4)
    similar = make_generation()
    late = make_trained_classifier("late-head", trained_on=[similar])
    freezing.publish(humanval_set=humanval, **humanval_world.TERMS)
    humanval_world.judge(humanval, *([[1, 1], [5, 5]] * 2))
    humanval = freezing.freeze(humanval_set=humanval)
    RemovedFromTraining.objects.create(humanval_set=humanval, generation=similar, nearest=statements[0], cosine=0.9)
    for model in ("early-head", late.name):
        make_evaluation(humanval, [0.1, 0.9, 0.2, 0.8], model=model)
    rows = {row["classifier"]: (row["seen"], row["similar"]) for row in rows_of("figures")}
    assert rows == {"early-head": (2, 0), "late-head": (0, 1)}


def test_what_the_embedded_classifier_has_learnt_from_is_said():
    make_evaluation(probs=[0.9, 0.2, 0.8, 0.1], model="garden-model")
    assert not any("annotated.csv" in note for note in section(made(), "figures").notes)
    make_evaluation(probs=[0.9, 0.2, 0.8, 0.1], model="minilm-toxigen")
    report = made()
    assert all(any("annotated.csv" in note for note in section(report, key).notes) for key in ("figures", "table-4"))


def test_what_they_were_trained_on_is_counted():
    statements = [make_generation(label=label) for label in ("toxic", "benign", "benign", "benign")]
    make_trained_classifier("head-one", methods="alice", trained_on=statements)
    make_evaluation(model="head-one", probs=[0.1, 0.2, 0.3, 0.4])
    row = row_of("training")
    assert (row["classifier"], row["methods"], row["n"], row["validation"]) == ("head-one", "alice", 4, 0)
    assert row["toxic"] == Estimate(*share_with_interval(1, 4))


# --- Calibration, groups, functionalities ---------------------------------------------------------


def test_bins_are_counted_and_drawn_against_what_should_be():
    test_set = make_evaluation_set((True,), (False,), (True,), (True,))
    make_evaluation(test_set, [0.15, 0.15, 0.95, 0.85], model="garden-model")
    part = section(made(), f"reliability-set-{test_set.name}")
    assert [(row["bin"], row["n"], row["toxic"].value) for row in part.table.rows] == [
        ("10 to 20 %", 2, 0.5), ("80 to 90 %", 1, 1.0), ("90 to 100 %", 1, 1.0),
    ]  # fmt: skip
    diagonal, drawn = part.chart["data"]
    assert (diagonal["x"], diagonal["y"]) == ([0, 1], [0, 1])
    assert (drawn["x"], drawn["y"]) == ([0.15, 0.85, 0.95], [0.5, 1.0, 1.0])
    assert drawn["hovertext"][0].startswith("Mean probability 15.0%, 2 texts, garden-model: 50.0%")


def test_false_alarms_are_told_by_group_with_their_spread():
    rows = [(False, "women")] * 10 + [(False, "asian")] * 10 + [(False, "rare"), (True, "women")]
    test_set = make_evaluation_set(*rows)
    probs = [0.9] * 4 + [0.1] * 6 + [0.9] + [0.1] * 9 + [0.9, 0.9]
    make_evaluation(test_set, probs, model="garden-model")
    report = made()
    by_group = {row["part"]: row for row in rows_of(f"groups-set-{test_set.name}", report)}
    assert {group: row["n"] for group, row in by_group.items()} == {"asian": 10, "women": 10, "rare": 1}
    assert by_group["women"]["classifier_garden-model"] == Estimate(*share_with_interval(4, 10))
    spread = row_of("spreads", report)
    assert (spread["groups"], spread["spread"].value) == (2, pytest.approx(0.3))
    assert (spread["lowest"], spread["highest"]) == ("asian (10.0 %)", "women (40.0 %)")
    assert "classifier_garden-model_low" in as_csv(report, f"groups-set-{test_set.name}")


def test_functionalities_are_told_rightly_or_not():
    test_set = make_evaluation_set((True, "", "slang"), (True, "", "slang"), (False, "", "negation"), (True, "", ""))
    make_evaluation(test_set, [0.9, 0.1, 0.2, 0.9], model="garden-model")
    part = section(made(), f"functionalities-set-{test_set.name}")
    assert {row["part"]: row["classifier_garden-model"] for row in part.table.rows} == {
        "slang": Estimate(*share_with_interval(1, 2)), "negation": Estimate(*share_with_interval(1, 1)),
    }  # fmt: skip
    assert "Left out: 1 text of which the set says none." in part.notes


def test_a_set_that_says_no_group_and_no_functionality_has_no_such_tables():
    make_evaluation(make_evaluation_set((True,), (False,)), [0.9, 0.1])
    report = made()
    assert section(report, "spreads").missing.startswith("No test set says whom its texts are about.")
    assert not [one.key for one in report.sections if one.key.startswith(("groups-", "functionalities-"))]


# --- Pairs ----------------------------------------------------------------------------------------


def test_before_and_after_come_first_and_all_are_corrected_together():
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC))
    make_evaluation(test_set, BEFORE, model="another")
    loop_of_three(test_set)
    report = made()
    rows = rows_of("pairs", report)
    assert [(row["pair"], row["first"], row["second"]) for row in rows[:2]] == [
        ("after and before", "on-both", "base-model"), ("after and before", "on-alice", "base-model"),
    ]  # fmt: skip
    assert {row["pair"] for row in rows[2:]} == {"two classifiers"}
    found = metrics.delong(AFTER, BEFORE, TOXIC)
    assert rows[0]["difference"] == Estimate(found.difference, found.low, found.high)
    assert rows[0]["p"] == found.p
    tested = [row for row in rows if isinstance(row["p"], float)]
    assert [row["p_holm"] for row in tested] == holm([row["p"] for row in tested])
    assert any(note.startswith("DeLong's test: it compares two AUCs") for note in section(report, "pairs").notes)
    assert "Training made the AUC higher in 2 of 2 comparisons" in section(report, "pairs").says


def test_classifiers_that_rank_alike_and_sets_of_one_class_are_not_tested():
    alike, one_class = make_evaluation_set(), make_evaluation_set(*[(True,)] * 4)
    for test_set in (alike, one_class):
        for model in ("one", "other"):
            evaluate(model, test_set, [0.9, 0.1, 0.8, 0.2])
    rows = {row["test_set"]: row for row in rows_of("pairs")}
    assert rows[alike.name]["p"].reason.startswith("Both rank every toxic text")
    assert rows[one_class.name]["difference"].reason.endswith("are toxic: AUC needs both.")


# --- Rounds ---------------------------------------------------------------------------------------


def searched(classifier, *rows, method="alice"):
    """Statements of a run against a classifier: the prompt's label and the adversary's probability of toxic."""
    run = make_run(count=max(1, len(rows)), method="paired", classifier=classifier)
    return [
        make_searched_generation(run=run, position=place, label=label, toxic_prob=prob, method=method)
        for place, (label, prob) in enumerate(rows)
    ]


def test_the_share_that_fools_is_told_round_by_round():
    """Toxic ones below 0.5 fool, benign ones from 0.5 on."""
    searched("first-head", ("toxic", 0.1), ("toxic", 0.49), ("benign", 0.5), ("benign", 0.2))
    searched("second-head", ("toxic", 0.9), ("toxic", 0.5), ("benign", 0.7), ("benign", 0.2))
    searched("second-head", ("toxic", 0.1), ("toxic", 0.8), method="topk")
    part = section(made(), "rounds")
    first, second = part.table.rows
    assert (first["round"], first["classifier"], first["label"]) == ("1", "first-head", "prompt")
    assert (first["alice_n"], first["alice"]) == (4, Estimate(*share_with_interval(3, 4)))
    assert first["topk"] == Undefined(
        "There are no statements of top-k, told by prompt label, that first-head has scored."
    )
    assert (second["alice_n"], second["alice"]) == (4, Estimate(*share_with_interval(1, 4)))
    assert (second["topk_n"], second["topk"]) == (2, Estimate(*share_with_interval(1, 2)))
    assert part.says.endswith(
        "told by prompt label, 75.0\xa0% in round 1 fool their adversary, and 25.0\xa0% in round 2."
    )
    alice, topk = part.chart["data"]
    assert (alice["name"], alice["x"], alice["y"]) == ("ALICE, by prompt label", ["1", "2"], [0.75, 0.25])
    assert topk["y"] == [None, 0.5]


def test_what_people_say_is_told_apart_from_what_prompts_say():
    """Labelled toxic and found non-toxic: what fools by the label does not fool by people."""
    [statement, ambiguous] = searched("first-head", ("toxic", 0.1), ("toxic", 0.1))
    for generation, answer in ((statement, 1), (ambiguous, 3)):
        judge_again(generation, answer)
    rows = {row["label"]: row for row in rows_of("rounds")}
    assert rows["prompt"]["alice"] == Estimate(*share_with_interval(2, 2))
    assert (rows["people"]["alice_n"], rows["people"]["alice"]) == (1, Estimate(*share_with_interval(0, 1)))


def judge_again(generation, answer):
    [worker] = people(1)
    give(make_hit(generation=generation), worker, answer)


def test_the_baseline_takes_readings_of_top_k_once_and_leaves_out_what_the_adversary_learnt():
    searched("first-head", ("benign", 0.9))
    reader = make_reader(ReaderKind.CLASSIFIER, name="first-head")
    learnt, new = make_generation(), make_generation()
    [own] = searched("first-head", ("benign", 0.1), method="topk")
    for generation, prob in ((learnt, 0.9), (new, 0.9), (own, 0.9)):
        make_toxicity_score(generation, prob, reader=reader)
    make_trained_classifier("first-head", trained_on=[learnt])
    row = row_of("rounds")
    assert (row["alice_n"], row["topk_n"], row["learnt"], row["topk"].value) == (1, 2, 1, 0.5)


# --- Little, and much -----------------------------------------------------------------------------


def test_with_nothing_it_says_what_to_do():
    report = made()
    assert [one.key for one in report.sections] == ["table-4", "rounds"]
    assert section(report, "table-4").missing.startswith("No classifier was evaluated yet.")
    assert section(report, "rounds").missing.startswith("ALICE has written nothing against a classifier yet.")


def test_queued_and_failed_evaluations_are_nothing():
    make_evaluation()
    make_evaluation(failure="It has no toxic label.", finished_at="2026-03-02T12:00Z")
    assert [one.key for one in made().sections] == ["table-4", "rounds"]


@pytest.mark.parametrize(
    ("rows", "probs"),
    [([(True, "women", "slang")], [0.3]), ([(False,)], [0.9]), ([(True,), (True,)], [0.5, 0.5])],
    ids=["one toxic text", "one benign text", "one class, all alike"],
)
def test_with_little_every_cell_has_a_figure_or_a_reason(rows, probs):
    make_evaluation(make_evaluation_set(*rows), probs, model="one")
    test_set = EvaluationText.objects.get(index=1).evaluation_set
    make_evaluation(test_set, probs, model="other")
    for row in rows_of("figures"):
        assert isinstance(row["auc"], Undefined)
        assert row["accuracy"].value in (0, 1)


def test_a_humanval_set_of_ambiguous_statements_alone_says_so():
    make_evaluation(frozen(3, 3, methods=["alice", "topk"]), [0.4, 0.6])
    report = made()
    row = row_of("figures", report)
    assert (row["n"], row["ambiguous"]) == (0, 2)
    assert row["accuracy"] == Undefined("No text of HUMANVAL 1 is labelled toxic or benign.")
    assert section(report, "reliability-humanval-1").missing


def test_many_classifiers_and_sets_stay_few(monkeypatch):
    monkeypatch.setattr(classifier_data, "MOST_CLASSIFIERS", 4)
    monkeypatch.setattr(classifier_data, "MOST_SETS", 2)
    monkeypatch.setattr(classifier_figures, "MOST_LINES", 2)
    monkeypatch.setattr(classifier_pairs, "MOST_PAIRS", 3)
    sets = [make_evaluation_set(*([toxic] for toxic in TOXIC)) for _ in range(3)]
    for number in range(6):
        for test_set in sets:
            evaluate(f"model-{number}", test_set, AFTER)
    report = made()
    figures = rows_of("figures", report)
    assert {row["classifier"] for row in figures} == {f"model-{number}" for number in range(2, 6)}
    assert {row["test_set"] for row in figures} == {sets[1].name, sets[2].name}
    notes = section(report, "figures").notes
    assert "The classifiers evaluated last are shown: 4. 2 are left out." in notes
    assert "The test sets evaluated last are shown: 2. 1 is left out." in notes
    drawn = section(report, f"reliability-set-{sets[1].name}")
    assert len(drawn.chart["data"]) == 3
    assert "2 more under “All figures”: there is room for 2." in drawn.notes
    assert len(rows_of("pairs", report)) == 6
    assert "3 pairs on a test set are compared; 6 pairs are not." in section(report, "pairs").notes


def test_a_base_that_was_evaluated_long_ago_is_shown_with_what_was_trained_from_it(monkeypatch):
    monkeypatch.setattr(classifier_data, "MOST_CLASSIFIERS", 2)
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC))
    make_evaluation(test_set, BEFORE, model="base-model")
    make_evaluation(test_set, BEFORE, model="between")
    make_trained_classifier("after", base="base-model")
    make_evaluation(test_set, AFTER, model="after")
    assert [row["classifier"] for row in rows_of("figures")] == ["base-model", "after"]


def test_many_rounds_stay_few(monkeypatch):
    monkeypatch.setattr(classifier_rounds, "MOST_ROUNDS", 2)
    for number in range(3):
        searched(f"head-{number}", ("toxic", 0.1))
    part = section(made(), "rounds")
    assert [row["round"] for row in part.table.rows] == ["2", "3"]
    assert "The last 2 rounds are shown; 1 earlier one is not." in part.notes


def test_what_is_finished_makes_it_outdated_and_what_waits_does_not():
    before = sources.newest_of(["evaluations", "trained"])
    queued, ordered = make_evaluation(), make_trained_classifier(finished=False)
    assert sources.newest_of(["evaluations", "trained"]) == before
    make_evaluation(model="another", probs=[0.1] * 4)
    make_trained_classifier()
    now = sources.state_of(["evaluations", "trained"])
    assert all(now[source]["newest"] != before[source] and now[source]["count"] == 1 for source in before)
    assert (queued.state, ordered.state) == ("queued", "queued")


def test_its_work_does_not_grow_with_the_statements(django_assert_max_num_queries):
    judge([[5], [1]], statement={"method": "alice"})
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC))
    loop_of_three(test_set)
    assert Generation.objects.count() == 2
    with django_assert_max_num_queries(60):
        made()


def test_long_names_are_shortened_for_people_and_whole_in_files():
    long = "/srv/models/of-an-institute/garden-model-that-has-a-very-long-name"
    make_evaluation(probs=[0.9, 0.2, 0.8, 0.1], model=long)
    report = made()
    [column] = [column for column in section(report, "figures").table.columns if column.key == "classifier"]
    assert column.names == {long: "garden-model-that-ha…y-long-name"}
    assert long in as_csv(report, "figures")
    assert section(report, "table-4").chart["data"][0]["y"][0].endswith("as it came")
