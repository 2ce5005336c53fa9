#!/usr/bin/env python
"""Humanval's command line."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError:
        sys.exit("Django is not installed in this Python. Run `make install`, then .venv/bin/python manage.py …")
    from config.embedded import EmbeddedDatabaseError
    from config.state import StateFolderError

    try:
        execute_from_command_line(sys.argv)
    except (EmbeddedDatabaseError, StateFolderError) as error:
        sys.exit(f"{error}")
