"""How ``make test`` shares the tests among processes: whole files, the longest first, each with a database of its own.

Transactional tests empty the tables that migrations have filled, so every process comes to them last, as
pytest-django has it in one process.
"""

from functools import cached_property
from itertools import groupby

import pytest
from django.core.cache import cache
from xdist.scheduler import LoadScopeScheduling

# What takes longer than ten seconds. A process is given a file while it is at its last tests of the one before, so
# behind the first file, of two tests that take minutes, comes one of moments.
LONGEST = (
    "tests/browser/test_whole_path.py",
    "tests/config/test_embedded.py",
    "tests/generation/test_alice.py",
    "tests/generation/test_language_models.py",
    "tests/annotator/test_questions.py",
    "tests/generation/test_generate_command.py",
    "tests/config/test_full_size.py",
    "tests/config/test_every_url.py",
    "tests/generation/test_alice_oracle.py",
    "tests/generation/test_classifiers.py",
    "tests/annotator/test_query_counts.py",
    "tests/generation/test_working_with_processes.py",
    "tests/browser/test_task_page.py",
    "tests/browser/test_annotators_pages.py",
    "tests/browser/test_workspace_pages.py",
    "tests/annotator/test_processes.py",
    "tests/analysis/test_classifier_training.py",
    "tests/analysis/test_classifier_processes.py",
    "tests/analysis/test_training_loop.py",
    "tests/analysis/test_training_head.py",
)
RANKS = {path: rank for rank, path in enumerate(LONGEST)}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]):
    """In a process among others, put the tests in the order in which they are given out."""
    result = yield
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (is_transactional(item), RANKS.get(path(item.nodeid), len(RANKS))))
    return result


def is_transactional(item: pytest.Item) -> bool:
    """Whether a test commits, so that the tables are emptied after it."""
    mark = item.get_closest_marker("django_db")
    return bool(mark and mark.kwargs.get("transaction")) or "transactional_db" in getattr(item, "fixturenames", ())


def path(node_id: str) -> str:
    return node_id.partition("::")[0]


class WholeFiles(LoadScopeScheduling):
    """Gives a process what stands together of a file: the tests that are not transactional, or those that are."""

    def _split_scope(self, nodeid: str) -> str:
        return self._stretches[nodeid]

    @cached_property
    def _stretches(self) -> dict[str, str]:
        stretches = groupby(self.collection, key=path)
        return {
            node_id: f"{number} {file}" for number, (file, node_ids) in enumerate(stretches) for node_id in node_ids
        }


def pytest_xdist_make_scheduler(config: pytest.Config, log) -> WholeFiles | None:
    return WholeFiles(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def forget_what_was_cached():
    """Help lines, wages and throttles that another test of this process has left in its cache."""
    cache.clear()
