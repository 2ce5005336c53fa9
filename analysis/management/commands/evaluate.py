"""``manage.py evaluate MODEL --on TEST_SET``: have a classifier score test sets here and now, and tell the figures."""

import math
import time

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from analysis import metrics
from analysis.classifiers import evaluations, scoring
from analysis.classifiers.figures import figures_of, right_by_functionality
from analysis.evaluated import Results, results_of
from analysis.management.progress import Progress
from analysis.models import Evaluation, HumanvalSet
from analysis.seen import warnings_on
from generation.models import Precision

WRONG_ARGUMENT = 2
SECONDS_BETWEEN_LOOKS = 2
CALLED = {
    "auc": "AUC",
    "f1": "F1",
    "accuracy": "accuracy",
    "calibration_error": "calibration error",
    "false_positive_rate": "false-positive rate",
    "spread": "its spread over groups",
}


class Command(BaseCommand):
    help = (
        "Have a classifier score test sets in this process, and tell what its scores are worth. What it has scored "
        "before is not scored again. The report “classifiers” compares classifiers."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("model", help="the embedded classifier, one trained here, a folder, or a model id")
        parser.add_argument(
            "--on", action="append", required=True, metavar="TEST_SET",
            help="the name of an imported one, humanval for the newest frozen HUMANVAL set, or humanval-VERSION; may "
            "be repeated",
        )  # fmt: skip
        parser.add_argument("--precision", default=Precision.FLOAT32, help="float32 or bfloat16")

    def handle(self, *, model: str, on: list[str], precision: str, **options) -> None:
        try:
            ordered = _order(model, on, precision)
        except ValueError as wrong:
            raise CommandError(str(wrong), returncode=WRONG_ARGUMENT) from wrong
        try:
            failed = [evaluation for evaluation in ordered if not self.score(evaluation)]
        except KeyboardInterrupt:
            for evaluation in ordered:
                if not evaluation.was_under_way:
                    evaluations.stop_evaluation(evaluation=evaluation)
            raise
        if failed:
            raise CommandError(f"Came to nothing: {', '.join(map(str, failed))}.")

    def score(self, evaluation: Evaluation) -> bool:
        """Work on an evaluation until it ends, and tell what came of it; whether it came to something."""
        tell = Progress(self.stderr, did="scored", what="texts")
        while evaluation.is_open:
            scoring.work_on_evaluation(evaluation_id=evaluation.pk, on_part=tell)
            evaluation.refresh_from_db()
            # A worker of the queue may be at it, or have died with it: then its lease has to lapse.
            if evaluation.is_open and not Evaluation.objects.waiting().filter(pk=evaluation.pk).exists():
                time.sleep(SECONDS_BETWEEN_LOOKS)
        results = results_of(evaluation)
        if results is None:
            self.stderr.write(f"{evaluation}: {evaluation.failure}")
            return False
        self.tell(evaluation, results)
        return True

    def tell(self, evaluation: Evaluation, results: Results) -> None:
        figures = figures_of(results)
        benign = figures["texts"] - figures["toxic"]
        reasons = ("ambiguous", "unlabelled", "unscored")
        left_out = "".join(f"; {figures[why]:,} {why} left out" for why in reasons if figures[why])
        self.stdout.write(
            f"{evaluation}: {figures['texts']:,} texts, {figures['toxic']:,} toxic, {benign:,} benign{left_out}"
        )
        for sentence in warnings_on(evaluation, results):
            self.stdout.write(f"  {sentence}")
        intervals = metrics.intervals(results.probs, results.toxic, groups=results.groups)
        for name, called in CALLED.items():
            self.stdout.write(f"  {called:24}{_figure(figures[name], intervals[name])}")
        for name, (share, number) in right_by_functionality(results).items():
            self.stdout.write(f"  {name:24}{share:.1%} of {number:,} right")


@transaction.atomic
def _order(model: str, on: list[str], precision: str) -> list[Evaluation]:
    """An evaluation on each of the test sets, or none of any. Raises ``ValueError``."""
    evaluations.check_classifier(model, precision=precision)
    sets = dict.fromkeys(evaluations.test_set_named(name) for name in on)
    return [
        evaluations.start_evaluation(
            model=model,
            precision=precision,
            wake=False,
            **{"humanval_set" if isinstance(one, HumanvalSet) else "evaluation_set": one},
        )
        for one in sets
    ]


def _figure(value: float | None, interval: tuple[float, float]) -> str:
    if value is None:
        return "undefined: the test set has too few texts, or one class only"
    low, high = interval
    return f"{value:.3f}" if math.isnan(low) else f"{value:.3f} (95 %: {low:.3f} to {high:.3f})"
