"""Classifiers that were trained here, named by runs and readings: offered, filled in, and played against."""

import os
from io import StringIO

import pytest
import torch
import transformers
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.urls import reverse

from generation import working
from generation.model_files import fingerprint
from generation.models import Generation, GenerationRun, TextReader, ToxicityScore
from generation.trained import known_classifiers, trained_classifiers
from tests.api.world import token_of
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_generation, make_group, make_run
from tests.generation import tiny, toys

ADD_RUN = reverse("admin:generation_generationrun_add")
ADD_READING = reverse("admin:generation_reading_add")
OFFERED = (
    '<datalist id="known_classifiers"><option value="minilm-toxigen"></option><option value="second"></option>'
    '<option value="first"></option></datalist>'
)


@pytest.fixture(autouse=True)
def var(settings, tmp_path):
    """A state folder of its own."""
    settings.VAR = tmp_path
    return tmp_path


@pytest.fixture
def two(var):
    """Two finished classifiers, the second the newer one, and beside them what is no finished one."""
    for age, name in enumerate(["first", "second"]):
        folder = var / "classifiers" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        os.utime(folder / "config.json", (age, age))
    for name in (".training/third", ".fourth.tmp", "without-files"):
        (var / "classifiers" / name).mkdir(parents=True)
    (var / "classifiers" / ".fourth.tmp" / "config.json").write_text("{}")


def trained(var, name="weather-head"):
    """A small classifier that knows nothing, where training puts one."""
    folder = var / "classifiers" / name
    torch.manual_seed(1)
    config = transformers.GPT2Config(
        vocab_size=len(tiny.WORDS) + 2, n_positions=64, n_embd=8, n_layer=1, n_head=2, pad_token_id=0,
        id2label={0: "benign", 1: "toxic"}, label2id={"benign": 0, "toxic": 1}, initializer_range=1.0,
    )  # fmt: skip
    transformers.GPT2ForSequenceClassification(config).save_pretrained(folder)
    tokenizer = tiny.make_tokenizer()
    tokenizer.pad_token = "<unk>"
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def researcher(client, db):
    user = get_user_model().objects.create(username="ada", is_staff=True, is_superuser=True)
    client.force_login(user)
    return user


# --- Offering them


def test_finished_ones_are_known_by_their_folders_the_newest_first(two):
    assert trained_classifiers() == ["second", "first"]


def test_where_none_was_trained_the_embedded_one_is_known():
    assert known_classifiers() == ["minilm-toxigen"]


def test_the_one_of_the_settings_is_known_too_and_none_comes_twice(two, settings):
    settings.CLASSIFIER = "some/model#hate"
    assert known_classifiers() == ["minilm-toxigen", "some/model#hate", "second", "first"]
    settings.CLASSIFIER = "first"
    assert known_classifiers() == ["minilm-toxigen", "first", "second"]


@pytest.mark.parametrize(("address", "field"), [(ADD_RUN, "classifier"), (ADD_READING, "model")])
def test_the_forms_of_runs_and_readings_offer_them(client, researcher, two, address, field):
    page = client.get(address).content.decode()
    assert page.count(OFFERED) == 1
    (line,) = [line for line in page.split("<input") if f'name="{field}"' in line]
    assert 'list="known_classifiers"' in line


# --- Filling one in


def initial(client, query):
    form = client.get(f"{ADD_RUN}{query}").context["adminform"].form
    return [form.get_initial_for_field(form.fields[name], name) for name in ("classifier", "method")]


def test_the_address_names_the_adversary_of_a_new_run(client, researcher):
    assert initial(client, "?classifier=second") == ["second", "alice"]
    assert initial(client, "?classifier=second&method=paired") == ["second", "paired"]
    assert initial(client, "?classifier=second&method=topk") == ["second", "alice"]


def test_with_an_earlier_run_it_is_the_same_run_against_another_one(client, researcher):
    make_demonstrations(make_group("women"))
    earlier = make_run(method="paired", classifier="first")
    assert initial(client, f"?from={earlier.pk}") == ["first", "paired"]
    assert initial(client, f"?from={earlier.pk}&classifier=second") == ["second", "paired"]


# --- Naming one


def test_the_api_takes_its_name(client, researcher, two):
    make_demonstrations(make_group("women"))
    order = {
        "cells": [{"group": "women", "label": "benign", "count": 2}],
        "method": "alice",
        "classifier": "second",
    }
    answer = client.post(
        "/api/runs/",
        order,
        content_type="application/json",
        headers={"authorization": f"Bearer {token_of('researcher')}"},
    )
    assert (answer.status_code, answer.json()["classifier"]) == (201, "second")


@pytest.mark.django_db
def test_alice_plays_against_the_one_that_a_command_names(monkeypatch, var, client, researcher):
    folder = trained(var)
    monkeypatch.setattr(
        working, "load_language_model", lambda name, **_: toys.moody(*" ".join([*DEMONSTRATIONS, *tiny.WORDS]).split())
    )
    make_demonstrations(make_group("women"))
    call_command(
        "generate", "--group=women", "--method=alice", "--classifier=weather-head", "--count=2", "--beam=3",
        "--vocabulary=10", "--max-new-tokens=6", "--seed=7", stdout=StringIO(),
    )  # fmt: skip
    run = GenerationRun.objects.get()
    assert (run.state, run.classifier) == ("finished", "weather-head")
    assert run.environment["classifier"] == "weather-head"
    assert run.environment["classifier_revision"] == f"files {fingerprint(folder)}"
    own = working.load_classifier("weather-head")
    for generation in run.generations.all():
        assert generation.toxic_prob == pytest.approx(own.log_probs([generation.text])[0, 1].exp().item(), abs=1e-5)
    page = client.get(reverse("admin:generation_generationrun_change", args=[run.pk])).content.decode()
    assert "<dt>Classifier</dt><dd>weather-head</dd>" in page
    assert f"files {fingerprint(folder)}" in page


@pytest.mark.django_db
def test_a_reading_by_it_propagates_its_labels_to_all_statements_of_a_group(var, capsys):
    trained(var)
    group = make_group("gardeners")
    chosen = [make_generation(text, group=group) for text in ("the choir sang", "rain fell")]
    make_generation("languages")
    call_command("read_statements", "classifier", "--model", "weather-head", "--group", "gardeners")
    reader = TextReader.objects.get()
    assert (reader.kind, reader.name) == ("classifier", "weather-head")
    assert set(ToxicityScore.objects.values_list("generation", flat=True)) == {one.pk for one in chosen}
    call_command("read_statements", "classifier", "--model", "weather-head")
    assert ToxicityScore.objects.filter(reader=reader).count() == Generation.objects.count() == 3
