"""Counting, once a run has ended, what it wrote twice over."""

from collections import Counter

import structlog
from django.db import transaction

from generation.models import GenerationCell, GenerationRun
from generation.near_duplicates import near_duplicates

ROWS_AT_ONCE = 5000

log = structlog.get_logger(__name__)


def count_near_duplicates(*, run_id: int) -> bool:
    """Store in each cell of an ended run how many of its statements are near-duplicates.

    Of two such statements the one of the later chunk counts. Safe to run twice: what is counted stays. Return
    whether there was something to count.
    """
    run = GenerationRun.objects.never_counted().filter(pk=run_id).first()
    if run is None:
        return False
    statements = (
        run.generations.order_by("chunk__index", "position", "pk")
        .values_list("group_id", "label", "text")
        .iterator(chunk_size=ROWS_AT_ONCE)
    )
    owners, texts = [], []
    for group_id, label, text in statements:
        owners.append((group_id, label))
        texts.append(text)
    counts = Counter(owner for owner, is_one in zip(owners, near_duplicates(texts), strict=True) if is_one)
    with transaction.atomic():
        cells = list(run.cells.select_for_update().order_by("pk"))
        for cell in cells:
            cell.near_duplicate = counts[cell.group_id, cell.label]
        GenerationCell.objects.bulk_update(cells, ["near_duplicate"])
    log.info("near_duplicates_counted", run=run_id, statements=len(texts), near_duplicates=counts.total())
    return True
