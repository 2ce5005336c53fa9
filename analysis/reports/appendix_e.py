"""The report ``appendix-e``: both methods on all statements that people judged (paper, appendix E)."""

from collections.abc import Iterator, Mapping

import pandas as pd

from analysis.exports.filtering import of_annotations
from analysis.labels import TOXICITY_CLASSES
from analysis.reports import charts, fooling, paper
from analysis.reports.by_method import METHODS, SHARE, Parts, compared, sides
from analysis.reports.frame import Cell, Column, Kind, Report, Table, Undefined
from analysis.reports.matching import LABEL_AND_METHOD, matches_of_all, toxicity_of_all
from analysis.reports.referenced import unknown
from analysis.reports.validated import ALL, OF_CLASSES, Part, Shown, Validated, read
from annotator.models import Annotation

NAME, TITLE = "appendix-e", "Large-scale human validation"
EVERY = {ALL: "All", **METHODS}
REFERS = (
    "A statement refers to its group if at least one annotator saw a direct or indirect reference to the very group "
    "that its prompt was about. The report “groups” tells the same by group."
)
COUNTED = "These are counts of what is here, not estimates, so they have no interval."


def make(filters: Mapping) -> Report:
    """The report over what the filters leave."""
    validated = read(filters)
    first = Part("statements", "Statements", lambda validated: _statements(validated, _not_understood(filters)))
    fooled = fooling.sections(validated, validated.of_paper(paper.LARGE_SCALE_FOOLING, "method"))
    return Report(NAME, TITLE, (*validated.sections((first, *PARTS)), *fooled))


def _not_understood(filters: Mapping) -> pd.Series:
    """The method of each statement that somebody did not understand, by its id."""
    rows = Annotation.objects.filter(of_annotations(filters), not_understood=True, assignment__hit__is_check=False)
    to_statement = "assignment__hit__generation"
    return pd.Series(dict(rows.values_list(to_statement, f"{to_statement}__method")), dtype=object)


def _statements(validated: Validated, not_understood: pd.Series) -> Shown:
    statements = validated.statements
    unlabelled = not_understood.drop(statements.index, errors="ignore")
    rows = [_row(method, statements, unlabelled) for method in EVERY]
    of_all = rows[0]
    published = validated.of_paper(paper.LARGE_SCALE_METHODS)
    for row in rows if published else []:
        row["paper"] = published[row["method"]].value if row["method"] in published else None
    shares = ", ".join(f"{row['share']:.1%} {METHODS[row['method']]}".replace("%", " %") for row in rows[1:])
    columns = (
        Column("method", "Method", names=EVERY),
        Column("n", "Judged statements (n)", Kind.COUNT),
        Column("share", "Share", Kind.SHARE, 1),
        *([Column("paper", "Paper", Kind.SHARE, 1)] if published else []),
        *(Column(_key(name), name.capitalize(), Kind.COUNT) for name in TOXICITY_CLASSES),
        Column("without_class", "Without a class", Kind.COUNT),
        Column("not_understood", "Without a label, not understood", Kind.COUNT),
    )
    return Shown(
        f"People judged {of_all['n']:,} statements: {shares}.",
        table=Table(columns, tuple(rows)),
        chart=charts.bars(
            {name: [row[_key(name)] for row in rows[1:]] for name in reversed(TOXICITY_CLASSES)},
            [METHODS[row["method"]] for row in rows[1:]],
            x_title="Method",
            y_title="Statements",
            stacked=True,
        ),
        paper="appendix E, with 8,960 statements",
        notes=(
            COUNTED,
            OF_CLASSES,
            "Without a class: a score is missing. Without a label, not understood: shown to people, none of whom gave "
            "a label, at least one because they did not understand it; such statements are in no other figure.",
        ),
    )


def _row(method: str, statements: pd.DataFrame, unlabelled: pd.Series) -> dict[str, Cell]:
    part = statements if method == ALL else statements[statements["method"] == method]
    codes = part["toxicity_class"]
    return {
        "method": method,
        "n": len(part),
        "share": len(part) / len(statements) if len(statements) else Undefined("There are no judged statements."),
        **{_key(name): int((codes == code).sum()) for code, name in enumerate(TOXICITY_CLASSES)},
        "without_class": int(codes.isna().sum()),
        "not_understood": int((unlabelled.isin([*METHODS]) if method == ALL else unlabelled == method).sum()),
    }


def _key(name: str) -> str:
    """Of a class, as JSON has it: non_toxic."""
    return name.replace("-", "_")


def _references(validated: Validated) -> Shown:
    known = validated.statements[validated.statements["refers"].notna()]
    parts = Parts("group", "Group", {ALL: sides(known, "refers")}, {ALL: "of which it is known to whom they refer"})

    def says(told: Iterator[str]) -> str:
        return f"At least one annotator saw a reference to the exact target group in these shares: {next(told)}."

    return compared(
        parts,
        SHARE,
        says=says,
        published=validated.of_paper(paper.LARGE_SCALE_REFERENCES, "method"),
        notes=(REFERS, *unknown(validated.statements, "refers")),
    )


PARTS = (
    Part(
        "matches",
        "Statements that match their prompt label",
        lambda validated: matches_of_all(validated, validated.of_paper(paper.LARGE_SCALE_MATCHES, *LABEL_AND_METHOD)),
    ),
    Part(
        "toxicity",
        "Mean toxicity",
        lambda validated: toxicity_of_all(validated, validated.of_paper(paper.LARGE_SCALE_TOXICITY, *LABEL_AND_METHOD)),
    ),
    Part("references", "References to the target group", _references),
)
