"""The settings under test: the project's own, with state kept apart and static files unhashed."""

import os
from pathlib import Path

os.environ.setdefault("HUMANVAL_VAR", str(Path(__file__).resolve().parent.parent / "var" / "test"))
os.environ.setdefault("HUMANVAL_HTTPS", "0")

from config.settings import *  # noqa: F403

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # noqa: F405 - whitenoise warns of a missing folder
