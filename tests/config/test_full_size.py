"""Every page of the workspace costs the same with 1,000 statements as with the 274,186 of the released dataset."""

from dataclasses import replace

import pytest
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.models import StoredReport
from analysis.reports import storing
from analysis.reports.catalogue import PAGES, REPORTS
from benchmarks.io.filling import FULL, PLACES, SMALL, fill
from tests.config.test_every_url import EVERY_PATTERN, LOG_IN, World, outcome

pytestmark = pytest.mark.django_db

# What writes a file reads each of its rows.
FILES = ("download", "admin:annotator_pay_file", "api-exports-file")

# What tells which statements there are to train on looks at each, as the training does; no page waits for it.
LOOKING_AT_EACH = ("admin:analysis_training_preview",)

# Lists as people use them: turned over, filtered, searched.
LOOKED_THROUGH = (
    "/admin/generation/generation/?p=10",
    "/admin/generation/generation/?id__lt=800",
    "/admin/generation/generation/?label__exact=toxic&method__exact=topk",
    "/admin/generation/generation/?q=herons+garden+777",
    "/admin/autocomplete/?app_label=annotator&model_name=knownanswers&field_name=generation&term=777",
    "/admin/annotator/hit/?p=3",
    "/admin/annotator/hit/?state=reviewable",
    "/admin/annotator/assignment/?status__exact=submitted",
    "/admin/annotator/assignment/review/?page=25",
    "/admin/annotator/assignment/review/?state=approved",
    "/admin/annotator/payment/?paid=no",
    *(f"/admin/analyse/{page}/" for page in PAGES),
)

# What adds up people's work or pay, exactly, reads each piece of it; how many statements there are changes nothing.
ADDING_UP_WORK = (
    "/admin/annotator/payment/",
    "/admin/annotator/payout/",
    "/admin/annotator/worker/",
    "/admin/annotator/assignment/review/",
    "/admin/annotator/hittype/",
)
ROWS_A_PIECE_OF_WORK = 10

# What comes from stored reports: the dashboards, and with its bounded counts the overview.
STORED = ("/admin/analyse/",)

# So many more may be read when PostgreSQL takes another way to the same rows.
SOME_ROWS = 2_000

IS_OUTDATED = "There may be newer figures than these."

ROWS_READ = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_xact_user_tables"


@pytest.fixture
def world():
    return World()


@pytest.fixture
def browser(world):
    return world.browser("admin")


@pytest.fixture
def addresses(world, browser):
    """Every page of the workspace."""
    anonymous = world.browser("anonymous")
    every = [
        world.address(name, parameters) for name, parameters in EVERY_PATTERN if name not in FILES + LOOKING_AT_EACH
    ]
    of_the_workspace = [address for address in every if outcome(anonymous.get(address)) == LOG_IN]
    return [address for address in (*of_the_workspace, *LOOKED_THROUGH) if outcome(browser.get(address)) == 200]


def work_out_reports() -> None:
    """As the queue does, all that the dashboards show without filters."""
    StoredReport.objects.all().delete()
    for name in REPORTS:
        storing.work_out(stored=storing.look_at(name, {}).pk)
    failures = dict(StoredReport.objects.exclude(failure="").values_list("name", "failure"))
    assert failures == {}


def rows_read() -> int:
    with connection.cursor() as cursor:
        cursor.execute(ROWS_READ)
        return cursor.fetchone()[0]


def cost(browser, address) -> tuple[int, int]:
    """How many queries a page takes, and how many rows these read; nothing is remembered from the page before."""
    cache.clear()
    ContentType.objects.clear_cache()
    # What is outdated is asked for once a minute; here that moment never comes while a page is measured.
    StoredReport.objects.update(asked_at=timezone.now())
    before = rows_read()
    with CaptureQueriesContext(connection) as queries:
        response = browser.get(address)
    assert response.status_code == 200, address
    return len(queries), rows_read() - before


def test_no_page_asks_more_or_reads_more_rows_at_the_size_of_the_released_dataset(world, browser, addresses):
    """First all its statements are added, then all the work on them: 27,450 annotations of 9,150 HITs.

    What adds up is stored, and told of as it is kept while newer work is there.
    """
    rows = {"hit_type_id": world.rows["annotator_hittype"].pk, "form_id": world.rows["annotator_consentform"].pk}
    fill(SMALL, **rows)
    work_out_reports()
    assert not any(IS_OUTDATED in shown(browser, page) for page in PAGES)
    small = {address: cost(browser, address) for address in addresses}

    fill(replace(FULL, hits=SMALL.hits), **rows)
    more_statements = {address: cost(browser, address) for address in addresses}
    assert grown(small, more_statements, by=SOME_ROWS) == {}
    assert IS_OUTDATED in shown(browser, "dataset")

    fill(FULL, **rows)
    assert all(IS_OUTDATED in shown(browser, page) for page in PAGES)
    outdated = {address: cost(browser, address) for address in addresses if address.startswith(STORED)}
    assert grown(small, outdated, by=SOME_ROWS) == {}

    work_out_reports()
    full = {address: cost(browser, address) for address in addresses}
    adding_up = {address for address in addresses if address.startswith(ADDING_UP_WORK)}
    work = ROWS_A_PIECE_OF_WORK * PLACES * FULL.hits
    assert grown(small, full, by=SOME_ROWS).keys() <= adding_up
    assert grown(small, full, by=work) == {}


def shown(browser, page) -> str:
    return browser.get(f"/admin/analyse/{page}/").content.decode()


def grown(before: dict, after: dict, *, by: int) -> dict:
    """The pages that ask more queries than before, or whose queries read so many more rows, with both."""
    return {
        address: (before[address], after[address])
        for address in after
        if after[address][0] != before[address][0] or after[address][1] > before[address][1] + by
    }
