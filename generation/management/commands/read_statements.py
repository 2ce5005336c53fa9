"""``manage.py read_statements``: have statements read by a model in this process, without the queue."""

import time

from django.core.management.base import BaseCommand, CommandError

from generation import reading, readings
from generation.models import GenerationRun, Label, Method, Precision, ReaderKind, Reading, TargetGroup

WRONG_ARGUMENT = 2
SECONDS_BETWEEN_LOOKS = 1


class Command(BaseCommand):
    help = (
        "Have statements read by a model: embeddings, probabilities of toxic, or perplexities are stored, once a "
        "statement. Those that it has read before are left out."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("kind", help=f"one of: {', '.join(ReaderKind.values)}")
        parser.add_argument(
            "--model", help="name of a classifier trained here, folder or id; otherwise the one of the settings"
        )
        parser.add_argument("--precision", default=Precision.FLOAT32, help="float32 or bfloat16")
        parser.add_argument("--group", action="append", default=[], help="slug of a target group; may be repeated")
        parser.add_argument("--label", action="append", default=[], help="benign or toxic; may be repeated")
        parser.add_argument("--method", action="append", default=[], help="topk, alice or written; may be repeated")
        parser.add_argument("--run", type=int, help="number of a run")

    def handle(self, **options) -> None:
        kind = known(options["kind"], ReaderKind.values, what="kind of reader")
        model = options["model"] or readings.default_model(kind)
        try:
            readings.check_model(kind, model, precision=options["precision"])
            statements, about = self.statements(options)
            reader = reading.known_reader(kind, model, precision=options["precision"])
            started = readings.start_reading(
                kind=kind,
                model=model,
                precision=options["precision"],
                generation_ids=statements,
                about=about,
                wake=False,
            )
        except readings.NothingToRead as nothing:
            self.stdout.write(str(nothing))
            return
        except ValueError as error:
            raise CommandError(str(error), returncode=WRONG_ARGUMENT) from error
        except readings.ReadingFailed as error:
            raise CommandError(str(error)) from error
        self.work(started)
        self.stdout.write(f"{reader} has read {started.read:,} statements in {started.seconds:,.1f} seconds.")

    def statements(self, options: dict):
        """Those that the options choose, and which they are in words."""
        groups = {group.slug: group for group in TargetGroup.objects.filter(slug__in=options["group"])}
        for slug in options["group"]:
            if slug not in groups:
                raise ValueError(f"There is no group {slug!r}.")
        run = GenerationRun.objects.filter(pk=options["run"]).first() if options["run"] is not None else None
        if options["run"] is not None and run is None:
            raise ValueError(f"There is no run {options['run']}.")
        return readings.chosen_statements(
            groups=groups.values(),
            labels=[known(label, Label.values, what="label") for label in options["label"]],
            methods=[known(method, Method.values, what="method") for method in options["method"]],
            run=run,
        )

    def work(self, started: Reading) -> None:
        """Work on a reading until it ends; if it ends early or is interrupted, say so and end with status 1."""
        try:
            while True:
                reading.work_on_reading(reading_id=started.pk)
                started.refresh_from_db()
                if not started.is_open:
                    break
                self.stderr.write(f"{started.read:,} of {started.statements:,} statements read")
                # A worker of the queue may have joined in and be busy with the last chunk, or have died with it.
                if not Reading.objects.waiting().filter(pk=started.pk).exists():
                    time.sleep(SECONDS_BETWEEN_LOOKS)
        except KeyboardInterrupt:
            if not started.was_under_way:
                readings.stop_reading(reading=started)
            raise
        if started.failure:
            raise CommandError(f"Reading {started.pk} ended early. {started.failure}")


def known(value: str, choices, *, what: str) -> str:
    """Refuse a value that is not among ``choices``, naming them."""
    if value not in choices:
        raise CommandError(
            f"There is no {what} {value!r}. Choose one of: {', '.join(choices)}.", returncode=WRONG_ARGUMENT
        )
    return value
