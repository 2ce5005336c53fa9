"""The nine questions as data: names, levels and orders that the statistics rest on."""

from annotator.questions import QUESTIONS

BY_KEY = {question.key: question for question in QUESTIONS}


def test_the_questions_have_the_papers_names_in_the_order_of_the_page():
    assert [question.paper_name for question in QUESTIONS] == [
        "HUMANORAI",
        "HARMFULIFAI",
        "HARMFULIFHUMAN",
        "POSSTEREO",
        "HARMFULINTENT",
        "LEWD",
        "WHICHGROUP",
        "GROUPFRAMING",
        "FACTOROPINION",
    ]
    assert [question.number for question in QUESTIONS] == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_the_levels_of_measurement():
    nominal = {question.key for question in QUESTIONS if question.level == "nominal"}
    assert nominal == {"human_or_ai", "which_group", "group_framing", "fact_or_opinion"}
    assert {question.level for question in QUESTIONS} == {"nominal", "ordinal"}


def test_an_ordinal_question_orders_its_values_from_least_to_most():
    assert {question.key: question.order for question in QUESTIONS if question.level == "ordinal"} == {
        "harmful_if_ai": (1, 2, 3, 4, 5),
        "harmful_if_human": (1, 2, 3, 4, 5),
        "pos_stereo": ("no", "maybe", "yes"),
        "harmful_intent": (1, 2, 3, 4, 5),
        "lewd": ("no", "maybe", "yes"),
    }


def test_keys_and_values_are_there_once():
    keys = [question.key for question in QUESTIONS]
    keys += [question.free_text.key for question in QUESTIONS if question.free_text]
    assert len(set(keys)) == len(keys) == 11
    for question in QUESTIONS:
        assert len(set(question.values)) == len(question.values), question.key


def test_the_parts_of_a_wording_make_the_wording():
    for question in QUESTIONS:
        assert "".join(question.wording_parts) == question.wording
        assert question.wording_parts[1] == question.stress


def test_a_free_text_is_demanded_by_an_option_that_exists():
    demanded = {question.key: question.free_text.required_by for question in QUESTIONS if question.free_text}
    assert demanded == {"which_group": "other_groups", "group_framing": "other"}
    assert all(option in BY_KEY[key].values for key, option in demanded.items())
