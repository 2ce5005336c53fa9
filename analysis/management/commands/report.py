"""``manage.py report NAME``: a report, worked out now and printed; ``manage.py report all --out DIR``: all of them."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from analysis.exports.filtering import WrongFilter
from analysis.reports import folder, storing, writing
from analysis.reports.catalogue import REPORTS
from analysis.reports.filters import FILTERS, ReportForm, filters_from, in_address
from analysis.reports.frame import pack

ALL = "all"
REPEATED = ("group", "label", "method", "study")
WRONG_ARGUMENT = 2


class Command(BaseCommand):
    help = (
        "Work a report out over what is in the database now and print it; or all of them, into a folder. "
        "Examples are statements as they were written and may hurt."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("name", help=f"which report: {', '.join((*REPORTS, ALL))}")
        parser.add_argument("--format", choices=writing.FORMATS, help="json unless given")
        parser.add_argument("--section", help="CSV: the key of one table; otherwise each after a line with its key")
        parser.add_argument("--output", type=Path, help="a file to write instead of printing; replaced if it is there")
        parser.add_argument("--out", type=Path, help=f"of {ALL}: the folder to write")
        chosen = parser.add_argument_group("over what", "What is not given leaves nothing out.")
        for name in FILTERS:
            field = ReportForm.base_fields[name]
            words = (field.help_text or field.label).rstrip(".").lower()
            chosen.add_argument(
                f"--{name.replace('_', '-')}",
                action="append" if name in REPEATED else "store",
                help=f"{words}; may be repeated" if name in REPEATED else words,
            )

    def handle(self, *, name: str, **options) -> None:
        given = {filter: options[filter] for filter in FILTERS if options[filter] is not None}
        try:
            if name == ALL:
                self.write_all(given, options)
            else:
                self.write_one(name, given, options)
        except (storing.UnknownReport, writing.UnknownSection, WrongFilter) as error:
            sentence = f"{error} Or give “{ALL}”." if isinstance(error, storing.UnknownReport) else str(error)
            raise CommandError(sentence, returncode=WRONG_ARGUMENT) from error
        except (folder.CannotWriteReports, folder.ReportsFailed) as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(
                f"{error.filename or options['output'] or options['out']} cannot be written: {error.strerror}. "
                "Choose another place or free some space."
            ) from error

    def write_one(self, name: str, given: dict, options: dict) -> None:
        kind = storing.find(name)
        if options["out"]:
            raise CommandError(f"--out is the folder of “{ALL}”; of one report give --output FILE.", returncode=2)
        format = options["format"] or writing.FORMATS[0]
        if options["section"] and format != "csv":
            raise CommandError("--section chooses a table of --format csv; the others have all.", returncode=2)
        filters = filters_from(given, kind)
        made_at, told = timezone.now(), in_address(filters)
        report = storing.make_now(name, filters)
        if format == "csv":
            text = writing.as_csv(report, options["section"] or "")
        elif format == "json":
            text = writing.as_json(pack(report), filters=told, made_at=made_at)
        else:
            text = writing.as_markdown(report, filters=told, made_at=made_at)
        if options["output"]:
            options["output"].write_text(text, encoding="utf-8", newline="")
            self.stdout.write(f"{kind.title} written to {options['output']}.")
        else:
            self.stdout.write(text, ending="")

    def write_all(self, given: dict, options: dict) -> None:
        if not options["out"]:
            raise CommandError(f"Say which folder to write: report {ALL} --out DIR.", returncode=WRONG_ARGUMENT)
        for option in ("format", "section", "output"):
            if options[option]:
                raise CommandError(f"--{option} is for one report; “{ALL}” writes every format.", returncode=2)
        for line in folder.write(options["out"], given, on_step=lambda line: self.stderr.write(line)):
            self.stdout.write(line)
