"""A HUMANVAL set's statements, and what was removed from training for it, as CSV files. Their texts may hurt."""

import csv
from collections.abc import Callable, Iterable, Iterator

from analysis.models import HumanvalSet

ROWS_AT_ONCE = 2000
ABOUT_STATEMENT = ("generation__group__slug", "generation__label", "generation__method", "generation__text")


def statements(humanval_set: HumanvalSet) -> Iterator[str]:
    """The statements with their numbers of neighbours and, of a frozen set, their labels."""
    labels = ("annotators", "harmful_if_ai", "harmful_if_human", "toxicity_class", "share_agreeing")
    columns = ("statement", "target_group", "prompt_label", "generation_method", "text", "neighbours", *labels)
    rows = humanval_set.statements.order_by("generation")
    return _lines(columns, rows.values_list("generation", *ABOUT_STATEMENT, "neighbours", *labels))


def removed(humanval_set: HumanvalSet) -> Iterator[str]:
    """What was removed from training, with the most similar statement of the set and the cosine with it."""
    columns = (
        "statement", "target_group", "prompt_label", "generation_method", "text", "nearest", "nearest_text", "cosine",
        "added_at",
    )  # fmt: skip
    rows = humanval_set.removed.order_by("generation")
    return _lines(
        columns, rows.values_list("generation", *ABOUT_STATEMENT, "nearest", "nearest__text", "cosine", "added_at")
    )


def _lines(columns: Iterable[str], rows) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(columns)
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        yield writer.writerow(row)


class _Echo:
    """A file that hands back what is written."""

    def write(self, text: str) -> str:
        return text


FILES: dict[str, Callable[[HumanvalSet], Iterator[str]]] = {"statements": statements, "removed": removed}
