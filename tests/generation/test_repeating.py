"""A run is repeated from what it kept: the same statements, whatever became of the sets and settings since."""

import json

import pytest

from generation import working
from generation.models import Demonstration, GenerationRun
from generation.parameters import AliceParameters
from generation.repeating import NotRepeatable, differences, recipe, repeat_recipe, repeat_run
from generation.runs import Cell, start_run
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_group, make_run
from tests.generation import toys

pytestmark = pytest.mark.django_db


def statements(run):
    working.work_on_run(run_id=run.pk)
    ordered = run.generations.order_by("chunk__index", "position", "pk")
    return list(ordered.values_list("group__slug", "label", "method", "prompt__text", "text", "seed"))


@pytest.fixture
def both_labels(toy, settings):
    """A paired run of two groups and both labels in chunks of one, with words that name one of the groups."""
    toy.model = toys.moody(*" ".join(DEMONSTRATIONS).split())
    settings.CHUNK_SIZE = 1
    groups = [make_group("women", naming_words="aunt sister"), make_group("asian")]
    for group in groups:
        for label in ("benign", "toxic"):
            make_demonstrations(group, label=label)
    cells = [Cell(group, label, 2) for group in reversed(groups) for label in ("toxic", "benign")]
    alice = AliceParameters(beam=2, vocabulary=6, max_new_tokens=3, n_best=1)
    return start_run(
        cells=cells, method="paired", alice=alice, language_model="toy", classifier="toy classifier", seed=7
    )


def change_everything(settings):
    Demonstration.objects.filter(text__startswith="the ").delete()
    make_demonstrations(texts=["a demonstration of later"])
    for group in (make_group("women"), make_group("asian")):
        group.naming_words = "other words"
        group.save()
    settings.CHUNK_SIZE = 5


def test_a_repeated_run_writes_the_same_though_sets_names_and_chunk_size_changed(both_labels, settings):
    first, kept = statements(both_labels), recipe(both_labels)["cells"]
    assert len(first) == 4 * 2 * 2
    change_everything(settings)
    again = repeat_run(run=both_labels)
    assert (again.repeats, again.seed, again.parameters) == (both_labels, 7, both_labels.parameters)
    assert statements(again) == first
    assert recipe(again)["cells"] == kept
    assert differences(again) == []


def test_the_file_of_a_run_repeats_it_where_the_run_is_not_known(both_labels, settings):
    first, file = statements(both_labels), json.dumps(recipe(both_labels))
    change_everything(settings)
    again = repeat_recipe(json.loads(file))
    assert again.repeats is None
    assert statements(again) == first


def test_a_repetition_of_a_repetition_is_the_same_again(both_labels):
    assert recipe(repeat_run(run=both_labels))["cells"] == recipe(both_labels)["cells"]


def test_a_recipe_states_everything_that_is_needed(toy):
    run = make_run(count=20)
    working.work_on_run(run_id=run.pk)
    run.refresh_from_db()
    stated = recipe(run)
    assert {name: stated[name] for name in stated if name not in ("environment", "cells")} == {
        "format": "humanval run 1",
        "run": run.pk,
        "method": "topk",
        "parameters": {"topk": {"k": 40, "temperature": 0.9, "max_new_tokens": 30}},
        "language_model": "toy",
        "classifier": "",
        "precision": "float32",
        "seed": 7,
        "chunk_size": 16,
    }
    assert {"humanval", "language_model_revision", "device", "torch", "transformers"} <= stated["environment"].keys()
    assert stated["cells"] == [
        {
            "group": "women",
            "label": "benign",
            "places": 20,
            "demonstrations": sorted(DEMONSTRATIONS),
            "naming_words": "woman women female females girl girls lady ladies",
        }
    ]


def test_a_run_whose_sets_were_not_kept_is_not_repeated():
    run = make_run()
    run.cells.update(demonstrations=[])
    with pytest.raises(NotRepeatable) as refused:
        repeat_run(run=run)
    assert str(refused.value) == (
        f"What run {run.pk} drew its prompts from was not kept when it was started, so that it cannot be repeated "
        "exactly. Start a new run with its settings."
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "x"}, "This describes no run: its “format” must be 'humanval run 1'. Download it from a run's"),
        ({"seed": "seven"}, "seed must be a whole number of at least 0, not 'seven'."),
        ({"chunk_size": 0}, "chunk_size must be a whole number of at least 1, not 0."),
        ({"cells": []}, "Choose at least one group."),
        ({"cells": [{"group": "martians"}]}, "There is no group 'martians' here. Add it first, by this slug."),
        ({"cells": [{"group": "women"}]}, "The description of the run is not whole: it lacks 'label'."),
        ({"parameters": {"topk": {"k": 0}}}, "k must be a whole number of at least 1, not 0."),
        ({"parameters": []}, "The description of the run is not as it was downloaded"),
        ({"method": []}, "method must be one of topk, alice, paired, not []."),
        ({"precision": "float8"}, "precision must be one of float32, bfloat16, not 'float8'."),
        ({"language_model": 7}, "language_model must be a text that can be stored, not 7."),
        ({"language_model": "a\0b"}, "language_model must be a text that can be stored, not 'a\\x00b'."),
        ({"classifier": "\ud800"}, "classifier must be a text that can be stored, not '\\ud800'."),
        ({"language_model": "x" * 301}, "language_model has 301 characters. At most 300 can be stored."),
        ({"seed": 2**63}, "seed must be a whole number of at most 9223372036854775807, not 9223372036854775808."),
        ({"chunk_size": 32768}, "chunk_size must be a whole number of at most 32767, not 32768."),
        ({"parameters": {"topk": {"temperature": "hot"}}}, "temperature must be a number of at most 2147483647, not"),
        ({"parameters": {"topk": {"k": 10**30}}}, "k must be a number of at most 2147483647, not 1000"),
        ({"parameters": {"topk": {"beams": 3}}}, "top-k has no parameter 'beams'."),
        (
            {"method": "alice", "parameters": {"alice": {"group_words_allowed": "no"}}},
            "group_words_allowed must be true or false, not 'no'.",
        ),
    ],
)
def test_what_is_no_recipe_is_refused_in_a_sentence(change, sentence):
    stated = recipe(make_run())
    with pytest.raises(ValueError) as refused:
        repeat_recipe(stated | change)
    assert str(refused.value).startswith(sentence)
    assert GenerationRun.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"label": "rude"}, "label must be one of benign, toxic, not 'rude'."),
        ({"group": ["women"]}, "group must be a text that can be stored, not ['women']."),
        ({"places": 1_000_001}, "places must be a whole number of at most 1000000, not 1000001."),
        ({"naming_words": "x" * 301}, "naming_words has 301 characters. At most 300 can be stored."),
        ({"naming_words": ["aunt"]}, "naming_words must be a text that can be stored, not ['aunt']."),
        ({"demonstrations": "sails"}, "The demonstrations of the benign set of Women must be a list of texts."),
        ({"demonstrations": ["one sails", 2]}, "Demonstration 2 of the benign set of Women: It must be a text that"),
        ({"demonstrations": ["x" * 501]}, "Demonstration 1 of the benign set of Women: A demonstration has at most"),
        ({"demonstrations": ["one\nsails"]}, "Demonstration 1 of the benign set of Women: A demonstration is one line"),
        ({"demonstrations": [" one sails"]}, "Demonstration 1 of the benign set of Women: It has blanks or a hyphen"),
        ({"demonstrations": ["two row", "two row"]}, "A demonstration of the benign set of Women is there twice."),
        ({"demonstrations": []}, "A prompt needs 5 demonstrations and the benign set of Women has 0. Add 5 more."),
    ],
)
def test_a_cell_that_cannot_be_stored_is_refused_in_a_sentence(change, sentence):
    stated = recipe(make_run())
    with pytest.raises(ValueError) as refused:
        repeat_recipe(stated | {"cells": [stated["cells"][0] | change]})
    assert str(refused.value).startswith(sentence)
    assert GenerationRun.objects.count() == 1


def test_a_run_of_here_is_repeated_with_texts_that_no_set_would_take_today():
    run = make_run()
    run.cells.update(demonstrations=[f" {number} sail" for number in range(5)])
    assert repeat_run(run=run).cells.get().demonstrations == run.cells.get().demonstrations


def test_what_differs_between_the_two_is_said():
    run = make_run()
    again = repeat_run(run=run)
    assert differences(again) == []
    run.environment = {"torch": "2.8.0", "device": "cpu", "threads": 1}
    again.environment = {"torch": "2.9.0", "device": "cpu", "classifier": "toy"}
    again.repeats = run
    assert differences(again) == [("torch", "2.8.0", "2.9.0"), ("threads", "1", "–"), ("classifier", "–", "toy")]
