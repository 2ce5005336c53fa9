"""Periodic tasks: each calls one act and is safe to run twice."""

from celery import shared_task

from annotator import assigning, publishing


@shared_task(name="annotator.publish_new_statements")
def publish_new_statements() -> None:
    publishing.publish_new_statements()


@shared_task(name="annotator.expire_assignments")
def expire_assignments() -> None:
    assigning.expire_lapsed()
