"""All reports as a folder: each as JSON and Markdown, each table as CSV, each figure to look at and as a picture."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from django.template.loader import render_to_string
from django.utils import timezone

from analysis.reports import storing, writing
from analysis.reports.catalogue import REPORTS, ReportKind
from analysis.reports.filters import filters_from, in_address, values_of
from analysis.reports.frame import Report, Section, pack
from analysis.reports.pictures import NoBrowser, pictures_of
from analysis.reports.showing import shown
from analysis.reports.writing import in_one_line

SCRIPT = "plotly.min.js"
MARK = ".humanval-reports.json"
"""Lists what was written into a folder of reports, so that it alone may be written anew."""
PICTURES = ("svg", "png")


class CannotWriteReports(Exception):
    """There is no place for the folder; the message says what to do."""


class ReportsFailed(Exception):
    """Some reports could not be worked out; the message names them and says what became of the folder."""


@dataclass(frozen=True)
class Written:
    """A report in the folder, or why it is not there."""

    kind: ReportKind
    report: Report | None
    failure: str = ""


def write(folder: Path, given: Mapping, *, on_step: Callable[[str], object] = lambda line: None) -> Iterator[str]:
    """Write the folder, whole or not at all, and say what was written, line by line.

    Each report takes those of the filters that it has. A folder that holds only what was written here before is
    replaced, unless a report fails; any other that holds something is left as it is. Raises ``CannotWriteReports``,
    ``ReportsFailed`` (a new folder then has the reports that did not fail), ``filtering.WrongFilter`` and ``OSError``.
    """
    taken = {kind: filters_from(_of(kind, given), kind) for kind in REPORTS.values()}
    folder = _place(folder)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        made_at = timezone.now()
        written = [_worked_out(kind, filters, on_step) for kind, filters in taken.items()]
        failed = [one for one in written if not one.report]
        if failed and (len(failed) == len(written) or any(_holds(folder))):
            raise ReportsFailed(f"{_told_of(failed)} Nothing was written; give a new folder to have the others.")
        for one in written:
            if one.report:
                _write_report(scratch / one.kind.name, one.report, in_address(taken[one.kind]), made_at)
        shutil.copyfile(Path(find_spec("plotly").origin).parent / "package_data" / SCRIPT, scratch / SCRIPT)
        no_pictures = _write_pictures(scratch, written, on_step)
        _write_lists(scratch, written, values_of(given), made_at, no_pictures)
        scratch.chmod(0o755)
        _put(scratch, _place(folder))  # others may have put something there meanwhile
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    for one in written:
        if one.report:
            yield f"{one.kind.name}: {len(one.report.sections)} sections in {folder / one.kind.name}"
    if no_pictures:
        yield no_pictures
    yield f"Open {folder / 'index.html'}."
    if failed:
        raise ReportsFailed(f"{_told_of(failed)} The others are written.")


def _of(kind: ReportKind, given: Mapping) -> dict:
    return {name: values for name, values in values_of(given).items() if name in kind.takes}


def _place(folder: Path) -> Path:
    """The whole path of the folder; raises ``CannotWriteReports`` unless it can be written anew without harm."""
    if folder.is_symlink():
        raise CannotWriteReports(f"{folder} is a link. Give the folder that it leads to.")
    folder = folder.resolve()
    if not folder.parent.is_dir():
        raise CannotWriteReports(f"There is no folder {folder.parent}. Make it first.")
    if folder.exists() and not folder.is_dir():
        raise CannotWriteReports(f"{folder} is a file. Give the name of a folder.")
    if Path.cwd().is_relative_to(folder) or folder.is_mount():
        why = "something is mounted there" if folder.is_mount() else "you are in it"
        raise CannotWriteReports(f"{folder} cannot be replaced: {why}. Give the name of a folder inside it.")
    ours = _listed(folder)
    if foreign := next((path for path in _holds(folder) if path not in ours), ""):
        raise CannotWriteReports(
            f"{folder} holds other files, such as {foreign}. Give a new name, or remove them first."
        )
    return folder


def _holds(folder: Path) -> Iterator[str]:
    """All that is in a folder, at any depth."""
    return (str(path.relative_to(folder)) for path in folder.rglob("*"))


def _listed(folder: Path) -> set[str]:
    """What the folder's own list says was written into it."""
    try:
        return {MARK, *json.loads((folder / MARK).read_text(encoding="utf-8"))["files"]}
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def _told_of(failed: list[Written]) -> str:
    reasons = " ".join(f"{one.kind.name}: {one.failure}" for one in failed)
    return f"{len(failed)} of {len(REPORTS)} reports could not be worked out. {reasons}"


def _worked_out(kind: ReportKind, filters: Mapping, on_step: Callable[[str], object]) -> Written:
    on_step(f"Working out {kind.name} …")
    try:
        return Written(kind, storing.make_now(kind.name, filters))
    except Exception as error:
        # One report that cannot be must not keep the others from being written; the lists say so.
        storing.log.exception("report_failed", report=kind.name)
        return Written(kind, None, storing.why_not(error))


def _write_report(folder: Path, report: Report, filters: Mapping, made_at: datetime) -> None:
    folder.mkdir()
    told = {"filters": filters, "made_at": made_at}
    (folder / f"{report.name}.json").write_text(writing.as_json(pack(report), **told), encoding="utf-8")
    (folder / f"{report.name}.md").write_text(writing.as_markdown(report, **told), encoding="utf-8")
    for section in report.sections:
        if section.table:
            table = writing.table_as_csv(section.table)
            (folder / f"{section.key}.csv").write_text(table, encoding="utf-8", newline="")
        if section.chart:
            page = render_to_string("admin/reports/figure.html", _about(report, section, filters, made_at))
            (folder / f"{section.key}.html").write_text(page, encoding="utf-8")


def _about(report: Report, section: Section, filters: Mapping, made_at: datetime) -> dict:
    return {
        "report": report,
        "section": section,
        "numbers": writing.numbers(section),
        "table": shown(section.table) if section.table else None,
        "told": writing.told(filters),
        "made_at": made_at,
        "script": f"../{SCRIPT}",
    }


def _write_pictures(folder: Path, written: list[Written], on_step: Callable[[str], object]) -> str:
    """Write each figure as SVG and PNG; return why there are none, if so."""
    charts = {
        folder / one.kind.name / section.key: (section.title, section.chart)
        for one in written
        if one.report
        for section in one.report.sections
        if section.chart
    }
    if not charts:
        return ""
    on_step(f"Drawing {len(charts)} figure{'' if len(charts) == 1 else 's'} …")
    try:
        for path, format, picture in pictures_of(charts, PICTURES):
            path.with_name(f"{path.name}.{format}").write_bytes(picture)
    except NoBrowser as error:
        return str(error)
    return ""


def _write_lists(folder: Path, written: list[Written], given: Mapping, made_at: datetime, no_pictures: str) -> None:
    about = {"made_at": made_at, "told": writing.told(given), "no_pictures": no_pictures}
    about["entries"] = [_entry(folder, one) for one in written]
    (folder / "index.html").write_text(render_to_string("admin/reports/folder.html", about), encoding="utf-8")
    (folder / "README.md").write_text("\n\n".join(_readme(about)) + "\n", encoding="utf-8")
    mark = {"made_at": made_at.isoformat(timespec="seconds"), "filters": given}
    mark["reports"] = [one.kind.name for one in written if one.report]
    mark["files"] = sorted(_holds(folder))
    (folder / MARK).write_text(json.dumps(mark, indent=2) + "\n", encoding="utf-8")


def _entry(folder: Path, one: Written) -> dict:
    """What the lists say of a report: its files, and of each section its sentence, its n and its files."""
    name = one.kind.name
    whole = [f"{name}/{name}.{ending}" for ending in ("json", "md")]
    sections = [
        {
            "title": section.title,
            "says": section.missing or section.says,
            "numbers": writing.numbers(section),
            "files": _there(folder, [f"{name}/{section.key}.{ending}" for ending in ("csv", "html", *PICTURES)]),
        }
        for section in (one.report.sections if one.report else ())
    ]
    return {"kind": one.kind, "failure": one.failure, "files": _there(folder, whole), "sections": sections}


def _there(folder: Path, paths: list[str]) -> dict[str, str]:
    """Those of the files that were written, by what their names end in."""
    return {path.rpartition(".")[2]: path for path in paths if (folder / path).exists()}


def _readme(about: Mapping) -> Iterator[str]:
    yield "# Reports"
    yield f"Worked out on {about['made_at']:%Y-%m-%d at %H:%M} UTC, {in_one_line(about['told'])}."
    if about["no_pictures"]:
        yield in_one_line(about["no_pictures"])
    for entry in about["entries"]:
        failure = in_one_line(entry["failure"])
        yield f"## {in_one_line(entry['kind'].title)}"
        yield in_one_line(entry["kind"].about)
        yield f"Not written: {failure}" if failure else f"Whole: {_links(entry['files'])}"
        for section in entry["sections"]:
            title, says = in_one_line(section["title"]), in_one_line(section["says"])
            n = f" (n = {in_one_line(section['numbers'])})" if section["numbers"] else ""
            yield f"- **{title}**{n}: {says} {_links(section['files'])}".rstrip()


def _links(files: Mapping[str, str]) -> str:
    return ", ".join(f"[{ending.upper()}]({path})" for ending, path in files.items())


def _put(scratch: Path, folder: Path) -> None:
    """Put the new folder in the place of the old one."""
    old = scratch.with_name(f"{scratch.name}.old")
    if folder.exists():
        os.rename(folder, old)
    try:
        os.rename(scratch, folder)
    except OSError:
        if old.exists():
            os.rename(old, folder)
        raise
    if old.exists():
        shutil.rmtree(old)
