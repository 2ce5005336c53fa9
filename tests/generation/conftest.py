"""What tests of the generation app share: a toy in the language model's place, the real one, a caught queue."""

import pytest
from django.conf import settings

from generation import wakeups, working
from tests.generation import toys


@pytest.fixture
def toy(monkeypatch):
    """Workers in this process work with toys; assign others to ``toy.model`` and ``toy.classifier``."""

    class Toy:
        model = toys.chatterbox()
        classifier = toys.ToyClassifier()

    monkeypatch.setattr(working, "load_language_model", lambda name, **_: Toy.model)
    monkeypatch.setattr(working, "load_classifier", lambda name, **_: Toy.classifier)
    return Toy


@pytest.fixture(scope="session")
def language_model():
    """The embedded model; unpacking it takes half a minute on first use."""
    return working.load_language_model(settings.LANGUAGE_MODEL)


@pytest.fixture
def sent(monkeypatch):
    """The wake-ups that would have gone to the queue, as (task, arguments, queue)."""
    caught = []

    class Queue:
        def send_task(self, name, arguments, *, queue, expires):
            caught.append((name, arguments, queue))

    monkeypatch.setattr(wakeups, "current_app", Queue())
    return caught
