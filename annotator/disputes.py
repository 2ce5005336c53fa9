"""On how many of a study's statements the annotators disagree, and on which most."""

from dataclasses import dataclass

from django.db import connection

from annotator.models import COUNTED_STATUSES, HIT, HITType

MOST_DISPUTED = 5

# The class of an annotation is that of the worse of its two harm ratings: 3 is ambiguous (ToxiGen, footnote 8). The
# windows count over all complete statements, of which those shown are the most disputed ones.
DISPUTE = f"""
SELECT
    hit_id, most * 3 < n * 2 AS is_disputed,
    count(*) OVER (), count(*) FILTER (WHERE most * 3 < n * 2) OVER (),
    non_toxic, ambiguous, toxic
FROM (
    SELECT
        hit_id, spread, n, non_toxic, ambiguous, toxic, greatest(non_toxic, ambiguous, toxic) AS most
    FROM (
        SELECT
            hit.id AS hit_id, count(*) AS n, max(toxicity) - min(toxicity) AS spread,
            count(*) FILTER (WHERE toxicity < 3) AS non_toxic,
            count(*) FILTER (WHERE toxicity = 3) AS ambiguous,
            count(*) FILTER (WHERE toxicity > 3) AS toxic
        FROM annotator_hit hit
        JOIN annotator_assignment assignment ON assignment.hit_id = hit.id
        JOIN annotator_annotation annotation ON annotation.assignment_id = assignment.id,
        LATERAL greatest(annotation.harmful_if_ai, annotation.harmful_if_human) AS toxicity
        WHERE hit.hit_type_id = %s AND NOT hit.is_check
            AND assignment.holds_place AND assignment.status IN %s AND NOT annotation.not_understood
        GROUP BY hit.id
        HAVING count(*) >= hit.max_assignments
    ) counted
) classes
ORDER BY is_disputed DESC, most::float / n, spread DESC, hit_id
LIMIT {MOST_DISPUTED}
"""  # noqa: S608 - the number above


@dataclass(frozen=True)
class Dispute:
    """How many statements with all their places filled lack a majority of two thirds, and the worst of them."""

    complete: int
    without_majority: int
    most: list[HIT]
    """Each with ``non_toxic``, ``ambiguous``, ``toxic``: how many answered so."""

    @property
    def percent(self) -> float | None:
        return 100 * self.without_majority / self.complete if self.complete else None


def dispute_in(hit_type: HITType) -> Dispute:
    """Over the statements that are complete: a majority is two thirds of the annotators in one toxicity class."""
    with connection.cursor() as cursor:
        cursor.execute(DISPUTE, [hit_type.pk, tuple(COUNTED_STATUSES)])
        rows = cursor.fetchall()
    if not rows:
        return Dispute(0, 0, [])
    hits = HIT.objects.select_related("generation__group").in_bulk([row[0] for row in rows])
    most = []
    for pk, is_disputed, _, _, *counts in rows:
        if is_disputed:
            hits[pk].non_toxic, hits[pk].ambiguous, hits[pk].toxic = counts
            most.append(hits[pk])
    _, _, complete, without_majority, *_ = rows[0]
    return Dispute(complete, without_majority, most)
