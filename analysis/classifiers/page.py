"""What the pages of classifiers and test sets show: a constant number of queries, whatever there is."""

import re
from collections.abc import Mapping, Sequence

from django.utils import timezone
from django.utils.http import urlencode
from django.utils.safestring import mark_safe

from analysis.classifiers import orders
from analysis.classifiers.figures import figures_of, right_by_functionality
from analysis.classifiers.folders import FOLDER, folder_of
from analysis.classifiers.training_form import TrainingForm
from analysis.evaluated import results_of
from analysis.models import Evaluation, EvaluationSet, LossPoint, TrainedClassifier
from analysis.reports import charts
from analysis.reports.frame import Undefined
from analysis.seen import warnings_on
from annotator.rendering import markdown_to_html
from generation.admin.texts import duration, percent, rounded

EVALUATIONS_SHOWN = 50
TEXTS_A_PAGE = 25
MARGIN = 0.04
"""So much more of an axis is shown than there are points on it."""
MOST_DIGITS = 9
COLUMNS = {
    "text": "Column of the texts", "label": "Column of the labels", "positive": "Labels that say “toxic”",
    "above": "Toxic above", "group": "Column of the groups", "functionality": "Column of the functionalities",
    "where": "Only rows where",
}  # fmt: skip
STATES = {
    "queued": "It waits for a worker.",
    "running": "It is being trained.",
    "finished": "It is trained.",
    "failed": "It came to nothing.",
}
OF_EVALUATIONS = {
    "queued": "It waits for a worker.",
    "running": "The texts are being scored.",
    "finished": "All texts are scored.",
    "failed": "It came to nothing.",
}
OF_PREVIEW = ("labels", "methods", "size", "seed")
COUNTS = {
    "statements": "Statements", "toxic": "Toxic", "benign": "Benign", "alice": "By ALICE", "topk": "By top-k",
    "train": "Trained on", "validation": "For validation",
}  # fmt: skip
FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
"""What stands before a model card for programs."""
HEADING = re.compile(r"^(#{1,4} )", re.MULTILINE)
WIDE_TABLE = '<div class="scroll" tabindex="0" role="group" aria-label="A table of the card"><table>'
NO_HEADER = re.compile(r"<th[^>]*></th>")
FIGURES = {
    "auc": "AUC", "f1": "F1", "accuracy": "Accuracy", "calibration_error": "Calibration error",
    "false_positive_rate": "False-positive rate", "spread": "Its spread over groups",
}  # fmt: skip
SHOWN_AS = dict.fromkeys(("accuracy", "false_positive_rate", "spread"), percent)
NO_LOSS = "Nothing was trained before this point."


def of_training(classifier: TrainedClassifier) -> dict:
    """The part of a classifier's page that changes while it is trained."""
    points = list(classifier.curve.order_by("step"))
    left = seconds_left(classifier)
    return {
        "classifier": classifier,
        "in_words": STATES[classifier.state],
        "percent": 100 * classifier.step // classifier.steps if classifier.steps else 0,
        "is_lost": is_lost(classifier),
        "time_left": None if left is None else duration(left),
        "took": took(classifier),
        "points": points,
        "loss_chart": loss_chart(points),
        "auc_chart": auc_chart(points),
    }


def took(row: TrainedClassifier | Evaluation) -> str | None:
    return duration((row.finished_at - row.started_at).total_seconds()) if row.finished_at and row.started_at else None


def seconds_left(row: TrainedClassifier) -> float | None:
    """How long a training takes until its last step at the pace it had; ``None``: not known yet."""
    if not (row.is_open and row.started_at and row.step):
        return None
    spent = row.seconds or (timezone.now() - row.started_at).total_seconds()
    return spent / row.step * (row.steps - row.step)


def is_lost(row: TrainedClassifier | Evaluation) -> bool:
    """Whether it was begun, and no worker is at it now."""
    return bool(row.is_open and row.started_at and (not row.lease_expires_at or row.lease_expires_at < timezone.now()))


def loss_chart(points: Sequence[LossPoint]) -> dict | None:
    if not points:
        return None
    series = {
        "training": [Undefined(NO_LOSS) if point.loss is None else point.loss for point in points],
        "validation": [_number(point.validation_loss) for point in points],
    }
    return _over_steps(series, points, y_title="Loss", y_axis={"rangemode": "tozero"})


def auc_chart(points: Sequence[LossPoint]) -> dict | None:
    if not points:
        return None
    series = {"validation": [_number(point.validation_auc) for point in points]}
    return _over_steps(series, points, y_title="AUC", y_axis={"range": [0, 1 + MARGIN]})


def _over_steps(series: Mapping[str, list], points: Sequence[LossPoint], *, y_title: str, y_axis: Mapping) -> dict:
    """Lines over the steps so far, from the first: also of one point alone."""
    chart = charts.lines(series, [point.step for point in points], x_title="Step", y_title=y_title)
    last = max(points[-1].step, 1)
    chart["layout"]["xaxis"]["range"] = [-MARGIN * last, (1 + MARGIN) * last]
    chart["layout"]["yaxis"].update(y_axis)
    return chart


def _number(value: float | None) -> float | Undefined:
    return Undefined("It was not tested here.") if value is None else value


def evaluations_of(evaluations) -> dict:
    """The newest evaluations of a classifier, or on a test set."""
    shown = list(evaluations.select_related("humanval_set", "evaluation_set", "reader")[: EVALUATIONS_SHOWN + 1])
    return {
        "evaluations": shown[:EVALUATIONS_SHOWN],
        "are_more": len(shown) > EVALUATIONS_SHOWN,
        "are_open": any(one.is_open for one in shown),
    }


def texts_of(test_set: EvaluationSet, asked: Mapping[str, str]) -> dict:
    """Some of the texts of a test set, from the row that the address says on."""
    first = asked.get("from", "")
    first = int(first[:MOST_DIGITS]) if first.isdecimal() else 0
    texts = list(test_set.texts.filter(index__gte=first).order_by("index")[: TEXTS_A_PAGE + 1])
    return {
        "texts": texts[:TEXTS_A_PAGE],
        "next": texts[TEXTS_A_PAGE].index if len(texts) > TEXTS_A_PAGE else None,
        "is_first": not first,
        "has_groups": any(text.group for text in texts),
        "has_functionalities": any(text.functionality for text in texts),
        "columns": [
            (COLUMNS.get(name, in_words(name)), value_in_words(value))
            for name, value in test_set.columns.items()
            if value not in ("", None, [], {})
        ],
        "benign_count": test_set.texts_count - test_set.toxic_count,
    }


def value_in_words(value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return "; ".join(f"{column}: {value_in_words(chosen)}" for column, chosen in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def of_evaluation(evaluation: Evaluation) -> dict:
    return {
        "evaluation": evaluation,
        "in_words": OF_EVALUATIONS[evaluation.state],
        "percent": 100 * evaluation.scored // evaluation.texts if evaluation.texts else 0,
        "is_lost": is_lost(evaluation),
        "took": took(evaluation),
    }


def preview_of(given: Mapping[str, str]) -> dict:
    """How many statements of each class and method a training would have, and what would be left out."""
    form = TrainingForm(given)
    form.is_valid()
    asked = {name: form.cleaned_data.get(name) for name in OF_PREVIEW}
    if wrong := [error for name in OF_PREVIEW for error in form[name].errors]:
        return {"wrong": wrong}
    choice = orders.preview(**asked)
    return {
        "choice": choice,
        "table": [
            (words, [int((is_method & is_class).sum()) for is_method in (choice.alice, ~choice.alice)])
            for words, is_class in (("toxic", choice.toxic), ("benign", ~choice.toxic))
        ],
    }


def what_came_of(classifier: TrainedClassifier) -> dict:
    """What does not change once a classifier is trained."""
    told = [(when, classifier.scores.get(when)) for when in ("before", "after")]
    return {
        "parameters": [(label_of(name), value_in_words(value)) for name, value in classifier.parameters.items()],
        "ran_on": [(in_words(name), value) for name, value in classifier.environment.items()],
        "scores": [(when, scores) for when, scores in told if scores],
        "counts": [(word, classifier.data[key]) for key, word in COUNTS.items() if key in classifier.data],
        "card": card_of(classifier),
        "folder": f"{FOLDER}/{classifier.name}",
        "again": order_like(classifier),
    }


def order_like(classifier: TrainedClassifier) -> str:
    """The query that fills the form with what this one was ordered with, but for its name."""
    of_order = {name: getattr(classifier, name) for name in TrainingForm.of_order if name != "name"}
    asked = {**of_order, **classifier.parameters}
    return urlencode({name: "" if value is False else value for name, value in asked.items() if value is not None})


def card_of(classifier: TrainedClassifier) -> str:
    """The model card in its folder as people read it; empty where there is none."""
    if classifier.state != "finished":
        return ""
    try:
        text = (folder_of(classifier.name) / "README.md").read_text(encoding="utf-8")
    except OSError:
        return ""
    below_ours = HEADING.sub(r"##\1", FRONT_MATTER.sub("", text, count=1))
    html = NO_HEADER.sub("<td></td>", markdown_to_html(below_ours, "tables", "fenced_code"))
    return mark_safe(html.replace("<table>", WIDE_TABLE).replace("</table>", "</table></div>"))  # noqa: S308 - cleaned


def label_of(name: str) -> str:
    """What the form calls a parameter."""
    field = TrainingForm.base_fields.get(name)
    return str(field.label) if field and field.label else in_words(name)


def in_words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def worth_of(evaluation: Evaluation) -> dict:
    """The figures of a finished evaluation: its scores never change."""
    results = results_of(evaluation)
    if results is None:
        return {}
    figures = figures_of(results)
    return {
        "warnings": warnings_on(evaluation, results),
        "worth": [
            (label, "undefined" if figures[name] is None else SHOWN_AS.get(name, rounded)(figures[name]))
            for name, label in FIGURES.items()
        ],
        "counts": figures,
        "functionalities": [
            (name, percent(share), number) for name, (share, number) in right_by_functionality(results).items()
        ],
    }
