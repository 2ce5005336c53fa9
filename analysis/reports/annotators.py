"""The report ``annotators``: how far each agrees with the others, and what their work is worth to the labels."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from analysis.agreement import Ratings
from analysis.annotators import (
    AnnotatorAgreement,
    Bias,
    PairAgreement,
    annotator_agreement,
    pair_agreement,
    scale_bias,
)
from analysis.exports.workers import DIGITS, hashed_worker
from analysis.judged import SCALES, annotations
from analysis.reports import charts
from analysis.reports.agreement_cells import middle_and_ends
from analysis.reports.annotator_cells import OF_KAPPA, abilities, habits, kappa_cell, mean_share_cell, median_times
from analysis.reports.cells import mean_cell, share_cell, spread_notes
from analysis.reports.frame import Cell, Column, Estimate, Kind, Report, Section, Table, Undefined
from analysis.reports.rated import (
    EVERYTHING_RATED,
    TOXICITY_CLASS,
    first_answers,
    on_left_out,
    on_repeated,
    ratings_of,
    why_nothing,
)
from annotator.models import Worker

SHORTEST_NAME = 8
"""So many digits of an annotator's hash stand for them, or more where two would be the same."""
LEAST_SHARED = 5
"""Of pairs that share fewer statements nothing is told."""
PAIRS_SHOWN = 200
DRAWN = 40
"""So many annotators are in a figure, those with the most annotations; the table has them all."""
FIRST = (Column("annotator", "Annotator"), Column("hash", "Salted hash", Kind.HASH))
BELOW_AND_ABOVE = [[0, "#0072b2"], [0.5, "#ffffff"], [1, "#d55e00"]]
"""Blue, white and vermilion of Okabe and Ito: told apart by colour-blind readers, too."""


def make(filters: Mapping) -> Report:
    """The report over what the filters leave."""
    judged, repeated = first_answers(annotations(filters))
    if judged.empty:
        says = "How far each annotator agrees with the others cannot be told."
        return _report([Section("annotators", "Annotators", says, _n(judged), missing=why_nothing(filters))])
    hashes = hashes_of(judged["worker"].value_counts().index)
    names = names_of(hashes)
    ratings = ratings_of(judged, TOXICITY_CLASS)
    return _report(
        [
            _annotators(judged, ratings, hashes, names, [*on_repeated(repeated), *on_left_out(filters)]),
            _bias(judged, hashes, names),
            _pairs(judged, ratings, names),
        ]
    )


def _report(sections: Iterable[Section]) -> Report:
    return Report("annotators", "Annotators", tuple(sections))


def _n(judged: pd.DataFrame) -> dict[str, int]:
    return {
        "annotators": judged["worker"].nunique(),
        "annotations": len(judged),
        "statements": judged["statement"].nunique(),
    }


def hashes_of(workers: Iterable[int]) -> dict[int, str]:
    """What stands for each worker in exports, in the same order."""
    workers = [int(worker) for worker in workers]
    imported = dict(Worker.objects.filter(pk__in=workers).exclude(imported_hash="").values_list("pk", "imported_hash"))
    return {worker: imported.get(worker) or hashed_worker(worker) for worker in workers}


def names_of(hashes: Mapping[int, str]) -> dict[int, str]:
    """The first digits of each hash, as many as tell them apart."""
    longest = max(map(len, hashes.values()), default=DIGITS)
    digits = next(
        number
        for number in range(SHORTEST_NAME, longest + 1)
        if len({one[:number] for one in hashes.values()}) == len(hashes) or number >= longest
    )
    return {worker: one[:digits] for worker, one in hashes.items()}


# --- Each annotator ------------------------------------------------------------------------------------


def _annotators(
    judged: pd.DataFrame, ratings: Ratings, hashes: Mapping[int, str], names: Mapping[int, str], notes: Sequence[str]
) -> Section:
    of_worker = {found.rater: found for found in annotator_agreement(ratings)}
    of_model, times = abilities(ratings), median_times(judged)
    rows = [
        {"annotator": names[worker], "hash": hashes[worker]}
        | _agreement(of_worker[worker])
        | of_model[worker]
        | times[worker]
        for worker in names
    ]
    table = Table(
        (
            *FIRST,
            Column("annotations", "Annotations", Kind.COUNT),
            Column("majority", "With the majority of the others", Kind.SHARE, 1),
            Column("compared", "Statements (n)", Kind.COUNT),
            Column("kappa", "Cohen's kappa with that majority", Kind.NUMBER, 3),
            Column("others", "With each other one, on average", Kind.SHARE, 1),
            Column("shared", "Statements shared (n)", Kind.COUNT),
            Column("ability", "Ability (Dawid and Skene)", Kind.SHARE, 1),
            Column("checked", "Statements shared (n)", Kind.COUNT),
            Column("time", "Median time a statement", Kind.DURATION, 0),
            Column("timed", "Statements timed (n)", Kind.COUNT),
        ),
        tuple(rows),
    )
    return Section(
        "annotators",
        "Each annotator",
        "Agreement with the majority of the others on the toxicity class: "
        + middle_and_ends([row["majority"] for row in rows], Column("majority", "", Kind.SHARE, 1), "annotator")
        + " Beside it: how often answers are right by the model of Dawid and Skene, and how long they took. Those with "
        "the most annotations come first.",
        _n(judged),
        table,
        _drawn(rows, "majority", "With the majority of the others"),
        notes=(
            "The majority of the others is the class that more than half of a statement's other annotators chose; "
            "statements without one do not enter.",
            "Ability: the mean probability that the class an annotator chose is the true one, by the model of Dawid "
            "and Skene (1979) as crowd-kit fits it, over statements that others judged, too. It has no truth but the "
            "annotators: where most are wrong together, it is wrong with them. The annotator's own answer is part of "
            "the evidence, so it flatters those who guess: three who only guess among three classes have about 50 %, "
            "not 33 %.",
            "Time runs from accepting a statement to submitting it, breaks included; the median hardly minds them.",
            "Intervals: 95 %; of shares Wilson's, which of the agreement with each other one and of ability, means of "
            f"values from 0 to 1, is rather too wide than too narrow; {OF_KAPPA}; of the median time between two order "
            "statistics, from six statements on. That of ability takes the model's probabilities as known.",
            "The hashes are those of the exports. A low figure of few statements says little.",
            *notes,
            *_not_drawn(rows),
        ),
    )


def _agreement(found: AnnotatorAgreement) -> dict[str, Cell]:
    majority = found.with_majority
    return {
        "annotations": found.n_ratings,
        "majority": Undefined(majority.reason or "")
        if majority.value is None
        else share_cell(round(majority.value * majority.n), majority.n, "statements"),
        "compared": majority.n,
        "kappa": kappa_cell(found),
        "others": mean_share_cell(found.with_others),
        "shared": found.with_others.n,
    }


def _drawn(rows: Sequence[Mapping[str, Cell]], key: str, title: str) -> dict:
    shown = rows[:DRAWN]
    cells, names = [row[key] for row in shown], [row["annotator"] for row in shown]
    return charts.points({title: cells}, names, x_title="Annotator", y_title=title, share=True)


def _not_drawn(rows: Sequence) -> list[str]:
    return [f"The figure shows the {DRAWN} of {len(rows):,} who gave most annotations."] if len(rows) > DRAWN else []


# --- Bias on the scales --------------------------------------------------------------------------------


def _bias(judged: pd.DataFrame, hashes: Mapping[int, str], names: Mapping[int, str]) -> Section:
    scales = [EVERYTHING_RATED[key] for key in SCALES]
    found: dict[str, dict[int, Bias]] = {
        scale.key: {bias.rater: bias for bias in scale_bias(ratings_of(judged, scale))} for scale in scales
    }
    rows = [
        {"annotator": names[worker], "hash": hashes[worker], "n": found[scales[0].key][worker].difference.n}
        | {scale.key: _bias_cell(found[scale.key][worker]) for scale in scales}
        for worker in names
    ]
    columns = (
        *FIRST,
        *(Column(scale.key, scale.label, Kind.NUMBER, 2) for scale in scales),
        Column("n", "Statements shared (n)", Kind.COUNT),
    )
    shown = rows[:DRAWN]
    return Section(
        "bias",
        "Bias on the scales from 1 to 5",
        f"{habits(rows, scales)} Each is how far above (or, with a minus, below) the others an annotator answers: the "
        "mean difference from the mean of the others on the same statements, in steps of the scale.",
        _n(judged),
        Table(columns, tuple(rows)),
        _around_zero(
            charts.heatmap(
                [row["annotator"] for row in shown],
                [scale.label for scale in scales],
                [[row[scale.key] for scale in scales] for row in shown],
            )
        ),
        notes=(
            "Intervals: 95 %, Student's t over the statements shared. One without 0 speaks for a habit; of twenty "
            "annotators who have none, about one has such an interval by chance.",
            *spread_notes(row[scale.key] for row in rows for scale in scales),
            *_not_drawn(rows),
        ),
    )


def _around_zero(chart: dict) -> dict:
    """The heatmap with white at 0, so that both ways from it look alike."""
    chart["data"][0] |= {"zmid": 0, "colorscale": BELOW_AND_ABOVE, "reversescale": False}
    return chart


def _bias_cell(bias: Bias) -> Cell:
    if bias.difference.value is None:
        return Undefined(bias.difference.reason or "")
    return mean_cell(bias.differences, "statements shared")


# --- Each pair -----------------------------------------------------------------------------------------


def _pairs(judged: pd.DataFrame, ratings: Ratings, names: Mapping[int, str]) -> Section:
    every = pair_agreement(ratings)
    enough = [pair for pair in every if pair.n_shared >= LEAST_SHARED]
    shown = enough[:PAIRS_SHOWN]
    n = {"pairs": len(every)}
    if not shown:
        says = "How often two annotators chose the same toxicity class cannot be told."
        return Section("pairs", "Each pair", says, n, missing=_why_no_pair(every, names))
    spread = middle_and_ends(
        [Estimate(pair.agreement) for pair in enough], Column("agreement", "", Kind.SHARE, 1), "pair"
    )
    says = (
        f"How often two annotators chose the same toxicity class for the statements that both judged: {spread} Pairs "
        "that share the most statements come first."
    )
    table = Table(
        (
            Column("first", "Annotator"),
            Column("second", "and"),
            Column("shared", "Statements shared (n)", Kind.COUNT),
            Column("agreement", "The same class", Kind.SHARE, 1),
            Column("kappa", "Cohen's kappa", Kind.NUMBER, 3),
        ),
        tuple(_row_of_pair(pair, names) for pair in shown),
    )
    notes = [f"Intervals: 95 %; of shares Wilson's, {OF_KAPPA}."]
    if len(every) > len(enough):
        notes.append(f"{len(every) - len(enough):,} pairs share fewer than {LEAST_SHARED} statements: left out.")
    if len(enough) > len(shown):
        notes.append(f"The table has the first {PAIRS_SHOWN} of {len(enough):,} pairs.")
    return Section("pairs", "Each pair", says, n, table, notes=tuple(notes))


def _row_of_pair(pair: PairAgreement, names: Mapping[int, str]) -> dict[str, Cell]:
    return {
        "first": names[pair.first],
        "second": names[pair.second],
        "shared": pair.n_shared,
        "agreement": share_cell(round(pair.agreement * pair.n_shared), pair.n_shared, "statements"),
        "kappa": kappa_cell(pair),
    }


def _why_no_pair(pairs: Sequence[PairAgreement], names: Mapping[int, str]) -> str:
    remedy = "Have more annotators judge the same statements."
    if len(names) == 1:
        return f"There is one annotator: a pair needs two. {remedy}"
    if not pairs:
        return f"No two annotators judged the same statement. {remedy}"
    return (
        f"No two annotators share {LEAST_SHARED} statements or more; the most that a pair shares is "
        f"{pairs[0].n_shared}. {remedy}"
    )
