"""The workspace's pages about a search: the n best, the pair, and the replay step by step."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from generation.models import Generation, Replay
from generation.parameters import AliceParameters, Direction
from generation.replays import request_replay
from tests.factories import make_generation, make_run, make_searched_generation
from tests.generation.test_admin_runs import said, staff, words
from tests.generation.test_replays import SEARCH

pytestmark = pytest.mark.django_db

BLURRED = '<span class="blurred" tabindex="0" title="Point at it or press Tab to read it">{}</span>'


def page_of(generation):
    return reverse("admin:generation_generation_change", args=[generation.pk])


def replay_of(generation):
    return reverse("admin:generation_replay", args=[generation.pk])


@pytest.fixture
def researcher(client):
    user = staff("ada", groups=["researcher"])
    client.force_login(user)
    return user


@pytest.fixture
def generation():
    run = make_run(
        count=1, method="alice", alice=AliceParameters(direction=Direction.FALSE_POSITIVES, beam=2, max_new_tokens=3)
    )
    return make_searched_generation(run=run, text="b d e", score=-0.75, toxic_prob=0.625)


@pytest.fixture
def replay(generation):
    """A finished replay of a search of three steps with a beam of two."""
    return Replay.objects.create(
        generation=generation,
        finished_at=timezone.now(),
        text="b d e",
        steps=SEARCH,
        environment={"device": "cpu", "dtype": "float32"},
    )


def shown(client, generation, **query):
    response = client.get(replay_of(generation), query)
    assert response.status_code == 200
    return words(response)


# --- The page of a statement ------------------------------------------------------------


def test_the_n_best_hypotheses_are_a_table_with_blurred_texts(client, researcher, generation):
    hypotheses = [
        {"text": "b d e", "score": -0.75, "toxic_prob": 0.625, "finish_reason": "length", "tokens": ["b", "d", "e"]},
        {"text": "<i>a</i>", "score": None, "toxic_prob": 0.0, "finish_reason": "none_allowed", "tokens": ["a"]},
    ]
    Generation.objects.filter(pk=generation.pk).update(hypotheses=hypotheses)
    page = words(client.get(page_of(generation)))
    assert "The 2 best of the search" in page
    assert f'<td class="number">1</td> <td>{BLURRED.format("b d e")}</td> <td class="number">-0.750</td>' in page
    assert '<td class="number">62.5 %</td> <td class="number">3</td> <td>at the token limit</td>' in page
    assert f'<td>{BLURRED.format("&lt;i&gt;a&lt;/i&gt;")}</td> <td class="number">−∞</td>' in page
    assert "<td>no token was allowed</td>" in page


def test_a_statement_of_top_k_has_neither_hypotheses_nor_a_replay(client, researcher):
    generation = make_generation()
    page = words(client.get(page_of(generation)))
    assert "best of the search" not in page
    assert replay_of(generation) not in page


def test_each_statement_of_a_pair_leads_to_the_other(client, researcher):
    run = make_run(count=1, method="paired")
    found = make_searched_generation(run=run)
    place = {"run": run, "chunk": found.chunk, "position": found.position}
    drawn = make_generation(**place, prompt=found.prompt, method="topk")
    make_searched_generation()
    for one, other, method in ((found, drawn, "top-k"), (drawn, found, "ALICE")):
        link = f'<a href="{page_of(other)}">statement {other.pk}</a>'
        assert f"Its pair, from the same prompt by {method}: {link}" in words(client.get(page_of(one)))


def test_the_page_offers_a_replay_and_then_leads_to_it(client, researcher, generation):
    assert f'<form method="post" action="{replay_of(generation)}">' in words(client.get(page_of(generation)))
    request_replay(generation=generation)
    page = words(client.get(page_of(generation)))
    assert f'<a href="{replay_of(generation)}">the search, step by step</a>' in page
    assert f'action="{replay_of(generation)}"' not in page


# --- Asking for a replay and waiting for it ---------------------------------------------


def test_asking_for_a_replay_leads_to_its_page(
    client, researcher, generation, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(replay_of(generation))
    assert (response.status_code, response.url) == (302, replay_of(generation))
    assert said(response) == []
    replay = Replay.objects.get()
    assert replay.requested_by == researcher
    assert sent == [("generation.replay", [replay.pk], "generation")]


def test_the_page_renews_itself_until_the_replay_is_there(client, researcher, generation):
    renewal = f'hx-get="{replay_of(generation)}" hx-trigger="every 2s"'
    assert "Nobody has asked for this replay yet." in shown(client, generation)
    request_replay(generation=generation)
    page = shown(client, generation)
    assert renewal in page
    assert "Waiting for a worker." in page
    Replay.objects.update(lease_expires_at=timezone.now())
    assert "A worker is searching." in shown(client, generation)
    Replay.objects.update(finished_at=timezone.now(), lease_expires_at=None, steps=SEARCH, text="b d e")
    page = shown(client, generation)
    assert renewal not in page
    assert "Step 1 of 3" in page


def test_a_failed_replay_says_why_in_text_and_can_be_asked_for_again(client, researcher, generation):
    Replay.objects.create(generation=generation, finished_at=timezone.now(), failure="The <b>model</b> is not there.")
    page = shown(client, generation)
    assert "<strong>Why there is no replay:</strong> The &lt;b&gt;model&lt;/b&gt; is not there." in page
    assert "Try again" in page
    assert "every 2s" not in page
    client.post(replay_of(generation))
    assert Replay.objects.get().failure == ""


@pytest.mark.parametrize("act", ["get", "post"])
def test_what_alice_did_not_search_for_has_no_replay(client, researcher, act):
    generation = make_generation()
    assert getattr(client, act)(replay_of(generation)).status_code == 404
    assert getattr(client, act)(reverse("admin:generation_replay", args=[12345])).status_code == 404
    assert not Replay.objects.exists()


def test_a_form_of_another_site_asks_for_nothing(researcher, generation):
    client = Client(enforce_csrf_checks=True)
    client.force_login(researcher)
    assert client.post(replay_of(generation)).status_code == 403
    assert not Replay.objects.exists()


def test_an_onlooker_sees_a_replay_and_cannot_ask_for_one(client, generation):
    client.force_login(staff("otto", permissions=["view_generation", "view_replay"]))
    assert replay_of(generation) not in words(client.get(page_of(generation)))
    page = shown(client, generation)
    assert "Nobody has asked for this replay yet." in page
    assert f'action="{replay_of(generation)}"' not in page
    assert client.post(replay_of(generation)).status_code == 403
    assert not Replay.objects.exists()


# --- The search step by step ------------------------------------------------------------


def test_the_summary_tells_what_the_classifier_changed_and_that_the_statement_is_the_stored_one(
    client, researcher, replay
):
    page = shown(client, replay.generation)
    assert "The classifier changed the beam in 2 of 3 steps.</strong> It brought in 2 hypotheses" in page
    assert "Sought: what the classifier wrongly takes for toxic (false positives)." in page
    assert "<dt>Score</dt><dd>-0.750</dd>" in page
    assert "<dt>Toxic to the classifier</dt><dd>62.5 %</dd>" in page
    assert "The replay found the stored statement again, letter by letter." in page


def test_another_statement_than_the_stored_one_is_said_and_explained(client, researcher, replay):
    Replay.objects.update(text="a")
    page = shown(client, replay.generation)
    assert "The replay found another statement than the stored one" in page
    assert "Numbers differ a little between machines, in bfloat16 above all" in page


def test_a_step_has_each_hypothesis_with_both_votes_its_score_and_its_fate(client, researcher, replay):
    page = shown(client, replay.generation, step=3)
    assert "Step 3 of 3" in page
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    ended, brought_in, kept_out = table.split("</tr>")[:3]
    assert "kept, complete before" in ended
    assert '<td class="vote" data-name="Language model"><span class="muted">–</span></td>' in ended
    assert "on-path" in brought_in
    assert '<span class="value">36.8 %</span>' in brought_in  # exp(-1)
    assert '<span class="value">60.7 %</span>' in brought_in  # exp(-0.5)
    assert "-0.750" in brought_in
    assert 'brought in by the classifier <span class="muted">10th without it</span>' in brought_in
    assert "on-path" not in kept_out
    assert 'kept out by the classifier <span class="muted">2nd without it</span>' in kept_out


def test_lines_lead_from_the_beam_before_to_the_step_s_hypotheses(client, researcher, replay):
    page = shown(client, replay.generation, step=2)
    assert '<path d="M0 1.5 C5 1.5 5 0.5 10 0.5" class="kept on-path"/>' in page
    assert '<path d="M0 0.5 C5 0.5 5 1.5 10 1.5" class="kept"/>' in page


@pytest.mark.parametrize(
    ("asked_for", "number"), [("", 1), ("2", 2), ("0", 1), ("99", 3), ("-1", 1), ("x", 1), ("²", 1), ("9" * 5000, 3)]
)
def test_a_step_is_chosen_by_its_number_and_nonsense_is_near_enough(client, researcher, replay, asked_for, number):
    assert f"Step {number} of 3" in shown(client, replay.generation, step=asked_for)


def test_steps_are_turned_by_plain_links(client, researcher, replay):
    first, middle, last = (shown(client, replay.generation, step=number) for number in (1, 2, 3))
    assert 'rel="prev"' not in first
    assert 'rel="next" href="?step=2"' in first
    assert 'rel="prev" href="?step=1"' in middle
    assert 'rel="next" href="?step=3"' in middle
    assert 'rel="next"' not in last
    assert '<a href="?step=2" aria-current="step"' in middle


def test_texts_are_blurred_until_asked_for_and_then_stay_readable_from_step_to_step(client, researcher, replay):
    page = shown(client, replay.generation, step=2)
    texts = page.count('class="text') + page.count('class="token"')
    assert 'class="text">' not in page
    assert page.count("blurred") > 5
    assert '<a class="plain-button" href="?step=2&amp;texts=shown">Show the texts</a>' in page
    page = shown(client, replay.generation, step=2, texts="shown")
    assert "blurred" not in page
    assert page.count('class="text') + page.count('class="token"') > texts
    assert 'rel="next" href="?step=3&amp;texts=shown"' in page
    assert '<a class="plain-button" href="?step=2">Blur the texts</a>' in page


def test_the_page_takes_as_many_queries_for_every_step(
    client, researcher, replay, django_assert_num_queries, django_assert_max_num_queries
):
    shown(client, replay.generation)
    with django_assert_max_num_queries(10) as for_one:
        shown(client, replay.generation, step=1)
    with django_assert_num_queries(len(for_one)):
        shown(client, replay.generation, step=3)


def test_an_address_that_is_no_row_s_leads_back_to_the_list(client, researcher):
    for name in ("generation", "generationrun"):
        for nonsense in ("x", "9" * 5000, "99999"):
            address = reverse(f"admin:generation_{name}_change", args=[nonsense])
            assert client.get(address).url == reverse("admin:index")
