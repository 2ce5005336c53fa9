"""Setting up a study and changing it: what is on offer never pays less than its wage floor."""

import structlog
from django.contrib.auth.models import User
from django.db import transaction

from annotator import publishing, wages
from annotator.models import HITType, Qualification
from generation.models import GenerationRun

PAY = {"reward", "wage_floor", "expected_time"}

log = structlog.get_logger(__name__)


@transaction.atomic
def make_study(*, qualifications: list[Qualification] | None = None, **fields) -> HITType:
    """Store a study, of which nothing is published yet. Raises ``ValidationError``."""
    study = HITType(**fields)
    study.full_clean()
    study.save(force_insert=True)
    study.qualifications.set(qualifications or [])
    log.info("study_made", hit_type=study.pk)
    return study


@transaction.atomic
def change_study(*, hit_type: HITType, qualifications: list[Qualification] | None = None, **changes) -> HITType:
    """Change a study; what workers accepted before keeps its reward and its time.

    ``qualifications`` are all that are asked for from now on; None leaves them as they are. Raises
    ``ValidationError``, ``wages.PayTooLow`` for one that is on offer, or ``publishing.ImportedStudy``.
    """
    study = HITType.objects.select_for_update(no_key=True, of=("self",)).get(pk=hit_type.pk)
    publishing.refuse_imported(study)
    for name, value in changes.items():
        setattr(study, name, value)
    study.full_clean()
    if PAY & changes.keys() and (study.run_id or study.known_answers.exists() or study.hits.assignable().exists()):
        wages.refuse_below_floor(study)
    study.save(update_fields=changes.keys())
    if qualifications is not None:
        study.qualifications.set(qualifications)
    log.info("study_changed", hit_type=study.pk, fields=sorted(changes))
    return study


@transaction.atomic
def follow_run(*, hit_type: HITType, run: GenerationRun, by: User) -> int:
    """Publish what a run has written, and from now on what it writes; return how many HITs were made at once.

    Raises what ``publishing.publish`` does.
    """
    study = publishing.lock_open_study(hit_type)
    study.run = run
    made = publishing.publish_run(hit_type=study, by=by)
    study.save(update_fields=["run"])
    return made
