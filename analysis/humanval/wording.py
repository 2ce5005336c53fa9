"""What the drawing of a HUMANVAL set found, in words: for its page and the command line."""

from collections.abc import Iterator

from analysis.models import HumanvalSet
from generation.models import Label, Method, TargetGroup

PARTS = ("group", "label", "method")


def bin_in_words(row: dict) -> str:
    """So many neighbours.

    >>> bin_in_words({"from": 2, "to": 4}), bin_in_words({"from": 1, "to": 1}), bin_in_words({"from": 1000, "to": None})
    ('2 to 4', '1', '1,000 or more')
    """
    if row["to"] is None:
        return f"{row['from']:,} or more"
    return f"{row['from']:,}" if row["from"] == row["to"] else f"{row['from']:,} to {row['to']:,}"


def group_names() -> dict[str, str]:
    """The names of all groups by their slugs."""
    return dict(TargetGroup.objects.values_list("slug", "name"))


def short_strata(report: dict) -> list[dict]:
    """The strata that have fewer statements than an equal share, with how many are lacking."""
    return [{**row, "short": row["wanted"] - row["found"]} for row in report["strata"] if row["found"] < row["wanted"]]


def notes(humanval_set: HumanvalSet) -> list[str]:
    """What whoever uses the set must know, as sentences."""
    report = humanval_set.report
    said = []
    if short := short_strata(report):
        lacking = sum(row["short"] for row in short)
        said.append(
            f"{len(short):,} of {len(report['strata']):,} strata have fewer statements than an equal share. What they "
            f"lack, {lacking:,} statement{'' if lacking == 1 else 's'}, the others have more, as far as there was room."
        )
    if report["chosen"] < humanval_set.size:
        said.append(
            f"Only {report['chosen']:,} of {humanval_set.size:,} statements were found: the others have no embedding "
            "that could be compared."
        )
    if pairs := report["pairs_within"]:
        are = "pair of its own statements has" if pairs == 1 else "pairs of its own statements have"
        said.append(
            f"{pairs:,} {are} a cosine above {humanval_set.threshold:g}: the set is compared with training only."
        )
    if report["without_direction"]:
        said.append(
            f"{report['without_direction']:,} statements have an embedding of zeros: they have no cosine, were not "
            "compared, and are not taken into the set."
        )
    if not report["training"]:
        said.append("Nothing is left for training: every other statement is too similar to one of the set.")
    return said


def report_lines(humanval_set: HumanvalSet) -> Iterator[str]:
    """The report of the drawing, as lines of text."""
    report = humanval_set.report
    chosen, statements, removed = (report[name] for name in ("chosen", "statements", "removed"))
    yield (
        f"{humanval_set}: {chosen:,} statements, drawn from {report['pool']:,} different ones with the seed "
        f"{humanval_set.seed}, the most isolated of {report['candidates']:,} candidates."
    )
    yield (
        f"Compared with all {statements:,} machine-generated statements: {removed:,} have a cosine above "
        f"{humanval_set.threshold:g} with one of the set and are removed from training, which keeps "
        f"{report['training']:,}."
    )
    yield f"Encoder: {report['encoder']}."
    yield "Neighbours above the threshold, of the set (of the candidates):"
    of_candidates = {row["from"]: row["statements"] for row in report["neighbours_of_candidates"]}
    of_set = {row["from"]: row for row in report["neighbours"]}
    for row in report["neighbours_of_candidates"]:
        number = of_set.get(row["from"], {"statements": 0})["statements"]
        yield f"  {bin_in_words(row):>13}: {number:,} ({of_candidates[row['from']]:,})"
    yield from _table(report["strata"])
    yield from notes(humanval_set)
    seconds = ", ".join(f"{name} {number:.1f} s" for name, number in report["seconds"])
    yield f"It took: {seconds}."


def _table(strata: list[dict]) -> Iterator[str]:
    numbers = ("available", "wanted", "found", "removed")
    groups = group_names()
    rows = [
        (*PARTS, *numbers),
        *(
            (
                groups.get(row["group"], row["group"]),
                Label(row["label"]).label,
                Method(row["method"]).label,
                *(f"{row[name]:,}" for name in numbers),
            )
            for row in strata
        ),
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = (
            cell.ljust(width) if place < len(PARTS) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells)
