"""The classifiers that can be named here: the embedded one and those trained here, by the folders they lie in."""

from django.conf import settings
from django.utils.html import format_html, format_html_join
from unfold.widgets import UnfoldAdminTextInputWidget

EMBEDDED = "minilm-toxigen"
SUGGESTIONS = "known_classifiers"


def trained_classifiers() -> list[str]:
    """The names of those trained here, the newest first: the folders that ``working.load_classifier`` looks into."""
    files = (settings.VAR / "classifiers").glob("[a-z0-9]*/config.json")
    return [file.parent.name for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True)]


def known_classifiers() -> list[str]:
    """All that a run or a reading can name without a path or an id."""
    return list(dict.fromkeys([EMBEDDED, settings.CLASSIFIER, *trained_classifiers()]))


class ClassifierInput(UnfoldAdminTextInputWidget):
    """A line of text that offers the known classifiers; any path or id can be written as well."""

    def __init__(self) -> None:
        super().__init__(attrs={"list": SUGGESTIONS})

    def render(self, name, value, attrs=None, renderer=None) -> str:
        options = format_html_join("", '<option value="{}"></option>', ((known,) for known in known_classifiers()))
        return super().render(name, value, attrs, renderer) + format_html(
            '<datalist id="{}">{}</datalist>', SUGGESTIONS, options
        )
