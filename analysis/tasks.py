"""Tasks of the queue: each calls one act and is safe to run twice."""

from celery import shared_task
from django.db import OperationalError

from analysis import figures, uploads
from analysis.models import DataImport
from generation import stopping
from generation.wakeups import ask_for


@shared_task(
    name=uploads.IMPORT,
    autoretry_for=(OperationalError,),  # the database restarting; anything else ends on the import's page
    retry_backoff=True,
    max_retries=5,
)
def import_file(import_id: int) -> None:
    uploads.work_on_import(import_id=import_id, is_stopping=stopping.asked.is_set)


@shared_task(name="analysis.wake_imports")
def wake_imports() -> None:
    """Wake a worker for imports that nobody works on, after a lost wake-up or a lapsed lease; clear up after them."""
    for import_id in DataImport.objects.waiting().values_list("pk", flat=True):
        ask_for(uploads.IMPORT, data_import=import_id)
    uploads.throw_away_what_is_left()


@shared_task(name="analysis.work_out_agreement")
def work_out_agreement(hit_type_id: int) -> None:
    figures.work_out(hit_type_id=hit_type_id)


@shared_task(name="analysis.refresh_agreement")
def refresh_agreement() -> None:
    figures.refresh()
