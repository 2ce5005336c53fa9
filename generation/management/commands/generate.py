"""``manage.py generate``: a run in this process, without the queue; the same seed gives the same text."""

import json
import time

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from generation import runs, working
from generation.models import Generation, GenerationRun, Label, Method, RunState, TargetGroup
from generation.parameters import TopKParameters
from generation.prompting import NotEnoughDemonstrations

FORMATS = ("jsonl", "text")
WRONG_ARGUMENT = 2
SECONDS_BETWEEN_LOOKS = 1


class Command(BaseCommand):
    help = "Write statements with the language model and print them; they are stored as a run like any other."

    def add_arguments(self, parser) -> None:
        parser.add_argument("--group", required=True, action="append", help="slug of a target group; may be repeated")
        parser.add_argument("--label", default=Label.BENIGN, help="benign or toxic: the demonstrations to draw from")
        parser.add_argument("--method", default=Method.TOPK, help="decoding method")
        parser.add_argument("--count", type=int, default=5, help="statements a group")
        parser.add_argument("--seed", type=int, help="repeats a run exactly; drawn at random if not given")
        parser.add_argument("--model", default=settings.LANGUAGE_MODEL, help="language model")
        parser.add_argument("-k", type=int, default=TopKParameters.k, help="tokens to choose from")
        parser.add_argument("--temperature", type=float, default=TopKParameters.temperature)
        parser.add_argument("--max-new-tokens", type=int, default=TopKParameters.max_new_tokens)
        parser.add_argument("--format", default="jsonl", help="jsonl (one JSON object a line) or text")

    def handle(self, **options) -> None:
        known(options["label"], Label.values, what="label")
        known(options["method"], Method.values, what="method")
        known(options["format"], FORMATS, what="format")
        groups = {group.slug: group for group in TargetGroup.objects.all()}
        for slug in options["group"]:
            known(slug, groups, what="group")
        try:
            run = runs.start_run(
                cells=[runs.Cell(groups[slug], options["label"], options["count"]) for slug in options["group"]],
                language_model=options["model"],
                method=options["method"],
                parameters=TopKParameters(options["k"], options["temperature"], options["max_new_tokens"]),
                seed=options["seed"],
                wake=False,
            )
        except (NotEnoughDemonstrations, ValueError) as error:
            raise CommandError(str(error), returncode=WRONG_ARGUMENT) from error
        self.work(run)
        for generation in run.generations.select_related("prompt", "group").order_by("chunk__index", "position"):
            self.stdout.write(line(generation) if options["format"] == "jsonl" else generation.text)

    def work(self, run: GenerationRun) -> None:
        """Work on the run until it ends; if it fails or is interrupted, say so and end with status 1."""
        try:
            working.work_on_run(run_id=run.pk)
            # A worker of the queue may have joined in and be busy with the last chunk, or have died with it.
            while GenerationRun.objects.open().filter(pk=run.pk).exists():
                time.sleep(SECONDS_BETWEEN_LOOKS)
                working.work_on_run(run_id=run.pk)
        except KeyboardInterrupt:
            runs.cancel_run(run=run)
            raise
        run.refresh_from_db()
        if run.state != RunState.FINISHED:
            raise CommandError(f"Run {run.pk} is {run.get_state_display()}. {run.failure}".strip())


def known(value: str, choices, *, what: str) -> None:
    """Refuse a value that is not among ``choices``, naming them."""
    if value not in choices:
        raise CommandError(
            f"There is no {what} {value!r}. Choose one of: {', '.join(choices)}.", returncode=WRONG_ARGUMENT
        )


def line(generation: Generation) -> str:
    """A statement as JSON, with nothing in it that a repetition would change."""
    return json.dumps(
        {
            "group": generation.group.slug,
            "label": generation.label,
            "method": generation.method,
            "seed": generation.seed,
            "prompt": generation.prompt.text,
            "text": generation.text,
            "tokens": generation.tokens,
            "finish_reason": generation.finish_reason,
        },
        ensure_ascii=False,
    )
