"""Tasks of the queue: each calls one act and is safe to run twice."""

from celery import shared_task
from django.db import OperationalError

from analysis import uploads
from analysis.classifiers import evaluations, orders, working
from analysis.humanval import comparing, drawing, proving, sets
from analysis.models import DataImport, Evaluation, HumanvalProof, HumanvalSet, TrainedClassifier
from analysis.reports import storing
from generation import stopping
from generation.models import GenerationRun, Reading, Replay, Trial
from generation.wakeups import ask_for, ask_for_model


@shared_task(
    name=uploads.IMPORT,
    autoretry_for=(OperationalError,),  # the database restarting; anything else ends on the import's page
    retry_backoff=True,
    max_retries=5,
)
def import_file(import_id: int) -> None:
    uploads.work_on_import(import_id=import_id, is_stopping=stopping.asked.is_set)


@shared_task(name="analysis.wake_imports")
def wake_imports() -> None:
    """Wake a worker for imports that nobody works on, after a lost wake-up or a lapsed lease; clear up after them."""
    for import_id in DataImport.objects.waiting().values_list("pk", flat=True):
        ask_for(uploads.IMPORT, data_import=import_id)
    uploads.throw_away_what_is_left()


@shared_task(
    name=storing.WORK_OUT,
    autoretry_for=(OperationalError,),  # the database restarting; anything else is said on the report's page
    retry_backoff=True,
    max_retries=5,
)
def work_out_report(stored: int) -> None:
    storing.work_out(stored=stored, is_stopping=stopping.asked.is_set)


@shared_task(name="analysis.wake_reports")
def wake_reports() -> None:
    storing.wake()


@shared_task(name="analysis.refresh_reports")
def refresh_reports() -> None:
    storing.refresh()


@shared_task(
    name=sets.DRAW,
    autoretry_for=(OperationalError,),  # the database restarting; anything else ends on the set's page
    retry_backoff=True,
    max_retries=5,
)
def draw_humanval(set_id: int) -> None:
    drawing.work_on_set(set_id=set_id, is_stopping=stopping.asked.is_set)


@shared_task(name=comparing.COMPARE, autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5)
def compare_with_humanval(set_id: int) -> None:
    comparing.work_on_comparison(set_id=set_id)


@shared_task(name=proving.PROVE, autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5)
def prove_humanval(proof_id: int) -> None:
    proving.work_on_proof(proof_id=proof_id, is_stopping=stopping.asked.is_set)


@shared_task(name="analysis.wake_humanval")
def wake_humanval() -> None:
    """Wake workers for sets to be drawn, compared or proved: after a lost wake-up, a lapsed lease, or a reading."""
    for set_id in HumanvalSet.objects.waiting().values_list("pk", flat=True):
        ask_for(sets.DRAW, humanval_set=set_id)
    for set_id in comparing.waiting_to_be_compared().values_list("pk", flat=True):
        ask_for(comparing.COMPARE, humanval_set=set_id)
    for proof_id in HumanvalProof.objects.waiting().values_list("pk", flat=True):
        ask_for_model(proving.PROVE, humanval_proof=proof_id)


@shared_task(
    name=orders.TRAIN,
    autoretry_for=(OperationalError,),  # the database restarting; anything else ends on the classifier's page
    retry_backoff=True,
    max_retries=5,
)
def train_classifier(classifier_id: int) -> None:
    """After a stint others go before trainings, which may take hours: they go on from their checkpoint."""
    working.work_on_training(classifier_id=classifier_id, is_stopping=stopping.asked.is_set, others_wait=_others_wait)


@shared_task(name=evaluations.EVALUATE, autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5)
def evaluate(evaluation_id: int) -> None:
    from analysis.classifiers import scoring  # torch: for the process that has the models

    scoring.work_on_evaluation(evaluation_id=evaluation_id, is_stopping=stopping.asked.is_set, others_wait=_people_wait)


def _people_wait() -> bool:
    return _any_waits(GenerationRun, Replay, Trial)


def _others_wait() -> bool:
    return _people_wait() or _any_waits(Evaluation, HumanvalProof, Reading)


def _any_waits(*kinds) -> bool:
    return any(kind.objects.waiting().exists() for kind in kinds)


@shared_task(name="analysis.wake_classifiers")
def wake_classifiers() -> None:
    """Wake workers for trainings and evaluations that nobody works on; clear up after trainings that ended."""
    for classifier_id in TrainedClassifier.objects.waiting().order_by("pk").values_list("pk", flat=True):
        ask_for_model(orders.TRAIN, classifier=classifier_id)
    for evaluation_id in Evaluation.objects.waiting().order_by("pk").values_list("pk", flat=True):
        ask_for_model(evaluations.EVALUATE, evaluation=evaluation_id)
    working.throw_away_what_is_left()
