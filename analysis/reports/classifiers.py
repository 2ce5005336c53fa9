"""The report ``classifiers``: what classifiers are worth before and after training (paper, section 5), and the loop."""

from collections.abc import Mapping

from analysis.reports import (
    classifier_figures,
    classifier_pairs,
    classifier_parts,
    classifier_rounds,
    classifier_tables,
)
from analysis.reports.classifier_data import read
from analysis.reports.frame import Report, Section

TITLE = "Classifiers"
NOTHING = (
    "No classifier was evaluated yet. Order an evaluation on a frozen HUMANVAL set or an imported test set, or run "
    "manage.py evaluate."
)


def make(filters: Mapping) -> Report:
    """The report over the newest evaluations; it has no filters."""
    evaluated = read()
    rounds = classifier_rounds.section()
    if not evaluated.scored:
        says = "How well classifiers tell toxic texts, before and after training."
        nothing = Section("table-4", "Before and after training", says, paper="Table 4", missing=NOTHING)
        return Report("classifiers", TITLE, (nothing, rounds))
    sections = (
        *classifier_tables.sections(evaluated),
        classifier_pairs.section(evaluated),
        rounds,
        *classifier_figures.sections(evaluated),
        *classifier_parts.sections(evaluated),
    )
    return Report("classifiers", TITLE, sections)
