"""Files that are uploaded to be imported: keeping them, having a worker import them, stopping that."""

import re
import secrets
import shutil
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path

import structlog
from django.conf import settings
from django.db import Error, OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Greatest, Now
from django.utils import timezone

from analysis.importing import ImportLost, Refused, import_file, keep_faults
from analysis.imports.faults import Faults, storable
from analysis.imports.work import Options, Progress
from analysis.models import UNENDED_IMPORTS, DataImport, ImportFormat, ImportState
from generation.auditing import note
from generation.leases import STOPPED_EACH_TIME, is_worn_out
from generation.stopping import WorkerStopping
from generation.wakeups import ask_for

IMPORT = "analysis.import_file"
"""The task of the queue that imports an upload."""
FOLDERS = (ImportFormat.DEMONSTRATIONS, ImportFormat.PROMPTS)
"""Formats of which several files may be uploaded at once."""
MOST_FILES = 200
BEAT_SECONDS = 1.0
LEFT_AFTER = timedelta(hours=1)
"""What lies among the uploads for so long and belongs to no import is thrown away: whoever put it there has died."""

log = structlog.get_logger(__name__)


class NotUploaded(ValueError):
    """The upload cannot be taken; ``str`` says why."""


# --- Asking for it ---------------------------------------------------------------------------


def ask_for_import(*, files: Sequence, format: str, options: Options, by) -> DataImport:
    """Keep uploaded files and have a worker import them. Raises ``NotUploaded``.

    ``files`` have a ``name``, a ``size`` and ``chunks()``, as Django's uploads.
    """
    _check(files, format)
    folder = settings.VAR / "uploads" / secrets.token_hex(16)
    folder.mkdir(parents=True, mode=0o700)
    names = _safe_names(file.name for file in files)
    try:
        for file, name in zip(files, names, strict=True):
            with (folder / name).open("wb") as kept:
                for chunk in file.chunks():
                    kept.write(chunk)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise NotUploaded(f"The file cannot be kept: {error.strerror}. Free some space and try again.") from error
    with transaction.atomic():
        record = DataImport.objects.create(
            format=format,
            file_name=(names[0] if len(names) == 1 else f"{len(names)} files: {', '.join(names)}")[:300],
            path=str(folder / names[0] if len(names) == 1 else folder),
            options=options.given(),
            bytes_total=sum(file.size for file in files),
            created_by=by,
        )
        ask_for(IMPORT, data_import=record.pk)
    log.info("import_asked_for", data_import=record.pk, format=format, files=len(files))
    return record


def _check(files: Sequence, format: str) -> None:
    if not files:
        raise NotUploaded("Choose a file.")
    if format not in ImportFormat.values:
        raise NotUploaded(f"There is no format {format!r}. Choose one of: {', '.join(ImportFormat.values)}.")
    if len(files) > 1 and format not in FOLDERS:
        raise NotUploaded(f"Several files at once are read for {' and '.join(FOLDERS)} alone. Upload one file.")
    if len(files) > 1 and (others := [file.name for file in files if not file.name.lower().endswith(".txt")]):
        raise NotUploaded(f"Several files at once must be text files (.txt); {others[0]} is none.")
    if len(files) > MOST_FILES:
        raise NotUploaded(f"These are {len(files)} files; at most {MOST_FILES} can be uploaded at once.")
    megabytes = sum(file.size for file in files) / 1_000_000
    if megabytes > settings.LARGEST_UPLOAD_MB:
        raise NotUploaded(
            f"The upload has {megabytes:,.0f} MB; at most {settings.LARGEST_UPLOAD_MB:,} MB are taken. "
            "Use the command line, or set HUMANVAL_LARGEST_UPLOAD_MB."
        )


def _safe_names(names) -> list[str]:
    """Names that lead nowhere else and are all different, since labels and groups are read from them."""
    safe: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w.+-]", "_", Path(name.replace("\\", "/")).name).lstrip(".")[-150:] or "upload"
        stem, dot, suffix = plain.rpartition(".")
        stem, ending = (stem, dot + suffix) if stem else (suffix, "")
        tries = count(1)
        while plain in safe:
            plain = f"{stem}_{next(tries)}{ending}"
        safe.append(plain)
    return safe


def stop_import(*, record: DataImport, by) -> bool:
    """Stop an import that has not ended; nothing of it is stored. Return whether it was still going on."""
    with transaction.atomic():
        stopped = DataImport.objects.filter(pk=record.pk, state__in=UNENDED_IMPORTS).update(
            state=ImportState.REFUSED, failure=f"Stopped by {by}.", ended_at=timezone.now(), lease_expires_at=None
        )
        if stopped:
            note("import stopped", by=by, subject=f"import {record.pk}")
    if stopped:
        throw_away(record)
    return bool(stopped)


# --- What a worker does ----------------------------------------------------------------------


def work_on_import(*, import_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Import an upload, unless that is done or others are at it. Safe to run twice and at once."""
    record = lease_import(import_id=import_id)
    if record is None:
        return
    progress = Progress()
    watch = Watch(record, progress, is_stopping)
    watch.start()
    try:
        options = Options(**record.options)
        import_file(
            format=record.format,
            path=record.path,
            options=options,
            by=record.created_by,
            record=record,
            progress=progress,
        )
    except WorkerStopping:
        _give_back(record)
        return
    except ImportLost as lost:
        log.info("import_lost", data_import=record.pk, reason=str(lost))
        return
    except Refused as refused:
        _end(record, ImportState.REFUSED, str(refused), rows=progress.rows, faults=refused.faults)
    except OperationalError:
        raise  # the database is away: the import is taken up again when it is back
    except Exception as error:
        # Whatever it was, the import's page has to say so; the queue would only log it.
        reason = f"The worker stopped with an error: {type(error).__name__}: {error}. Nothing was stored."
        _end(record, ImportState.FAILED, reason, rows=progress.rows)
        throw_away(record)
        raise
    finally:
        watch.finish()
    throw_away(record)


def lease_import(*, import_id: int) -> DataImport | None:
    """Take up an import, or return ``None`` if it has ended, is gone or in other hands."""
    taken = DataImport.objects.waiting().filter(pk=import_id)
    if not taken.update(
        state=ImportState.RUNNING, lease_expires_at=_lease_end(), leases=F("leases") + 1,
        started_at=Coalesce("started_at", Now()),
    ):  # fmt: skip
        return None
    record = DataImport.objects.select_related("created_by").get(pk=import_id)
    if is_worn_out(record):
        _end(record, ImportState.FAILED, STOPPED_EACH_TIME)
        throw_away(record)
        return None
    return record


class Watch(threading.Thread):
    """Tells the import's page how far it is, and keeps the lease, while the import's transaction is open.

    What one transaction writes nobody else sees before its end, so this has a connection of its own.
    """

    def __init__(self, record: DataImport, progress: Progress, is_stopping: Callable[[], bool]):
        super().__init__(daemon=True, name=f"watch of {record}")
        self._mine = DataImport.objects.filter(pk=record.pk, state=ImportState.RUNNING, leases=record.leases)
        self._progress, self._is_stopping, self._done = progress, is_stopping, threading.Event()

    def run(self) -> None:
        try:
            while not self._done.wait(BEAT_SECONDS):
                self._beat()
        finally:
            connection.close()

    def _beat(self) -> None:
        if self._is_stopping():
            self._progress.stop_reason = WorkerStopping()
            return
        try:
            kept = self._mine.update(
                bytes_read=self._progress.bytes_read, rows=self._progress.rows, lease_expires_at=_lease_end()
            )
        except Error as error:
            log.warning("import_beat_missed", error=str(error))
            connection.close()
            return
        if not kept and not self._done.is_set():
            self._progress.stop_reason = ImportLost("It was stopped, or somebody else has taken it up.")

    def finish(self) -> None:
        self._done.set()
        self.join()


def _end(record: DataImport, state: ImportState, reason: str, *, rows: int = 0, faults: Faults | None = None) -> None:
    with transaction.atomic():
        ended = DataImport.objects.filter(pk=record.pk, state=ImportState.RUNNING, leases=record.leases).update(
            state=state, failure=storable(reason), ended_at=timezone.now(), lease_expires_at=None,
            rows=rows, bad=faults.count if faults else 0, bytes_read=F("bytes_total"),
        )  # fmt: skip
        if ended and faults:
            keep_faults(record, faults)
    log.warning("import_ended_without_storing", data_import=record.pk, reason=reason)


def _give_back(record: DataImport) -> None:
    """Let others take it up at once; a worker that stops in good order does not count against it."""
    DataImport.objects.filter(pk=record.pk, state=ImportState.RUNNING, leases=record.leases).update(
        state=ImportState.QUEUED, lease_expires_at=None, leases=Greatest(F("leases") - 1, 0)
    )


def throw_away(record: DataImport) -> None:
    """Delete the uploaded file with the folder that it waited in; the import names it until it is gone."""
    folder = _folder_of(record.path)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            log.warning("upload_not_deleted", data_import=record.pk, path=record.path)
            return
    DataImport.objects.filter(pk=record.pk).exclude(path="").update(path="")


def throw_away_what_is_left() -> None:
    """Delete uploads that outlived their import, and what no import names: their worker or their request died."""
    for record in DataImport.objects.exclude(state__in=UNENDED_IMPORTS).exclude(path=""):
        throw_away(record)
    long_ago = (timezone.now() - LEFT_AFTER).timestamp()
    old = [found for found in _kept() if _touched(found) < long_ago]
    waiting = DataImport.objects.filter(state__in=UNENDED_IMPORTS).exclude(path="").values_list("path", flat=True)
    named = {_folder_of(path) for path in waiting} if old else set()
    for found in old:
        if found in named:
            continue
        log.warning("upload_left_over", path=str(found))
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        else:
            found.unlink(missing_ok=True)


def _folder_of(path: str) -> Path | None:
    """The folder of its own that an upload waits in."""
    uploads = settings.VAR / "uploads"
    return next((folder for folder in (Path(path), Path(path).parent) if path and folder.parent == uploads), None)


def _kept() -> list[Path]:
    uploads = settings.VAR / "uploads"
    return list(uploads.iterdir()) if uploads.is_dir() else []


def _touched(path: Path) -> float:
    """When it was last written to; now, if it is gone meanwhile."""
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        return timezone.now().timestamp()


def _lease_end():
    return timezone.now() + timedelta(seconds=settings.LEASE_SECONDS)
