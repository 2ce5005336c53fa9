"""What annotators' pages show of the work on offer and of their own."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from annotator.models import HIT, Assignment, AssignmentStatus, HITType, Worker


@dataclass(frozen=True)
class Earnings:
    """A worker's own tally in US dollars; ``submitted`` counts assignments."""

    submitted: int
    approved: Decimal
    pending: Decimal

    @property
    def total(self) -> Decimal:
        return self.approved + self.pending


def earnings(worker: Worker) -> Earnings:
    """What the worker's submitted work pays: approved, and waiting for approval."""
    reward = "hit__hit_type__reward"
    totals = Assignment.objects.filter(worker=worker).aggregate(
        submitted=Count("pk", filter=Q(submitted_at__isnull=False)),
        approved=Sum(reward, filter=Q(status=AssignmentStatus.APPROVED), default=Decimal(0)),
        pending=Sum(reward, filter=Q(status=AssignmentStatus.SUBMITTED), default=Decimal(0)),
    )
    return Earnings(**totals)


def studies_for(worker: Worker) -> QuerySet[HITType]:
    """All studies, with what there is to do in each for the worker, and no statement."""
    open_hits = HIT.objects.open_for(worker).filter(hit_type=OuterRef("pk"))
    at_work = Assignment.objects.accepted().filter(worker=worker, hit__hit_type=OuterRef("pk"))
    return (
        HITType.objects.annotate(has_work=Exists(open_hits), at_work=Exists(at_work))
        .annotate(
            available=Count("hits", filter=Q(hits__in=HIT.objects.open_for(worker)), distinct=True),
            done=Count(
                "hits__assignments",
                filter=Q(hits__assignments__worker=worker, hits__assignments__submitted_at__isnull=False),
                distinct=True,
            ),
        )
        .select_related("run")
        .order_by("-pk")  # that of the model does not reach a query that counts
    )
