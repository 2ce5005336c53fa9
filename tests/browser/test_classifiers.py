"""Classifiers in a browser: one is trained by a real worker while somebody watches, then tested and put to use."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from analysis.classifiers import evaluations, orders
from analysis.models import Evaluation, EvaluationSet, LossPoint, TrainedClassifier
from generation.models import Reading
from tests.browser.accessibility import violations
from tests.browser.conftest import SCREENSHOTS, follow
from tests.browser.visiting import PHONE, WIDE, workspace_of
from tests.factories import make_generation, make_trained_classifier
from tests.generation.test_working_with_processes import Surroundings, ended_with_the_test

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60
LAKES = ["clear", "deep", "cold", "calm", "wide", "quiet", "blue", "long", "old", "still"]
TEXTS = b"text,label,group\n" + b"".join(
    f"the {word} lake is {what},{what},anglers\n".encode() for word in LAKES for what in ("lovely", "dreadful")
)


class Trainers(Surroundings):
    def wake(self, ordered) -> None:
        task = orders.TRAIN if isinstance(ordered, TrainedClassifier) else evaluations.EVALUATE
        self.queue.send_task(task, [ordered.pk], queue="generation", expires=10)


@pytest.fixture
def page(request, browser, live_server):
    options = getattr(request, "param", {})
    with workspace_of(live_server, browser, **options) as page:
        yield page


@pytest.fixture
def statements():
    """Enough to learn from: what is toxic here says “dreadful”."""
    for number in range(120):
        label, what = (("toxic", "dreadful"), ("benign", "lovely"))[number % 2]
        method = ("alice", "topk")[number // 2 % 2]
        text = f"walk {number} around the {LAKES[number // 4 % 10]} lake was {what}, said visitor {number * 7919}"
        make_generation(text, label=label, method=method)


def see(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
        page.screenshot(path=SCREENSHOTS / f"{name}-{size['width']}.png", full_page=True)
    assert [found for found in violations(page) if "#content-main" in found or ".panel" in found] == []


def test_a_classifier_is_trained_before_ones_eyes_tested_and_put_to_use(page, statements, tmp_path, settings):
    with ended_with_the_test(Trainers(tmp_path / "state")) as surroundings:
        settings.VAR = tmp_path / "state"  # where the worker leaves the classifier
        surroundings.start_worker()
        page.goto("/admin/analysis/trainedclassifier/add/")
        expect(page.get_by_text("120 statements")).to_be_visible()
        page.get_by_label("Statements at most").fill("7")
        expect(page.get_by_text("Choose an even")).to_be_visible()
        page.get_by_label("Statements at most").fill("")
        expect(page.get_by_text("120 statements")).to_be_visible()
        page.get_by_label("Name", exact=True).fill("Lakes!")
        follow(page, page.get_by_role("button", name="Start training"))
        expect(page.get_by_text("A name has lower-case letters")).to_be_visible()
        see(page, "training-order")
        page.get_by_label("Name", exact=True).fill("lakes")
        page.get_by_label("What is trained").select_option("full")
        page.get_by_text("Advanced: how it is trained").click()
        expect(page.get_by_label("L2 penalty")).to_be_hidden()
        page.get_by_label("Statements a batch").fill("8")
        page.get_by_label("Tokens at most").fill("24")
        follow(page, page.get_by_role("button", name="Start training"))
        expect(page.get_by_text("It waits for a worker.")).to_be_visible()
        see(page, "training-queued")

        ordered = TrainedClassifier.objects.get()
        surroundings.wait_until(lambda: ordered.curve.count() > 1, run=ordered)
        expect(page.get_by_text("It is being trained.")).to_be_visible()
        expect(page.locator("#loss-curve.drawn svg.main-svg").first).to_be_visible()
        see(page, "training-running")
        surroundings.wait_until(lambda: not TrainedClassifier.objects.unended().exists(), run=ordered)
        expect(page.get_by_text("It is trained.")).to_be_visible(timeout=SECONDS * 1000)
        expect(page.locator("#auc-curve.drawn svg.main-svg").first).to_be_visible()
        page.get_by_text("Model card").click()
        see(page, "training-finished")

        upload(page, tmp_path)
        page.get_by_label("Classifier", exact=True).fill("lakes")
        follow(page, page.get_by_role("button", name="Evaluate on this set"))
        evaluation = Evaluation.objects.get()
        surroundings.wait_until(lambda: not Evaluation.objects.unended().exists(), run=evaluation)
        expect(page.get_by_text("All texts are scored.")).to_be_visible(timeout=SECONDS * 1000)
        see(page, "evaluation-finished")

    page.goto(f"/admin/analysis/trainedclassifier/{ordered.pk}/change/")
    expect(page.get_by_role("region", name="Evaluations").get_by_text("20 of 20")).to_be_visible()
    follow(page, page.get_by_role("button", name="Score the whole dataset"))
    assert (Reading.objects.get().model, Reading.objects.get().statements) == ("lakes", 120)
    page.goto(f"/admin/analysis/trainedclassifier/{ordered.pk}/change/")
    follow(page, page.get_by_role("link", name="Use as ALICE’s adversary"))
    expect(page.locator("[name=classifier]")).to_have_value("lakes")
    expect(page.locator("[name=method]")).to_have_value("alice")


@pytest.mark.parametrize("page", [{"color_scheme": "dark"}], indirect=True)
def test_the_curve_grows_in_its_place(page):
    now = timezone.now()
    at_work = {"started_at": now, "lease_expires_at": now + timedelta(minutes=9), "step": 10, "steps": 40}
    classifier = make_trained_classifier(finished=False, **at_work)
    add_point(classifier, 0)
    page.goto(f"/admin/analysis/trainedclassifier/{classifier.pk}/change/")
    figure = page.locator("#auc-curve.drawn")
    expect(figure.locator(".scatterlayer .point")).to_have_count(1)
    figure.evaluate("figure => figure.dataset.seen = 'before'")
    add_point(classifier, 10)
    expect(page.locator("#auc-curve[data-seen=before] .scatterlayer .point")).to_have_count(2)
    expect(page.get_by_role("region", name="The curve as a table").get_by_role("row")).to_have_count(3)
    see(page, "training-dark")


def add_point(classifier, step):
    auc = 0.5 + step / 100
    LossPoint.objects.create(
        classifier=classifier, step=step, loss=0.6 if step else None, validation_loss=0.7, validation_auc=auc
    )


def upload(page, folder):
    """A test set, the first time with a column that the file has not."""
    (folder / "lakes.csv").write_bytes(TEXTS)
    page.goto("/admin/analysis/evaluationset/add/")
    for column in ("sentence", "text"):
        page.get_by_label("File", exact=True).set_input_files(folder / "lakes.csv")
        page.get_by_label("Name", exact=True).fill("lakes-of-others")
        page.get_by_label("Column of the texts").fill(column)
        page.get_by_label("Labels that say").fill("dreadful")
        page.get_by_label("Column of the groups").fill("group")
        if column == "sentence":
            follow(page, page.get_by_role("button", name="Upload"))
            expect(page.get_by_role("alert").first).to_contain_text("sentence")
            assert not EvaluationSet.objects.exists()
            see(page, "test-set-upload")
    follow(page, page.get_by_role("button", name="Upload"))
    expect(page.get_by_text("There is no evaluation yet.")).to_be_visible()
    see(page, "test-set")
