"""Prompts: five demonstrations drawn at random, each on its line after a hyphen, and one more hyphen."""

from collections import Counter

import pytest

from generation.prompting import NotEnoughDemonstrations, build_prompt, check_enough, draw_demonstrations, prompt_lines

SEVEN = ["one sails", "two row", "three swim", "four dive", "five fish", "six surf", "seven wade"]


def test_a_prompt_has_each_demonstration_on_its_line_after_a_hyphen_and_one_more_hyphen():
    assert build_prompt(["one sails", "two row"]) == "- one sails\n- two row\n-"


def test_nothing_stands_after_the_last_hyphen_so_that_the_model_writes_the_space():
    assert build_prompt(SEVEN[:5]).endswith("- five fish\n-")


def test_five_different_demonstrations_are_drawn():
    drawn = draw_demonstrations(SEVEN, seed=3)
    assert len(drawn) == len(set(drawn)) == 5
    assert set(drawn) <= set(SEVEN)


def test_the_same_seed_draws_the_same_demonstrations_in_the_same_order():
    assert draw_demonstrations(SEVEN, seed=3) == draw_demonstrations(tuple(SEVEN), seed=3)


def test_what_seed_3_draws_never_changes_or_old_runs_could_not_be_repeated():
    assert draw_demonstrations(SEVEN, seed=3) == ["two row", "five fish", "six surf", "seven wade", "four dive"]


def test_over_many_seeds_every_demonstration_stands_in_every_place_equally_often():
    places = Counter(
        (place, text) for seed in range(7000) for place, text in enumerate(draw_demonstrations(SEVEN, seed=seed))
    )
    assert len(places) == 35
    assert 880 < min(places.values()) <= max(places.values()) < 1120  # 1000 expected, four standard deviations


def test_the_demonstrations_themselves_are_not_shuffled():
    given = list(SEVEN)
    draw_demonstrations(given, seed=3)
    assert given == SEVEN


def test_exactly_five_demonstrations_are_enough():
    assert sorted(draw_demonstrations(SEVEN[:5], seed=1)) == sorted(SEVEN[:5])


def test_with_four_demonstrations_the_message_says_how_many_to_add():
    with pytest.raises(NotEnoughDemonstrations) as refusal:
        draw_demonstrations(SEVEN[:4], seed=1)
    assert str(refusal.value) == "A prompt needs 5 demonstrations and this set has 4. Add 1 more."


def test_the_message_names_the_set():
    with pytest.raises(NotEnoughDemonstrations) as refusal:
        check_enough([], of="the toxic set of Women")
    assert str(refusal.value) == "A prompt needs 5 demonstrations and the toxic set of Women has 0. Add 5 more."


def test_the_lines_of_a_prompt_are_its_demonstrations():
    assert prompt_lines(build_prompt(SEVEN[:5])) == SEVEN[:5]


def test_a_hyphen_inside_a_demonstration_stays():
    assert prompt_lines(build_prompt(["well-known", "- twice marked"])) == ["well-known", "- twice marked"]
