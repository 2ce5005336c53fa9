"""The project's own settings, and the floor beside it."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.web"]  # noqa: F405
ROOT_URLCONF = "benchmarks.web.urls"
