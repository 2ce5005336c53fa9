"""Plotly's script for the browser, from its wheel: nothing else that lies beside it there."""

from importlib.util import find_spec
from pathlib import Path

from django.contrib.staticfiles.finders import BaseFinder
from django.contrib.staticfiles.utils import matches_patterns
from django.core.files.storage import FileSystemStorage

PREFIX, SCRIPT = "plotly", "plotly.min.js"


class PlotlyFinder(BaseFinder):
    """Finds ``plotly/plotly.min.js`` without importing the package."""

    def __init__(self, app_names=None, *args, **kwargs) -> None:
        self.storage = FileSystemStorage(location=Path(find_spec("plotly").origin).parent / "package_data")
        self.storage.prefix = PREFIX

    def find(self, path: str, find_all: bool = False):
        found = [self.storage.path(SCRIPT)] if path == f"{PREFIX}/{SCRIPT}" else []
        return found if find_all else next(iter(found), [])

    def list(self, ignore_patterns):
        if not matches_patterns(SCRIPT, ignore_patterns):
            yield SCRIPT, self.storage
