"""What a worker prefers: how statements are shown, and about whom they do not want to read."""

from collections.abc import Collection

from django.db import transaction

from annotator import assigning
from annotator.models import Assignment, Worker
from generation.models import TargetGroup


@transaction.atomic
def set_preferences(
    *, worker: Worker, covers_statements: bool, uses_shortcuts: bool, avoided_groups: Collection[TargetGroup]
) -> bool:
    """Store them; return whether the worker was at a statement about a group they now avoid, which is then returned.

    The first change locks the worker, so that no statement about such a group is given out meanwhile.
    """
    Worker.objects.filter(pk=worker.pk).update(covers_statements=covers_statements, uses_shortcuts=uses_shortcuts)
    worker.avoided_groups.set(avoided_groups)
    unwanted = Assignment.objects.accepted().filter(worker=worker, hit__generation__group__in=avoided_groups)
    return any(assigning.return_assignment(assignment=assignment) for assignment in unwanted)
