"""Drawing: so many good statements; empty ones, duplicates and copies are drawn again and counted."""

import pytest

from generation.drawing import (
    MAX_ROUNDS,
    DrawingFailed,
    Output,
    derived_seed,
    draw_statements,
    duplicate_key,
    is_copy,
)
from generation.prompting import build_prompt, draw_demonstrations

DEMONSTRATIONS = ["the red kite", "a blue boat", "two green hills", "one grey cat", "four white geese"]


def said(text, **fields):
    """An output with this text."""
    return Output(**{"text": text, "tokens": 3, "log_prob": -1.75, "finish_reason": "stop"} | fields)


class Script:
    """A decoder that writes down what it was asked and answers with one list a round.

    In the list are the texts of a method, or for two methods pairs of texts.
    """

    def __init__(self, *rounds):
        self.rounds = list(rounds)
        self.asked = []

    def __call__(self, prompts, seeds):
        self.asked.append((prompts, seeds))
        texts = [(text,) if isinstance(text, str) else text for text in self.rounds.pop(0)]
        return [dict(zip(("topk", "alice"), map(said, pair), strict=False)) for pair in texts]


def draw(size, decode, *, seed=7, taken=lambda keys: set()):
    return draw_statements(size, demonstrations=DEMONSTRATIONS, seed=seed, decode=decode, taken=taken)


def texts(drawn):
    return [statement.text for statement in drawn.statements]


def counts(drawn):
    return {"empty": drawn.empty, "duplicate": drawn.duplicate, "copy": drawn.copy}


def writes_its_seed(prompts, seeds):
    return [{"topk": said(f"number {seed}")} for seed in seeds]


def test_good_statements_are_taken_at_once_and_in_order():
    drawn = draw(3, Script(["rain fell", "snow fell", "hail fell"]))
    assert texts(drawn) == ["rain fell", "snow fell", "hail fell"]
    assert [statement.position for statement in drawn.statements] == [0, 1, 2]
    assert counts(drawn) == {"empty": 0, "duplicate": 0, "copy": 0}


def test_a_statement_knows_its_prompt_seed_and_method_and_all_of_its_output():
    script = Script(["rain fell"])
    [statement] = draw(1, script).statements
    [(prompts, seeds)] = script.asked
    assert (statement.prompt, statement.seed, statement.method) == (prompts[0], seeds[0], "topk")
    assert (statement.tokens, statement.log_prob, statement.finish_reason) == (3, -1.75, "stop")
    assert (statement.score, statement.toxic_prob, statement.hypotheses) == (None, None, ())


def test_what_alice_knows_of_a_statement_is_kept():
    found = {"score": -0.5, "toxic_prob": 0.25, "hypotheses": [{"text": "rain fell"}]}
    [statement] = draw(1, lambda prompts, seeds: [{"alice": said("rain fell", **found)}]).statements
    assert {name: getattr(statement, name) for name in found} == found


# --- Pairs ------------------------------------------------------------------------------


def test_two_methods_fill_a_place_together_from_one_prompt():
    script = Script([("rain fell", "snow fell"), ("hail fell", "dew fell")])
    drawn = draw(2, script)
    assert [(statement.position, statement.method, statement.text) for statement in drawn.statements] == [
        (0, "topk", "rain fell"),
        (0, "alice", "snow fell"),
        (1, "topk", "hail fell"),
        (1, "alice", "dew fell"),
    ]
    [(prompts, seeds)] = script.asked
    assert [statement.prompt for statement in drawn.statements] == [prompts[0]] * 2 + [prompts[1]] * 2
    assert [statement.seed for statement in drawn.statements] == [seeds[0]] * 2 + [seeds[1]] * 2


@pytest.mark.parametrize(
    ("pair", "fault"),
    [
        (("rain fell", ""), "empty"),
        (("", "rain fell"), "empty"),
        (("rain fell", "a blue boat"), "copy"),
        (("the red kite", "rain fell"), "copy"),
        (("rain fell", "Dew fell"), "duplicate"),
        (("dew fell", "rain fell"), "duplicate"),
        (("rain fell", "RAIN fell"), "duplicate"),
        (("", "dew fell"), "empty"),
    ],
)
def test_a_place_is_drawn_again_and_counted_once_unless_both_are_good_and_different(pair, fault):
    script = Script([("dew fell", "hail fell"), pair], [("rain fell", "snow fell")])
    drawn = draw(2, script)
    assert texts(drawn) == ["dew fell", "hail fell", "rain fell", "snow fell"]
    assert counts(drawn) == {"empty": 0, "duplicate": 0, "copy": 0} | {fault: 1}
    assert script.asked[1][0] != script.asked[0][0][1:]


def test_what_a_place_did_not_keep_of_a_pair_may_come_again():
    drawn = draw(2, Script([("rain fell", ""), ("rain fell", "snow fell")], [("hail fell", "dew fell")]))
    assert texts(drawn) == ["hail fell", "dew fell", "rain fell", "snow fell"]


def test_the_run_is_asked_for_the_keys_of_both():
    asked = []
    draw(1, Script([("Rain fell", "Snow fell")]), taken=lambda keys: asked.append(keys) or set())
    assert asked == [["rain fell", "snow fell"]]


# --- Drawing again ----------------------------------------------------------------------


def test_each_statement_has_a_prompt_of_its_own_drawn_with_its_seed():
    script = Script(["rain fell", "snow fell", "hail fell"])
    draw(3, script)
    [(prompts, seeds)] = script.asked
    assert len(set(seeds)) == len(set(prompts)) == 3
    assert prompts == [build_prompt(draw_demonstrations(DEMONSTRATIONS, seed=seed)) for seed in seeds]


def test_an_empty_output_is_drawn_again_and_counted():
    drawn = draw(2, Script(["", "snow fell"], ["   "], ["rain fell"]))
    assert texts(drawn) == ["rain fell", "snow fell"]
    assert counts(drawn) == {"empty": 2, "duplicate": 0, "copy": 0}


def test_of_two_equal_outputs_the_second_is_drawn_again_and_counted():
    drawn = draw(3, Script(["rain fell", "Rain fell", "snow fell"], ["rain fell"], ["hail fell"]))
    assert texts(drawn) == ["rain fell", "hail fell", "snow fell"]
    assert counts(drawn) == {"empty": 0, "duplicate": 2, "copy": 0}


def test_what_the_run_has_already_is_drawn_again_and_counted():
    drawn = draw(2, Script(["RAIN fell", "snow fell"], ["hail fell"]), taken=lambda keys: {"rain fell"} & set(keys))
    assert texts(drawn) == ["hail fell", "snow fell"]
    assert counts(drawn) == {"empty": 0, "duplicate": 1, "copy": 0}


def test_the_run_is_asked_for_the_keys_of_each_round():
    asked = []
    draw(2, Script(["Rain fell", ""], ["Snow fell"]), taken=lambda keys: asked.append(keys) or set())
    assert asked == [["rain fell", ""], ["snow fell"]]


def test_a_copy_of_the_prompt_is_drawn_again_and_counted():
    drawn = draw(2, Script(["The red kite!", "snow fell"], ["a blue boat"], ["rain fell"]))
    assert texts(drawn) == ["rain fell", "snow fell"]
    assert counts(drawn) == {"empty": 0, "duplicate": 0, "copy": 2}


def test_a_copy_that_is_also_a_duplicate_is_counted_once():
    drawn = draw(1, Script(["the red kite"], ["rain fell"]), taken=lambda keys: {"the red kite"})
    assert counts(drawn) == {"empty": 0, "duplicate": 0, "copy": 1}


def test_only_what_is_missing_is_drawn_again_with_another_seed_and_prompt():
    script = Script(["rain fell", "", "snow fell"], ["hail fell"])
    draw(3, script)
    (first_prompts, first_seeds), (second_prompts, second_seeds) = script.asked
    assert len(second_prompts) == len(second_seeds) == 1
    assert second_seeds[0] not in first_seeds
    assert second_prompts[0] not in first_prompts


def test_after_twenty_rounds_the_message_counts_what_was_thrown_away_and_says_what_to_do():
    rounds = [["rain fell", "rain fell", "", "a blue boat"]] + [["rain fell", "", "a blue boat"]] * 19
    with pytest.raises(DrawingFailed) as failure:
        draw(4, Script(*rounds))
    assert MAX_ROUNDS == 20
    assert str(failure.value) == (
        "After 20 rounds the language model had written 1 of 4 new statements (20 were empty, 20 duplicates, "
        "20 copies of their prompt). Raise the temperature, add demonstrations or ask for fewer."
    )


def test_what_the_twentieth_round_brings_still_counts():
    assert texts(draw(1, Script(*[[""]] * 19, ["rain fell"]))) == ["rain fell"]


def test_the_same_seed_gives_the_same_statements():
    assert draw(6, writes_its_seed, seed=7) == draw(6, writes_its_seed, seed=7)


def test_another_seed_gives_other_statements():
    assert not set(texts(draw(6, writes_its_seed, seed=7))) & set(texts(draw(6, writes_its_seed, seed=8)))


def test_the_first_five_of_ten_statements_are_those_of_five():
    assert draw(10, writes_its_seed).statements[:5] == draw(5, writes_its_seed).statements


def test_a_seed_for_a_place_is_never_negative_and_fits_the_database():
    seeds = [derived_seed(7, chunk, position) for chunk in range(50) for position in range(50)]
    assert 0 <= min(seeds) <= max(seeds) < 2**63
    assert len(set(seeds)) == 2500


def test_the_seed_for_a_place_never_changes_or_old_runs_could_not_be_repeated():
    assert derived_seed(7, 0) == 8_862_997_118_719_747_769


def test_places_are_not_confused_when_their_digits_are_the_same():
    assert derived_seed(1, 11) != derived_seed(11, 1) != derived_seed(111)


@pytest.mark.parametrize("text", ["my AUNT sails", " My aunt sails\t", "My Aunt Sails\n"])
def test_neither_the_case_of_a_to_z_nor_white_space_around_tells_statements_apart(text):
    assert duplicate_key(text) == "my aunt sails"


def test_the_case_of_other_letters_does_because_databases_disagree_on_it():
    assert duplicate_key("İZMİR in ÁPRIL") == "İzmİr in Ápril"


def test_punctuation_tells_statements_apart():
    assert duplicate_key("my aunt sails.") != duplicate_key("my aunt sails")


PROMPT = "- my aunt sails on the lake\n- women's chess, since 1927\n-"


@pytest.mark.parametrize(
    "text",
    [
        "my aunt sails on the lake",
        "My aunt sails on the lake!",
        "my aunt  sails, on the lake",
        "sails on the lake",
        "women's chess",
        "on sundays my aunt sails on the lake with me",
        "1927",
    ],
)
def test_a_copy_is_part_of_a_line_or_has_a_whole_line_in_it(text):
    assert is_copy(text, PROMPT)


@pytest.mark.parametrize(
    "text",
    [
        "my aunt sails on the sea",
        "my aunt sails on the lakes",
        "unt sails",
        "the lake women's chess",
        "since 19",
        "...",
        "",
    ],
)
def test_what_shares_words_or_parts_of_words_only_is_no_copy(text):
    assert not is_copy(text, PROMPT)


def test_a_line_without_letters_and_digits_makes_nothing_a_copy():
    assert not is_copy("my aunt sails", "- ...\n-")
