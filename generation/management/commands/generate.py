"""``manage.py generate``: a run in this process, without the queue; the same seed gives the same text."""

import json
import math
import time
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from generation import repeating, runs, working
from generation.models import Generation, GenerationRun, Label, Method, Precision, RunMethod, RunState, TargetGroup
from generation.parameters import AliceParameters, TopKParameters
from generation.prompting import NotEnoughDemonstrations

FORMATS = ("jsonl", "text")
WRONG_ARGUMENT = 2
SECONDS_BETWEEN_LOOKS = 1
DIGITS = 6

# Options of one method only, by the names of its parameters.
FLAGS = {
    Method.TOPK: {"k": "-k"},
    Method.ALICE: {
        "direction": "--direction",
        "lm_weight": "--lambda-lm",
        "classifier_weight": "--lambda-classifier",
        "beam": "--beam",
        "vocabulary": "--vocabulary",
        "selection": "--selection",
        "no_repeat_ngram_size": "--no-repeat-ngram-size",
        "group_words_allowed": "--ban-group-words",
        "n_best": "--n-best",
    },
}


OF_A_NEW_RUN = (
    "group", "label", "method", "count", "seed", "model", "precision", "temperature", "max_new_tokens",
    *FLAGS[Method.TOPK], *FLAGS[Method.ALICE], "classifier",
)  # fmt: skip


class Command(BaseCommand):
    help = "Write statements with the language model and print them; they are stored as a run like any other."

    def add_arguments(self, parser) -> None:
        self.parser = parser
        parser.add_argument("--group", action="append", help="slug of a target group; may be repeated")
        parser.add_argument(
            "--label",
            action="append",
            help="benign or toxic: the demonstrations to draw from; may be repeated (benign)",
        )
        parser.add_argument("--method", default=RunMethod.TOPK, help="topk, alice, or paired: both from each prompt")
        parser.add_argument("--count", type=int, default=5, help="statements a group and label; of a paired run, pairs")
        parser.add_argument("--seed", type=int, help="repeats a run exactly; drawn at random if not given")
        parser.add_argument("--model", default=settings.LANGUAGE_MODEL, help="language model")
        parser.add_argument("--precision", default=Precision.FLOAT32, help="float32 or bfloat16")
        parser.add_argument("--temperature", type=float, default=TopKParameters.temperature)
        parser.add_argument("--max-new-tokens", type=int, default=TopKParameters.max_new_tokens)
        parser.add_argument("--format", default="jsonl", help="jsonl (one JSON object a line) or text")
        parser.add_argument(
            "--repeat",
            metavar="RUN",
            help="number of a run, or the file with its settings: the same again; no other option goes with it",
        )
        topk = parser.add_argument_group("top-k", "Refused for --method alice.")
        topk.add_argument("-k", type=int, help=f"tokens to choose from ({TopKParameters.k})")
        alice = parser.add_argument_group("ALICE", "Refused for --method topk. In brackets what is taken otherwise.")
        alice.add_argument(
            "--classifier",
            help=f"the classifier that votes: the name of one trained here, a folder or an id ({settings.CLASSIFIER})",
        )
        alice.add_argument(
            "--direction",
            help="false_positives from benign prompts, false_negatives from toxic ones (what each label allows)",
        )
        for flag, parameter, words in (
            ("--lambda-lm", "lm_weight", "weight of the language model's vote, λ_L"),
            ("--lambda-classifier", "classifier_weight", "weight of the classifier's vote, λ_C"),
        ):
            default = getattr(AliceParameters, parameter)
            alice.add_argument(flag, dest=parameter, type=float, help=f"{words} ({default})")
        for flag, parameter, words in (
            ("--beam", "beam", "hypotheses kept at each step"),
            ("--vocabulary", "vocabulary", "tokens that each hypothesis may go on with"),
            ("--no-repeat-ngram-size", "no_repeat_ngram_size", "length of the phrases that come once; 0: any"),
            ("--n-best", "n_best", "hypotheses stored with each statement"),
        ):
            default = getattr(AliceParameters, parameter)
            alice.add_argument(flag, dest=parameter, type=int, help=f"{words} ({default})")
        alice.add_argument(
            "--selection", help="topk or sample: the best candidates, or at random by their scores (topk)"
        )
        alice.add_argument(
            "--ban-group-words",
            dest="group_words_allowed",
            action="store_const",
            const=False,
            help="allow the words that name the group only where they are not in the prompt",
        )

    def handle(self, **options) -> None:
        known(options["format"], FORMATS, what="format")
        try:
            run = self.repeated(options) if options["repeat"] else self.ordered(options)
        except (NotEnoughDemonstrations, ValueError) as error:
            raise CommandError(str(error), returncode=WRONG_ARGUMENT) from error
        self.work(run)
        for generation in run.generations.select_related("prompt", "group").order_by("chunk__index", "position", "pk"):
            self.stdout.write(line(generation) if options["format"] == "jsonl" else generation.text)

    def ordered(self, options: dict) -> GenerationRun:
        """A new run of what the options say."""
        labels = options["label"] or [Label.BENIGN.value]
        for label in labels:
            known(label, Label.values, what="label")
        known(options["method"], RunMethod.values, what="method")
        if not options["group"]:
            raise CommandError("Name a group with --group, or a run with --repeat.", returncode=WRONG_ARGUMENT)
        groups = {group.slug: group for group in TargetGroup.objects.all()}
        for slug in options["group"]:
            known(slug, groups, what="group")
        refuse_unused(options)
        return runs.start_run(
            cells=[runs.Cell(groups[slug], label, options["count"]) for slug in options["group"] for label in labels],
            language_model=options["model"],
            method=options["method"],
            seed=options["seed"],
            precision=options["precision"],
            wake=False,
            **parameters(options),
        )

    def repeated(self, options: dict) -> GenerationRun:
        """A run like that of a number or a file."""
        flags = {action.dest: action.option_strings[-1] for action in self.parser._actions if action.option_strings}
        for name in OF_A_NEW_RUN:
            if options[name] != self.parser.get_default(name):
                raise CommandError(
                    f"{flags[name]} does not go with --repeat, which takes everything from the run. Leave it out.",
                    returncode=WRONG_ARGUMENT,
                )
        name = options["repeat"]
        if not name.isdecimal():
            return repeating.repeat_recipe(read(Path(name)), wake=False)
        run = GenerationRun.objects.filter(pk=int(name)).first()
        if run is None:
            raise ValueError(f"There is no run {name}.")
        return repeating.repeat_run(run=run, wake=False)

    def work(self, run: GenerationRun) -> None:
        """Work on the run until it ends; if it fails, is paused or interrupted, say so and end with status 1."""
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


def read(file: Path) -> dict:
    """The JSON in a file. Raises ``ValueError``."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not JSON: {error}.") from error


def known(value: str, choices, *, what: str) -> None:
    """Refuse a value that is not among ``choices``, naming them."""
    if value not in choices:
        raise CommandError(
            f"There is no {what} {value!r}. Choose one of: {', '.join(choices)}.", returncode=WRONG_ARGUMENT
        )


def refuse_unused(options: dict) -> None:
    """Refuse options that the method does not use, rather than let them have no effect."""
    used = RunMethod(options["method"]).methods
    flags = FLAGS | {Method.ALICE: FLAGS[Method.ALICE] | {"classifier": "--classifier"}}
    for method in flags.keys() - set(used):
        for name, flag in flags[method].items():
            if options[name] is not None:
                raise CommandError(
                    f"{flag} is an option of {method.label}, which --method {options['method']} does not use. "
                    f"Leave it out, or choose --method {method.value} or paired.",
                    returncode=WRONG_ARGUMENT,
                )


def parameters(options: dict) -> dict:
    """What ``start_run`` is given for the methods of the run: their parameters, and ALICE's classifier."""
    used = RunMethod(options["method"]).methods
    shared = {name: options[name] for name in ("temperature", "max_new_tokens")}
    own = {
        method: shared | {name: options[name] for name in FLAGS[method] if options[name] is not None} for method in used
    }
    chosen = {}
    if Method.TOPK in used:
        chosen["topk"] = TopKParameters(**own[Method.TOPK])
    if Method.ALICE in used:
        chosen["alice"] = AliceParameters(**own[Method.ALICE])
        chosen["classifier"] = settings.CLASSIFIER if options["classifier"] is None else options["classifier"]
    return chosen


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
            "score": rounded(generation.score),
            "toxic_prob": rounded(generation.toxic_prob),
            "tokens": generation.tokens,
            "finish_reason": generation.finish_reason,
        },
        ensure_ascii=False,
    )


def rounded(value: float | None) -> float | None:
    """To six digits; ``None`` also for minus infinity, which JSON does not have."""
    return None if value is None or math.isinf(value) else round(value, DIGITS)
