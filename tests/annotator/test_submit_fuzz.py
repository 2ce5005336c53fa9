"""Whatever is posted to the task page, it is stored or refused in words; it never breaks the server."""

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator.models import Annotation
from annotator.questions import QUESTIONS
from tests.annotator.page import Page
from tests.factories import answers

pytestmark = pytest.mark.django_db

FREE_TEXTS = [question.free_text.key for question in QUESTIONS if question.free_text]
VALID = {question.key: [str(value) for value in question.values] for question in QUESTIONS}

anything = st.one_of(
    st.text(max_size=30),
    st.text(st.characters(max_codepoint=0x20), max_size=5),  # NUL and its neighbours
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["\x00", "x" * 200_000, "1" * 5000, "-1", "NaN", "on", "None", "[]", "1\n", " 1"]),
)
fields = {key: st.one_of(st.sampled_from(values), anything) for key, values in VALID.items()}
fields |= dict.fromkeys([*FREE_TEXTS, "not_understood", "assignment", "csrfmiddlewaretoken"], anything)
one_or_many = {key: st.one_of(value, st.lists(value, max_size=3)) for key, value in fields.items()}
mostly_valid = {key: st.sampled_from(values) for key, values in VALID.items()}

in_one_database = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def check(client, assignment, posted):
    with transaction.atomic():
        response = client.post(f"/task/{assignment.key}/", posted)
        stored = Annotation.objects.filter(assignment=assignment).exists()
        transaction.set_rollback(True)
    assert response.status_code in (302, 422)
    assert stored == (response.status_code == 302)
    if response.status_code == 422:
        assert Page(response).all(class_="error")


@in_one_database
@given(posted=st.fixed_dictionaries({}, optional=one_or_many))
def test_anything_at_all_is_stored_or_refused_in_words(client, assignment, posted):
    check(client, assignment, posted)


@in_one_database
@given(
    posted=st.fixed_dictionaries(mostly_valid, optional=dict.fromkeys([*FREE_TEXTS, "not_understood"], anything)),
    spoilt=st.sampled_from([*VALID, *FREE_TEXTS]),
    by=anything,
)
def test_one_field_of_valid_answers_may_be_anything(client, assignment, posted, spoilt, by):
    check(client, assignment, posted | {spoilt: by})


@pytest.mark.parametrize("key", [*VALID, *FREE_TEXTS, "not_understood"])
@pytest.mark.parametrize("value", ["\x00", "x" * 1_000_000, "\ud7ff\ue000\U0010ffff", "1\r\n2"])
def test_each_field_may_be_anything(client, assignment, key, value):
    check(client, assignment, answers(**{key: value}))
