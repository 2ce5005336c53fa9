"""The Celery application: the broker carries wake-ups only, the database is the truth."""

import os
import warnings

from celery import Celery
from celery.platforms import SecurityWarning
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

# It warns root of messages that carry code; ours are JSON and carry a number.
warnings.filterwarnings("ignore", category=SecurityWarning)

TRANSPORT_ALIASES["filesystem"] = "config.folder_queue:Transport"

app = Celery("humanval")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
