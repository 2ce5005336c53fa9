"""The workspace's pages about runs: start one, watch it, cancel it, and only who may."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.messages import get_messages
from django.core.exceptions import ValidationError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from generation.models import Demonstration, Generation, GenerationRun
from generation.runs import cancel_run, fail_run, pause_run
from tests.factories import make_demonstrations, make_generation, make_group, make_run

pytestmark = pytest.mark.django_db

RUNS = reverse("admin:generation_generationrun_changelist")
ADD = reverse("admin:generation_generationrun_add")


def page_of(run):
    return reverse("admin:generation_generationrun_change", args=[run.pk])


def progress_of(run):
    return reverse("admin:generation_run_progress", args=[run.pk])


def cancel_of(run):
    return reverse("admin:generation_run_cancel", args=[run.pk])


def staff(name, *, groups=(), permissions=()):
    user = get_user_model().objects.create(username=name, is_staff=True)
    user.groups.set(Group.objects.filter(name__in=groups))
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return user


@pytest.fixture
def researcher(client):
    user = staff("ada", groups=["researcher"])
    client.force_login(user)
    return user


@pytest.fixture
def onlooker(client):
    """Somebody who may look at runs and do no more."""
    user = staff("otto", permissions=["view_generationrun"])
    client.force_login(user)
    return user


@pytest.fixture
def women():
    group = make_group("women", name="Women")
    make_demonstrations(group)
    return group


def order(*groups, **changes):
    """What the add form sends."""
    return {
        "groups": [group.pk for group in groups],
        "label": "benign",
        "count": 20,
        "method": "topk",
        "k": 40,
        "temperature": 0.9,
        "max_new_tokens": 30,
        "seed": "",
        "language_model": "toy",
        "precision": "float32",
    } | changes


def search_order(*groups, **changes):
    """What the add form sends for ALICE."""
    alice = {
        "method": "alice",
        "classifier": "toy classifier",
        "lm_weight": 0.5,
        "classifier_weight": 0.25,
        "beam": 4,
        "vocabulary": 20,
        "selection": "sample",
        "no_repeat_ngram_size": 3,
        "group_words_allowed": "on",
        "n_best": 2,
    }
    return order(*groups, **alice | changes)


def said(response):
    return [str(message) for message in get_messages(response.wsgi_request)]


# --- Starting ---------------------------------------------------------------------------


def test_the_add_page_offers_the_paper_s_parameters_and_the_model_of_the_settings(client, researcher, settings):
    settings.LANGUAGE_MODEL = "a-model-of-ours"
    form = client.get(ADD).context["adminform"].form
    initial = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    assert (initial["k"], initial["temperature"], initial["max_new_tokens"]) == (40, 0.9, 30)
    assert (initial["label"], initial["language_model"]) == ("benign", "a-model-of-ours")
    alice = ("lm_weight", "classifier_weight", "beam", "vocabulary", "selection", "no_repeat_ngram_size", "n_best")
    assert [initial[name] for name in alice] == [0.5, 0.5, 10, 100, "topk", 0, 10]
    assert (initial["classifier"], initial["group_words_allowed"]) == ("minilm-toxigen", True)


def test_sending_the_form_starts_a_run_and_wakes_a_worker(
    client, researcher, women, sent, django_capture_on_commit_callbacks
):
    asian = make_group("asian")
    make_demonstrations(asian)
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(ADD, order(women, asian, k=5, temperature=1.5, max_new_tokens=9, seed=11))
    run = GenerationRun.objects.get()
    assert (response.status_code, response.url) == (302, page_of(run))
    assert (run.state, run.method, run.language_model, run.seed) == ("queued", "topk", "toy", 11)
    assert run.parameters == {"topk": {"k": 5, "temperature": 1.5, "max_new_tokens": 9}}
    assert run.created_by == researcher
    assert sorted(run.chunks.values_list("group__slug", "size")) == [
        ("asian", 4),
        ("asian", 16),
        ("women", 4),
        ("women", 16),
    ]
    assert sent == [("generation.work_on_run", [run.pk], "generation")]


def test_a_seed_left_empty_is_drawn(client, researcher, women):
    client.post(ADD, order(women, seed=""))
    assert GenerationRun.objects.get().seed >= 0


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"groups": []}, "groups", "Choose at least one group."),
        ({"count": 0}, "count", "Ensure this value is greater than or equal to 1."),
        ({"count": 10_001}, "count", "Ensure this value is less than or equal to 10000."),
        ({"count": "many"}, "count", "Enter a whole number."),
        ({"k": 0}, "k", "Ensure this value is greater than or equal to 1."),
        ({"max_new_tokens": 1001}, "max_new_tokens", "Ensure this value is less than or equal to 1000."),
        ({"temperature": "nan"}, "temperature", "Enter a number."),
        ({"temperature": 0}, "temperature", "Ensure this value is greater than or equal to 0.01."),
        ({"temperature": 101}, "temperature", "Ensure this value is less than or equal to 100."),
        ({"precision": "int8"}, "precision", "Select a valid choice. int8 is not one of the available choices."),
        ({"seed": -1}, "seed", "Ensure this value is greater than or equal to 0."),
        ({"seed": 2**63}, "seed", "Ensure this value is less than or equal to 9223372036854775807."),
        ({"method": "guess"}, "method", "Select a valid choice. guess is not one of the available choices."),
        ({"label": "rude"}, "label", "Select a valid choice. rude is not one of the available choices."),
        ({"language_model": ""}, "language_model", "This field is required."),
        (
            {"label": "toxic"},
            "groups",
            "A prompt needs 5 demonstrations and the toxic set of Women has 0. Add 5 more.",
        ),
    ],
)
def test_a_bad_value_gets_a_sentence_and_nothing_typed_is_lost(client, researcher, women, changes, field, sentence):
    response = client.post(ADD, order(women, **{"max_new_tokens": 17} | changes))
    assert response.status_code == 200
    form = response.context["adminform"].form
    assert form.errors[field] == [sentence]
    assert form["max_new_tokens"].value() == str(changes.get("max_new_tokens", 17))
    assert not GenerationRun.objects.exists()


def test_the_form_for_alice_stores_its_parameters_and_the_direction_that_follows_from_the_label(
    client, researcher, women
):
    client.post(ADD, search_order(women, temperature=0.7, max_new_tokens=12, precision="bfloat16"))
    run = GenerationRun.objects.get()
    assert (run.method, run.classifier, run.precision) == ("alice", "toy classifier", "bfloat16")
    assert run.parameters == {
        "alice": {
            "direction": "false_positives",
            "lm_weight": 0.5,
            "classifier_weight": 0.25,
            "beam": 4,
            "vocabulary": 20,
            "temperature": 0.7,
            "max_new_tokens": 12,
            "selection": "sample",
            "no_repeat_ngram_size": 3,
            "group_words_allowed": True,
            "n_best": 2,
        }
    }


def test_a_server_s_address_with_a_password_is_refused_at_its_field(client, researcher, women):
    response = client.post(ADD, order(women, language_model="http://me:secret@host/v1#m"))
    assert response.status_code == 200
    assert "leave user name, password and query out of it" in str(
        response.context["adminform"].form.errors["language_model"]
    )
    assert not GenerationRun.objects.exists()


def test_toxic_prompts_seek_false_negatives(client, researcher, women):
    make_demonstrations(women, label="toxic")
    client.post(ADD, search_order(women, label="toxic", group_words_allowed=""))
    alice = GenerationRun.objects.get().parameters["alice"]
    assert (alice["direction"], alice["group_words_allowed"]) == ("false_negatives", False)


def test_both_methods_share_what_both_have(client, researcher, women):
    client.post(ADD, search_order(women, method="paired", k=7, temperature=0.7))
    run = GenerationRun.objects.get()
    assert (run.method, run.parameters["topk"]["k"]) == ("paired", 7)
    assert run.parameters["topk"]["temperature"] == run.parameters["alice"]["temperature"] == 0.7


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"lm_weight": -0.1}, "lm_weight", "Ensure this value is greater than or equal to 0."),
        ({"classifier_weight": "much"}, "classifier_weight", "Enter a number."),
        (
            {"lm_weight": 0, "classifier_weight": 0},
            "classifier_weight",
            "One of the two weights must be above 0, or nothing ranks the hypotheses.",
        ),
        ({"beam": 0}, "beam", "Ensure this value is greater than or equal to 1."),
        ({"vocabulary": 0}, "vocabulary", "Ensure this value is greater than or equal to 1."),
        ({"n_best": 0}, "n_best", "Ensure this value is greater than or equal to 1."),
        (
            {"no_repeat_ngram_size": -1},
            "no_repeat_ngram_size",
            "Ensure this value is greater than or equal to 0.",
        ),
        ({"selection": "luck"}, "selection", "Select a valid choice. luck is not one of the available choices."),
        ({"classifier": " "}, "classifier", "This field is required."),
    ],
)
def test_a_bad_value_of_alice_gets_a_sentence_at_its_field_and_nothing_typed_is_lost(
    client, researcher, women, changes, field, sentence
):
    response = client.post(ADD, search_order(women, **{"max_new_tokens": 17} | changes))
    form = response.context["adminform"].form
    assert form.errors == {field: [sentence]}
    assert form["max_new_tokens"].value() == "17"
    assert sentence in response.content.decode()
    assert not GenerationRun.objects.exists()


@pytest.mark.parametrize(
    ("method", "nonsense"), [("topk", {"beam": "x", "lm_weight": -1, "classifier": ""}), ("alice", {"k": "x"})]
)
def test_what_stands_in_the_fields_of_another_method_is_ignored(client, researcher, women, method, nonsense):
    client.post(ADD, search_order(women, method=method, **nonsense))
    run = GenerationRun.objects.get()
    assert list(run.parameters) == [method]
    assert bool(run.classifier) == (method == "alice")


def test_the_form_says_in_words_what_alice_seeks_from_each_label(client, researcher):
    page = words(client.get(ADD))
    assert "From benign prompts it seeks <strong>what the classifier wrongly takes for toxic (false positives)" in page
    assert "From toxic prompts it seeks <strong>what the classifier wrongly takes for benign (false negatives)" in page


# --- Watching ---------------------------------------------------------------------------


@pytest.fixture
def run():
    """A run of twenty statements, five of which are stored."""
    run = make_run(count=20)
    run.chunks.filter(index=0).update(empty=1, duplicate=2, copy=3, decoding_seconds=5.0)
    for position in range(5):
        make_generation(run=run, chunk=run.chunks.first(), position=position)
    return run


def words(response):
    return " ".join(response.content.decode().split())


def test_the_progress_of_a_run_tells_what_is_stored_how_fast_and_what_was_drawn_again(client, researcher, run):
    page = words(client.get(progress_of(run)))
    assert "<strong>Queued</strong>: 5 of 20 statements" in page
    assert '<progress max="100" value="25" aria-label="Statements written">25 %</progress>' in page
    assert "<dt>Statements a second</dt><dd>1</dd>" in page
    assert "<dt>Time left</dt><dd>about 15 seconds</dd>" in page
    assert "Drawn again: 1 empty, 2 duplicate, 3 copied from the prompt." in page


def test_the_progress_of_an_open_run_renews_itself(client, researcher, run):
    renewal = f'hx-get="{progress_of(run)}" hx-trigger="every 2s"'
    assert renewal in words(client.get(progress_of(run)))
    assert renewal in words(client.get(page_of(run)))


def test_once_a_run_has_ended_its_page_is_loaded_once_more_and_stays(client, researcher, run):
    cancel_run(run=run)
    assert client.get(progress_of(run)).headers["HX-Refresh"] == "true"
    page = words(client.get(page_of(run)))
    assert progress_of(run) not in page
    assert "<strong>Cancelled</strong>: 5 of 20 statements" in page


def test_the_page_of_a_run_shows_its_progress_and_a_button_to_cancel(client, researcher, run):
    page = words(client.get(page_of(run)))
    assert "5 of 20 statements" in page
    assert f'<form method="post" action="{cancel_of(run)}">' in page


def test_an_ended_run_has_no_button_to_cancel(client, researcher, run):
    cancel_run(run=run)
    assert cancel_of(run) not in words(client.get(page_of(run)))


def test_a_failed_run_says_why_in_text_and_not_in_markup(client, researcher, run):
    fail_run(run_id=run.pk, reason="The model <b>small</b> is not there.")
    page = words(client.get(page_of(run)))
    assert "<strong>Why it failed:</strong> The model &lt;b&gt;small&lt;/b&gt; is not there." in page


def test_the_progress_of_a_search_tells_what_it_runs_on_and_what_it_asks_the_classifier(client, researcher):
    run = make_run(count=2, method="alice")
    run.chunks.update(decoding_seconds=0.5, classifier_runs=1234)
    make_generation(run=run, chunk=run.chunks.get(), position=0, method="alice")
    GenerationRun.objects.filter(pk=run.pk).update(environment={"device": "cuda:0 (a GPU)", "dtype": "bfloat16"})
    page = words(client.get(progress_of(run)))
    assert "<dt>Classifier runs a statement</dt><dd>1,234</dd>" in page
    assert "<dt>Computed on</dt><dd>cuda:0 (a GPU), bfloat16</dd>" in page


def test_the_page_of_a_run_has_method_and_parameters_in_words(client, researcher):
    page = words(client.get(page_of(make_run(method="paired"))))
    for name, value in (
        ("Method", "both, from the same prompts"),
        ("Classifier", "toy classifier"),
        ("k", "40"),
        ("Sought", "what the classifier wrongly takes for toxic (false positives)"),
        ("λ_C, weight of the classifier", "0.5"),
        ("How the next beam is chosen", "take the best"),
        ("The group may be named", "yes"),
    ):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page
    assert "{" not in page[page.index("How it writes") : page.index("Created by")]


def test_a_run_that_is_not_there_is_not_found(client, researcher):
    assert client.get(reverse("admin:generation_run_progress", args=[12345])).status_code == 404
    assert client.post(reverse("admin:generation_run_cancel", args=[12345])).status_code == 404


def test_the_list_of_runs_counts_their_statements(client, researcher, run):
    make_run()
    [result] = [run.stored for run in client.get(RUNS).context["cl"].result_list if run.stored]
    assert result == 5


def test_the_list_of_runs_takes_as_many_queries_for_many_runs_as_for_one(
    client, researcher, run, django_assert_num_queries, django_assert_max_num_queries
):
    client.get(RUNS)
    with django_assert_max_num_queries(20) as for_one:
        client.get(RUNS)
    for _ in range(5):
        make_run(created_by=researcher)
    with django_assert_num_queries(len(for_one)):
        client.get(RUNS)


def test_a_run_is_neither_edited_nor_deleted(client, researcher, run):
    assert client.post(page_of(run), order(make_group())).status_code == 403
    assert client.post(reverse("admin:generation_generationrun_delete", args=[run.pk])).status_code == 403
    run.refresh_from_db()
    assert (run.language_model, run.seed) == ("toy", 7)


# --- Pausing and resuming ---------------------------------------------------------------


def act_of(run, act):
    return reverse(f"admin:generation_run_{act}", args=[run.pk])


def test_an_open_run_is_paused_and_resumed_by_a_button_each(
    client, researcher, run, sent, django_capture_on_commit_callbacks
):
    assert f'action="{act_of(run, "pause")}"' in words(client.get(page_of(run)))
    response = client.post(act_of(run, "pause"))
    assert response.url == page_of(run)
    assert said(response) == ["The run is paused. Resume it when you like; statements under way are then written anew."]
    page = words(client.get(page_of(run)))
    assert "<strong>Paused</strong>: 5 of 20 statements" in page
    assert f'action="{act_of(run, "resume")}"' in page
    assert f'action="{act_of(run, "pause")}"' not in page
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(act_of(run, "resume"))
    assert said(response) == ["The run goes on as soon as a worker is free."]
    run.refresh_from_db()
    assert run.state == "queued"
    assert sent == [("generation.work_on_run", [run.pk], "generation")]


def test_a_paused_run_says_why_and_its_page_does_not_renew_itself(client, researcher, run):
    pause_run(run_id=run.pk, reason="The server does not answer.")
    page = words(client.get(page_of(run)))
    assert "<strong>Why it is paused:</strong> The server does not answer." in page
    assert progress_of(run) not in page
    assert client.get(progress_of(run)).headers["HX-Refresh"] == "true"


@pytest.mark.parametrize("act", ["pause", "resume"])
def test_a_run_that_has_ended_is_neither_paused_nor_resumed(client, researcher, run, act):
    cancel_run(run=run)
    assert said(client.post(act_of(run, act))) == ["Nothing was changed: the run is cancelled."]
    page = words(client.get(page_of(run)))
    assert act_of(run, act) not in page


@pytest.mark.parametrize("act", ["pause", "resume"])
def test_an_onlooker_neither_pauses_nor_resumes(client, onlooker, run, act):
    assert client.post(act_of(run, act)).status_code == 403
    assert client.get(act_of(run, act)).status_code == 405
    run.refresh_from_db()
    assert run.state == "queued"


# --- Cancelling -------------------------------------------------------------------------


def test_a_run_is_cancelled_and_what_was_written_is_kept(client, researcher, run):
    response = client.post(cancel_of(run))
    assert (response.status_code, response.url) == (302, page_of(run))
    assert said(response) == ["The run was cancelled. The statements written so far are kept."]
    run.refresh_from_db()
    assert (run.state, run.generations.count()) == ("cancelled", 5)


def test_cancelling_a_run_that_has_ended_changes_nothing_and_says_so(client, researcher, run):
    fail_run(run_id=run.pk, reason="The machine burned down.")
    assert said(client.post(cancel_of(run))) == ["Nothing was changed: the run is failed."]
    run.refresh_from_db()
    assert run.state == "failed"


def test_following_a_link_cancels_nothing(client, researcher, run):
    assert client.get(cancel_of(run)).status_code == 405
    run.refresh_from_db()
    assert run.state == "queued"


def test_a_form_of_another_site_cancels_nothing(researcher, run):
    client = Client(enforce_csrf_checks=True)
    client.force_login(researcher)
    assert client.post(cancel_of(run)).status_code == 403
    run.refresh_from_db()
    assert run.state == "queued"


# --- Who may ----------------------------------------------------------------------------


def test_an_onlooker_sees_progress_without_a_button_and_can_neither_cancel_nor_start(client, onlooker, run, women):
    assert client.get(page_of(run)).status_code == 200
    progress = client.get(progress_of(run))
    assert progress.status_code == 200
    assert "Cancel" not in progress.content.decode()
    assert client.post(cancel_of(run)).status_code == 403
    assert client.get(ADD).status_code == client.post(ADD, order(women)).status_code == 403
    run.refresh_from_db()
    assert (run.state, GenerationRun.objects.count()) == ("queued", 1)


def test_staff_without_permissions_see_nothing_of_runs(client, run):
    client.force_login(staff("sid"))
    assert [client.get(url).status_code for url in (RUNS, page_of(run), progress_of(run))] == [403, 403, 403]
    assert client.post(cancel_of(run)).status_code == 403


def test_whoever_is_not_logged_in_is_asked_to(client, run):
    for url in (RUNS, ADD, page_of(run), progress_of(run)):
        assert client.get(url).url == f"/admin/login/?next={url}"
    assert client.post(cancel_of(run)).url == f"/admin/login/?next={cancel_of(run)}"
    run.refresh_from_db()
    assert run.state == "queued"


# --- Demonstrations and generations -----------------------------------------------------


def test_retiring_demonstrations_keeps_them_and_notes_when(client, researcher, women):
    chosen = Demonstration.objects.filter(text__startswith="the ")
    already = chosen.first()
    Demonstration.objects.filter(pk=already.pk).update(retired_at=timezone.now())
    response = client.post(
        reverse("admin:generation_demonstration_changelist"),
        {"action": "retire", "_selected_action": list(chosen.values_list("pk", flat=True))},
    )
    assert said(response) == ["Demonstrations retired: 1."]
    assert Demonstration.objects.count() == 7
    assert Demonstration.objects.exclude(retired_at=None).count() == 2


def test_toxic_demonstrations_are_blurred_and_benign_ones_are_not(client, researcher, women):
    make_demonstrations(women, label="toxic", texts=["a sentence that hurts"])
    page = client.get(reverse("admin:generation_demonstration_changelist")).content.decode()
    assert 'class="blurred" tabindex="0" title="Point at it or press Tab to read it">a sentence that hurts<' in page
    assert '">the choir sang in three languages<' not in page
    assert "the choir sang in three languages" in page


def test_a_demonstration_of_two_lines_is_refused_with_the_reason(women):
    with pytest.raises(ValidationError) as refusal:
        Demonstration(group=women, label="benign", text="one\nsails").full_clean()
    assert refusal.value.messages == ["A demonstration is one line: a prompt puts each on a line of its own."]


def test_statements_are_blurred_wherever_the_workspace_shows_them(client, researcher, run):
    generation = Generation.objects.first()
    Generation.objects.filter(pk=generation.pk).update(text="a sentence <i>that</i> hurts")
    blurred = 'title="Point at it or press Tab to read it">a sentence &lt;i&gt;that&lt;/i&gt; hurts</span>'
    for url in (
        reverse("admin:generation_generation_changelist"),
        reverse("admin:generation_generation_change", args=[generation.pk]),
    ):
        page = client.get(url).content.decode()
        assert blurred in page
        assert page.count("hurts") == page.count(blurred)


def test_statements_are_neither_added_edited_nor_deleted_by_hand(client, researcher, run):
    generation = Generation.objects.first()
    change = reverse("admin:generation_generation_change", args=[generation.pk])
    assert client.get(reverse("admin:generation_generation_add")).status_code == 403
    assert client.post(change, {"text": "something else"}).status_code == 403
    assert client.post(reverse("admin:generation_generation_delete", args=[generation.pk])).status_code == 403
