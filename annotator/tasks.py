"""Periodic tasks: each calls one act and is safe to run twice."""

from celery import shared_task

from annotator import assigning, publishing, qualifying, reviewing


@shared_task(name="annotator.publish_new_statements")
def publish_new_statements() -> None:
    publishing.publish_new_statements()


@shared_task(name="annotator.expire_assignments")
def expire_assignments() -> None:
    assigning.expire_lapsed()


@shared_task(name="annotator.approve_overdue")
def approve_overdue() -> None:
    reviewing.approve_overdue()


@shared_task(name="annotator.finish_tests")
def finish_tests() -> None:
    qualifying.finish_tests()
