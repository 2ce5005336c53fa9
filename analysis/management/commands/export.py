"""``manage.py export NAME FILE``: an export as a file; ``manage.py export dataset DIR``: a folder to publish."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from django.utils.datastructures import MultiValueDict

from analysis.exports import EXPORTS, dataset
from analysis.exports.filtering import FilterForm, WrongFilter, filters_from
from analysis.exports.propagated import propagated
from analysis.exports.writing import FORMATS, UnknownExport, to_file

DATASET = "dataset"
NAMES = (*EXPORTS, DATASET)
REPEATED = ("group", "label", "method", "study")
WRONG_ARGUMENT = 2


class Command(BaseCommand):
    help = (
        "Write an export to a file, or the whole dataset to a folder. The texts are as they were written and may hurt."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("name", help=f"what to export: {', '.join(NAMES)}")
        parser.add_argument(
            "file", type=Path, help="the file to write (of the dataset: the folder); replaced when all is written"
        )
        parser.add_argument("--format", help=f"{', '.join(FORMATS)}; otherwise by the file's ending")
        parser.add_argument(
            "--excel-safe",
            action="store_true",
            help="put an apostrophe before text that a spreadsheet would run as a formula (CSV)",
        )
        chosen = parser.add_argument_group("which rows", "What is not given leaves nothing out.")
        for name, field in FilterForm.base_fields.items():
            words = (field.help_text or field.label).rstrip(".").lower()
            chosen.add_argument(
                f"--{name.replace('_', '-')}",
                action="append" if name in REPEATED else "store",
                help=f"{words}; may be repeated" if name in REPEATED else words,
            )
        folder = parser.add_argument_group("of the dataset")
        folder.add_argument("--license", help="its identifier, such as cdla-permissive-2.0; “unknown” otherwise")
        folder.add_argument("--title", help="what the dataset is called; the folder's name otherwise")

    def handle(self, *, name: str, file: Path, **options) -> None:
        try:
            if name == DATASET:
                self.write_dataset(file, options)
            else:
                self.write_export(name, file, options)
        except (UnknownExport, WrongFilter) as error:
            raise CommandError(str(error), returncode=WRONG_ARGUMENT) from error
        except dataset.CannotWriteDataset as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(
                f"{file} cannot be written: {error.strerror}. Choose another folder or free some space."
            ) from error

    def write_export(self, name: str, file: Path, options: dict) -> None:
        if name not in EXPORTS:
            raise UnknownExport(f"There is no export {name!r}. Choose one of: {', '.join(NAMES)}.")
        refuse(options, ("license", "title"), f"The export {name} has no --{{option}}; export dataset has one.")
        format = options["format"] or format_of(file)
        if options["excel_safe"] and format != "csv":
            raise CommandError(
                f"--excel-safe is for spreadsheets, which read CSV and not {format}. Leave it out.",
                returncode=WRONG_ARGUMENT,
            )
        rows = to_file(file, name, format, given(options), options["excel_safe"])
        self.stdout.write(f"{rows} row{'' if rows == 1 else 's'} written to {file}.")
        labels = propagated(filters_from(given(options), takes=EXPORTS[name].takes, export=name))
        for sentence in labels.empty if labels else []:
            self.stdout.write(sentence)

    def write_dataset(self, folder: Path, options: dict) -> None:
        refuse(options, ("format", "excel_safe"), "The dataset has no --{option}: its tables are Parquet.")
        for line in dataset.write(
            folder, filters=given(options), title=options["title"] or "", license=options["license"] or ""
        ):
            self.stdout.write(line)


def format_of(file: Path) -> str:
    """The format that a file's ending stands for."""
    format = file.suffix.removeprefix(".").lower()
    if format not in FORMATS:
        raise CommandError(
            f"{file.name} does not say in which format to write: let it end in .csv, .jsonl or .parquet, "
            f"or give --format {'|'.join(FORMATS)}.",
            returncode=WRONG_ARGUMENT,
        )
    return format


def given(options: dict) -> MultiValueDict:
    """The filters among the options, as a form takes them."""
    filters = {name: options[name] for name in FilterForm.base_fields if options[name] is not None}
    return MultiValueDict({name: value if isinstance(value, list) else [value] for name, value in filters.items()})


def refuse(options: dict, names: tuple[str, ...], sentence: str) -> None:
    """Refuse options that would have no effect."""
    for name in names:
        if options[name]:
            raise CommandError(sentence.format(option=name.replace("_", "-")), returncode=WRONG_ARGUMENT)
