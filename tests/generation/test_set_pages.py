"""The pages on which a set is grown: what they show and blur, who may do what, and how many queries they take."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from generation import demonstrating
from generation.demonstrating import edit, retire
from generation.judging import mark_bad, promote
from generation.models import AuditEntry, Demonstration, Response, Trial
from generation.naming import names_group
from generation.sets import near_to, size_in_words, summary
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_group, make_responses
from tests.generation.test_admin_runs import said, staff, words

pytestmark = pytest.mark.django_db

SETS = reverse("admin:generation_sets")
LIST = reverse("admin:generation_demonstration_changelist")
BLURRED = '<span class="text blurred" tabindex="0" title="Point at it or press Tab to read it">{}</span>'
SHOWN = '<span class="text">{}</span>'


def set_of(label="benign", slug="women"):
    return reverse("admin:generation_set", args=[slug, label])


def history_of(label="benign", slug="women"):
    return reverse("admin:generation_set_history", args=[slug, label])


def page_of(trial):
    return reverse("admin:generation_trial", args=[trial.pk])


def act_on(response):
    return reverse("admin:generation_response", args=[response.pk])


@pytest.fixture
def women():
    group = make_group("women", name="Women", words="women")
    make_demonstrations(group)
    return group


@pytest.fixture
def researcher(client):
    user = staff("ada", groups=["researcher"])
    client.force_login(user)
    return user


@pytest.fixture
def filler(client):
    """A researcher who may fill toxic sets too."""
    user = staff("grace", groups=["researcher", "toxic sets"])
    client.force_login(user)
    return user


@pytest.fixture
def onlooker(client):
    user = staff("otto", permissions=["view_demonstration"])
    client.force_login(user)
    return user


# --- In figures -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (0, "No prompt can be drawn yet: that takes 5. Add 5."),
        (4, "No prompt can be drawn yet: that takes 5. Add 1."),
        (5, "15 more and it has the 20 to 50 of the paper."),
        (20, "Within the 20 to 50 of the paper."),
        (50, "Within the 20 to 50 of the paper."),
        (51, "1 more than the 20 to 50 of the paper: retire those of the lowest yield."),
    ],
)
def test_the_size_of_a_set_is_said_against_the_target_of_the_paper(size, sentence):
    assert size_in_words(size) == sentence


def test_the_yield_of_a_set_is_over_all_its_responses(women):
    for texts in (["a woman sails", "we row"], ["she dives", "two women row"]):
        first, *_ = make_responses(women, *texts)
        promote(response_id=first.pk, by=None)
    figures = summary(women, "benign")
    assert (figures.in_use, figures.trials, figures.responses) == (9, 2, 4)
    assert (figures.promoted_share, figures.naming_share) == (0.5, 0.5)
    assert summary(women, "toxic").promoted_share is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Two WOMEN met", True),
        ("a lady's boat", True),
        ("the ladies row", True),
        ("the class of Native  American sailors", True),
        ("three native americans row", True),
        ("nationality is no word of it", False),
        ("womanhood", False),
        ("superwoman", False),
        ("", False),
    ],
)
def test_a_group_is_named_by_whole_words_in_any_case_and_in_simple_plurals(text, names):
    assert names_group(text, ["woman", "women", "lady", "Native American"]) is names


def test_nothing_is_named_without_words():
    assert not names_group("two women met", ["", " "])


@pytest.mark.parametrize(
    "text", ["The CHESS club meets on Thursdays!", "chess club meets", "we know the chess club meets on thursdays now"]
)
def test_what_repeats_a_demonstration_is_near_to_it(text):
    members = make_demonstrations(make_group("women"))
    assert near_to(text, members).text == "the chess club meets on thursdays"
    assert near_to("the chess club rows", members) is None


# --- The overview -----------------------------------------------------------------------


def test_the_overview_has_each_set_with_its_size_and_yield(client, researcher, women):
    first, _ = make_responses(women, "a woman sails", "we row")
    promote(response_id=first.pk, by=None)
    retire(ids=[women.demonstrations.first().pk], reason="Too short.", by=None)
    page = words(client.get(SETS))
    assert (
        f'<a href="{set_of()}" aria-label="Women, benign: 7 in use"> <strong>7</strong> in use, 1 retired</a>' in page
    )
    assert "50 % promoted, 50 % name the group, of 2 responses" in page
    assert page.count(' in use"') == 26


def test_the_overview_takes_as_many_queries_for_many_groups_as_for_one(
    client, researcher, women, django_assert_max_num_queries
):
    for slug in ("asian", "black", "muslim"):
        make_responses(make_group(slug), "we row")
    with django_assert_max_num_queries(9):
        client.get(SETS)


def test_the_groups_list_leads_to_both_sets_with_their_sizes(client, researcher, women):
    page = words(client.get(reverse("admin:generation_targetgroup_changelist")))
    assert f'<a class="text-link" href="{set_of()}">7 in use</a>' in page
    assert f'<a class="text-link" href="{set_of("toxic")}">0 in use</a>' in page


def test_a_researcher_adds_a_group_which_is_in_the_audit_trail(client, researcher):
    client.post(
        reverse("admin:generation_targetgroup_add"),
        {"name": "Sailors", "slug": "sailors", "words": "sailors", "naming_words": "sailor", "position": 50},
    )
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.subject, entry.by) == ("group added", "group sailors", researcher)
    assert entry.details["naming_words"] == "sailor"
    assert client.get(set_of(slug="sailors")).status_code == 200


# --- A set ------------------------------------------------------------------------------


def test_a_set_s_page_shows_each_demonstration_with_where_it_is_from_and_its_yield(client, filler, women):
    client.post(set_of(), {"act": "add", "texts": "- our skipper is a woman\n\n we row "})
    first, *_ = make_responses(women, "a woman sails", "we dive")
    promote(response_id=first.pk, by=filler)
    page = words(client.get(set_of()))
    assert "<strong>10</strong> in use. <span>10 more and it has the 20 to 50 of the paper.</span>" in page
    assert SHOWN.format("our skipper is a woman") in page
    assert "written here, grace" in page
    assert "promoted from a response, grace" in page
    assert '50 % <span class="muted">of 2</span>' in page


def test_a_line_that_is_no_demonstration_is_refused_with_its_number_and_nothing_is_lost(client, researcher, women):
    response = client.post(set_of(), {"act": "add", "texts": "\nshe sails\n\n" + "a" * 501})
    assert response.status_code == 422
    page = words(response)
    assert "Line 4: A demonstration has at most 500 characters, not 501. Shorten it." in page
    assert "she sails" in page
    assert Demonstration.objects.count() == 7


def test_empty_lines_alone_are_no_demonstrations(client, researcher, women):
    assert "Write at least one sentence." in words(client.post(set_of(), {"act": "add", "texts": "\n \n"}))


def test_a_demonstration_is_edited_retired_and_brought_back(client, researcher, women):
    member = women.demonstrations.get(text="the chess club meets on thursdays")
    client.post(set_of(), {"act": "edit", "demonstration": member.pk, "text": "the chess club meets"})
    response = client.post(set_of(), {"act": "retire", "demonstration": member.pk, "reason": "Not about women."})
    assert (response.status_code, response.url) == (302, f"{set_of()}#d{member.pk}")
    page = words(client.get(set_of()))
    assert "by ada: Not about women." in page
    assert page.index("Retired</h2>") < page.index("the chess club meets")
    client.post(set_of(), {"act": "bring_back", "demonstration": member.pk})
    member.refresh_from_db()
    assert (member.text, member.retired_at) == ("the chess club meets", None)
    assert {str(record.history_user) for record in member.history.all()[:3]} == {"ada"}


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"act": "retire", "reason": " "}, "Say why it is retired, for whoever looks later."),
        ({"act": "edit", "text": " "}, "Write a sentence: a demonstration cannot be empty."),
        (
            {"act": "edit", "text": DEMONSTRATIONS[1]},
            "Nothing was changed: this sentence is in the benign set of Women",
        ),
        ({"act": "burn"}, "Choose what is to be done."),
    ],
)
def test_what_cannot_be_done_is_said_on_the_page(client, researcher, women, sent, sentence):
    member = women.demonstrations.get(text=DEMONSTRATIONS[0])
    response = client.post(set_of(), {"demonstration": member.pk} | sent)
    assert response.status_code == 422
    assert sentence in words(response)


def test_a_demonstration_is_not_changed_on_another_set_s_page(client, researcher, women):
    [member] = make_demonstrations(make_group("asian"), texts=["we row"])
    sent = {"act": "retire", "demonstration": member.pk, "reason": "Too short."}
    assert client.post(set_of(), sent).status_code == 404
    assert client.post(set_of(), sent | {"demonstration": "one"}).status_code == 404


def test_a_set_that_is_none_is_not_found(client, researcher, women):
    assert client.get(set_of("rude")).status_code == 404
    assert client.get(set_of(slug="nobody")).status_code == 404


def test_toxic_sets_warn_and_blur_until_the_texts_are_asked_for(client, researcher, women):
    make_demonstrations(women, label="toxic", texts=["a placeholder"])
    page = words(client.get(set_of("toxic")))
    assert "This page shows sentences that are meant to be toxic about women." in page
    assert BLURRED.format("a placeholder") in page
    assert SHOWN.format("a placeholder") in words(client.get(set_of("toxic"), {"texts": "shown"}))
    for address in (history_of("toxic"), LIST):
        assert SHOWN.format("a placeholder") not in words(client.get(address))


@pytest.mark.parametrize(
    ("sort", "first"), [("-promoted", 1.0), ("promoted", 0.0), ("-tried", None), ("added", None), ("?", None)]
)
def test_the_table_is_sorted_by_yield_with_what_was_never_tried_last(client, researcher, women, sort, first):
    good, *_ = make_responses(women, "a woman sails")
    promote(response_id=good.pk, by=None)
    make_demonstrations(women, texts=[f"sentence {number}" for number in range(5)])
    tried = set(Trial.objects.get().demonstrations.values_list("pk", flat=True))
    bad = Trial.objects.create(
        group=women, label="benign", prompt=Trial.objects.get().prompt, language_model="toy", seed=1
    )
    others = list(women.demonstrations.exclude(pk__in=tried)[:2])
    bad.demonstrations.set(others)
    bad.responses.create(position=0, text="we row", tokens=2, mentions_group=False)
    rows = list(client.get(set_of(), {"sort": sort}).context["page"])
    assert len(rows) == 13
    if first is not None:
        assert rows[0].promoted_share == first
        assert rows[-1].promoted_share is None


def test_a_set_s_page_takes_as_many_queries_for_many_rows_as_for_one(
    client, researcher, women, django_assert_num_queries
):
    def fill(number):
        first, second, third = make_responses(women, f"a woman sails {number}", "we row", "we dive")
        promote(response_id=first.pk, by=researcher)
        mark_bad(response_id=second.pk, because="no_sense", by=researcher)
        retired = make_demonstrations(women, texts=[f"sentence {number}"])
        retire(ids=[retired[0].pk], reason="Too short.", by=researcher)
        Trial.objects.update(requested_by=researcher)
        return third.trial

    trial = fill(0)
    counts = {}
    for address in (set_of(), history_of(), page_of(trial)):
        with CaptureQueriesContext(connection) as captured:
            client.get(address)
        counts[address] = len(captured)
    for number in range(1, 6):
        fill(number)
    for address, number in counts.items():
        with django_assert_num_queries(number):
            assert client.get(address).status_code == 200


def test_the_trials_of_a_set_are_paged(client, researcher, women):
    for _ in range(11):
        make_responses(women, "we row")
    newest, oldest = Trial.objects.first(), Trial.objects.last()
    assert page_of(newest) in words(client.get(set_of()))
    assert page_of(oldest) not in words(client.get(set_of()))
    assert page_of(oldest) in words(client.get(set_of(), {"trials": 2}))


# --- Drawing a prompt -------------------------------------------------------------------


def test_drawing_a_prompt_stores_a_trial_wakes_a_worker_and_shows_it(
    client, researcher, women, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(set_of(), {"act": "draw", "count": 3, "temperature": 0.5})
    trial = Trial.objects.get()
    assert (response.status_code, response.url) == (302, page_of(trial))
    assert (trial.count, trial.parameters, trial.requested_by) == (
        3, {"k": 40, "temperature": 0.5, "max_new_tokens": 30}, researcher,
    )  # fmt: skip
    assert sent == [("generation.trial", [trial.pk], "generation")]


def test_a_double_click_draws_one_prompt_and_a_later_click_another(client, researcher, women):
    first, second = (client.post(set_of(), {"act": "draw"}) for _ in range(2))
    assert first.url == second.url == page_of(Trial.objects.get())
    Trial.objects.update(requested_at=timezone.now() - timedelta(seconds=3))
    assert client.post(set_of(), {"act": "draw"}).url != first.url
    client.force_login(staff("grace", groups=["researcher"]))
    client.post(set_of(), {"act": "draw"})
    assert Trial.objects.count() == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"count": 51}, "Ensure this value is less than or equal to 50."),
        ({"temperature": 0}, "Ensure this value is greater than or equal to 0.01."),
        ({"language_model": "http://ada:secret@localhost/v1"}, "leave user name, password and query out of it"),
    ],
)
def test_a_bad_option_gets_a_sentence_and_nothing_is_drawn(client, researcher, women, options, sentence):
    response = client.post(set_of(), {"act": "draw"} | options)
    assert response.status_code == 422
    assert sentence in words(response)
    assert not Trial.objects.exists()


def test_a_set_of_four_says_that_it_is_too_small(client, researcher):
    make_demonstrations(make_group("women"), texts=DEMONSTRATIONS[:4])
    response = client.post(set_of(), {"act": "draw"})
    assert response.status_code == 422
    assert "A prompt needs 5 demonstrations and the benign set of Women has 4. Add 1 more." in words(response)


def test_the_page_of_a_trial_renews_itself_until_the_responses_are_there(client, researcher, women):
    client.post(set_of(), {"act": "draw"})
    trial = Trial.objects.get()
    page = words(client.get(page_of(trial)))
    assert f'hx-get="{page_of(trial)}" hx-trigger="every 1s"' in page
    assert "Waiting for a worker." in page
    Trial.objects.update(lease_expires_at=timezone.now())
    assert "The model is writing 8 responses." in words(client.get(page_of(trial)))
    Trial.objects.update(lease_expires_at=None, finished_at=timezone.now())
    assert "every 1s" not in words(client.get(page_of(trial)))


def test_a_failed_trial_says_why_in_text_and_can_be_tried_again(client, researcher, women):
    client.post(set_of(), {"act": "draw"})
    trial = Trial.objects.get()
    Trial.objects.update(finished_at=timezone.now(), failure="The <b>model</b> is not there.")
    assert "</strong> The &lt;b&gt;model&lt;/b&gt; is not there." in words(client.get(page_of(trial)))
    client.post(page_of(trial), {"act": "retry"})
    assert Trial.objects.waiting().get() == trial


def test_again_and_another_lead_to_new_trials(client, researcher, women):
    [response] = make_responses(women, "we row")
    again = client.post(page_of(response.trial), {"act": "same"})
    newest = Trial.objects.first()
    assert (again.url, newest.prompt) == (page_of(newest), response.trial.prompt)
    client.post(page_of(response.trial), {"act": "another"})
    assert Trial.objects.count() == 3
    edit(demonstration_id=newest.demonstrations.first().pk, text="she sails", by=None)
    refused = client.post(page_of(response.trial), {"act": "same"})
    assert refused.status_code == 422
    assert "A demonstration in this prompt was edited or retired since." in words(refused)


# --- Responses --------------------------------------------------------------------------


def test_responses_are_blurred_in_benign_sets_too_until_asked_for(client, researcher, women):
    [response] = make_responses(women, "our <i>skipper</i> is a woman")
    text = "our &lt;i&gt;skipper&lt;/i&gt; is a woman"
    page = words(client.get(page_of(response.trial)))
    assert BLURRED.format(text) in page
    assert SHOWN.format(text) not in page
    assert SHOWN.format(text) in words(client.get(page_of(response.trial), {"texts": "shown"}))


def test_each_response_says_whether_it_names_the_group_and_is_near_to_a_demonstration(client, researcher, women):
    first, _ = make_responses(women, "two women row", "The chess club meets on Thursdays.")
    page = words(client.get(page_of(first.trial)))
    assert "2 responses, 1 of them names the group" in page
    assert page.count('<li class="good">names the group</li>') == 1
    assert page.count("near to a demonstration") == 1


def test_one_click_promotes_a_response_and_says_so(client, researcher, women):
    [response] = make_responses(women, "two women row")
    answer = client.post(act_on(response), {"act": "promote"})
    assert (answer.status_code, answer.url) == (302, f"{page_of(response.trial)}#r{response.pk}")
    assert women.demonstrations.get(text="two women row").created_by == researcher
    assert "<strong>In the set</strong>" in words(client.get(page_of(response.trial)))


def test_htmx_gets_the_card_and_the_size_of_the_set_alone(client, researcher, women):
    [response] = make_responses(women, "two women row")
    answer = words(client.post(act_on(response), {"act": "promote"}, headers={"HX-Request": "true"}))
    assert answer.strip().startswith(f'<article class="panel card promoted" id="r{response.pk}"')
    assert 'id="set-size" hx-swap-oob="true"> <p><strong>8</strong> in use.' in answer
    assert "<html" not in answer


def test_a_response_is_promoted_as_edited_marked_bad_and_undone(client, researcher, women):
    first, second = make_responses(women, "two women row row", "and and")
    client.post(act_on(first), {"act": "promote", "text": "two women row"})
    client.post(act_on(second), {"act": "bad", "because": "no_sense", "note": "it repeats itself"})
    page = words(client.get(page_of(first.trial)))
    assert f"<strong>In the set</strong>, edited: {BLURRED.format('two women row')}" in page
    assert "<strong>Bad:</strong> makes no sense – it repeats itself" in page
    for response in (first, second):
        client.post(act_on(response), {"act": "undo"})
    assert set(Response.objects.values_list("verdict", flat=True)) == {"undecided"}


def test_a_response_is_not_near_to_what_it_became_before_that_was_undone(client, researcher, women):
    [response] = make_responses(women, "two women row")
    for act in ("promote", "undo"):
        client.post(act_on(response), {"act": act})
    assert "near to a demonstration" not in words(client.get(page_of(response.trial)))
    retire(ids=[women.demonstrations.get(text=DEMONSTRATIONS[0]).pk], reason="too short", by=researcher)
    [copy] = make_responses(women, DEMONSTRATIONS[0])
    assert "near to a demonstration that was retired" in words(client.get(page_of(copy.trial)))


@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}])
@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"act": "bad"}, "Choose why it is bad: not about the group, "),
        ({"act": "promote", "text": " "}, "Write a sentence: a demonstration cannot be empty."),
        ({"act": "promote", "text": DEMONSTRATIONS[0]}, "This sentence is in the benign set of Women already."),
        ({}, "Choose what is to be done with the response."),
    ],
)
def test_what_cannot_be_done_with_a_response_is_said_on_its_card(client, researcher, women, sent, sentence, headers):
    [response] = make_responses(women, "two women row")
    answer = client.post(act_on(response), sent, headers=headers)
    assert answer.status_code == 422
    assert sentence in words(answer)


# --- Who may do what --------------------------------------------------------------------


def toxic_attempts(women):
    make_demonstrations(women, label="toxic")
    member, retired = women.demonstrations.filter(label="toxic")[:2]
    retire(ids=[retired.pk], reason="Too short.", by=None)
    [response] = make_responses(women, "a placeholder response", label="toxic")
    return {
        "add": (set_of("toxic"), {"act": "add", "texts": "a placeholder"}),
        "edit": (set_of("toxic"), {"act": "edit", "demonstration": member.pk, "text": "another placeholder"}),
        "bring back": (set_of("toxic"), {"act": "bring_back", "demonstration": retired.pk}),
        "promote": (act_on(response), {"act": "promote"}),
        "admin": (
            reverse("admin:generation_demonstration_add"),
            {"group": women.pk, "label": "toxic", "text": "a placeholder"},
        ),
    }


@pytest.mark.parametrize("attempt", ["add", "edit", "bring back", "promote", "admin"])
def test_a_toxic_set_is_not_filled_without_the_permission_which_is_said(client, researcher, women, attempt):
    address, sent = toxic_attempts(women)[attempt]
    before = list(Demonstration.objects.order_by("pk").values())
    response = client.post(address, sent)
    assert response.status_code == 403
    assert "ada may not add to toxic sets of demonstrations, nor edit what is in them." in words(response)
    assert list(Demonstration.objects.order_by("pk").values()) == before


@pytest.mark.parametrize("attempt", ["add", "edit", "bring back", "promote", "admin"])
def test_a_toxic_set_is_filled_with_the_permission(client, filler, women, attempt):
    address, sent = toxic_attempts(women)[attempt]
    before = list(Demonstration.objects.order_by("pk").values())
    assert client.post(address, sent).status_code == 302
    assert list(Demonstration.objects.order_by("pk").values()) != before


def test_without_the_permission_the_toxic_pages_offer_to_retire_and_no_more(client, researcher, women):
    toxic_attempts(women)
    page = words(client.get(set_of("toxic")))
    assert 'value="retire"' in page
    assert not {act for act in ("add", "edit", "bring_back") if f'value="{act}"' in page}
    assert "You may not add to toxic sets" in page
    assert 'value="promote"' not in words(client.get(page_of(Trial.objects.get())))
    member = women.demonstrations.filter(label="toxic", retired_at=None).first()
    assert (
        client.post(set_of("toxic"), {"act": "retire", "demonstration": member.pk, "reason": "Explicit."}).status_code
        == 302
    )


def test_an_onlooker_sees_sets_and_changes_nothing(client, onlooker, women):
    [response] = make_responses(women, "two women row")
    member = women.demonstrations.first()
    for address in (SETS, set_of(), history_of(), page_of(response.trial)):
        page = client.get(address)
        assert page.status_code == 200
        assert 'name="act"' not in words(page)
    for address, sent in (
        (set_of(), {"act": "draw"}),
        (set_of(), {"act": "add", "texts": "she sails"}),
        (set_of(), {"act": "retire", "demonstration": member.pk, "reason": "Too short."}),
        (page_of(response.trial), {"act": "same"}),
        (act_on(response), {"act": "promote"}),
        (act_on(response), {"act": "bad", "because": "other"}),
    ):
        assert client.post(address, sent).status_code == 403


# --- History ----------------------------------------------------------------------------


def test_the_history_of_a_set_says_who_did_what_and_when(client, filler, women):
    client.post(set_of(), {"act": "add", "texts": "she sails"})
    member = women.demonstrations.get(text="she sails")
    client.post(set_of(), {"act": "edit", "demonstration": member.pk, "text": "she sails far"})
    client.post(set_of(), {"act": "retire", "demonstration": member.pk, "reason": "Too long."})
    client.post(set_of(), {"act": "bring_back", "demonstration": member.pk})
    [response] = make_responses(women, "two women row")
    client.post(act_on(response), {"act": "promote"})
    page = words(client.get(history_of()))
    acts = ["Promoted from a response", "Brought back", "Retired", "Edited", "Added"]
    places = [page.index(f"<strong>{act}</strong> by grace") for act in acts]
    assert places == sorted(places)
    assert f"<del>{SHOWN.format('she sails')}</del> <ins>{SHOWN.format('she sails far')}</ins>" in page
    assert "Why: Too long." in page
    own = words(client.get(reverse("admin:generation_demonstration_history", args=[member.pk])))
    assert own.count("by grace") == 4
    assert "two women row" not in own


def test_the_bulk_act_of_the_list_asks_why_and_keeps_the_history(client, researcher, women):
    chosen = women.demonstrations.filter(text__startswith="the ")
    sent = {"action": "retire", "_selected_action": list(chosen.values_list("pk", flat=True))}
    page = words(client.post(LIST, sent))
    assert "No more prompts will be drawn from these 2 demonstrations." in page
    assert not Demonstration.objects.exclude(retired_at=None).exists()
    refused = client.post(LIST, sent | {"reason": " "})
    assert refused.status_code == 422
    assert "Say why it is retired, for whoever looks later." in words(refused)
    assert said(client.post(LIST, sent | {"reason": "Not about women."})) == ["Demonstrations retired: 2."]
    for member in chosen:
        assert (member.retired_reason, str(member.history.first().history_user)) == ("Not about women.", "ada")


def test_an_admin_edits_through_the_same_act_and_the_same_sentence_is_refused(client, researcher, women):
    member = women.demonstrations.get(text=DEMONSTRATIONS[0])
    change = reverse("admin:generation_demonstration_change", args=[member.pk])
    assert client.post(change, {"text": "she sails"}).status_code == 302
    assert member.history.first().text == "she sails"
    assert member.history.count() == 2
    page = client.post(change, {"text": DEMONSTRATIONS[1]})
    assert "This sentence is in the set already." in words(page)


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("add", "Nothing was added: this sentence is in the benign set of Women already."),
        ("edit", "Nothing was changed: this sentence is in the benign set of Women already."),
    ],
)
def test_a_sentence_that_somebody_added_between_the_form_s_check_and_the_act_ends_with_a_message(
    client, researcher, women, monkeypatch, act, sentence
):
    member = women.demonstrations.first()
    address = {
        "add": reverse("admin:generation_demonstration_add"),
        "edit": reverse("admin:generation_demonstration_change", args=[member.pk]),
    }[act]
    add, change = demonstrating.add, getattr(demonstrating, act)

    def after_somebody_else(**what):
        add(group=women, label="benign", texts=["she sails"], by=None)
        return change(**what)

    monkeypatch.setattr(demonstrating, act, after_somebody_else)
    response = client.post(address, {"group": women.pk, "label": "benign", "text": "she sails"})
    assert (response.status_code, response.url) == (302, address)
    assert said(response) == [sentence]


@pytest.mark.parametrize("number", ["abc", "9" * 19, "-1", "1.5"])
def test_the_history_of_what_is_no_demonstration_is_not_found(client, researcher, number):
    assert client.get(f"/admin/generation/demonstration/{number}/history/").status_code == 404


def test_a_toxic_demonstration_s_own_page_shows_it_blurred_wherever_it_is(client, filler, women):
    [member] = make_demonstrations(women, label="toxic", texts=["a placeholder"])
    page = words(client.get(reverse("admin:generation_demonstration_change", args=[member.pk])))
    blurred = '<span class="blurred" tabindex="0" title="Point at it or press Tab to read it">a placeholder</span>'
    assert blurred in page
    assert page.count("a placeholder") == 2  # and in the field to edit it, which is blurred too
    assert ' blurred"' in page


def test_deleting_is_not_offered_to_a_researcher(client, researcher, women):
    member = women.demonstrations.first()
    assert client.post(reverse("admin:generation_demonstration_delete", args=[member.pk])).status_code == 403
    assert "delete_selected" not in words(client.get(LIST))


def test_a_demonstration_of_two_lines_is_refused_by_the_model_too(women):
    with pytest.raises(ValidationError):
        Demonstration(group=women, label="benign", text="one\nsails").full_clean()
