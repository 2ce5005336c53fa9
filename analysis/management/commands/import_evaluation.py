"""``manage.py import_evaluation FILE``: make a test set of a file with texts and labels."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from analysis.classifiers.evaluation_sets import WrongArgument, WrongFile, import_test_set, left_out_in_words
from analysis.imports.work import REFUSE, SKIP
from analysis.models import EvaluationSet

SHOWN = 10
WRONG_ARGUMENT = 2


class Command(BaseCommand):
    help = (
        "Make a test set of a file (CSV with commas, semicolons or tabs, JSON lines, Parquet) with texts and labels, "
        "to evaluate classifiers on. The same file a second time changes nothing. docs/classifiers.md has the layouts "
        "of SocialBiasFrames, ImplicitHateCorpus, DynaHate and HateCheck."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--text", required=True, metavar="COLUMN", help="with the texts")
        parser.add_argument("--label", required=True, metavar="COLUMN", help="with the labels")
        parser.add_argument(
            "--positive", action="append", default=[], metavar="VALUE",
            help="a label that means toxic, all others being benign; may be repeated; 1 is 1.0",
        )  # fmt: skip
        parser.add_argument("--above", type=float, metavar="NUMBER", help="or: labels above it mean toxic")
        parser.add_argument("--group", metavar="COLUMN", help="with whom a text is about")
        parser.add_argument("--functionality", metavar="COLUMN", help="with what a text tests, as HateCheck has it")
        parser.add_argument(
            "--where", action="append", default=[], metavar="COLUMN=VALUE",
            help="take only rows with this value; of one column several are any of them",
        )  # fmt: skip
        parser.add_argument("--name", default="", help="of the test set (default: made of the file's)")
        parser.add_argument("--encoding", default="", help="of the text, where it is not UTF-8: cp1252, latin-1, …")
        parser.add_argument(
            "--on-fault", choices=[REFUSE, SKIP], default=REFUSE,
            help="refuse: one faulty row, and nothing is stored (default); skip: faulty rows are left out",
        )  # fmt: skip

    def handle(self, *, file: Path, where: list[str], **given) -> None:
        if not file.exists():
            raise CommandError(f"There is no file {file}.", returncode=WRONG_ARGUMENT)
        names = ("name", "text", "label", "positive", "above", "group", "functionality", "encoding", "on_fault")
        try:
            made = import_test_set(file, where=_conditions(where), **{name: given[name] for name in names})
        except WrongFile as wrong:
            self.tell_faults(wrong)
            raise CommandError(
                str(wrong), returncode=WRONG_ARGUMENT if isinstance(wrong, WrongArgument) else 1
            ) from wrong
        self.tell(made)

    def tell(self, made: EvaluationSet) -> None:
        if made.was_there:
            self.stdout.write(f"The test set {made.name} is of this file already; nothing was changed.")
        benign = made.texts_count - made.toxic_count
        self.stdout.write(f"{made.name}: {made.texts_count:,} texts, {made.toxic_count:,} toxic, {benign:,} benign.")
        if left_out := left_out_in_words(made):
            self.stdout.write(left_out)

    def tell_faults(self, wrong: WrongFile) -> None:
        for fault in wrong.faults.kept[:SHOWN]:
            self.stderr.write(str(fault))
        if wrong.faults.count > SHOWN:
            self.stderr.write(f"… and {wrong.faults.count - SHOWN:,} more.")


def _conditions(where: list[str]) -> dict[str, list[str]]:
    conditions: dict[str, list[str]] = {}
    for condition in where:
        column, equals, value = condition.partition("=")
        if not column or not equals:
            raise CommandError(
                f"--where {condition}: write COLUMN=VALUE, such as split=test.", returncode=WRONG_ARGUMENT
            )
        conditions.setdefault(column, []).append(value)
    return conditions
