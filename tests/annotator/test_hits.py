"""The states of a HIT, in Mechanical Turk's sense, and moving HITs between them."""

from collections import Counter
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.utils import timezone

from annotator import moving, reviewing, submitting
from annotator.models import HIT, UNLIMITED, HITStatus
from config.roles import RESEARCHER
from tests.factories import accept, answers, consenting_worker, make_assignment, make_hit, make_hit_type

pytestmark = pytest.mark.django_db

NOW = timezone.now()
PAST = NOW - timedelta(days=1)


def hit_with(*, at_work=0, submitted=0, **fields):
    hit = make_hit(**fields)
    for _ in range(at_work):
        make_assignment(hit)
    for _ in range(submitted):
        submitting.submit(assignment=make_assignment(hit), answers=answers())
    hit.refresh_from_db()
    return hit


def state(hit):
    hit.refresh_from_db()
    assert list(HIT.objects.in_state(hit.status).filter(pk=hit.pk)) == [hit]
    assert sum(HIT.objects.in_state(status).filter(pk=hit.pk).count() for status in HITStatus) == 1
    return hit.status


# --- What follows from places and lifetime --------------------------------------------------------


@pytest.mark.parametrize(
    ("hit", "expected"),
    [
        ({"max_assignments": 3, "at_work": 1, "submitted": 1}, "assignable"),
        ({"max_assignments": 2, "at_work": 1, "submitted": 1}, "unassignable"),
        ({"max_assignments": 2, "submitted": 2}, "reviewable"),
        ({"expires_at": PAST, "at_work": 1}, "unassignable"),
        ({"expires_at": PAST, "submitted": 1}, "reviewable"),
        ({"expires_at": PAST}, "reviewable"),
        ({"expires_at": PAST, "reviewing_at": NOW}, "reviewing"),
        ({"max_assignments": 2, "submitted": 2, "reviewing_at": NOW}, "reviewing"),
        ({"max_assignments": 2, "submitted": 2, "reviewing_at": NOW, "disposed_at": NOW}, "disposed"),
        ({"disposed_at": NOW}, "disposed"),
    ],
)
def test_the_state_of_a_hit_is_the_same_for_it_and_for_the_database(hit, expected):
    assert state(hit_with(**hit)) == expected


def test_a_hit_under_review_whose_place_comes_free_is_assignable_until_the_place_is_taken():
    hit = hit_with(max_assignments=1, submitted=1)
    moving.set_reviewing(ids=[hit.pk])
    reviewing.reopen(ids=[hit.assignments.get().pk])
    assert state(hit) == "assignable"
    assignment = accept()
    assert (assignment.hit, state(hit)) == (hit, "unassignable")
    submitting.submit(assignment=assignment, answers=answers())
    assert state(hit) == "reviewing"


# --- Moving them ------------------------------------------------------------------------------------


def left(hit, act, **options):
    """Why the act left the HIT."""
    done = act(ids=[hit.pk], **options)
    assert done.changed == []
    (reason,) = done.left
    return reason


def test_a_reviewable_hit_is_set_reviewing_and_back():
    hit = hit_with(expires_at=PAST)
    assert moving.set_reviewing(ids=[hit.pk]).changed == [hit.pk]
    assert state(hit) == "reviewing"
    assert moving.set_reviewable(ids=[hit.pk]).changed == [hit.pk]
    assert state(hit) == "reviewable"


def test_only_reviewable_hits_are_set_reviewing():
    wait = "and a HIT is reviewed once its places are filled or it has expired and nobody is at work on it"
    assert left(hit_with(), moving.set_reviewing) == f"assignable, {wait}"
    assert left(hit_with(max_assignments=1, at_work=1), moving.set_reviewing) == f"unassignable, {wait}"
    assert left(hit_with(disposed_at=NOW), moving.set_reviewing) == "disposed of, which is final"


@pytest.mark.parametrize("hit", [{}, {"expires_at": PAST}, {"disposed_at": NOW, "reviewing_at": NOW}])
def test_only_hits_under_review_are_set_back_to_reviewable(hit):
    assert left(hit_with(**hit), moving.set_reviewable) == "not under review"


@pytest.mark.parametrize("reviewing_at", [None, NOW])
def test_a_hit_whose_work_is_decided_is_disposed_of_for_good(reviewing_at):
    user = User.objects.create(username="ada")
    hit = hit_with(max_assignments=2, submitted=2, reviewing_at=reviewing_at)
    assert left(hit, moving.dispose) == "holding submitted work that is neither approved nor rejected yet"
    reviewing.approve(ids=hit.assignments.values_list("pk", flat=True), by=user)
    assert moving.dispose(ids=[hit.pk]).changed == [hit.pk]
    assert state(hit) == "disposed"
    for act, options in ((moving.dispose, {}), (moving.expire_now, {}), (moving.extend, {"places": 1})):
        assert left(hit, act, **options) == "disposed of, which is final"


def test_a_hit_that_can_be_accepted_or_is_worked_on_is_not_disposed_of():
    assert left(hit_with(), moving.dispose).startswith("assignable, ")
    assert left(hit_with(max_assignments=1, at_work=1), moving.dispose).startswith("unassignable, ")


def test_a_hit_that_is_expired_now_is_given_to_nobody_and_who_is_at_work_may_finish():
    hit = hit_with(at_work=1)
    assert moving.expire_now(ids=[hit.pk]).changed == [hit.pk]
    assert state(hit) == "unassignable"
    assert not HIT.objects.open_for(consenting_worker()).exists()
    assert submitting.submit(assignment=hit.assignments.get(), answers=answers()).value == "counted"
    assert state(hit) == "reviewable"
    assert left(hit, moving.expire_now) == "expired already"


def test_a_hit_extended_by_places_is_assignable_again():
    hit = hit_with(max_assignments=1, submitted=1, reviewing_at=NOW)
    assert moving.extend(ids=[hit.pk], places=2).changed == [hit.pk]
    assert (state(hit), hit.max_assignments, hit.reviewing_at) == ("assignable", 3, None)


def test_a_hit_lives_longer_by_its_extension_and_an_expired_one_from_now_on():
    alive, expired = hit_with(expires_at=NOW + timedelta(days=9)), hit_with(expires_at=PAST)
    moving.extend(ids=[alive.pk, expired.pk], lifetime=timedelta(days=2))
    assert (state(alive), state(expired)) == ("assignable", "assignable")
    assert alive.expires_at == NOW + timedelta(days=11)
    assert timedelta(days=1.9) < expired.expires_at - timezone.now() < timedelta(days=2)


def test_it_is_said_that_places_alone_do_not_revive_an_expired_hit():
    hit = hit_with(expires_at=PAST)
    remark = "expired all the same: add days, or nobody can take the new places"
    assert moving.extend(ids=[hit.pk], places=1).remarks == Counter({remark: 1})


def test_what_cannot_have_more_places_is_left():
    check = hit_with(is_check=True, max_assignments=UNLIMITED)
    full = hit_with(max_assignments=UNLIMITED - 1)
    done = moving.extend(ids=[check.pk, full.pk, 0], places=2)
    assert done.left == Counter(
        {
            "about a statement with known answers, which has places for everybody: extend it by days alone": 1,
            "at the limit: a HIT has at most 32,767 places": 1,
            "not to be found": 1,
        }
    )
    assert moving.extend(ids=[check.pk], lifetime=timedelta(days=1)).changed == [check.pk]


@pytest.mark.parametrize("by", [{}, {"places": -1}, {"places": 1, "lifetime": -timedelta(days=1)}])
def test_an_extension_by_nothing_or_less_is_refused(by):
    with pytest.raises(moving.NothingToExtend, match=r"^Say by how many places or days the HITs are extended"):
        moving.extend(ids=[make_hit().pk], **by)


# --- In the workspace -------------------------------------------------------------------------------


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return client


def run(client, action, *hits, **fields):
    return client.post(
        "/admin/annotator/hit/", {"action": action, "_selected_action": [hit.pk for hit in hits], **fields}, follow=True
    )


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def test_a_researcher_moves_hits_and_is_told_what_was_left_and_why(researcher):
    reviewable, assignable = hit_with(expires_at=PAST), hit_with()
    assert messages_of(run(researcher, "set_reviewing", reviewable, assignable)) == [
        "HITs under review now: 1.",
        "1 left as it is: assignable, and a HIT is reviewed once its places are filled or it has expired and nobody "
        "is at work on it.",
    ]
    assert messages_of(run(researcher, "set_reviewable", reviewable)) == ["HITs set back to reviewable: 1."]
    assert messages_of(run(researcher, "expire_now", assignable)) == ["HITs expired: 1."]
    assert messages_of(run(researcher, "dispose", reviewable, assignable)) == ["HITs disposed of: 2."]
    assert messages_of(run(researcher, "dispose", reviewable, assignable)) == [
        "2 left as they are: disposed of, which is final."
    ]


def test_a_researcher_is_asked_by_how_much_to_extend(researcher):
    hit, other = hit_with(max_assignments=1), hit_with()
    page = run(researcher, "extend", hit)
    assert "1 HIT chosen." in page.content.decode()
    response = run(researcher, "extend", hit, extend="yes", places="2", days="0")
    assert messages_of(response) == ["HITs extended: 1."]
    hit.refresh_from_db(), other.refresh_from_db()
    assert (hit.max_assignments, other.max_assignments) == (3, 3)


@pytest.mark.parametrize(
    ("places", "days", "sentence"),
    [
        ("0", "0", "Say by how many places or days the HITs are extended: at least one of either."),
        ("-1", "0", "Ensure this value is greater than or equal to 0."),
        ("1", "99999", "Ensure this value is less than or equal to 3650."),
        ("many", "0", "Enter a whole number."),
    ],
)
def test_an_extension_that_cannot_be_is_asked_for_again_with_the_same_hits(researcher, places, days, sentence):
    hit = hit_with()
    response = run(researcher, "extend", hit, extend="yes", places=places, days=days)
    assert response.status_code == 422
    page = response.content.decode()
    assert sentence in page
    assert f'name="_selected_action" value="{hit.pk}"' in page
    assert f'value="{places}"' in page


def test_hits_are_filtered_by_their_state(researcher):
    assignable, reviewable = hit_with(), hit_with(expires_at=PAST)
    for status, hit in (("assignable", assignable), ("reviewable", reviewable)):
        listed = researcher.get("/admin/annotator/hit/", {"state": status}).context["cl"].result_list
        assert list(listed) == [hit]


def test_who_may_only_look_at_hits_is_offered_no_act(client):
    user = User.objects.create(username="eve", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_hit"))
    client.force_login(user)
    hit = hit_with()
    run(client, "expire_now", hit)
    assert state(hit) == "assignable"
    assert "expire_now" not in client.get("/admin/annotator/hit/").content.decode()


def test_hits_of_a_study_below_its_wage_floor_are_not_extended():
    hit = make_hit(hit_type=make_hit_type(reward="0.01"))
    done = moving.extend(ids=[hit.pk], places=5)
    assert (done.changed, done.left) == ([], {moving.BELOW_FLOOR: 1})


@pytest.mark.parametrize("is_check", [True, False])
def test_what_known_answers_mean_is_said_of_hits_that_have_them(researcher, is_check):
    page = researcher.get(f"/admin/annotator/hit/{make_hit(is_check=is_check).pk}/change/").content.decode()
    assert ("makes no label" in page) == is_check
