"""The reports by name: what each is about, which filters it takes and what it rests on.

The module that works a report out is loaded when it is worked out, on the queue or by the command line: the web
process needs neither pandas nor scipy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

from analysis.reports.frame import Report

OF_STATEMENTS = ("group", "label", "method", "run", "imported")
OF_LABELS = (*OF_STATEMENTS, "study", "submitted_from", "submitted_to")
READ_ANNOTATIONS = "annotator.view_annotation"
READ_STATEMENTS = "generation.view_generation"
READ_PAY = "annotator.view_payment"
READ_EVALUATIONS = "analysis.view_evaluation"


@dataclass(frozen=True)
class ReportKind:
    """``takes`` are names of filters, ``rests_on`` sources as ``sources.SOURCES`` has them."""

    name: str
    title: str
    about: str
    takes: tuple[str, ...]
    rests_on: tuple[str, ...]
    permissions: tuple[str, ...]
    module: str
    page: str
    """The dashboard that shows it: a key of ``PAGES``."""
    good_for: timedelta | None = None
    """How long it is, if time alone changes what it says."""

    def make(self, filters: Mapping) -> Report:
        """Work the report out over what the filters leave; ``module`` has ``make(filters) -> Report``."""
        return import_module(self.module).make(filters)


PAGES = {
    "agreement": "Agreement",
    "human-validation": "Human validation",
    "methods": "ALICE vs top-k",
    "dataset": "Dataset",
    "classifiers": "Classifiers",
    "annotators": "Annotators and pay",
}
"""The dashboards beside the overview, by the last part of their address, in the order of the sidebar."""


def _kind(name: str, title: str, about: str, **fields) -> ReportKind:
    defaults = {
        "takes": OF_LABELS,
        "rests_on": ("annotations", "labels", "groups"),
        "permissions": (READ_ANNOTATIONS,),
        "module": f"analysis.reports.{name.replace('-', '_')}",
    }
    return ReportKind(name, title, about, **defaults | fields)


REPORTS: dict[str, ReportKind] = {
    kind.name: kind
    for kind in (
        _kind(
            "agreement",
            "Agreement",
            "How far annotators agree: on the toxicity class and on each of the nine questions.",
            takes=(*OF_LABELS, "question"),
            rests_on=("annotations", "groups"),
            page="agreement",
        ),
        _kind(
            "annotators",
            "Annotators",
            "How far each annotator agrees with the others, and what their work is worth to the labels.",
            rests_on=("annotations",),
            page="annotators",
        ),
        _kind(
            "human-validation",
            "Human validation",
            "What people made of the statements (paper, section 4.2).",
            permissions=(READ_ANNOTATIONS, READ_STATEMENTS),
            page="human-validation",
        ),
        _kind(
            "groups",
            "Groups",
            "Whether statements mention the group that they were meant to be about (paper, appendix D).",
            page="human-validation",
        ),
        _kind(
            "methods",
            "ALICE against top-k",
            "What ALICE changes: the same prompts, and all statements (paper, section 4.3).",
            rests_on=("annotations", "labels", "groups", "scores"),
            page="methods",
        ),
        _kind(
            "appendix-e",
            "Large-scale human validation",
            "Both methods on the statements of the training set that people judged (paper, appendix E).",
            rests_on=("annotations", "labels", "groups", "scores"),
            page="methods",
        ),
        _kind(
            "perplexity",
            "Perplexity",
            "How likely language models find the statements (paper, appendix C).",
            takes=OF_STATEMENTS,
            rests_on=("perplexities", "groups"),
            permissions=(READ_STATEMENTS,),
            page="methods",
        ),
        _kind(
            "dataset",
            "Dataset",
            "How many statements there are, how long and how implicit they are (paper, tables 1 and 2).",
            takes=OF_STATEMENTS,
            rests_on=("statements", "groups"),
            permissions=(READ_STATEMENTS,),
            page="dataset",
        ),
        _kind(
            "classifiers",
            "Classifiers",
            "What classifiers are worth, before and after training (paper, tables 4 and 7), and how often ALICE fools "
            "them from round to round.",
            takes=(),
            rests_on=("evaluations", "trained", "statements", "annotations", "labels", "scores", "groups"),
            permissions=(READ_EVALUATIONS,),
            page="classifiers",
        ),
        _kind(
            "pay",
            "Pay",
            "How far each study is, what its work pays an hour, and what was paid, is owed and is promised.",
            takes=("study",),
            rests_on=("annotations", "studies", "hits", "payments", "payouts"),
            good_for=timedelta(minutes=5),
            permissions=(READ_PAY,),
            page="annotators",
        ),
    )
}
