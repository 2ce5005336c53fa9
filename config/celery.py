"""The Celery application: the broker carries wake-ups only, the database is the truth."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("humanval")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
