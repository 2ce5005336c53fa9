"""What each classifier is worth on each test set: all figures, and its calibration."""

from collections.abc import Iterator

from analysis import metrics
from analysis.reports import charts
from analysis.reports.cells import share_cell
from analysis.reports.classifier_cells import (
    INTERVALS,
    MOST_LINES,
    SHARE_OF_TOXIC,
    TAKEN,
    TEST_SET,
    WILSON,
    N,
    classifier_column,
    figure_cells,
    on_left_out,
    that_fit,
    toxic_share,
)
from analysis.reports.classifier_data import Evaluated, TestSet
from analysis.reports.frame import Column, Kind, Section, Table
from analysis.seen import ON_EMBEDDED
from generation.trained import EMBEDDED

FIGURES = (
    N,
    Column("ambiguous", "Ambiguous, left out", Kind.COUNT),
    SHARE_OF_TOXIC,
    Column("auc", "AUC", Kind.NUMBER, 3),
    Column("f1", "F1", Kind.NUMBER, 3),
    Column("accuracy", "Accuracy", Kind.SHARE, 1),
    Column("calibration_error", "Calibration error (ECE)", Kind.NUMBER, 3),
    Column("false_positive_rate", "False-positive rate", Kind.SHARE, 1),
    Column("seen", "Trained on (texts)", Kind.COUNT),
    Column("similar", "Trained on (too similar)", Kind.COUNT),
)


def sections(evaluated: Evaluated) -> Iterator[Section]:
    """All figures, then the calibration on each test set."""
    yield _figures(evaluated)
    for test_set in evaluated.test_sets:
        yield _reliability(evaluated, test_set)


def _figures(evaluated: Evaluated) -> Section:
    rows = [
        {
            "test_set": test_set.name,
            "classifier": scored.classifier,
            "n": scored.n,
            "ambiguous": scored.results.ambiguous,
            "toxic": toxic_share(scored),
            **figure_cells(scored),
            "seen": scored.seen,
            "similar": scored.similar,
        }
        for test_set in evaluated.test_sets
        for scored in evaluated.on(test_set)
    ]
    return Section(
        "figures",
        "All figures",
        " ".join(
            (*evaluated.warnings(), "How well each classifier tells toxic texts, and what its probabilities are worth.")
        ),
        {"test sets": len(evaluated.test_sets), "evaluations": len(evaluated.scored)},
        Table((TEST_SET, classifier_column(evaluated), *FIGURES), tuple(rows)),
        notes=(
            TAKEN,
            "F1 is of the toxic class. The calibration error is how far probability and share of toxic texts differ, "
            "over ten equally wide bins. The false-positive rate is the share of benign texts taken for toxic.",
            INTERVALS,
            "Trained on: how many of the texts, by their wording, the classifier or one it was trained from has learnt "
            "from; then how many statements that are too similar to a HUMANVAL set. Empty: it was not trained here, "
            "and what it has learnt from is not known.",
            *_on_ambiguous(evaluated),
            *on_left_out(evaluated.scored),
            *on_embedded(evaluated),
            *evaluated.notes,
        ),
    )


def _on_ambiguous(evaluated: Evaluated) -> list[str]:
    if not any(scored.results.ambiguous for scored in evaluated.scored):
        return []
    return ["Statements of HUMANVAL that people find ambiguous are neither toxic nor benign: no figure takes them."]


def on_embedded(evaluated: Evaluated) -> list[str]:
    bases = {trained.base for trained in evaluated.trained}
    if EMBEDDED not in bases | {scored.model for scored in evaluated.scored}:
        return []
    return [ON_EMBEDDED]


# --- Calibration ----------------------------------------------------------------------------------

BINS = (
    Column("bin", "Probability"),
    N,
    Column("mean", "Mean probability", Kind.SHARE, 1),
    Column("toxic", "Toxic", Kind.SHARE, 1),
)


def _reliability(evaluated: Evaluated, test_set: TestSet) -> Section:
    shown, notes = that_fit(evaluated, test_set, MOST_LINES)
    bins = {scored.classifier: metrics.reliability(scored.results.probs, scored.results.toxic) for scored in shown}
    title = f"Calibration on {test_set.name}"
    says = "Of the texts that get a probability of 70 %, 70 % should be toxic: then the line follows the dotted one."
    if not shown:
        missing = evaluated.on(test_set)[0].one_class
        return Section(f"reliability-{test_set.key}", title, says, notes=tuple(notes), missing=missing)
    rows = [
        {
            "classifier": classifier,
            "bin": f"{100 * one.low:.0f} to {100 * one.high:.0f} %",
            "n": one.n,
            "mean": one.mean_prob,
            "toxic": share_cell(round(one.share_toxic * one.n), one.n, "texts"),
        }
        for classifier, found in bins.items()
        for one in found
    ]
    series = {
        evaluated.short[classifier]: [
            (row["mean"], row["toxic"], row["n"]) for row in rows if row["classifier"] == classifier
        ]
        for classifier in bins
    }
    return Section(
        f"reliability-{test_set.key}",
        title,
        says,
        {"texts": max(scored.n for scored in shown)},
        Table((classifier_column(evaluated), *BINS), tuple(rows)),
        charts.reliability(series),
        notes=("Above the dotted line probabilities are too low, below it they are too high.", WILSON, *notes),
    )
