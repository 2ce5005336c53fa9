"""``manage.py build_humanval``: draw a HUMANVAL set here and now, and tell what came of it."""

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils.datastructures import MultiValueDict

from analysis.exports.filtering import OF_STATEMENTS, FilterForm, WrongFilter
from analysis.humanval import comparing, drawing, freezing, sets
from analysis.humanval.forms import PublishForm
from analysis.humanval.pool import StatementsBeingStored, machine_generated
from analysis.humanval.wording import report_lines
from analysis.management.progress import Progress
from analysis.models import HumanvalSet, HumanvalState
from annotator import choosing, publishing, wages
from generation.readings import ReadingFailed, embed_missing

REPEATED = ("group", "label", "method", "study")
USUAL = {"size": sets.SIZE, "threshold": sets.THRESHOLD, "candidates": sets.CANDIDATES}
OF_STUDY = ("title", "reward", "expected_seconds")
WRONG_ARGUMENT = 2


class Command(BaseCommand):
    help = (
        "Draw a HUMANVAL set: statements for testing, so that no training statement has a cosine similarity above the "
        "threshold with any of them. Works without the queue. With --publish the set becomes a study at once."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("--size", type=int, help=f"statements (default: {sets.SIZE})")
        parser.add_argument("--seed", type=int, help="decides what is drawn; a new one otherwise, which is printed")
        parser.add_argument("--threshold", type=float, help=f"cosine (default: {sets.THRESHOLD})")
        parser.add_argument(
            "--candidates", type=int,
            help=f"statements drawn for each place; the most isolated are taken (default: {sets.CANDIDATES})",
        )  # fmt: skip
        chosen = parser.add_argument_group("which statements there are to choose from", "All, unless you say.")
        for name in OF_STATEMENTS:
            field = FilterForm.base_fields[name]
            words = (field.help_text or field.label).rstrip(".").lower()
            action = "append" if name in REPEATED else "store"
            chosen.add_argument(f"--{name.replace('_', '-')}", action=action, help=words)
        study = parser.add_argument_group("publishing it")
        study.add_argument("--publish", action="store_true", help="make a study of it, three annotators a statement")
        study.add_argument("--title", help=f"of the study (default: {freezing.TITLE})")
        study.add_argument("--reward", help="US dollars a statement")
        study.add_argument("--expected-seconds", help="how long a statement takes, by your own trial")
        parser.add_argument(
            "--update-removed", type=int, metavar="VERSION",
            help="draw nothing: compare what was stored since with this version, and remove from training what is too "
            "similar",
        )  # fmt: skip

    def handle(self, **options) -> None:
        self.tell_progress = Progress(self.stderr)
        try:
            if options["update_removed"] is not None:
                _refuse_others(options)
                self.update_removed(options["update_removed"])
            else:
                unsaid = {name: value for name, value in USUAL.items() if options[name] is None}
                self.build(options | unsaid)
        except (sets.CannotDraw, WrongFilter) as refused:
            raise CommandError(str(refused), returncode=WRONG_ARGUMENT) from refused
        except (freezing.WrongState, StatementsBeingStored, ReadingFailed) as refused:
            raise CommandError(str(refused)) from refused

    def build(self, options: dict) -> None:
        terms = _terms(options)
        with transaction.atomic():  # no worker of the queue sees it before it is taken up
            asked = sets.ask_for_set(
                filters=_filters(options),
                size=options["size"],
                threshold=options["threshold"],
                candidates=options["candidates"],
                seed=choosing.new_seed() if options["seed"] is None else options["seed"],
                wake=False,
            )
            wanted = drawing.take_up(asked.pk)
        try:
            self.draw(wanted)
        except BaseException:
            drawing.fail(wanted, "The command that drew it was stopped.", state=HumanvalState.FAILED)
            raise
        for line in report_lines(wanted):
            self.stdout.write(line)
        if options["publish"]:
            self.publish(wanted, terms)

    def draw(self, wanted: HumanvalSet) -> None:
        def embed(on_step) -> None:
            def on_progress(done: int, total: int) -> None:
                on_step()
                self.tell_progress(done, total)

            embed_missing(machine_generated(drawing.fix_statements(wanted)), on_progress)

        drawing.draw_leased(wanted, first=embed)
        wanted.refresh_from_db()
        if not wanted.is_drawn:
            reason = wanted.failure or "A worker of the queue has taken it up: see its page."
            raise CommandError(f"{wanted} was not drawn. {reason}")

    def publish(self, drawn: HumanvalSet, terms: dict) -> None:
        try:
            made = freezing.publish(humanval_set=drawn, **terms)
        except (wages.PayTooLow, publishing.StudyClosed, ValidationError) as refused:
            sentences = refused.messages if isinstance(refused, ValidationError) else [str(refused)]
            raise CommandError(f"{drawn} is drawn and kept, but was not published. {' '.join(sentences)}") from refused
        study = drawn.hit_type
        self.stdout.write(
            f"Published as study {study.pk}, “{study.title}”: {made:,} HITs, {study.max_assignments} annotators each, "
            f"${made * study.max_assignments * study.reward:,.2f} in all."
        )

    def update_removed(self, version: int) -> None:
        humanval_set = HumanvalSet.objects.filter(version=version).first()
        if humanval_set is None:
            raise CommandError(f"There is no HUMANVAL set {version}.", returncode=WRONG_ARGUMENT)
        comparing.refuse_undrawn(humanval_set)
        embed_missing(machine_generated(), self.tell_progress)
        compared = comparing.compare(humanval_set=humanval_set)
        self.stdout.write(
            f"{compared.statements:,} statements were compared with {humanval_set}; {compared.removed:,} of them were "
            f"too similar and are removed from training, {humanval_set.removed.count():,} in all."
        )


def _refuse_others(options: dict) -> None:
    """Comparing draws and publishes nothing: whatever else was given would have no effect."""
    for name in (*USUAL, "seed", *OF_STATEMENTS, *OF_STUDY, "publish"):
        if options[name] not in (None, False):
            option = name.replace("_", "-")
            raise CommandError(
                f"--{option} is about drawing a set, and --update-removed draws none. Leave one of them out.",
                returncode=WRONG_ARGUMENT,
            )


def _filters(options: dict) -> MultiValueDict:
    given = {name: options[name] for name in OF_STATEMENTS if options[name] is not None}
    return MultiValueDict({name: value if isinstance(value, list) else [value] for name, value in given.items()})


def _terms(options: dict) -> dict:
    """The fields of the study, checked before a set is drawn for it."""
    given = {name: options[name] for name in OF_STUDY if options[name] is not None}
    if not options["publish"]:
        for name in given:
            option = name.replace("_", "-")
            raise CommandError(f"--{option} is about the study: give --publish, too.", returncode=WRONG_ARGUMENT)
        return {}
    form = PublishForm({name: field.initial for name, field in PublishForm.base_fields.items()} | given)
    for name, sentences in form.errors.items():
        option = name.replace("_", "-")
        raise CommandError(f"--{option} {given.get(name, '')}: {' '.join(sentences)}", returncode=WRONG_ARGUMENT)
    return form.terms()
