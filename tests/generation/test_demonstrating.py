"""What is done to sets: by whom it may be, that the history knows it, and that a response is promoted once."""

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from generation.demonstrating import (
    AlreadyInSet,
    MayNotFillToxicSet,
    NotADemonstration,
    ReasonMissing,
    add,
    bring_back,
    edit,
    retire,
)
from generation.judging import JudgedAlready, ReasonUnknown, mark_bad, promote, undo
from generation.models import AuditEntry, Demonstration, Response, Trial
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_group, make_responses
from tests.generation.concurrency import SECONDS, Held, at_once, start
from tests.generation.test_admin_runs import staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def women():
    return make_group("women", name="Women")


@pytest.fixture
def ada():
    return staff("ada", groups=["researcher"])


@pytest.fixture
def grace():
    """A researcher who may fill toxic sets too."""
    return staff("grace", groups=["researcher", "toxic sets"])


def told(demonstration):
    """The history of a demonstration, the oldest first, as (what, text, whether in use, by whom)."""
    return [
        (record.history_type, record.text, record.retired_at is None, str(record.history_user))
        for record in Demonstration.history.filter(id=demonstration.pk).order_by("history_id")
    ]


def acts():
    return [(entry.act, entry.subject, entry.by and entry.by.username) for entry in AuditEntry.objects.order_by("pk")]


# --- Adding -----------------------------------------------------------------------------


def test_sentences_are_added_with_who_and_where_from_and_their_history_begins(women, ada):
    added = add(group=women, label="benign", texts=["she sails", "we row"], by=ada)
    assert [(d.text, d.origin, d.created_by, d.retired_at) for d in added.new] == [
        ("she sails", "written", ada, None),
        ("we row", "written", ada, None),
    ]
    assert told(added.new[0]) == [("+", "she sails", True, "ada")]
    assert acts() == [("demonstration added", "the benign set of Women", "ada")]
    [record] = Demonstration.history.filter(id=added.new[0].pk)
    assert record.created_at == Demonstration.objects.get(text="she sails").created_at


def test_what_the_set_has_already_is_left_as_it_is_retired_or_not(women, ada):
    first = add(group=women, label="benign", texts=["she sails", "we row"], by=ada).new
    retire(ids=[first[0].pk], reason="Not about women.", by=ada)
    added = add(group=women, label="benign", texts=["she sails", "we row", "we dive", "we dive"], by=ada)
    assert (added.known, [d.text for d in added.new]) == (["she sails", "we row"], ["we dive"])
    assert Demonstration.objects.filter(retired_at=None).count() == 2


def test_a_pasted_list_loses_its_hyphens_and_blanks(women):
    added = add(group=women, label="benign", texts=["  - she sails ", "we-row"], by=None)
    assert [d.text for d in added.new] == ["she sails", "we-row"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "Write a sentence: a demonstration cannot be empty."),
        ("one\ntwo", "A demonstration is one line, and this text has 2. Join or part them."),
        ("a" * 501, "A demonstration has at most 500 characters, not 501. Shorten it."),
        ("a\0b", "The text has a null character, which cannot be stored. Take it out."),
    ],
)
def test_what_cannot_stand_in_a_prompt_is_refused_and_nothing_is_added(women, text, sentence):
    with pytest.raises(NotADemonstration) as refusal:
        add(group=women, label="benign", texts=["she sails", text], by=None)
    assert str(refusal.value) == sentence
    assert not Demonstration.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_who_add_the_same_sentence_at_once_add_it_once():
    group = make_group("women")

    def put():
        return len(add(group=group, label="benign", texts=["she sails"], by=None).new)

    assert sorted(at_once(put, put)) == [0, 1]
    assert Demonstration.history.count() == 1


# --- Editing, retiring, bringing back ---------------------------------------------------


def test_an_edit_is_in_the_history_with_who_made_it_and_the_old_text(women, ada, grace):
    [demonstration] = add(group=women, label="benign", texts=["she sails"], by=ada).new
    edit(demonstration_id=demonstration.pk, text=" she sails far ", by=grace)
    assert told(demonstration) == [("+", "she sails", True, "ada"), ("~", "she sails far", True, "grace")]
    assert acts()[-1] == ("demonstration edited", "the benign set of Women", "grace")


def test_an_edit_that_changes_nothing_leaves_no_trace(women, ada):
    [demonstration] = add(group=women, label="benign", texts=["she sails"], by=ada).new
    edit(demonstration_id=demonstration.pk, text="she sails", by=ada)
    assert len(told(demonstration)) == len(acts()) == 1


def test_two_demonstrations_of_a_set_are_never_the_same(women):
    first, _ = add(group=women, label="benign", texts=["she sails", "we row"], by=None).new
    with pytest.raises(AlreadyInSet) as refusal:
        edit(demonstration_id=first.pk, text="we row", by=None)
    assert str(refusal.value) == "Nothing was changed: this sentence is in the benign set of Women already."


def test_many_are_retired_at_once_for_a_reason_and_each_has_it_in_its_history(women, ada):
    made = make_demonstrations(women)
    retired = retire(ids=[d.pk for d in made[:3]], reason=" Not about women. ", by=ada)
    assert len(retired) == 3
    assert set(Demonstration.objects.exclude(retired_at=None).values_list("retired_reason", flat=True)) == {
        "Not about women."
    }
    for demonstration in made[:3]:
        assert told(demonstration)[-1] == ("~", demonstration.text, False, "ada")
    assert acts() == [("demonstration retired", "the benign set of Women", "ada")]


def test_one_that_is_retired_keeps_its_first_reason(women):
    [demonstration] = add(group=women, label="benign", texts=["she sails"], by=None).new
    retire(ids=[demonstration.pk], reason="Too short.", by=None)
    assert retire(ids=[demonstration.pk], reason="Too long.", by=None) == []
    demonstration.refresh_from_db()
    assert demonstration.retired_reason == "Too short."


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (" ", "Say why it is retired, for whoever looks later."),
        ("a" * 201, "The reason has 201 characters. At most 200 can be stored."),
    ],
)
def test_a_demonstration_is_retired_for_a_reason(women, reason, sentence):
    [demonstration] = add(group=women, label="benign", texts=["she sails"], by=None).new
    with pytest.raises(ReasonMissing) as refusal:
        retire(ids=[demonstration.pk], reason=reason, by=None)
    assert str(refusal.value) == sentence


def test_a_retired_one_is_brought_back_without_its_reason(women, ada):
    [demonstration] = add(group=women, label="benign", texts=["she sails"], by=None).new
    retire(ids=[demonstration.pk], reason="Too short.", by=ada)
    assert bring_back(ids=[demonstration.pk], by=ada) == [demonstration]
    demonstration.refresh_from_db()
    assert (demonstration.retired_at, demonstration.retired_reason) == (None, "")
    assert [in_use for _, _, in_use, _ in told(demonstration)] == [True, False, True]
    assert bring_back(ids=[demonstration.pk], by=ada) == []


def test_the_command_line_is_nobody_in_the_history(women):
    [demonstration] = add(group=women, label="toxic", texts=["a placeholder"], by=None).new
    assert told(demonstration) == [("+", "a placeholder", True, "None")]


# --- Toxic sets -------------------------------------------------------------------------


REFUSED = (
    "ada may not add to toxic sets of demonstrations, nor edit what is in them. "
    "An admin gives the permission: by the group “toxic sets”, on the user's page."
)


def toxic_acts(group):
    """What fills a toxic set, each as a function of who does it."""
    make_demonstrations(group, label="toxic")
    member, retired = Demonstration.objects.filter(label="toxic")[:2]
    retire(ids=[retired.pk], reason="Too short.", by=None)
    [response] = make_responses(group, "a placeholder response", label="toxic")
    return {
        "add": lambda by: add(group=group, label="toxic", texts=["a placeholder"], by=by),
        "edit": lambda by: edit(demonstration_id=member.pk, text="another placeholder", by=by),
        "bring back": lambda by: bring_back(ids=[retired.pk], by=by),
        "promote": lambda by: promote(response_id=response.pk, by=by),
    }


@pytest.mark.parametrize("act", ["add", "edit", "bring back", "promote"])
def test_toxic_sets_are_filled_only_by_who_has_the_permission(women, ada, grace, act):
    do = toxic_acts(women)[act]
    before = list(Demonstration.objects.order_by("pk").values())
    with pytest.raises(MayNotFillToxicSet) as refusal:
        do(ada)
    assert str(refusal.value) == REFUSED
    assert list(Demonstration.objects.order_by("pk").values()) == before
    do(grace)
    assert list(Demonstration.objects.order_by("pk").values()) != before


def test_who_may_not_fill_a_toxic_set_does_not_learn_what_is_in_it_either(women, ada):
    [response] = make_responses(women, DEMONSTRATIONS[0], label="toxic")
    with pytest.raises(MayNotFillToxicSet):
        promote(response_id=response.pk, by=ada)


def test_every_researcher_may_retire_toxic_ones_and_fill_benign_sets(women, ada):
    [member, *_] = make_demonstrations(women, label="toxic")
    assert retire(ids=[member.pk], reason="Explicit.", by=ada)
    assert add(group=women, label="benign", texts=["she sails"], by=ada).new


# --- What becomes of a response ---------------------------------------------------------


def test_a_promoted_response_is_a_demonstration_that_says_so(women, ada):
    [response] = make_responses(women, "our skipper is a woman")
    demonstration = promote(response_id=response.pk, by=ada)
    assert (demonstration.text, demonstration.origin, demonstration.created_by) == (
        "our skipper is a woman", "promoted", ada,
    )  # fmt: skip
    response.refresh_from_db()
    assert (response.verdict, response.demonstration, response.judged_by) == ("promoted", demonstration, ada)
    assert response.judged_at
    assert told(demonstration) == [("+", "our skipper is a woman", True, "ada")]
    assert acts()[-1] == ("demonstration promoted", "the benign set of Women", "ada")


def test_a_response_can_be_edited_before_it_is_promoted(women, ada):
    [response] = make_responses(women, "our skipper is a woman and and")
    assert promote(response_id=response.pk, by=ada, text="our skipper is a woman").text == "our skipper is a woman"
    response.refresh_from_db()
    assert response.text == "our skipper is a woman and and"


def test_promoting_twice_makes_one_demonstration(women, ada):
    [response] = make_responses(women, "our skipper is a woman")
    first = promote(response_id=response.pk, by=ada)
    assert promote(response_id=response.pk, by=ada) == first
    assert Demonstration.objects.filter(origin="promoted").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_who_promote_a_response_at_once_make_one_demonstration():
    [response] = make_responses(make_group("women"), "our skipper is a woman")

    def press():
        return promote(response_id=response.pk, by=None).pk

    with Held(press):
        second = start(press)
        with pytest.raises(TimeoutError):  # it waits for the first
            second.result(0.3)
    assert second.result(SECONDS) == Response.objects.get().demonstration_id
    assert Demonstration.objects.filter(origin="promoted").count() == 1


def test_what_is_in_the_set_already_is_not_promoted(women):
    [response] = make_responses(women, DEMONSTRATIONS[0])
    with pytest.raises(AlreadyInSet) as refusal:
        promote(response_id=response.pk, by=None)
    assert str(refusal.value) == "This sentence is in the benign set of Women already."


def test_a_sentence_that_was_retired_is_brought_back_by_promoting_it(women):
    retire(ids=[make_demonstrations(women, texts=["she sails"])[0].pk], reason="Too short.", by=None)
    [response] = make_responses(women, "she sails")
    assert promote(response_id=response.pk, by=None).retired_at is None
    assert Demonstration.objects.filter(text="she sails").count() == 1


def test_a_promoted_and_retired_sentence_is_brought_back_on_its_set_s_page_instead(women):
    first, second = make_responses(women, "she sails", "She sails")
    Response.objects.filter(pk=second.pk).update(text="she sails")
    retire(ids=[promote(response_id=first.pk, by=None).pk], reason="Too short.", by=None)
    with pytest.raises(AlreadyInSet) as refusal:
        promote(response_id=second.pk, by=None)
    assert str(refusal.value) == (
        "This sentence is in the benign set of Women already, retired: bring it back on the set's page."
    )


def test_undoing_a_promotion_retires_what_it_made_and_it_can_be_promoted_again(women, ada):
    [response] = make_responses(women, "our skipper is a woman")
    demonstration = promote(response_id=response.pk, by=ada)
    undo(response_id=response.pk, by=ada)
    demonstration.refresh_from_db()
    response.refresh_from_db()
    assert demonstration.retired_reason == "Its promotion was undone."
    assert (response.verdict, response.demonstration, response.judged_at) == ("undecided", None, None)
    assert promote(response_id=response.pk, by=ada) == demonstration
    assert [in_use for _, _, in_use, _ in told(demonstration)] == [True, False, True]


def test_a_bad_response_says_why_and_that_can_be_undone(women, ada):
    [response] = make_responses(women, "and and and")
    mark_bad(response_id=response.pk, because="no_sense", remark=" it repeats itself ", by=ada)
    response.refresh_from_db()
    assert (response.verdict, response.bad_because, response.note, response.judged_by) == (
        "bad", "no_sense", "it repeats itself", ada,
    )  # fmt: skip
    with pytest.raises(JudgedAlready) as refusal:
        promote(response_id=response.pk, by=ada)
    assert str(refusal.value) == "This response is bad already. Undo that first."
    undo(response_id=response.pk, by=ada)
    response.refresh_from_db()
    assert (response.verdict, response.bad_because, response.note, response.judged_by) == ("undecided", "", "", None)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"because": "dull"}, "Choose why it is bad: not about the group, not what the label says, "),
        ({"because": "other", "remark": "a" * 201}, "The note has 201 characters. At most 200 can be stored."),
    ],
)
def test_a_response_is_bad_for_a_reason_that_is_counted(women, options, sentence):
    [response] = make_responses(women, "and and and")
    with pytest.raises(ReasonUnknown) as refusal:
        mark_bad(response_id=response.pk, by=None, **options)
    assert str(refusal.value).startswith(sentence)


def test_a_promoted_response_is_not_marked_bad(women):
    [response] = make_responses(women, "our skipper is a woman")
    promote(response_id=response.pk, by=None)
    with pytest.raises(JudgedAlready) as refusal:
        mark_bad(response_id=response.pk, because="other", by=None)
    assert str(refusal.value) == "This response is promoted into the set already. Undo that first."


# --- Yield ------------------------------------------------------------------------------


def test_the_yield_of_a_demonstration_is_over_the_responses_of_the_trials_it_was_in(women):
    first, _ = make_responses(women, "a woman sails", "we row")
    promote(response_id=first.pk, by=None)
    responses_of_another_set = make_responses(women, "a woman rows", label="toxic")
    rows = Demonstration.objects.with_yield().filter(label="benign")
    drawn = Trial.objects.get(pk=first.trial_id).demonstrations.all()
    for row in rows:
        assert (row.tried, row.responses, row.promoted_share, row.naming_share) == (
            (1, 2, 0.5, 0.5) if row in drawn else (0, 0, None, None)
        ), row.text
    assert responses_of_another_set


def test_the_yield_of_many_takes_one_query(women, django_assert_num_queries):
    make_responses(women, "a woman sails")
    with django_assert_num_queries(1):
        list(Demonstration.objects.with_yield().with_who())


# --- Constraints beyond an update -------------------------------------------------------


def test_a_demonstration_is_what_one_response_became(women):
    first, second = make_responses(women, "a woman sails", "a woman rows")
    demonstration = promote(response_id=first.pk, by=None)
    with pytest.raises(IntegrityError), transaction.atomic():
        Response.objects.filter(pk=second.pk).update(
            demonstration=demonstration, verdict="promoted", judged_at=timezone.now()
        )
