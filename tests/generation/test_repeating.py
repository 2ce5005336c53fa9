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
        f"What run {run.pk} drew its prompts from was not kept yet when it ended, so that it cannot be repeated "
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
    ],
)
def test_what_is_no_recipe_is_refused_in_a_sentence(change, sentence):
    stated = recipe(make_run())
    with pytest.raises(ValueError) as refused:
        repeat_recipe(stated | change)
    assert str(refused.value).startswith(sentence)
    assert GenerationRun.objects.count() == 1


def test_what_differs_between_the_two_is_said():
    run = make_run()
    again = repeat_run(run=run)
    assert differences(again) == []
    run.environment = {"torch": "2.8.0", "device": "cpu", "threads": 1}
    again.environment = {"torch": "2.9.0", "device": "cpu", "classifier": "toy"}
    again.repeats = run
    assert differences(again) == [("torch", "2.8.0", "2.9.0"), ("threads", "1", "–"), ("classifier", "–", "toy")]
