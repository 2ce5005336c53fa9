"""Studies of imported work: real rows that hand nothing out, owe nothing and are decided on already."""

from collections import Counter
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone

from annotator import assigning, moving, paying, publishing, reviewing, stopping, tasks, watching
from annotator.models import (
    GIVEN_ELSEWHERE,
    Annotation,
    Assignment,
    Consent,
    ConsentForm,
    HITType,
    Payment,
    Qualification,
    Worker,
)
from annotator.reads import offers_for
from tests.annotator.test_constraints import refused_by, row
from tests.factories import (
    answers,
    consenting_worker,
    log_in,
    make_assignment,
    make_consent,
    make_consent_form,
    make_generation,
    make_hit,
    make_hit_type,
    make_run,
    make_worker,
)

pytestmark = pytest.mark.django_db

DECIDED = {"submitted_at": timezone.now(), "decided_at": timezone.now()}
APPROVED = {"status": "approved"} | DECIDED
REJECTED = {"status": "rejected", "rejection_reason": "It was left empty.", "holds_place": False} | DECIDED


@pytest.fixture
def study():
    return make_hit_type(title="A batch from elsewhere", imported=True, reward=0)


@pytest.fixture
def hit(study):
    return make_hit(hit_type=study, max_assignments=3)


def imported_worker(name="3f2a"):
    worker = make_worker(imported_hash=name)
    form, _ = ConsentForm.objects.get_or_create(version=GIVEN_ELSEWHERE, defaults={"title": "Given elsewhere"})
    Consent.objects.create(worker=worker, form=form)
    return worker


def imported(hit, worker=None, **fields):
    assignment = make_assignment(hit, worker or imported_worker(str(Worker.objects.count())), **APPROVED | fields)
    Annotation.objects.create(assignment=assignment, **answers())
    return assignment


# --- What the database holds


@pytest.mark.parametrize("fields", [{"reward": "0.10"}, {"run": True}, {"grants": True, "pass_mark": 80}])
def test_a_study_of_imported_work_pays_nothing_and_is_fed_from_nothing(study, fields):
    values = {"run": make_run, "grants": lambda: Qualification.objects.create(name="reads English")}
    fields = {name: values[name]() if name in values else value for name, value in fields.items()}
    with refused_by("hit_type_imported_pays_nothing"):
        row(HITType, study).update(**fields)


@pytest.mark.parametrize("imported", [True, False])
def test_whether_a_study_holds_imported_work_never_changes(imported):
    study = make_hit_type(imported=imported, reward=0)
    with refused_by("hit_type_keeps_whether_it_is_imported"):
        row(HITType, study).update(imported=not imported)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "accepted"},
        {"status": "submitted", "submitted_at": timezone.now()},
        {"status": "returned", "given_back_at": timezone.now(), "holds_place": False},
        {"status": "expired", "given_back_at": timezone.now(), "holds_place": False},
    ],
    ids=lambda fields: fields["status"],
)
def test_imported_work_is_decided_work(hit, fields):
    worker = imported_worker()
    with refused_by("assignment_of_imported_work_is_done"):
        make_assignment(hit, worker, **fields)


@pytest.mark.parametrize("fields", [APPROVED, REJECTED], ids=lambda fields: fields["status"])
def test_imported_work_is_approved_or_rejected_and_nothing_is_owed_for_it(hit, fields):
    make_assignment(hit, imported_worker(), **fields)
    assert Assignment.objects.count() == 1
    assert not Payment.objects.exists()


def test_work_done_here_is_owed_as_ever():
    make_assignment(**APPROVED)
    assert Payment.objects.count() == 1


def test_a_hash_stands_for_one_worker():
    make_worker(imported_hash="3f2a"), make_worker(), make_worker()
    with refused_by("worker_imported_once"):
        make_worker(imported_hash="3f2a")


def test_consent_given_elsewhere_is_never_in_force():
    make_consent_form(version=GIVEN_ELSEWHERE)
    assert ConsentForm.objects.current() is None
    worker = make_worker()
    make_consent(worker, ConsentForm.objects.get())
    assert not Consent.objects.in_force().exists()


# --- Nobody is given anything of it


def test_a_study_of_imported_work_is_offered_to_nobody(hit):
    worker = consenting_worker()
    ours = make_hit().hit_type
    assert [offer.hit_type for offer in offers_for(worker)] == [ours]


def test_its_statements_are_given_to_nobody(client, study, hit):
    worker = log_in(client)
    with pytest.raises(HITType.DoesNotExist):
        assigning.accept_next(worker=worker, hit_type_id=study.pk)
    assert client.post(f"/study/{study.pk}/accept/").status_code == 404
    assert client.get(f"/study/{study.pk}/").status_code == 404
    assert client.get(f"/study/{study.pk}/break/").status_code == 404


def test_nothing_is_published_in_it(study):
    said = r"holds work that was done elsewhere and imported: .* Make a study of your own for new work\.$"
    with pytest.raises(publishing.ImportedStudy, match=said):
        publishing.publish(hit_type=study, generations=[make_generation()])
    tasks.publish_new_statements()
    assert not study.hits.exists()


# --- It is neither steered nor paid


def test_it_is_neither_stopped_nor_resumed_nor_extended(study, hit):
    for act, options in ((stopping.stop, {}), (stopping.go_on, {}), (stopping.extend, {"places": 1})):
        with pytest.raises(publishing.ImportedStudy):
            act(hit_type=study, by=None, **options)


@pytest.mark.parametrize(
    ("act", "options"),
    [
        (moving.set_reviewing, {}),
        (moving.set_reviewable, {}),
        (moving.dispose, {}),
        (moving.expire_now, {}),
        (moving.extend, {"places": 1}),
        (moving.extend, {"lifetime": timedelta(days=1)}),
    ],
)
def test_its_hits_are_left_as_they_are(hit, act, options):
    done = act(ids=[hit.pk], **options)
    assert (done.changed, done.left) == ([], Counter({"of a study of imported work, which hands nothing out": 1}))


def test_its_work_is_left_as_it_was_decided(hit):
    ada = User.objects.create(username="ada")
    approved, rejected = imported(hit), imported(hit, **REJECTED)
    ids = [approved.pk, rejected.pk]
    left = Counter({"imported, and was decided on where it was done": 2})
    assert reviewing.approve(ids=ids, by=ada).left == left
    assert reviewing.reject(ids=ids, by=ada, reason="No.").left == left
    assert reviewing.approve_after_all(ids=ids, by=ada).left == left
    assert reviewing.reopen(ids=ids).left == left
    assert reviewing.approve_overdue() == 0


def test_it_is_not_topped_up_and_its_workers_get_no_bonus(study, hit):
    row(HITType, study).update(wage_floor=8)
    work = imported(hit)
    assert not paying.what_a_top_up_takes(study).bonuses
    with pytest.raises(paying.CannotTopUp, match=r"^Nothing was paid: the work of this study was imported"):
        paying.top_up(hit_type=study, by=None)
    with pytest.raises(ValidationError, match="stands for somebody whose work was imported"):
        paying.pay_bonus(worker=work.worker, amount=5, reason="Thanks.", by=None)
    assert not Payment.objects.exists()


def test_it_is_watched_without_pay(study, hit):
    for _ in range(3):
        imported(hit)
    watch = watching.watch(study)
    assert watch.pay is None
    assert (watch.places.filled, watch.work.people, watch.dispute.complete) == (3, 3, 1)
