"""Figures of agreement as cells of a table, each with its interval or its reason, and what is to be said of them."""

from collections.abc import Mapping, Sequence
from statistics import median

from analysis.agreement import Ratings, Statistic
from analysis.agreement.paired import STATEMENTS_A_PAIR
from analysis.bootstrap import Interval, Row, figures_with_intervals
from analysis.reports.frame import Cell, Column, Estimate, Kind, Undefined
from analysis.reports.paper import Published
from analysis.reports.showing import in_cell
from analysis.reports.validated import NO_BREAK, counted

SHARES = (Statistic.FULL_AGREEMENT, Statistic.MAJORITY_AGREEMENT)
KEYS = {statistic: statistic.name.lower() for statistic in Statistic}
N = (
    Column("statements", "Statements (n)", Kind.COUNT),
    Column("pairable", "of these with two ratings or more", Kind.COUNT),
    Column("annotators", "Annotators", Kind.COUNT),
    Column("ratings", "Ratings", Kind.COUNT),
    Column("left_out", "Statements left out", Kind.COUNT),
)


def measured(ratings: Ratings, statistics: Sequence[Statistic]) -> list[Row]:
    return figures_with_intervals(ratings, statistics)


def cell_of(row: Row) -> Cell:
    """A figure with its interval, or the reason why there is none."""
    if row.figure.value is None:
        return Undefined(row.figure.in_short or "")
    interval = row.interval
    return Estimate(row.figure.value, interval.low, interval.high) if interval else Estimate(row.figure.value)


def numbers(row: Row) -> dict[str, int]:
    figure = row.figure
    return {
        "statements": figure.n_statements,
        "pairable": figure.n_pairable,
        "annotators": figure.n_raters,
        "ratings": figure.n_ratings,
        "left_out": figure.left_out,
    }


def column_of(statistic: Statistic) -> Column:
    kind, digits = (Kind.SHARE, 1) if statistic in SHARES else (Kind.NUMBER, 3)
    return Column(KEYS[statistic], statistic.value, kind, digits)


def told(cell: Cell, column: Column) -> str:
    """A figure in a sentence, its number never torn from its unit.

    >>> told(Estimate(0.972, 0.96, 0.98), column_of(Statistic.MAJORITY_AGREEMENT)) == f"97.2{NO_BREAK}% (96.0 to 98.0)"
    True
    """
    return in_cell(cell, column).replace(" %", f"{NO_BREAK}%")


def in_brief(rows: Sequence[Row], of_paper: Mapping[Statistic, Published]) -> str:
    """What comes out, in a sentence: kappa, and how often two thirds agree."""
    by_name = {row.figure.name: row for row in rows}
    kappa, majority = (by_name[name] for name in (Statistic.FLEISS_KAPPA, Statistic.MAJORITY_AGREEMENT))
    of_kappa, of_majority = (
        f"{told(cell_of(row), column_of(row.figure.name))} of {counted(row.figure.n_statements, 'statement')}"
        + _beside(of_paper, row.figure.name)
        for row in (kappa, majority)
    )
    if kappa.figure.value is None:
        of_kappa = "undefined (the table says why)"
    if majority.figure.value is None:
        return f"Fleiss' kappa is {of_kappa}, and how often two thirds agree cannot be told."
    return f"Fleiss' kappa is {of_kappa}; at least two thirds of the annotators agree on {of_majority}."


def _beside(of_paper: Mapping[Statistic, Published], name: Statistic) -> str:
    if name not in of_paper:
        return ""
    value = of_paper[name].value
    return f" (paper: {told(value, column_of(name)) if name in SHARES else value})"


def lowest_and_highest(cells: Mapping[str, Cell], column: Column, what: str) -> str:
    """For which ``what`` the figure of the column is lowest and highest; that alone where one has it, or none."""
    found = {name: cell for name, cell in cells.items() if isinstance(cell, Estimate)}
    if not found:
        return f"{column.label} is undefined for every {what}: the table says why."
    lacking = len(cells) - len(found)
    rest = f" It is undefined for {lacking:,} of {counted(len(cells), what)}: the table says why." if lacking else ""
    if len(found) == 1:
        [(name, cell)] = found.items()
        return f"{column.label} is {told(cell, column)} for {name}{'' if lacking else f', the only {what}'}.{rest}"
    ordered = sorted(found, key=lambda name: found[name].value)
    lowest, highest = (told(Estimate(found[name].value), column) for name in (ordered[0], ordered[-1]))
    if lowest == highest:
        return f"{column.label} is {lowest} for each of {counted(len(found), what)}.{rest}"
    low, high = _whose(ordered, found, column), _whose(ordered[::-1], found, column)
    return f"{column.label} is lowest for {low}, and highest for {high}.{rest}"


def _whose(ordered: Sequence[str], found: Mapping[str, Estimate], column: Column) -> str:
    """The first with its figure, and how many others have the same."""
    first = ordered[0]
    shown = told(Estimate(found[first].value), column)
    same = sum(told(Estimate(found[name].value), column) == shown for name in ordered) - 1
    return f"{first} and {counted(same, 'other')}, {shown}" if same else f"{first}, {told(found[first], column)}"


def middle_and_ends(cells: Sequence[Cell], column: Column, what: str) -> str:
    """The median of the figure over all ``what`` and from where to where it goes, to stand after a colon."""
    found = [cell for cell in cells if isinstance(cell, Estimate)]
    if not found:
        return f"undefined for every {what}; the table says why."
    lacking = f"; undefined for {len(cells) - len(found):,} more" if len(found) < len(cells) else ""
    if len(found) == 1:
        return f"{told(found[0], column)}, of {'one' if lacking else 'the only'} {what}{lacking}."
    values = sorted(cell.value for cell in found)
    middle, low, high = (told(Estimate(value), column) for value in (median(values), values[0], values[-1]))
    return f"median {middle} over {counted(len(found), what)}, from {low} to {high}{lacking}."


def on_pairs(rows: Sequence[Row]) -> list[str]:
    """What the reader must know of the pairs behind the mean of Cohen's kappa; without any, its reason says it."""
    return [
        f"{row.figure.name}: of {counted(row.figure.n_pairs, 'pair')} of annotators. Left out: "
        f"{row.figure.pairs_left_out:,}, who share fewer than {STATEMENTS_A_PAIR} statements or put all that they "
        "share into one category."
        for row in rows
        if row.figure.n_pairs and row.figure.pairs_left_out
    ]


def on_intervals(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """What the reader must know of intervals that are not there or rest on little, by what the figures are of."""
    without: dict[str, list[str]] = {}
    doubtful = []
    for of, figures in rows.items():
        reasons: dict[str, list[str]] = {}
        for row in figures:
            if row.no_interval:
                reasons.setdefault(row.no_interval, []).append(row.figure.name.value)
            elif row.interval and row.interval.dropped * 20 > row.interval.resamples:
                doubtful.append(_on_dropped(of, row.figure.name, row.interval))
        for reason, names in reasons.items():
            told = ", ".join(names)
            without.setdefault(reason, []).append(f"{of} ({told})" if of else told)
    return [f"No interval of {'; '.join(ofs)}: {reason}" for reason, ofs in without.items()] + doubtful


def _on_dropped(of: str, statistic: Statistic, interval: Interval) -> str:
    pair = " of each pair of annotators" if statistic is Statistic.COHEN_KAPPA else ""
    return (
        f"{statistic}{of and f' of {of}'}: in {interval.dropped:,} of {interval.dropped + interval.resamples:,} "
        f"resamples all ratings{pair} were the same; they are left out of its interval. Doubt it."
    )
