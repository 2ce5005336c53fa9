"""No classifier is trained on what is for testing, also if it comes to be that later."""

from threading import Event, Thread

import numpy as np
import pytest
from django.db import connection, transaction

from analysis.classifiers import choosing, data, orders, overlaps, working
from analysis.classifiers.folders import folder_of
from analysis.humanval import drawing, sets
from analysis.models import HumanvalSet
from generation.models import Generation
from tests.analysis.humanval_world import draw, embed
from tests.analysis.training_world import save_tiny, store_statements

pytestmark = pytest.mark.django_db

QUICK = {"epochs": 2, "batch_size": 8, "learning_rate": 0.01, "evaluations_an_epoch": 1}


@pytest.fixture(autouse=True)
def own_state(settings, tmp_path):
    settings.VAR = tmp_path / "state"
    return save_tiny(tmp_path / "tiny")


@pytest.fixture
def tiny(own_state):
    return own_state


def order(base, name="first", **options):
    return orders.start_training(
        **{"name": name, "kind": "full", "base": base, "parameters": QUICK, "wake": False} | options
    )


def work(classifier, **options):
    working.work_on_training(classifier_id=classifier.pk, **options)
    classifier.refresh_from_db()
    return classifier


def embed_all():
    for place, generation in enumerate(Generation.objects.filter(embeddings=None)):
        embed(generation, np.eye(100)[place])


def drawn_now(size=4, **options):
    embed_all()
    return draw(size=size, **options)


def test_a_set_that_is_drawn_before_anything_is_learned_makes_the_statements_be_chosen_again(tiny):
    store_statements(20)
    classifier = order(tiny)
    data.choose(classifier)
    drawn = drawn_now(threshold=0.6)
    assert work(classifier).state == "finished"
    assert classifier.data["humanval"] == [drawn.version]
    own = drawn.statements.values("generation")
    assert not classifier.statements.filter(generation__in=own).exists()
    card = (folder_of("first") / "README.md").read_text()
    assert f"It was not trained here on statements of {drawn}, nor on any" in card
    assert f"a cosine similarity above 0.6 with one of {drawn}." in card


def test_a_card_says_so_where_no_set_was_drawn(tiny):
    store_statements(20)
    work(order(tiny))
    card = (folder_of("first") / "README.md").read_text()
    assert "No HUMANVAL test set was drawn when the statements were chosen" in card
    assert "cosine" not in card


def test_a_set_that_is_drawn_during_the_training_ends_it(tiny):
    store_statements(20)
    classifier = work(
        order(tiny), on_point=lambda point: point.step and not HumanvalSet.objects.exists() and drawn_now()
    )
    assert classifier.state == "failed"
    assert classifier.failure.startswith("It is trained on 4 statements that are of HUMANVAL 1, too similar to it, or")
    assert classifier.failure.endswith("Order the training anew under another name.")
    assert not folder_of("first").exists()


def test_a_set_that_is_drawn_while_it_waits_ends_it_when_it_is_taken_up(tiny):
    store_statements(20)
    asked = iter(range(10))
    classifier = work(order(tiny), is_stopping=lambda: next(asked, None) is None)
    assert classifier.step
    drawn_now()
    points = []
    assert work(classifier, on_point=points.append).failure.startswith("It is trained on 4 statements")
    assert not points


def test_a_base_that_learned_what_is_for_testing_now_is_refused(tiny):
    store_statements(20)
    work(order(tiny))
    work(order("first", "second"))
    drawn_now()
    for base in ("second", f"{folder_of('first')}#toxic"):
        with pytest.raises(
            ValueError, match=r"The base (first|second) was trained on 4 statements that are of HUMANVAL 1"
        ):
            order(base, "third")
    assert order(tiny, "third").pk


def test_a_base_is_not_validated_on_what_it_learned(tiny):
    store_statements(20)
    first = work(order(tiny, size=40))
    second = order("first", "second")
    data.choose(second)
    learned = set(first.statements.filter(part="train").values_list("generation", flat=True))
    assert learned
    assert set(overlaps.learned_by_bases(second).tolist()) == learned
    validation = second.statements.filter(part="validation")
    assert not validation.filter(generation__in=learned).exists()
    assert validation.filter(is_toxic=True).exists()
    assert validation.filter(is_toxic=False).exists()


def test_a_model_of_the_same_name_elsewhere_is_no_base_of_itself(tiny):
    store_statements(10)
    assert not list(overlaps.bases_of("first", before=order("first").pk))


def test_what_is_nearer_than_the_paper_allows_is_left_out_whatever_the_threshold_of_the_set():
    store_statements(20)
    made = list(Generation.objects.order_by("pk"))
    for place, generation in enumerate(made):
        vector = np.zeros(100)
        vector[place // 2] = 1
        vector[99] = 0.5 * (place % 2)
        embed(generation, vector)
    drawn = draw(size=4, threshold=0.95)
    assert not drawn.removed.exists()
    own = set(drawn.statements.values_list("generation", flat=True))
    place_of = {generation.pk: place for place, generation in enumerate(made)}
    close = {made[place_of[pk] ^ 1].pk for pk in own} - own
    choice = choosing.choice_of(labels="prompt", methods="both", size=None, seed=0)
    assert close
    assert not (own | close) & set(choice.ids.tolist())
    assert choice.left_out["too similar to a HUMANVAL set"] == len(close)


@pytest.mark.django_db(transaction=True)
def test_a_set_that_is_being_stored_while_statements_are_is_waited_for():
    store_statements(20)
    classifier = orders.start_training(name="first", wake=False)
    embed_all()
    wanted = sets.ask_for_set(size=4, seed=1, wake=False)
    drawing.fix_statements(wanted)
    stored, asked = Event(), Event()

    def store():
        try:
            with transaction.atomic():
                drawing.store(drawing.take_up(wanted.pk), drawing.draw(wanted))
                stored.set()
                asked.wait(10)
        finally:
            connection.close()

    drawer = Thread(target=store)
    real = data._copy

    def copy(rows):
        real(rows)
        asked.set()

    choice = choosing.choice_of

    def choose(**options):
        found = choice(**options)
        if not stored.is_set():
            drawer.start()
            assert stored.wait(10)
            Thread(target=lambda: (Event().wait(0.5), asked.set())).start()
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(data, "choice_of", choose)
        patched.setattr(data, "_copy", copy)
        data.choose(classifier)
    drawer.join()
    wanted.refresh_from_db()
    assert wanted.is_drawn
    assert not overlaps.for_testing(classifier)
    assert classifier.data["humanval"] == [wanted.version]
