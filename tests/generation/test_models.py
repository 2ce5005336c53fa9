"""What must never be false is a constraint: no way of writing, not only no form, gets past it."""

import math
from datetime import timedelta
from importlib import import_module
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from generation import repeating
from generation.chunks import lease_next_chunk
from generation.drawing import duplicate_key
from generation.models import (
    TEXT_DIGEST,
    Demonstration,
    Generation,
    GenerationRun,
    Method,
    Prompt,
    Reading,
    Replay,
    RunMethod,
    TargetGroup,
    TextReader,
    Trial,
)
from generation.runs import pause_run, resume_run
from generation.working import work_on_chunk, work_on_run
from tests.factories import (
    DEMONSTRATIONS,
    make_demonstrations,
    make_embedding,
    make_generation,
    make_group,
    make_perplexity,
    make_reader,
    make_reading,
    make_run,
    make_toxicity_score,
)

pytestmark = pytest.mark.django_db


def a_prompt(text="- one\n-", **fields):
    return Prompt.objects.create(**{"text": text, "group": make_group(), "label": "benign"} | fields)


def two_demonstrations():
    make_demonstrations(texts=["one sails", "two row"])
    return Demonstration.objects.all()


def two_generations_of_a_run():
    """Statements “rain fell” and “snow fell” at the first two places of a run."""
    run = make_run(count=2)
    chunk = run.chunks.get()
    for position, text in enumerate(["rain fell", "snow fell"]):
        make_generation(text, run=run, chunk=chunk, position=position)
    return run.generations.all()


def two_chunks():
    return make_run(count=32).chunks.all()


def two_cells():
    return make_run(labels=("benign", "toxic")).cells.all()


def a_replay():
    return Replay.objects.create(generation=make_generation()) and Replay.objects.all()


def a_trial():
    prompt = a_prompt()
    Trial.objects.create(group=prompt.group, label="benign", prompt=prompt, language_model="toy", seed=7)
    return Trial.objects.all()


def two_responses():
    [trial] = a_trial()
    for position, text in enumerate(["one sails", "two row"]):
        trial.responses.create(position=position, text=text, tokens=2, mentions_group=False)
    return trial.responses.all()


def one_response():
    """A response beside a demonstration whose number is 77."""
    Demonstration.objects.create(pk=77, group=make_group(), label="benign", text="one sails")
    return two_responses().filter(position=0)


def two_imported_statements():
    for text in ("rain fell", "snow fell"):
        make_generation(text)
    return Generation.objects.filter(run=None)


def two_readers():
    for revision in ("1", "2"):
        make_reader(name="m", revision=revision)
    return TextReader.objects.all()


def a_reading():
    return make_reading(2) and Reading.objects.all()


def two_reading_chunks():
    reading = make_reading(1)
    reading.chunks.create(index=1, generations=[1])
    return reading.chunks.all()


def two_values(make):
    """Of one reader, of two statements, one of which has the number 77."""
    first = make(make_generation(pk=77))
    make(reader=first.reader)
    return type(first).objects.all()


def one_run(**options):
    return make_run(**options) and GenerationRun.objects.all()


NOW = timezone.now()

# The constraint, rows that keep it, and the change that would break it.
BREACHES = [
    ("demonstration_once_a_set", two_demonstrations, {"text": "one sails"}),
    ("demonstration_label_known", two_demonstrations, {"label": "rude"}),
    ("demonstration_has_text", two_demonstrations, {"text": " \t "}),
    ("demonstration_on_one_line", two_demonstrations, {"text": "one\nsails"}),
    ("demonstration_origin_known", two_demonstrations, {"origin": "dreamt"}),
    ("demonstration_retired_if_it_says_why", two_demonstrations, {"retired_reason": "Too short."}),
    ("trial_label_known", a_trial, {"label": "rude"}),
    ("trial_count_in_range", a_trial, {"count": 0}),
    ("trial_count_in_range", a_trial, {"count": 51}),
    ("trial_finished_is_not_leased", a_trial, {"finished_at": NOW, "lease_expires_at": NOW}),
    ("trial_failed_is_finished", a_trial, {"failure": "Away."}),
    ("response_once_a_position", two_responses, {"position": 0}),
    ("response_has_text", two_responses, {"text": " \t"}),
    ("response_verdict_known", two_responses, {"verdict": "fine", "judged_at": NOW}),
    ("response_bad_because_of_something", two_responses, {"verdict": "bad", "judged_at": NOW}),
    (
        "response_bad_because_of_something",
        two_responses,
        {"verdict": "bad", "bad_because": "dull", "judged_at": NOW},
    ),
    ("response_bad_because_of_something", two_responses, {"bad_because": "no_sense"}),
    ("response_in_the_set_was_promoted", one_response, {"demonstration": 77}),
    ("response_judged_when_its_verdict_says_so", two_responses, {"judged_at": NOW}),
    ("response_judged_when_its_verdict_says_so", two_responses, {"verdict": "promoted"}),
    ("prompt_once_a_set", lambda: [a_prompt(), a_prompt("- two\n-")] and Prompt.objects.all(), {"text": "- one\n-"}),
    ("prompt_label_known", lambda: a_prompt() and Prompt.objects.all(), {"label": "rude"}),
    ("run_state_known", one_run, {"state": "lost", "ended_at": NOW}),
    ("run_method_known", one_run, {"method": "guess", "classifier": "toy classifier"}),
    ("run_precision_known", one_run, {"precision": "int4"}),
    ("run_has_the_classifier_that_it_needs", one_run, {"classifier": "toy classifier"}),
    ("run_has_the_classifier_that_it_needs", one_run, {"method": "alice"}),
    ("run_has_the_classifier_that_it_needs", one_run, {"method": "paired"}),
    ("run_has_the_classifier_that_it_needs", lambda: one_run(method="alice"), {"classifier": ""}),
    ("run_ended_when_its_state_says_so", one_run, {"state": "finished"}),
    ("run_ended_when_its_state_says_so", one_run, {"state": "paused", "ended_at": NOW}),
    ("run_ended_when_its_state_says_so", one_run, {"ended_at": NOW}),
    (
        "run_failed_with_a_reason",
        one_run,
        {"state": "failed", "ended_at": NOW},
    ),
    ("run_failed_with_a_reason", one_run, {"failure": "No reason."}),
    ("cell_once_a_run", two_cells, {"label": "benign"}),
    ("cell_has_places", two_cells, {"places": 0}),
    ("cell_label_known", two_cells, {"label": "rude"}),
    ("chunk_once_a_run", two_chunks, {"index": 0}),
    ("chunk_has_a_size", two_chunks, {"size": 0}),
    ("chunk_label_known", two_chunks, {"label": "rude"}),
    ("chunk_lease_has_an_end", two_chunks, {"lease_token": uuid4()}),
    ("chunk_lease_has_an_end", two_chunks, {"lease_expires_at": NOW}),
    (
        "chunk_finished_is_not_leased",
        two_chunks,
        {"finished_at": NOW, "lease_token": uuid4(), "lease_expires_at": NOW + timedelta(minutes=1)},
    ),
    ("generation_once_a_place", two_generations_of_a_run, {"position": 0}),
    ("generation_text_once_a_run", two_generations_of_a_run, {"text": "Rain FELL"}),
    ("generation_imported_once", two_imported_statements, {"text": "rain fell"}),
    ("generation_of_a_run_has_its_place", two_generations_of_a_run, {"position": None}),
    ("generation_of_a_run_has_its_place", two_generations_of_a_run, {"chunk": None}),
    ("generation_of_a_run_has_its_place", two_generations_of_a_run, {"run": None}),
    ("generation_label_known", two_generations_of_a_run, {"label": "rude"}),
    ("generation_method_known", two_generations_of_a_run, {"method": "guess"}),
    ("generation_has_text", two_generations_of_a_run, {"text": " \n\t"}),
    ("generation_toxic_prob_is_a_probability", two_generations_of_a_run, {"toxic_prob": -0.1}),
    ("generation_toxic_prob_is_a_probability", two_generations_of_a_run, {"toxic_prob": 1.1}),
    ("generation_toxic_prob_is_a_probability", two_generations_of_a_run, {"toxic_prob": math.nan}),
    ("text_reader_once", two_readers, {"revision": "1"}),
    ("text_reader_kind_known", two_readers, {"kind": "oracle"}),
    ("text_reader_precision_known", two_readers, {"precision": "int4"}),
    ("reading_kind_known", a_reading, {"kind": "oracle"}),
    ("reading_precision_known", a_reading, {"precision": "int4"}),
    ("reading_reads_no_more_than_there_are", a_reading, {"read": 3}),
    ("reading_failed_has_ended", a_reading, {"failure": "Away."}),
    ("reading_chunk_once", two_reading_chunks, {"index": 0}),
    ("reading_chunk_finished_is_not_leased", two_reading_chunks, {"finished_at": NOW, "lease_token": uuid4()}),
    ("reading_chunk_finished_is_not_leased", two_reading_chunks, {"finished_at": NOW, "lease_expires_at": NOW}),
    ("toxicity_score_once", lambda: two_values(make_toxicity_score), {"generation": 77}),
    ("toxicity_score_is_a_probability", lambda: two_values(make_toxicity_score), {"toxic_prob": 1.1}),
    ("toxicity_score_is_a_probability", lambda: two_values(make_toxicity_score), {"toxic_prob": math.nan}),
    ("perplexity_once", lambda: two_values(make_perplexity), {"generation": 77}),
    ("perplexity_is_at_least_one", lambda: two_values(make_perplexity), {"value": 0.9}),
    ("perplexity_is_at_least_one", lambda: two_values(make_perplexity), {"value": math.nan}),
    ("perplexity_is_at_least_one", lambda: two_values(make_perplexity), {"value": math.inf}),
    ("perplexity_is_at_least_one", lambda: two_values(make_perplexity), {"value": None}),
    ("perplexity_is_at_least_one", lambda: two_values(make_perplexity), {"tokens": 0}),
    ("embedding_once", lambda: two_values(make_embedding), {"generation": 77}),
    ("embedding_is_of_float32", lambda: two_values(make_embedding), {"vector": b"12345"}),
    ("replay_finished_is_not_leased", a_replay, {"finished_at": NOW, "lease_expires_at": NOW, "failure": "Away."}),
    ("replay_finished_with_steps_or_a_failure", a_replay, {"finished_at": NOW}),
    ("replay_finished_with_steps_or_a_failure", a_replay, {"failure": "Away."}),
    ("replay_finished_with_steps_or_a_failure", a_replay, {"steps": [1]}),
]


@pytest.mark.parametrize(
    ("constraint", "rows", "change"), BREACHES, ids=[f"{name}-{i}" for i, (name, *_) in enumerate(BREACHES)]
)
def test_no_update_breaks_a_constraint(constraint, rows, change):
    rows = rows()
    with pytest.raises(IntegrityError, match=f'"{constraint}"'), transaction.atomic():
        rows.update(**change)


def test_every_named_constraint_is_tried_above():
    named = {
        constraint.name
        for model in apps.get_app_config("generation").get_models()
        for constraint in model._meta.constraints
    }
    assert named == {name for name, *_ in BREACHES}


@pytest.mark.parametrize("text", ["Rain FELL", "İZMİR", "ÁÉÎ Straße ΟΔΟΣ", "ǅ \N{GRINNING FACE}", "a\tB"])
def test_the_database_and_drawing_agree_on_what_a_duplicate_is(text):
    generation = make_generation(text)
    with connection.cursor() as cursor:
        cursor.execute("SELECT md5(%s)", [duplicate_key(text)])
        [digest] = cursor.fetchone()
    assert Generation.objects.annotate(digest=TEXT_DIGEST).get(digest=digest) == generation


def test_the_same_words_may_be_imported_by_two_methods_and_written_by_two_people():
    for method in (Method.TOPK, Method.ALICE, Method.WRITTEN, Method.WRITTEN):
        make_generation("rain fell", method=method)
    assert Generation.objects.filter(text="rain fell").count() == 4


def test_the_same_sentence_may_be_a_demonstration_of_two_groups():
    make_demonstrations(make_group("women"), texts=["we sail"])
    make_demonstrations(make_group("asian"), texts=["we sail"])
    assert Demonstration.objects.filter(text="we sail").count() == 2


def test_what_a_run_is_made_of_cannot_be_deleted_under_it():
    run = two_generations_of_a_run()[0].run
    for protected in (run, run.chunks.get(), run.chunks.get().group):
        with pytest.raises(Exception, match="protected foreign keys"):
            protected.delete()


def test_prompts_are_drawn_from_demonstrations_in_use_of_the_group_and_label_in_the_order_of_their_text():
    women, asian = make_group("women"), make_group("asian")
    make_demonstrations(women, texts=["we swim", "we dive", "we row"])
    make_demonstrations(women, label="toxic", texts=["they sink"])
    make_demonstrations(asian, texts=["we sail"])
    Demonstration.objects.filter(text="we row").update(retired_at=NOW)
    usable = Demonstration.objects.usable(women, "benign")
    assert [demonstration.text for demonstration in usable] == ["we dive", "we swim"]


def test_a_run_with_a_chunk_that_nobody_holds_is_waiting():
    free, held, half_held, lapsed, ended = (make_run(count=32) for _ in range(5))
    lease = {"lease_token": uuid4(), "lease_expires_at": timezone.now() + timedelta(minutes=1)}
    held.chunks.update(**lease)
    half_held.chunks.filter(index=0).update(**lease)
    lapsed.chunks.update(**lease | {"lease_expires_at": timezone.now() - timedelta(seconds=1)})
    GenerationRun.objects.filter(pk=ended.pk).update(state="cancelled", ended_at=NOW)
    assert set(GenerationRun.objects.waiting()) == {free, half_held, lapsed}


def test_a_run_whose_chunks_are_finished_or_held_is_not_waiting():
    run = make_run(count=32)
    run.chunks.filter(index=0).update(finished_at=NOW)
    run.chunks.filter(index=1).update(lease_token=uuid4(), lease_expires_at=timezone.now() + timedelta(minutes=1))
    assert not GenerationRun.objects.waiting().exists()


def test_the_migration_makes_the_thirteen_groups_of_the_release_in_the_order_of_the_paper():
    migration = import_module("generation.migrations.0002_target_groups")
    TargetGroup.objects.all().delete()
    migration.add_groups(apps, schema_editor=None)
    assert list(TargetGroup.objects.values_list("slug", flat=True)) == [
        "black",
        "asian",
        "native_american",
        "latino",
        "jewish",
        "muslim",
        "chinese",
        "mexican",
        "middle_east",
        "lgbtq",
        "women",
        "mental_dis",
        "physical_dis",
    ]


@pytest.mark.parametrize(
    ("method", "methods"),
    [("topk", (Method.TOPK,)), ("alice", (Method.ALICE,)), ("paired", (Method.TOPK, Method.ALICE))],
)
def test_a_run_writes_a_statement_of_each_of_its_methods_for_a_place(method, methods):
    assert RunMethod(method).methods == GenerationRun(method=method).methods == methods


def test_the_two_of_a_pair_stand_at_the_same_place():
    run = make_run(count=1, method="paired")
    for method in ("topk", "alice"):
        make_generation(run=run, chunk=run.chunks.get(), position=0, method=method)
    assert run.generations.count() == 2


def test_lists_of_statements_leave_the_n_best_in_the_database(django_assert_num_queries):
    run = make_run(count=1)
    make_generation(run=run, chunk=run.chunks.get(), position=0, hypotheses=[{"text": "rain fell"}])
    for statements in (Generation.objects.all(), run.generations.all()):
        [statement] = statements
        assert statement.get_deferred_fields() == {"hypotheses"}
        with django_assert_num_queries(1):
            assert statement.hypotheses == [{"text": "rain fell"}]


# --- Migrations -------------------------------------------------------------------------


def test_the_parameters_of_older_runs_are_those_of_their_method():
    migration = import_module("generation.migrations.0004_parameters_by_method")
    run = make_run()
    GenerationRun.objects.update(parameters={"k": 5, "temperature": 1.5, "max_new_tokens": 9})
    migration.key_by_method(apps, schema_editor=None)
    run.refresh_from_db()
    assert run.parameters == {"topk": {"k": 5, "temperature": 1.5, "max_new_tokens": 9}}
    migration.key_no_more(apps, schema_editor=None)
    run.refresh_from_db()
    assert run.parameters == {"k": 5, "temperature": 1.5, "max_new_tokens": 9}


def as_the_migration_fills_in_cells_of(run):
    """The demonstrations of each cell, had the run been started before there were cells."""
    migration = import_module("generation.migrations.0009_cells_of_runs")
    run.cells.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(migration.FILL_IN)
    migration.keep_sets(apps, schema_editor=None)
    return {(cell.group.slug, cell.label): cell.demonstrations for cell in run.cells.select_related("group")}


def test_runs_of_before_that_have_not_begun_keep_the_sets_of_the_upgrade():
    run = make_run(count=40, slugs=("women", "asian"))
    expected = sorted(DEMONSTRATIONS)
    assert as_the_migration_fills_in_cells_of(run) == {("women", "benign"): expected, ("asian", "benign"): expected}
    assert list(run.cells.values_list("places", "stored")) == [(40, 0), (40, 0)]
    assert repeating.repeat_run(run=run).chunks.count() == run.chunks.count()


def test_what_chunks_stored_before_the_upgrade_drew_from_is_not_made_up_and_the_run_goes_on(toy):
    run = make_run(count=40, slugs=("women", "asian"))
    work_on_chunk(chunk=lease_next_chunk(run_id=run.pk))
    pause_run(run_id=run.pk)
    assert as_the_migration_fills_in_cells_of(run) == {
        ("women", "benign"): [],
        ("asian", "benign"): sorted(DEMONSTRATIONS),
    }
    with pytest.raises(repeating.NotRepeatable):
        repeating.recipe(run)
    assert resume_run(run=run)
    work_on_run(run_id=run.pk)
    run.refresh_from_db()
    assert (run.state, run.failure, run.generations.count()) == ("finished", "", 80)


def test_a_group_that_a_run_of_before_had_twice_is_one_cell_that_is_not_repeated(toy):
    run = make_run(count=20, slugs=("women", "asian"))
    # As the runs of before cut women, women and asian: first parts, then second parts.
    women, asian = make_group("women"), make_group("asian")
    for index, (group, size) in enumerate([(women, 16), (women, 16), (asian, 16), (women, 4), (women, 4), (asian, 4)]):
        run.chunks.update_or_create(index=index, defaults={"group": group, "label": "benign", "size": size})
    assert as_the_migration_fills_in_cells_of(run) == {("women", "benign"): [], ("asian", "benign"): []}
    assert dict(run.cells.values_list("group__slug", "places")) == {"women": 40, "asian": 20}
    work_on_run(run_id=run.pk)
    run.refresh_from_db()
    assert (run.state, run.failure, run.generations.count()) == ("finished", "", 60)


def test_what_an_ended_run_drew_from_is_not_made_up(toy):
    run = make_run()
    work_on_run(run_id=run.pk)
    assert as_the_migration_fills_in_cells_of(run) == {("women", "benign"): []}
    assert list(run.cells.values_list("places", "stored")) == [(3, 3)]


@pytest.mark.django_db(transaction=True)
def test_statements_outside_of_runs_that_repeat_stop_the_migration_with_what_to_do():
    migration = import_module("generation.migrations.0012_statements_in_random_order")
    migration.refuse_repetitions(apps, schema_editor=None)
    [constraint] = [row for row in Generation._meta.constraints if row.name == "generation_imported_once"]
    for text in ("rain fell", "snow fell"):
        make_generation(text, method="written")
        make_generation(text, method="written")
    with connection.schema_editor() as editor:
        editor.remove_constraint(Generation, constraint)
    try:
        first, second, _ = (make_generation(text) for text in ("rain fell", "rain fell", "snow fell"))
        with pytest.raises(CommandError) as refused:
            migration.refuse_repetitions(apps, schema_editor=None)
    finally:
        Generation.objects.all().delete()
        with connection.schema_editor() as editor:
            editor.add_constraint(Generation, constraint)
    assert f"These are equal, by their ids in generation_generation: {first.pk} = {second.pk}. " in str(refused.value)


def test_a_prompt_is_called_by_its_number_where_pages_cannot_blur_its_text():
    prompt = a_prompt()
    assert str(prompt) == f"prompt {prompt.pk}"


def test_each_of_the_thirteen_groups_has_words_that_name_it_in_lower_case_and_once_each():
    groups = import_module("generation.migrations.0002_target_groups")
    migration = import_module("generation.migrations.0005_words_that_name_groups")
    assert migration.WORDS.keys() == {slug for slug, *_ in groups.GROUPS}
    for words in migration.WORDS.values():
        assert words == words.lower()
        assert len(words.split()) == len(set(words.split())) > 1
        assert len(words) <= TargetGroup._meta.get_field("naming_words").max_length


def test_words_that_somebody_wrote_already_are_kept():
    migration = import_module("generation.migrations.0005_words_that_name_groups")
    TargetGroup.objects.all().delete()
    make_group("women")
    make_group("asian", naming_words="nikkei")
    migration.add_words(apps, schema_editor=None)
    assert dict(TargetGroup.objects.values_list("slug", "naming_words")) == {
        "women": "woman women female females girl girls lady ladies",
        "asian": "nikkei",
    }
