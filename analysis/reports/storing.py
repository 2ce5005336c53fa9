"""Reports are worked out on the queue and kept, so that looking at one never takes longer than reading it."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

import structlog
from django.db import Error, OperationalError, connection, transaction
from django.db.models import Case, F, PositiveSmallIntegerField, Q, When
from django.utils import timezone

from analysis.exports.filtering import WrongFilter
from analysis.imports.faults import storable
from analysis.models import StoredReport
from analysis.reports.catalogue import REPORTS, ReportKind
from analysis.reports.filters import digest, filters_from, in_address
from analysis.reports.frame import Report, pack
from analysis.reports.sources import State, counted, newest_of, state_of
from generation import leases
from generation.keeping import Keeper
from generation.wakeups import ask_for_report

WORK_OUT = "analysis.work_out_report"
"""The task of the queue that works a report out."""
ASKED_JUST_NOW = timedelta(minutes=1)
KEPT_UP_FOR = timedelta(days=1)
"""What somebody looked at within this time is worked out anew as answers arrive."""
KEPT_UP = 50
"""So many of them, those looked at last: filters can be combined without end."""
REFRESHED_AT_ONCE = 3
"""So many of them a minute, less those that wait already."""
REST = 10
"""A report is left alone for so many times as long as it took, and twice as long for each failure in a row."""
MOST_DOUBLED = 10
KEPT = 500
"""So many reports are kept, those looked at last,"""
KEPT_FOR = timedelta(days=90)
"""for so long."""
WAITING = 50
"""So many may wait to be worked out for the first time, those looked at last."""
WOKEN_AT_ONCE = 10
STOP_IS_SEEN_IN = 1.0
"""Seconds."""
LONGEST_FAILURE = 1000
STOPPED_EACH_TIME = (
    f"It was taken up {leases.MAX_LEASES} times, and its worker or the database stopped each time before the end. See "
    "their logs; a machine short of memory does this."
)

log = structlog.get_logger(__name__)


class UnknownReport(LookupError):
    """There is no such report; the message names those there are."""


def find(name: str) -> ReportKind:
    """The kind of report of this name; raises ``UnknownReport``."""
    if name not in REPORTS:
        raise UnknownReport(f"There is no report {name!r}. Choose one of: {', '.join(REPORTS)}.")
    return REPORTS[name]


def make_now(name: str, filters: Mapping) -> Report:
    """A report worked out here and now, over what ``filters`` (as ``filters_from`` gives them) leave."""
    with _one_snapshot():
        return find(name).make(filters)


@contextmanager
def _one_snapshot() -> Iterator[None]:
    """Let all sections see the same rows, and change none; within a transaction it is the caller's to see to that."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


# --- Looking at one ------------------------------------------------------------------------------


def look_at(name: str, asked: Mapping, *, newest: Mapping[str, int | str] | None = None) -> StoredReport:
    """What is kept of a report for the filters of an address; the queue is asked for what is missing or outdated.

    It has ``is_outdated`` and, without a payload, is to be looked at again. ``newest`` is that of the sources, if it is
    known. Raises ``UnknownReport`` and ``filtering.WrongFilter``.
    """
    kind = find(name)
    filters = in_address(filters_from(asked, kind))
    now = timezone.now()
    stored, is_new = StoredReport.objects.get_or_create(
        name=name, digest=digest(filters), defaults={"filters": filters, "asked_at": now, "looked_at": now}
    )
    stored.is_outdated = is_outdated(stored, newest)
    if is_new:
        ask_for_report(WORK_OUT, stored=stored.pk)
        return stored
    StoredReport.objects.filter(pk=stored.pk).update(looked_at=now)
    if stored.finished_at is None:
        return stored
    failed_on_this = bool(stored.failure) and not _is_other(stored.tried_on, kind, newest)
    is_wanted = (stored.payload is None or stored.is_outdated) and not failed_on_this
    if is_wanted and _may_be_asked_for(stored):
        ask(stored)
    return stored


def _may_be_asked_for(stored: StoredReport) -> bool:
    rest = max(ASKED_JUST_NOW, timedelta(seconds=REST * (stored.seconds or 0)))
    return stored.asked_at < timezone.now() - rest * 2 ** min(stored.failures, MOST_DOUBLED)


def ask(stored: StoredReport) -> None:
    """Have a report worked out anew; one that is being worked out is begun once more when that is done."""
    now = timezone.now()
    row = StoredReport.objects.filter(pk=stored.pk)
    row.update(asked_at=now, finished_at=None, leases=_no_leases_if(Q(finished_at__isnull=False)))
    stored.asked_at, stored.finished_at = now, None
    ask_for_report(WORK_OUT, stored=stored.pk)


def _no_leases_if(condition: Q) -> Case:
    return Case(When(condition, then=0), default=F("leases"), output_field=PositiveSmallIntegerField())


def is_outdated(stored: StoredReport, newest: Mapping[str, int | str] | None = None) -> bool:
    """Whether there is something newer than a report rests on, or it is older than such a report is good for.

    That is a look at the newest of each source; that work was approved or rejected since, ``refresh`` finds.
    """
    kind = find(stored.name)
    return stored.payload is not None and (_is_old(stored, kind) or _is_other(stored.rests_on, kind, newest))


def _is_old(stored: StoredReport, kind: ReportKind) -> bool:
    return bool(kind.good_for and stored.made_at and stored.made_at < timezone.now() - kind.good_for)


def _is_other(state: State, kind: ReportKind, newest: Mapping[str, int | str] | None) -> bool:
    now = newest_of(kind.rests_on) if newest is None else newest
    return any(now[source] != state.get(source, {}).get("newest") for source in kind.rests_on)


# --- On the queue --------------------------------------------------------------------------------


def work_out(*, stored: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Work out the stored report with this id, unless it is done or others are at it. Safe to run twice and at once.

    It is worked out to the end though ``is_stopping``; if the worker is killed before, that does not count against it.
    """
    began = timezone.now()
    token = leases.take_up(StoredReport.objects.waiting(), pk=stored)
    row = token and StoredReport.objects.defer("payload").filter(pk=stored, lease_token=token).first()
    if not row:
        return
    started, connected = time.monotonic(), connection.connection
    state: State = {}

    def fail(reason: str, **found) -> None:
        _finish(row, began, failure=reason, tried_on=state, failures=F("failures") + 1, **found)

    try:
        kind = find(row.name)
        state = state_of(kind.rests_on)
        if leases.is_worn_out(row):
            fail(STOPPED_EACH_TIME)
            return
        leases.begin(row)
        with Keeper(_keeping(row, is_stopping), lost=leases.FinishedElsewhere, of=row, every=STOP_IS_SEEN_IN):
            payload = pack(make_now(row.name, filters_from(row.filters, kind)))
        seconds = time.monotonic() - started
        done = {"payload": payload, "rests_on": state, "tried_on": state, "made_at": timezone.now(), "failure": ""}
        with transaction.atomic():
            is_ours = _finish(row, began, **done, failures=0, seconds=seconds)
        event = "report_worked_out" if is_ours else "lease_lost"
        log.info(event, report=row.name, stored=row.pk, seconds=round(seconds, 2))
    except leases.FinishedElsewhere as lost:
        log.info("lease_lost", row=str(row), reason=str(lost))
    except (UnknownReport, WrongFilter) as wrong:  # another version of Humanval made it; what it asks for has gone
        fail(str(wrong), seconds=time.monotonic() - started)
    except Exception as error:
        is_away = connection.connection is not connected or not connection.is_usable()
        if isinstance(error, OperationalError) and is_away:
            connection.close()  # the database went away, and may be back: others take it up, or we do
            with suppress(Error):
                leases.drop(row)
            raise
        # Whatever else it was, the report's page has to say so; the queue would only log it.
        log.exception("report_failed", report=row.name, stored=row.pk)
        fail(why_not(error), seconds=time.monotonic() - started)


def _keeping(row: StoredReport, is_stopping: Callable[[], bool]) -> Callable[[], None]:
    """What keeps the lease of a report, and once lets it not count when the worker was asked to stop."""
    is_forgiven = False

    def keep() -> None:
        nonlocal is_forgiven
        leases.keep(row)
        if not is_forgiven and is_stopping():
            leases.forgive(row)
            is_forgiven = True

    return keep


def _finish(row: StoredReport, began: datetime, **found) -> bool:
    """Store what came of it; whoever asked for it since ``began`` has it worked out once more."""
    asked_since = Q(asked_at__gt=began)
    return leases.finish(
        row,
        finished_at=Case(When(asked_since, then=None), default=timezone.now()),
        leases=_no_leases_if(asked_since),
        **found,
    )


def why_not(error: Exception) -> str:
    """What a page says of a report that could not be worked out."""
    return storable(f"It could not be worked out: {type(error).__name__}: {error}")[:LONGEST_FAILURE]


def wake() -> None:
    """Wake a worker for reports that are wanted and that nobody works on; let go of what nobody looks at.

    A wake-up may be lost, or a lease lapse.
    """
    _let_go()
    waiting = StoredReport.objects.waiting().order_by("asked_at")
    for stored in waiting.values_list("pk", flat=True)[:WOKEN_AT_ONCE]:
        ask_for_report(WORK_OUT, stored=stored)


def _let_go() -> None:
    """Keep a bounded number: addresses, and with them reports, can be made up without end."""
    StoredReport.objects.filter(looked_at__lt=timezone.now() - KEPT_FOR).delete()
    idle = StoredReport.objects.filter(lease_expires_at=None).order_by("-looked_at", "-pk")
    never_made = idle.filter(payload__isnull=True, finished_at=None)
    for rows, most in ((never_made, WAITING), (idle, KEPT)):
        StoredReport.objects.filter(
            pk__in=list(rows.values_list("pk", flat=True)[most:]), lease_expires_at=None
        ).delete()


def refresh() -> None:
    """Have what somebody looked at of late worked out anew if other rows count now, or it has become too old.

    A few at once: what people wait for goes first, and there is always something that changed.
    """
    now = timezone.now()
    room = REFRESHED_AT_ONCE - StoredReport.objects.filter(finished_at=None).count()
    kept_up = StoredReport.objects.filter(looked_at__gte=now - KEPT_UP_FOR, name__in=REPORTS)
    reports = list(kept_up.exclude(finished_at=None).defer("payload").order_by("-looked_at")[:KEPT_UP])
    state = state_of({source for stored in reports for source in REPORTS[stored.name].rests_on})
    for stored in reports:
        kind = REPORTS[stored.name]
        there = {source: state[source] for source in kind.rests_on}
        if counted(there) != counted(stored.tried_on) or (not stored.failure and _is_old(stored, kind)):
            if room > 0 and _may_be_asked_for(stored):
                ask(stored)
                room -= 1
        elif there != stored.tried_on:  # there are newer rows, none of which counts
            same = StoredReport.objects.filter(pk=stored.pk, tried_on=stored.tried_on)
            is_of_payload = stored.rests_on == stored.tried_on
            same.update(tried_on=there, rests_on=there if is_of_payload else F("rests_on"))
