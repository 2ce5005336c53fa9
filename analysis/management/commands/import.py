"""``manage.py import FORMAT PATH``: read a file into the database, all of it or nothing."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from analysis.importing import Outcome, Refused, WrongOption, import_file
from analysis.imports import FORMATS
from analysis.imports.faults import Faults, csv_lines
from analysis.imports.work import REFUSE, SKIP, Options
from generation.models import Label, Method

SHOWN = 10


class Command(BaseCommand):
    help = (
        "Read a file into the database, all of it in one transaction. The same file a second time changes nothing. "
        "Formats: demonstrations and prompts (a folder, a text file or a table), train, annotated, annotations, mturk "
        "(CSV, JSON lines or Parquet)."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("format", choices=list(FORMATS), help="what the file holds")
        parser.add_argument("path", type=Path, help="the file; for demonstrations and prompts also a folder")
        parser.add_argument(
            "--on-fault", choices=[REFUSE, SKIP], default=REFUSE,
            help="refuse: one bad row, and nothing is stored (default); skip: bad rows are left out",
        )  # fmt: skip
        parser.add_argument("--make-groups", action="store_true", help="make groups that are not known yet")
        parser.add_argument("--group", default="", help="the group of rows that say none; of a whole text file")
        parser.add_argument("--label", default="", choices=["", *Label.values], help="the same for the label")
        parser.add_argument("--method", default="", choices=["", *Method.values], help="the same for the method")
        parser.add_argument("--study", default="", help="the title of the study that annotations go into")
        parser.add_argument("--encoding", default="", help="of the text, where it is not UTF-8: cp1252, latin-1, …")
        parser.add_argument("--faults", type=Path, help="write all faults to this CSV file")

    def handle(self, *, format: str, path: Path, faults: Path | None, **given) -> None:
        options = {name: given[name] for name in Options.__dataclass_fields__}
        try:
            outcome = import_file(format=format, path=path, options=Options(**options))
        except WrongOption as wrong:
            raise CommandError(str(wrong), returncode=2) from wrong
        except Refused as refused:
            self.tell_faults(refused.faults, faults, of=path)
            raise CommandError(str(refused)) from refused
        self.tell(outcome)
        self.tell_faults(outcome.faults, faults, of=path)

    def tell(self, outcome: Outcome) -> None:
        self.stdout.write(f"{outcome.summary()}.")
        if outcome.stored:
            made = ", ".join(f"{count:,} {kind}" for kind, count in outcome.stored.items())
            self.stdout.write(f"Stored: {made}.")
        for sentence in outcome.notes:
            self.stdout.write(sentence)

    def tell_faults(self, faults: Faults, file: Path | None, *, of: Path) -> None:
        """The first faults on the screen, all of them in the file."""
        for fault in faults.kept[:SHOWN]:
            self.stderr.write(str(fault))
        if faults.count > SHOWN:
            where = f"all are in {file}" if file else "--faults FILE.csv writes them all to a file"
            self.stderr.write(f"… and {faults.count - SHOWN:,} more; {where}.")
        if file is None:
            return
        try:
            with file.open("w", encoding="utf-8", newline="") as out:
                out.writelines(csv_lines(faults, file=of.name))
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}. Choose another folder.") from error
