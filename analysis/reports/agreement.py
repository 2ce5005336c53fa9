"""The report ``agreement``: how far annotators agree, on the toxicity class or a question, and where they do not."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from analysis.agreement import Statistic
from analysis.agreement.paired import STATEMENTS_A_PAIR
from analysis.bootstrap import Row
from analysis.judged import annotations
from analysis.reports import charts, paper
from analysis.reports.agreement_cells import (
    KEYS,
    SHARES,
    N,
    cell_of,
    column_of,
    in_brief,
    lowest_and_highest,
    measured,
    numbers,
    on_intervals,
    on_pairs,
)
from analysis.reports.frame import Cell, Column, Kind, Report, Section, Table
from analysis.reports.rated import (
    EVERYTHING_RATED,
    TOXICITY_CLASS,
    Rated,
    first_answers,
    on_left_out,
    on_repeated,
    ratings_of,
    why_nothing,
)
from annotator.questions import Level
from generation.models import Label, Method, TargetGroup

PAPER = {
    Statistic.FLEISS_KAPPA: paper.KAPPA,
    Statistic.ALPHA_NOMINAL: paper.ALPHA,
    Statistic.ALPHA_ORDINAL: paper.ALPHA,
    Statistic.ALPHA_INTERVAL: paper.ALPHA,
    Statistic.FULL_AGREEMENT: paper.FULL_AGREEMENT,
    Statistic.MAJORITY_AGREEMENT: paper.MAJORITY_AGREEMENT,
}
"""What the paper published of the toxicity class."""

DAYS, WEEKS = 31, 26
"""Time is told by day over so many days, then by week over so many weeks, then by month."""

INTERVALS = (
    "Intervals: 95 %; of full and majority agreement Wilson's, of the mean of Cohen's kappa the basic bootstrap, of "
    "the others the percentile bootstrap, with 1,000 resamples of statements. They speak of other statements judged "
    "by such annotators."
)
ENTERING = (
    "Statements with a single rating enter Gwet's coefficients alone, whose chance counts every rating. Fleiss' kappa "
    "takes those that have the most usual number of ratings, the mean of Cohen's kappas those that two annotators "
    f"share who share {STATEMENTS_A_PAIR} or more; a pair counts as much as it shares."
)
CHANCE = "1 is complete agreement, 0 what chance gives, below 0 is worse than chance."


def make(filters: Mapping) -> Report:
    """The report over what the filters leave; ``question`` is what is looked at, else the toxicity class."""
    rated = EVERYTHING_RATED[filters.get("question") or TOXICITY_CLASS.key]
    filters = {name: value for name, value in filters.items() if name != "question"}
    judged, repeated = first_answers(annotations(filters))
    if judged.empty:
        return _report([_nothing(rated, why_nothing(filters))])
    notes = [*on_repeated(repeated), *on_left_out(filters)]
    groups = dict(TargetGroup.objects.values_list("slug", "name"))
    return _report(
        [
            _figures(judged, rated, notes, paper.stands_beside(filters)),
            _questions(judged),
            _slices("groups", "By group", "group", judged["group"].map(groups), judged, rated),
            _slices("methods", "By method", "method", judged["method"].map(dict(Method.choices)), judged, rated),
            _slices(
                "labels", "By prompt label", "prompt label", judged["label"].map(dict(Label.choices)), judged, rated
            ),
            _times(judged, rated),
        ]
    )


def _report(sections: Iterable[Section]) -> Report:
    return Report("agreement", "Agreement", tuple(sections))


def _nothing(rated: Rated, reason: str) -> Section:
    says = f"How far annotators agree on {_about(rated)} cannot be told."
    return Section("figures", _title(rated), says, _n(None), missing=reason)


def _about(rated: Rated) -> str:
    if rated is TOXICITY_CLASS:
        return "the toxicity class (non-toxic, ambiguous, toxic, by the larger of both harm ratings)"
    return f"{rated.label} ({', '.join(rated.names.values())})"


def _title(rated: Rated) -> str:
    return f"Agreement on {_of(rated)}"


def _of(rated: Rated) -> str:
    return "the toxicity class" if rated is TOXICITY_CLASS else rated.label


def _n(judged: pd.DataFrame | None) -> dict[str, int]:
    if judged is None:
        return {"statements": 0, "annotators": 0, "annotations": 0}
    return {
        "statements": judged["statement"].nunique(),
        "annotators": judged["worker"].nunique(),
        "annotations": len(judged),
    }


# --- One thing that was rated, by every statistic ---------------------------------------------------


def _figures(judged: pd.DataFrame, rated: Rated, notes: Sequence[str], beside: bool) -> Section:
    rows = measured(ratings_of(judged, rated), rated.statistics)
    of_paper = PAPER if rated is TOXICITY_CLASS and beside else {}
    cells = [cell_of(row) for row in rows]
    names = [row.figure.name.value for row in rows]
    table = Table(
        (
            Column("figure", "Figure"),
            Column("value", "Value", Kind.NUMBER, digits=3),
            *N,
            *([Column("paper", "Paper", Kind.NUMBER, digits=3)] if of_paper else []),
        ),
        tuple(
            {"figure": name, "value": cell, **numbers(row)}
            | ({"paper": of_paper[row.figure.name].value} if row.figure.name in of_paper else {})
            for name, cell, row in zip(names, cells, rows, strict=True)
        ),
    )
    marks = {row.figure.name.value: of_paper[row.figure.name].value for row in rows if row.figure.name in of_paper}
    return Section(
        "figures",
        _title(rated),
        f"{in_brief(rows, of_paper)} This is agreement on {_about(rated)}. {CHANCE} Full and majority agreement are "
        "shares of the statements.",
        _n(judged),
        table,
        charts.points({"Here": cells}, names, x_title="", y_title="Agreement", horizontal=True, marks=marks or None),
        paper=paper.KAPPA.place if of_paper else "",
        notes=(*_notes_on(rated, beside), *notes, *on_pairs(rows), *on_intervals({"": rows})),
    )


def _notes_on(rated: Rated, beside: bool) -> list[str]:
    level = f"Level of measurement: {rated.level}."
    if rated.level is Level.NOMINAL:
        level += " Statistics that need an order do not fit and are left out."
    elif not rated.has_distances:
        level += " Krippendorff's alpha (interval) does not fit and is left out: the answers have no distances."
    majority = "Majority agreement: at least two thirds of a statement's annotators chose the same."
    notes = [level, INTERVALS, ENTERING, majority]
    if rated is TOXICITY_CLASS and not beside:
        notes.append(paper.NOT_BESIDE)
    elif rated is TOXICITY_CLASS:
        notes.append(
            f"The paper ({paper.ALPHA.place}) does not say at which level its alpha of {paper.ALPHA.value} is: it "
            "stands beside all three. It had three annotators a statement."
        )
    return notes


# --- Each question at its own level -------------------------------------------------------------------

OF_QUESTIONS = (
    Statistic.GWET_AC1,
    Statistic.GWET_AC2,
    Statistic.FLEISS_KAPPA,
    Statistic.COHEN_KAPPA,
    *SHARES,
)


def _questions(judged: pd.DataFrame) -> Section:
    """The toxicity class and the nine questions beside each other."""
    found = {rated.label: _of_question(judged, rated) for rated in EVERYTHING_RATED.values()}
    rows = [_row_of_question(rated, found[rated.label]) for rated in EVERYTHING_RATED.values()]
    columns = (
        Column("question", "Question"),
        Column("level", "Level of measurement"),
        Column("alpha", "Krippendorff's alpha at its level", Kind.NUMBER, digits=3),
        column_of(Statistic.ALPHA_INTERVAL),
        *(column_of(statistic) for statistic in OF_QUESTIONS),
        *N,
    )
    names = [row["question"] for row in rows]
    shown = {
        "Krippendorff's alpha at its level": [row["alpha"] for row in rows],
        Statistic.GWET_AC1.value: [row[KEYS[Statistic.GWET_AC1]] for row in rows],
    }
    return Section(
        "questions",
        "Agreement on each question",
        lowest_and_highest({row["question"]: row["alpha"] for row in rows}, columns[2], "question"),
        _n(judged),
        Table(columns, tuple(rows)),
        charts.points(shown, names, x_title="", y_title="Agreement", horizontal=True),
        notes=(
            "Where nearly all answers are the same, kappa and alpha are low however often annotators agree; Gwet's "
            "AC1 and AC2 are made for such answers.",
            CHANCE,
            "An empty cell: the statistic does not fit the question's level. The scales from 1 to 5 are ordinal; "
            "alpha (interval) takes their steps as equal.",
            INTERVALS,
            ENTERING,
            *on_intervals(found),
        ),
    )


def _of_question(judged: pd.DataFrame, rated: Rated) -> list[Row]:
    asked = [one for one in (rated.alpha, Statistic.ALPHA_INTERVAL, *OF_QUESTIONS) if one in rated.statistics]
    return measured(ratings_of(judged, rated), asked)


def _row_of_question(rated: Rated, found: Sequence[Row]) -> dict[str, Cell]:
    rows = {row.figure.name: row for row in found}
    cells = {KEYS[name]: cell_of(row) for name, row in rows.items() if name is not rated.alpha}
    alpha = rows[rated.alpha]
    return {"question": rated.label, "level": rated.level.value, "alpha": cell_of(alpha)} | cells | numbers(alpha)


# --- In slices ----------------------------------------------------------------------------------------


def _slices(
    key: str, title: str, what: str, values: pd.Series, judged: pd.DataFrame, rated: Rated, *, notes: Sequence[str] = ()
) -> Section:
    """The main statistics in each slice of the annotations; ``values`` says for each annotation which one it is in."""
    found = {
        str(value): measured(ratings_of(part, rated), rated.main_statistics)
        for value, part in judged.groupby(values, sort=True)
    }
    rows = [
        {"slice": value, **{KEYS[row.figure.name]: cell_of(row) for row in figures}, **numbers(figures[1])}
        for value, figures in found.items()
    ]
    title_of_slices = "Week from" if what == "week" else what.capitalize()
    columns = (Column("slice", title_of_slices), *(column_of(one) for one in rated.main_statistics), *N)
    shown = {one.value: [row[KEYS[one]] for row in rows] for one in rated.main_statistics if one not in SHARES}
    names = [row["slice"] for row in rows]
    return Section(
        key,
        title,
        f"Agreement on {_of(rated)}: "
        + lowest_and_highest({row["slice"]: row[KEYS[rated.alpha]] for row in rows}, column_of(rated.alpha), what),
        _n(judged),
        Table(columns, tuple(rows)),
        charts.points(shown, names, x_title=title_of_slices, y_title="Agreement", horizontal=key == "groups"),
        notes=(
            *notes,
            CHANCE,
            INTERVALS,
            "The numbers of statements and ratings are those that enter Krippendorff's alpha.",
            *on_intervals(found),
        ),
    )


def _times(judged: pd.DataFrame, rated: Rated) -> Section:
    """By when a statement's last annotation was submitted, so that no statement is torn apart."""
    last = judged.groupby("statement")["submitted_at"].transform("max").dt.tz_convert("UTC").dt.tz_localize(None)
    span = (last.max() - last.min()).days
    name, code = ("day", "D") if span < DAYS else ("week", "W") if span < WEEKS * 7 else ("month", "M")
    first_day = last.dt.to_period(code).dt.start_time
    return _slices(
        "times",
        "Over time",
        name,
        first_day.dt.strftime("%Y-%m" if name == "month" else "%Y-%m-%d"),
        judged,
        rated,
        notes=(
            "A statement belongs to the day on which its last annotation was submitted (UTC); of an imported "
            "annotation whose file says no time, the time of the import.",
        ),
    )
