"""A run's methods as one decoder, with toys in the models' place."""

import math

import pytest
import torch

from generation.decoders import Decoder
from generation.parameters import AliceParameters, TopKParameters
from tests.generation import toys

ALICE = AliceParameters(direction="false_positives", beam=2, vocabulary=5, max_new_tokens=2, n_best=2)
TOPK = TopKParameters(max_new_tokens=2)


def decoder(model, classifier=None, **parameters):
    return Decoder(model=model, classifier=classifier, parameters=parameters)


def test_each_prompt_has_an_output_of_each_method_in_their_order():
    both = decoder(toys.chatterbox(), toys.ToyClassifier(), topk=TOPK, alice=ALICE)
    outputs = both(["- one\n-", "- two\n-"], [1, 2])
    assert [list(by_method) for by_method in outputs] == [["topk", "alice"]] * 2
    [first, second] = outputs
    assert first["topk"].text != second["topk"].text
    assert first["alice"].text == second["alice"].text  # this toy does not mind its prompt


def test_without_prompts_there_are_no_outputs():
    assert decoder(toys.chatterbox(), topk=TOPK)([], []) == []


def test_what_is_decoded_does_not_hang_on_what_else_is():
    prompts, seeds = [f"- {word}\n-" for word in ("my", "aunt", "drives", "a", "crane")], [1, 2, 3, 4, 5]
    both = decoder(toys.moody("my", "aunt", "drives", "a", "crane"), toys.ToyClassifier(), topk=TOPK, alice=ALICE)
    together = both(prompts, seeds)
    assert together == [both([prompt], [seed])[0] for prompt, seed in zip(prompts, seeds, strict=True)]
    assert len({output["alice"].text for output in together}) > 1


def test_top_k_is_classified_where_there_is_a_classifier_and_has_no_score():
    [plain] = decoder(toys.chatterbox(), topk=TOPK)(["-"], [1])
    [judged] = decoder(toys.chatterbox(), toys.ToyClassifier(), topk=TOPK)(["-"], [1])
    assert (plain["topk"].score, plain["topk"].toxic_prob, plain["topk"].hypotheses) == (None, None, ())
    assert judged["topk"].toxic_prob == pytest.approx(toys.share_of_o(judged["topk"].text))
    assert judged["topk"].text == plain["topk"].text


def test_the_n_best_are_stored_best_first_with_both_models_votes():
    model = toys.always(b" rain", b" snow", b" fell\n", logits=[2.0, 1.0, 0.0])
    [output] = decoder(model, toys.ToyClassifier(), alice=ALICE)(["-"], [1])
    alice = output["alice"]
    first, second = alice.hypotheses
    assert (first["text"], first["score"]) == (alice.text, round(alice.score, 6))
    assert first["score"] > second["score"]
    assert set(first) == {
        "text", "score", "toxic_prob", "finish_reason", "tokens", "log_probs", "sought_log_probs",
    }  # fmt: skip
    assert (first["text"], first["tokens"]) == ("snow rain", [" snow", " rain"])  # it has an o
    assert first["log_probs"] == [round(value, 6) for value in first["log_probs"]]
    assert sum(first["log_probs"]) == pytest.approx(alice.log_prob, abs=1e-5)


def test_what_json_does_not_have_is_stored_as_null_or_left_out():
    model = toys.always(b" ra\0in", logits=[0.0])
    certain = toys.ToyClassifier(lambda text: 0.0)
    [output] = decoder(model, certain, alice=ALICE)(["-"], [1])
    [hypothesis] = output["alice"].hypotheses
    assert output["alice"].score == -math.inf
    assert (hypothesis["text"], hypothesis["tokens"]) == ("rain rain", [" rain", " rain"])
    assert (hypothesis["score"], hypothesis["toxic_prob"]) == (None, 0.0)
    assert hypothesis["sought_log_probs"] == [None, None]


def test_a_search_in_which_no_token_is_allowed_has_an_empty_output():
    model = toys.always(b" rain", b" snow", logits=[0.0, 0.0])
    [output] = decoder(model, toys.ToyClassifier(), alice=ALICE)(["- rain snow\n-"], [1])
    assert (output["alice"].text, output["alice"].tokens, output["alice"].finish_reason) == ("", 0, "none_allowed")


def test_the_runs_of_the_classifier_are_counted_over_all_batches():
    classifier = toys.ToyClassifier()
    searching = decoder(toys.moody("my", "aunt"), classifier, alice=ALICE)
    searching(["- my\n-"] * 20, list(range(20)))
    searching(["- aunt\n-"], [1])
    assert searching.classifier_runs == len(classifier.texts_read) > 0


def test_alice_does_not_begin_without_a_classifier():
    with pytest.raises(ValueError, match="ALICE needs a classifier"):
        decoder(toys.chatterbox(), alice=ALICE)(["-"], [1])


def test_a_classifier_that_returns_no_number_is_an_error():
    broken = toys.ToyClassifier(lambda text: math.nan)
    with pytest.raises(ValueError, match="The classifier returned a log-probability that is no number"):
        decoder(toys.chatterbox(), broken, topk=TOPK)(["-"], [1])


def test_a_batch_that_does_not_fit_is_decoded_in_smaller_ones():
    classifier = toys.ToyClassifier()
    read = classifier.log_probs
    sizes = []

    def read_few(texts):
        sizes.append(len(texts))
        if len(texts) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return read(texts)

    prompts, seeds = ["- one\n-"] * 5, [1, 2, 3, 4, 5]
    roomy = decoder(toys.chatterbox(), toys.ToyClassifier(), topk=TOPK)(prompts, seeds)
    classifier.log_probs = read_few
    assert decoder(toys.chatterbox(), classifier, topk=TOPK)(prompts, seeds) == roomy
    assert sizes == [5, 2, 2, 1]
