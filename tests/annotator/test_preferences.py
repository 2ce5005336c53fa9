"""Preferences: how statements are shown, and the groups somebody does not want to read about."""

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator import assigning
from annotator.models import HIT
from generation.models import TargetGroup
from tests.annotator.page import Page
from tests.factories import accept, log_in, make_generation, make_group, make_hit, make_hit_type, make_worker

pytestmark = pytest.mark.django_db

BOTH = {"covers_statements": "on", "uses_shortcuts": "on"}


def save(client, **posted):
    return client.post("/preferences/", posted, follow=True)


def message(response):
    return Page(response).one(class_="messages").text


def ticked(response):
    return {
        box.get("value") or box["name"]
        for box in Page(response).all("input", type="checkbox")
        if "checked" in box.attributes
    }


def test_at_first_statements_are_covered_keys_answer_and_no_group_is_left_out(client, worker):
    assert ticked(client.get("/preferences/")) == {"covers_statements", "uses_shortcuts"}


def test_every_group_can_be_left_out_by_its_words(client, worker):
    make_group("sailors", words="people who sail")
    page = Page(client.get("/preferences/"))
    boxes = page.all("input", name="avoided_groups")
    assert {box["value"] for box in boxes} == set(TargetGroup.objects.values_list("slug", flat=True))
    (box,) = [box for box in boxes if box["value"] == "sailors"]
    assert box.ancestors[-1].text == "people who sail"
    assert "That costs you nothing, and researchers do not see who ticked what." in page.text


def test_what_is_ticked_is_saved_and_shown_again(client, worker):
    make_group("sailors"), make_group("divers")
    response = save(client, uses_shortcuts="on", avoided_groups=["sailors", "divers"])
    assert response.redirect_chain == [("/preferences/", 302)]
    assert message(response) == "Saved."
    assert ticked(response) == {"uses_shortcuts", "sailors", "divers"}
    worker.refresh_from_db()
    assert (worker.covers_statements, worker.uses_shortcuts) == (False, True)
    assert set(worker.avoided_groups.values_list("slug", flat=True)) == {"sailors", "divers"}


def test_what_is_unticked_is_dropped(client, worker):
    worker.avoided_groups.add(make_group("sailors"))
    assert ticked(save(client, **BOTH)) == {"covers_statements", "uses_shortcuts"}
    assert not worker.avoided_groups.exists()


def test_statements_about_a_group_that_is_left_out_are_not_given(client):
    study = make_hit_type()
    make_hit(hit_type=study, generation=make_generation(group=make_group("sailors")), shuffle=0.1)
    other = make_hit(hit_type=study, generation=make_generation(group=make_group("divers")), shuffle=0.9)
    worker = log_in(client)
    save(client, **BOTH, avoided_groups=["sailors"])
    assert accept(worker, hit_type=study).hit == other
    save(client, **BOTH, avoided_groups=["sailors", "divers"])
    with pytest.raises(assigning.NoHITLeft):
        accept(worker, hit_type=study)


def test_an_open_statement_about_a_group_that_is_now_left_out_is_returned(client, worker, assignment):
    group = assignment.hit.generation.group
    response = save(client, **BOTH, avoided_groups=[group.slug])
    assert message(response) == (
        "Saved. The statement that was open is about a group you do not want to read about, so it was returned."
    )
    assignment.refresh_from_db()
    assert assignment.status == "returned"
    assert HIT.objects.get(pk=assignment.hit_id).held_places == 0


def test_an_open_statement_about_another_group_stays(client, worker, assignment):
    make_group("sailors")
    assert message(save(client, **BOTH, avoided_groups=["sailors"])) == "Saved."
    assignment.refresh_from_db()
    assert assignment.status == "accepted"


def test_a_group_that_there_is_not_is_refused_and_the_rest_is_kept_on_the_page(client, worker):
    make_group("sailors")
    response = client.post("/preferences/", {"avoided_groups": ["sailors", "martians"]})
    assert response.status_code == 422
    assert Page(response).one(role="alert").text == "Choose from the groups that are listed."
    assert ticked(response) == {"sailors"}
    worker.refresh_from_db()
    assert worker.covers_statements
    assert not worker.avoided_groups.exists()


def test_preferences_are_open_before_consent_and_show_no_statement(client, study):
    log_in(client, make_worker())
    response = client.get("/preferences/")
    assert response.status_code == 200
    assert b"the library opens at nine" not in response.content


def test_researchers_see_no_list_of_who_left_out_whom(admin_client, worker):
    worker.avoided_groups.add(make_group("sailors", words="people who sail", name="Sailors"))
    for address in ("/admin/annotator/worker/", f"/admin/annotator/worker/{worker.pk}/change/"):
        page = admin_client.get(address).content.decode()
        assert worker.pseudonym in page
        assert "ailors" not in page
        assert "avoided" not in page


anything = st.one_of(
    st.text(max_size=20), st.integers().map(str), st.sampled_from(["\x00", "women", "x" * 100_000, "1" * 5000])
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    posted=st.fixed_dictionaries(
        {},
        optional={
            "covers_statements": anything,
            "uses_shortcuts": anything,
            "avoided_groups": st.one_of(anything, st.lists(anything, max_size=3)),
        },
    )
)
def test_anything_at_all_is_saved_or_refused_in_words(client, worker, posted):
    with transaction.atomic():
        response = client.post("/preferences/", posted)
        avoided = set(worker.avoided_groups.values_list("slug", flat=True))
        transaction.set_rollback(True)
    assert response.status_code in (302, 422)
    groups = posted.get("avoided_groups", [])
    assert avoided <= ({groups} if isinstance(groups, str) else set(groups))
    if response.status_code == 422:
        assert Page(response).one(role="alert").text
