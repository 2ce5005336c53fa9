"""Uploaded files: kept, imported by a worker that may die, thrown away."""

import csv
import io
import os
import threading
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from analysis import tasks, uploads
from analysis.imports import FORMATS
from analysis.imports.work import Options, Progress
from analysis.models import DataImport
from generation import wakeups
from generation.models import AuditEntry, Demonstration, Generation
from tests.analysis.imports.files import COLUMNS, train_row
from tests.annotator.threads import in_the_background
from tests.factories import make_group

pytestmark = pytest.mark.django_db

# Where an import's own thread, or somebody else, has to see its row meanwhile.
seen_by_others = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def var(tmp_path, settings):
    settings.VAR = tmp_path
    make_group()
    return tmp_path


@pytest.fixture
def ada():
    return User.objects.create_user("ada", is_staff=True)


def table(*rows, name="train.csv"):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS["train"])
    writer.writeheader()
    writer.writerows(rows)
    return SimpleUploadedFile(name, text.getvalue().encode())


def ask(*files, by, format="train", **options):
    return uploads.ask_for_import(files=files, format=format, options=Options(**options), by=by)


def kept(var):
    return [path for path in (var / "uploads").rglob("*") if path.is_file()]


def work(record, **options):
    uploads.work_on_import(import_id=record.pk, **options)
    record.refresh_from_db()
    return record


def test_an_upload_waits_under_a_random_name_and_is_deleted_when_it_was_imported(var, ada):
    record = ask(table(train_row(), train_row()), by=ada)
    [path] = kept(var)
    assert (str(path), path.name, len(path.parent.name)) == (record.path, "train.csv", 32)
    assert (record.state, record.created_by, record.bytes_total) == ("queued", ada, path.stat().st_size)
    tasks.import_file(record.pk)
    record.refresh_from_db()
    assert (record.state, record.new, record.leases) == ("finished", 2, 1)
    assert kept(var) == []
    assert AuditEntry.objects.get(act="file imported").by == ada


def test_a_refused_file_leaves_its_faults(var, ada):
    record = work(ask(table(train_row(), train_row(generation="")), by=ada))
    assert (record.state, record.rows, record.bad, record.new) == ("refused", 2, 1, 0)
    assert record.failure.startswith("Nothing was stored: 1 of 2 rows is bad.")
    assert record.faults.get().column == "generation"
    assert kept(var) == []
    assert not Generation.objects.exists()


def test_several_text_files_are_read_as_a_folder(ada):
    files = [SimpleUploadedFile(f"neutral_{group}.txt", b"the choir sang\n") for group in ("women", "women", "asian")]
    make_group("asian")
    record = work(ask(*files, by=ada, format="demonstrations"))
    assert (record.new, record.known) == (2, 1)
    assert record.file_name == "3 files: neutral_women.txt, neutral_women_1.txt, neutral_asian.txt"


def test_toxic_sets_need_their_permission_in_uploads_too(ada):
    record = work(ask(SimpleUploadedFile("hate_women.txt", b"a placeholder\n"), by=ada, format="demonstrations"))
    assert (record.state, Demonstration.objects.count()) == ("refused", 0)
    assert "your account may not fill toxic sets" in record.failure


def test_nobody_may_fill_toxic_sets_by_an_account_that_was_deleted(ada):
    record = ask(SimpleUploadedFile("hate_women.txt", b"a placeholder\n"), by=ada, format="demonstrations")
    ada.delete()
    assert work(record).state == "refused"


@pytest.mark.parametrize("name", ["../../passwd.csv", "..\\boot.csv", ".hidden.csv", "a b;c.csv", "x" * 300 + ".csv"])
def test_names_lead_nowhere_else(var, ada, name):
    record = ask(table(train_row(), name=name), by=ada)
    [path] = kept(var)
    assert path.parent.parent == var / "uploads"
    assert len(path.name) <= 150
    assert work(record).state == "finished"


def test_what_is_too_large_is_not_taken(var, ada, settings):
    settings.LARGEST_UPLOAD_MB = 0
    with pytest.raises(uploads.NotUploaded, match=r"at most 0 MB are taken\. Use the command line"):
        ask(table(train_row()), by=ada)
    assert not DataImport.objects.exists()
    assert kept(var) == []


def test_what_makes_no_sense_is_not_taken(ada):
    for files, format, sentence in (
        ([], "train", "Choose a file."),
        ([table()], "gold", "There is no format 'gold'"),
        ([table(), table()], "train", "Several files at once are read for demonstrations and prompts alone"),
        ([table(), table()], "prompts", "Several files at once must be text files"),
    ):
        with pytest.raises(uploads.NotUploaded, match=sentence):
            ask(*files, by=ada, format=format)


# --- Workers that stop, die, or come twice


def test_an_import_in_other_hands_is_left_alone_until_its_lease_lapses(ada):
    record = ask(table(train_row()), by=ada)
    assert uploads.lease_import(import_id=record.pk) is not None
    assert work(record).state == "running"
    DataImport.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    record = work(record)
    assert (record.state, record.leases, record.new) == ("finished", 2, 1)
    assert work(record).leases == 2


def test_an_import_that_stops_its_worker_each_time_fails(var, ada):
    record = ask(table(train_row()), by=ada)
    DataImport.objects.update(leases=3)
    record = work(record)
    assert record.state == "failed"
    assert record.failure.startswith("Its worker stopped 3 times before the end.")
    assert kept(var) == []


@seen_by_others
def test_a_worker_that_is_asked_to_stop_gives_the_import_back(ada, monkeypatch):
    record = ask(table(*(train_row() for _ in range(600))), by=ada)
    monkeypatch.setattr(uploads, "BEAT_SECONDS", 0.01)
    stopping, at = threading.Event(), Progress.at

    def slowly(progress, position, rows):
        stopping.set()
        threading.Event().wait(0.1)
        at(progress, position, rows)

    monkeypatch.setattr(Progress, "at", slowly)
    record = work(record, is_stopping=stopping.is_set)
    assert (record.state, record.leases, record.lease_expires_at) == ("queued", 0, None)
    assert not Generation.objects.exists()
    monkeypatch.undo()


@seen_by_others
def test_progress_is_told_and_the_lease_kept_while_the_transaction_is_open(ada, monkeypatch):
    record = ask(table(*(train_row() for _ in range(600))), by=ada)
    monkeypatch.setattr(uploads, "BEAT_SECONDS", 0.01)
    seen, at = [], Progress.at

    def watched(progress, position, rows):
        at(progress, position, rows)
        threading.Event().wait(0.15)
        seen.append(look(record))

    monkeypatch.setattr(Progress, "at", watched)
    work(record)
    assert seen[0]["rows"] == 500
    assert 0 < seen[0]["bytes_read"] <= record.bytes_total
    assert seen[1]["lease_expires_at"] > seen[0]["lease_expires_at"]


def look(record):
    """What others see of the import."""
    return in_the_background(lambda: DataImport.objects.filter(pk=record.pk).values().get()).result()


@seen_by_others
def test_a_stopped_import_stores_nothing(var, ada, monkeypatch):
    record = ask(table(*(train_row() for _ in range(600))), by=ada)
    monkeypatch.setattr(uploads, "BEAT_SECONDS", 0.01)
    at = Progress.at

    def stopped_meanwhile(progress, position, rows):
        in_the_background(lambda: uploads.stop_import(record=record, by=ada)).result()
        threading.Event().wait(0.1)
        at(progress, position, rows)

    monkeypatch.setattr(Progress, "at", stopped_meanwhile)
    record = work(record)
    assert (record.state, record.failure) == ("refused", "Stopped by ada.")
    assert not Generation.objects.exists()
    assert kept(var) == []
    assert AuditEntry.objects.get().act == "import stopped"


@seen_by_others
def test_an_import_stopped_while_it_is_stored_stores_nothing(ada, monkeypatch):
    record = ask(table(train_row()), by=ada)
    read = FORMATS["train"]

    def stopped_at_the_end(path, work):
        read(path, work)
        in_the_background(lambda: uploads.stop_import(record=record, by=ada)).result()

    monkeypatch.setitem(FORMATS, "train", stopped_at_the_end)
    assert work(record).state == "refused"
    assert not Generation.objects.exists()


def test_what_has_ended_cannot_be_stopped(ada):
    record = work(ask(table(train_row()), by=ada))
    assert uploads.stop_import(record=record, by=ada) is False
    assert work(record).state == "finished"


def test_an_unforeseen_error_is_told_on_the_import_and_its_file_deleted(var, ada, monkeypatch):
    def breaks(path, work):
        raise ZeroDivisionError("division\0by zero")

    monkeypatch.setitem(FORMATS, "train", breaks)
    record = ask(table(train_row()), by=ada)
    with pytest.raises(ZeroDivisionError):
        uploads.work_on_import(import_id=record.pk)
    record.refresh_from_db()
    assert (record.state, record.failure) == (
        "failed", "The worker stopped with an error: ZeroDivisionError: division␀by zero. Nothing was stored.",
    )  # fmt: skip
    assert (kept(var), record.path) == ([], "")


@pytest.mark.parametrize("content", [b"te\0xt,generation\n1,2\n", b'{"text\\ud800": 1}\n'])
def test_a_column_whose_name_cannot_be_stored_is_refused(var, ada, content):
    record = work(ask(SimpleUploadedFile("train", content), by=ada))
    assert (record.state, record.leases) == ("refused", 1)
    assert "has a column whose name has a character that cannot be stored" in record.failure
    assert kept(var) == []


def test_an_import_names_its_file_until_it_is_gone(var, ada, monkeypatch):
    record = ask(table(train_row()), by=ada)
    with monkeypatch.context() as patch:
        patch.setattr(uploads.shutil, "rmtree", lambda *_, **__: None)
        record = work(record)
    assert record.state == "finished"
    assert [str(path) for path in kept(var)] == [record.path]
    tasks.wake_imports()
    record.refresh_from_db()
    assert (kept(var), record.path) == ([], "")


def test_what_no_import_names_is_thrown_away_after_a_while(var, ada):
    waiting = ask(table(train_row()), by=ada)
    folder = var / "uploads" / ("0" * 32)
    folder.mkdir()
    (folder / "train.csv").write_text("left over")
    (var / "uploads" / "stray.csv").write_text("left over")
    tasks.wake_imports()
    assert len(kept(var)) == 3
    for path in (var / "uploads").iterdir():
        os.utime(path, (time.time() - 3700,) * 2)
    tasks.wake_imports()
    assert [str(path) for path in kept(var)] == [waiting.path]
    assert not folder.exists()


def test_files_of_one_name_are_all_kept(var, ada):
    names = ("neutral_women_2.txt", "neutral_women.txt", "neutral_women.txt", "neutral_women_1.txt")
    record = ask(
        *(SimpleUploadedFile(name, f"the choir sang {place}\n".encode()) for place, name in enumerate(names)),
        by=ada, format="demonstrations",
    )  # fmt: skip
    assert len(kept(var)) == 4
    assert work(record).new == 4


def test_waiting_imports_are_woken_for(ada, monkeypatch, django_capture_on_commit_callbacks):
    sent = []

    def send(task, args, *, queue, **_):
        sent.append((task, args, queue))

    monkeypatch.setattr(wakeups.current_app, "send_task", send)
    with django_capture_on_commit_callbacks(execute=True):
        record = ask(table(train_row()), by=ada)
        tasks.wake_imports()
    assert sent == [("analysis.import_file", [record.pk], "default")] * 2
