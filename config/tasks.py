"""Housekeeping on the queue."""

from celery import shared_task
from django.core.management import call_command


@shared_task(name="config.clear_sessions")
def clear_sessions() -> None:
    """Delete sessions that have lapsed: the database keeps them otherwise."""
    call_command("clearsessions")
