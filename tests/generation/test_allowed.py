"""Which tokens of a prompt its continuation may use, with the embedded model's tokens."""

import pytest

from generation.decoding.allowed import banned_tokens, repeated_tokens

PROMPT = "- the women of the harbor didn't sail, in 1893; Women's boats are theirs\n- my aunt sails\n-"


def banned(model, prompt=PROMPT, **options):
    """The texts of the tokens that are not allowed after a prompt."""
    return {model.decode([token]).strip() for token in banned_tokens(model, model.encode(prompt), **options)}


def test_words_and_numbers_of_the_prompt_are_banned_but_for_stop_words_and_punctuation(language_model):
    assert banned(language_model) == {"women", "Women", "harbor", "sail", "sails", "boats", "aunt", "1", "8", "9", "3"}


def test_the_words_that_name_the_group_stay_allowed_in_every_spelling(language_model):
    free = banned(language_model) - banned(language_model, group_words=["women"])
    assert free == {"women", "Women"}


def test_another_group_s_words_free_nothing(language_model):
    assert banned(language_model, group_words=["muslim"]) == banned(language_model)


def test_a_token_is_banned_by_its_id_and_not_because_its_text_is_part_of_the_prompt_s(language_model):
    [women, men] = (language_model.encode(text) for text in (" women", " men"))
    tokens = banned_tokens(language_model, language_model.encode("- the women sing\n-"))
    assert (women[0] in tokens, men[0] in tokens) == (True, False)


def test_what_ends_a_statement_is_always_allowed(language_model):
    newline, blank_line = (language_model.encode(text)[0] for text in ("\n", "\n\n"))
    assert not {newline, blank_line} & banned_tokens(language_model, language_model.encode("- hi\n\n- you\n-"))


def test_an_empty_prompt_bans_nothing(language_model):
    assert banned_tokens(language_model, []) == frozenset()


@pytest.mark.parametrize(
    ("tokens", "size", "banned"),
    [
        ([], 2, set()),
        ([1, 2, 1], 0, set()),
        ([1, 2, 1], 1, {1, 2}),
        ([1, 2, 1], 2, {2}),
        ([1, 2, 3, 1, 2, 4, 1, 2], 3, {3, 4}),
        ([1, 2], 3, set()),
        ([5, 5, 5], 3, {5}),
    ],
)
def test_tokens_that_would_complete_an_n_gram_again(tokens, size, banned):
    assert repeated_tokens(tokens, size) == banned
