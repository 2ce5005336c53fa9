"""The workspace's pages about runs: start one, watch it, cancel it, have it again, and only who may."""

import re

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.messages import get_messages
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from generation.models import AuditEntry, Demonstration, Generation, GenerationRun, TargetGroup
from generation.parameters import AliceParameters
from generation.repeating import recipe, repeat_run
from generation.runs import Cell, cancel_run, fail_run, pause_run, start_run
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
        "labels": ["benign"],
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


def test_a_chunk_size_that_cannot_be_stored_is_said_on_the_form(client, researcher, women, settings):
    settings.CHUNK_SIZE = 32_768
    page = client.post(ADD, order(women))
    assert page.status_code == 200
    assert "HUMANVAL_CHUNK_SIZE must be a whole number of at most 32767, not 32768." in words(page)
    assert not GenerationRun.objects.exists()


def test_the_add_page_offers_the_paper_s_parameters_and_the_model_of_the_settings(client, researcher, settings):
    settings.LANGUAGE_MODEL = "a-model-of-ours"
    form = client.get(ADD).context["adminform"].form
    initial = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    assert (initial["k"], initial["temperature"], initial["max_new_tokens"]) == (40, 0.9, 30)
    assert (initial["labels"], initial["language_model"]) == (["benign", "toxic"], "a-model-of-ours")
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
        ({"labels": []}, "labels", "Choose benign, toxic or both."),
        ({"labels": ["rude"]}, "labels", "Select a valid choice. rude is not one of the available choices."),
        ({"language_model": ""}, "language_model", "This field is required."),
        (
            {"labels": ["benign", "toxic"]},
            "groups",
            "A prompt needs 5 demonstrations and the toxic set of Women has 0. Add 5 more. Or leave this set out.",
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


def test_the_form_for_alice_stores_its_parameters(client, researcher, women):
    client.post(ADD, search_order(women, temperature=0.7, max_new_tokens=12, precision="bfloat16"))
    run = GenerationRun.objects.get()
    assert (run.method, run.classifier, run.precision) == ("alice", "toy classifier", "bfloat16")
    assert run.parameters == {
        "alice": {
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


def test_both_labels_of_all_groups_are_a_balanced_run(client, researcher, women):
    TargetGroup.objects.exclude(slug__in=("women", "asian")).delete()
    asian = make_group("asian")
    make_demonstrations(asian)
    for group in (women, asian):
        make_demonstrations(group, label="toxic")
    client.post(ADD, search_order(labels=["benign", "toxic"], all_groups="on", group_words_allowed=""))
    run = GenerationRun.objects.get()
    assert sorted(run.cells.values_list("group__slug", "label", "places")) == [
        ("asian", "benign", 20),
        ("asian", "toxic", 20),
        ("women", "benign", 20),
        ("women", "toxic", 20),
    ]
    assert run.parameters["alice"]["group_words_allowed"] is False


def test_every_set_that_is_too_small_is_said_beside_the_groups(client, researcher, women):
    asian = make_group("asian", name="Asian")
    response = client.post(ADD, order(women, asian, labels=["benign", "toxic"]))
    assert response.context["adminform"].form.errors["groups"] == [
        f"A prompt needs 5 demonstrations and the {name} has 0. Add 5 more. Or leave this set out."
        for name in ("benign set of Asian", "toxic set of Asian", "toxic set of Women")
    ]
    assert not GenerationRun.objects.exists()


def test_beside_each_group_stands_how_many_demonstrations_it_has(client, researcher, women):
    Demonstration.objects.filter(text__startswith="the ").update(retired_at=timezone.now())
    make_demonstrations(women, label="toxic", texts=["one placeholder"])
    assert "Women (5 benign, 1 toxic)" in words(client.get(ADD))


# --- What the form would start ----------------------------------------------------------

OUTLOOK = reverse("admin:generation_run_outlook")


def outlook(client, **form):
    return words(client.get(OUTLOOK, form))


def test_one_total_is_shown_with_what_it_is_made_of(client, researcher, women):
    make_demonstrations(women, label="toxic")
    page = outlook(client, **search_order(women, labels=["benign", "toxic"], method="paired"))
    assert "<strong>80 statements</strong>" in page
    assert "1 group × 2 labels × 20 × 2 methods" in page


def test_what_is_wrong_in_the_form_leaves_out_only_what_hangs_on_it(client, researcher, women):
    assert "No group and label is chosen yet." in outlook(client, **order())
    assert "as soon as method and number are right" in outlook(client, **order(women, count="many"))
    page = outlook(client, **order(women, temperature="hot"))
    assert "<strong>20 statements</strong>" in page
    assert "How long" not in page


def test_sets_that_are_too_small_are_linked_to_where_they_are_filled(client, researcher, women):
    page = outlook(client, **order(women, labels=["benign", "toxic"]))
    assert "1 set is too small to draw prompts from" in page
    address = reverse("admin:generation_set", args=["women", "toxic"])
    assert f'<a href="{address}">Women, toxic</a> <span class="muted">A prompt needs 5 demonstrations' in page


def test_what_was_never_measured_is_not_guessed(client, researcher, women):
    assert "How long it takes is not known yet: nothing was measured with this method" in outlook(
        client, **order(women)
    )


def test_the_time_is_that_of_an_earlier_run_which_is_named(client, researcher, women):
    run = make_run(count=40)
    run.cells.update(stored=40, decoding_seconds=400)
    GenerationRun.objects.filter(pk=run.pk).update(environment={"device": "cpu"})
    assert (
        f"About 3 minutes with one worker, measured on run {run.pk} (40 statements on cpu). "
        "Two workers take half as long."
    ) in outlook(client, **order(women))
    assert (
        f"About 3 minutes with one worker, measured on run {run.pk} (40 statements on cpu), which had other "
        "parameters: tokens at most 30. Two workers take half as long."
    ) in outlook(client, **order(women, max_new_tokens=60))


def test_the_form_shows_the_same_without_javascript(client, researcher, women):
    assert "No group and label is chosen yet." in words(client.get(ADD))
    assert "<strong>20 statements</strong>" in words(client.post(ADD, order(women, temperature="hot")))


def test_the_form_can_be_filled_in_as_for_an_earlier_run(client, researcher, women):
    run = make_run(count=30, method="paired", alice=AliceParameters(beam=4), seed=5)
    form = client.get(f"{ADD}?from={run.pk}").context["adminform"].form
    initial = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    assert (initial["groups"], initial["labels"], initial["count"]) == ([women.pk], ["benign"], 30)
    assert (initial["method"], initial["beam"], initial["classifier"]) == ("paired", 4, "toy classifier")
    assert initial["seed"] is None
    for nonsense in ("999999", "x", "9" * 30):
        assert client.get(f"{ADD}?from={nonsense}").status_code == 200


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
    run.cells.update(stored=5, empty=1, duplicate=2, copy=3, decoding_seconds=5.0)
    run.chunks.filter(index=0).update(finished_at=timezone.now())
    for position in range(5):
        make_generation(run=run, chunk=run.chunks.first(), position=position)
    return run


def words(response):
    return " ".join(response.content.decode().split())


def test_the_progress_of_a_run_tells_what_is_stored_how_fast_and_what_was_drawn_again(client, researcher, run):
    page = words(client.get(progress_of(run)))
    assert "<strong>Queued</strong>: 5 of 20 statements" in page
    assert '<progress max="100" value="25" aria-label="Statements written">25 %</progress>' in page
    assert "<dt>Statements a second and worker</dt><dd>1</dd>" in page
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
    run.cells.update(decoding_seconds=0.5, classifier_runs=1234, stored=1)
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
        ("Sought from benign prompts", "what the classifier wrongly takes for toxic (false positives)"),
        ("λ_C, weight of the classifier", "0.5"),
        ("How the next beam is chosen", "take the best"),
        ("The group may be named", "yes"),
    ):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page
    assert "{" not in page[page.index("How it writes") : page.index("Created by")]


def rows_of(page):
    body = page[page.index('<tbody id="cell-rows"') : page.index("</tbody>")]
    return [
        re.findall(r"<t[hd][^>]*>(?:<progress[^>]*></progress>)? ?(.*?)</t[hd]>", row) for row in body.split("<tr>")[1:]
    ]


def test_each_cell_has_a_row_with_how_far_each_method_is(client, researcher):
    for label in ("benign", "toxic"):
        make_demonstrations(make_group("women", name="Women"), label=label)
    run = start_run(
        cells=[Cell(make_group(), label, 20) for label in ("benign", "toxic")],
        method="paired", language_model="toy", classifier="toy classifier",
    )  # fmt: skip
    run.cells.filter(label="benign").update(stored=12, decoding_seconds=6, empty=1, duplicate=2, copy=3)
    for address in (page_of(run), progress_of(run)):
        page = words(client.get(address))
        assert rows_of(page) == [
            ["Women", "benign", "6 of 20", "6 of 20", "2", "1", "2", "3", "–"],
            ["Women", "toxic", "0 of 20", "0 of 20", "–", "0", "0", "0", "–"],
        ]
    run.cells.update(near_duplicate=4)
    page = words(client.get(page_of(run)))
    assert rows_of(page)[0][-1] == "4"
    assert "shares at least 70 % of its pairs of neighbouring words with an earlier statement of the run" in page


def samples_of(run):
    return reverse("admin:generation_run_samples", args=[run.pk])


def test_a_few_statements_are_shown_blurred(client, researcher, run):
    Generation.objects.filter(position=0).update(text="a sentence that may hurt")
    for address in (page_of(run), samples_of(run)):
        page = words(client.get(address))
        assert (
            'class="blurred" tabindex="0" title="Point at it or press Tab to read it">a sentence that may hurt<' in page
        )


def test_who_may_not_see_statements_sees_no_samples(client, onlooker, run):
    Generation.objects.filter(position=0).update(text="a sentence that may hurt")
    assert "may hurt" not in words(client.get(page_of(run)))
    assert client.get(samples_of(run)).status_code == 403


def test_the_page_of_a_run_takes_as_many_queries_for_many_statements_as_for_one(
    client, researcher, django_assert_num_queries
):
    small, large = make_run(count=1), make_run(count=5_000)
    client.get(page_of(small))
    with CaptureQueriesContext(connection) as of_the_small:
        client.get(page_of(small))
    with django_assert_num_queries(len(of_the_small)):
        client.get(page_of(large))


# --- Having it again --------------------------------------------------------------------


def test_the_page_of_a_run_repeats_it(client, researcher, run, sent, django_capture_on_commit_callbacks):
    address = reverse("admin:generation_run_repeat", args=[run.pk])
    assert f'action="{address}"' in words(client.get(page_of(run)))
    with django_capture_on_commit_callbacks(execute=True):
        response = client.post(address)
    again = GenerationRun.objects.first()
    assert (response.url, again.repeats, again.created_by) == (page_of(again), run, researcher)
    assert said(response) == [f"This run repeats run {run.pk}: the same seed, settings and sets of demonstrations."]
    assert sent == [("generation.work_on_run", [again.pk], "generation")]


def test_a_repetition_says_on_what_else_it_was_worked_on(client, researcher, run):
    again = repeat_run(run=run)
    GenerationRun.objects.filter(pk=run.pk).update(environment={"torch": "2.8.0", "device": "cpu"})
    GenerationRun.objects.filter(pk=again.pk).update(environment={"torch": "2.9.0", "device": "cpu"})
    page = words(client.get(page_of(again)))
    assert f"It was worked on with something else than run {run.pk}" in page
    assert "<li>torch: 2.9.0, then 2.8.0</li>" in page
    GenerationRun.objects.filter(pk=again.pk).update(environment={"torch": "2.8.0", "device": "cpu"})
    assert "the same versions of everything" in words(client.get(page_of(again)))


def test_all_that_a_run_takes_is_downloaded_and_that_is_noted(client, researcher, run):
    address = reverse("admin:generation_run_recipe", args=[run.pk])
    response = client.get(address)
    assert response.headers["Content-Disposition"] == f'attachment; filename="run-{run.pk}.json"'
    assert response.json() == recipe(run)
    noted = AuditEntry.objects.first()
    assert (noted.act, noted.by, noted.subject) == ("recipe exported", researcher, f"run {run.pk}")


def test_a_run_whose_sets_were_not_kept_is_neither_repeated_nor_downloaded(client, researcher, run):
    run.cells.update(demonstrations=[])
    page = words(client.get(page_of(run)))
    assert "so that it cannot be repeated exactly" in page
    assert "Repeat this run" not in page
    for response in (
        client.post(reverse("admin:generation_run_repeat", args=[run.pk])),
        client.get(reverse("admin:generation_run_recipe", args=[run.pk])),
    ):
        assert response.url == page_of(run)
    assert GenerationRun.objects.count() == 1


def test_an_onlooker_neither_repeats_nor_downloads(client, onlooker, run):
    assert client.post(reverse("admin:generation_run_repeat", args=[run.pk])).status_code == 403
    assert client.get(reverse("admin:generation_run_recipe", args=[run.pk])).status_code == 403
    assert client.get(OUTLOOK).status_code == 403


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
