"""A study in the workspace: its statements chosen, previewed and published, and the study watched and stopped."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator.models import HIT, Annotation, HITType
from config import demo
from generation.models import Generation
from tests.browser.accessibility import violations
from tests.browser.conftest import SCREENSHOTS, follow
from tests.browser.visiting import PHONE, WIDE, workspace_of
from tests.factories import answers, consenting_worker, make_assignment, make_group, make_hit_type

pytestmark = pytest.mark.django_db(transaction=True)

OURS = "#content-main .panel"
SLUGS = ("asian", "black", "jewish", "lgbtq", "mexican", "muslim", "women")
NAMES = ("Asian", "Black", "Jewish", "LGBTQ+", "Mexican", "Muslim", "Women")


@pytest.fixture
def study():
    """Statements of seven groups, fewer of the last one, and a study that has none yet."""
    demo.make_consent_form()
    for place, (slug, name) in enumerate(zip(SLUGS, NAMES, strict=True)):
        group = make_group(slug, name=name)
        for label in ("benign", "toxic"):
            for method in ("topk", "alice"):
                Generation.objects.bulk_create(
                    Generation(
                        group=group,
                        label=label,
                        method=method,
                        text=f"the {method} sentence number {number} speaks of the weather in {place} towns",
                        toxic_prob=number / 20,
                    )
                    for number in range(2 if slug == "women" and label == "toxic" else 12)
                )
    return make_hit_type(title="Is this statement harmful?")


@pytest.fixture
def page(browser, live_server, study):
    with workspace_of(live_server, browser) as page:
        yield page


def people_work(study):
    """Six people, each of another mind now and then, over two days; one of them is at work."""
    now = timezone.now()
    hits = list(study.hits.order_by("pk"))
    for person in range(6):
        worker = consenting_worker()
        for place, hit in enumerate(hits[person % 2 :: 2][:14]):
            done = now - timedelta(hours=46 - 3 * place - person / 2)
            times = {"accepted_at": done - timedelta(seconds=80), "submitted_at": done, "deadline": now}
            assignment = make_assignment(hit, worker, status="submitted", **times)
            harm = 1 + (person // 2 * 2 if place % 4 == 0 else 0)
            Annotation.objects.create(assignment=assignment, **answers(harmful_if_ai=harm, harmful_if_human=harm))
    make_assignment(hits[-1], consenting_worker())


def test_statements_are_chosen_previewed_and_published_and_the_study_is_watched_and_stopped(page, study):
    def see(name):
        for size in (PHONE, WIDE):
            page.set_viewport_size(size)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
            page.screenshot(path=SCREENSHOTS / f"{name}-{size['width']}.png", full_page=True)
            if page.locator(OURS).count():
                assert violations(page, within=OURS) == []

    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.goto(f"/admin/annotator/hittype/{study.pk}/change/")
    see("study-new")

    follow(page, page.get_by_role("link", name="Choose statements"))
    see("study-choose")
    page.get_by_label("Statements of each cell").fill("3")
    page.get_by_label("Seed").fill("7")
    follow(page, page.get_by_role("button", name="Preview"))
    see("study-preview")
    page.screenshot(path=SCREENSHOTS / "study-preview-first-view.png")
    follow(page, page.get_by_role("button", name="Publish 82 statements"))
    assert page.get_by_text("82 HITs published, with the seed 7.").is_visible()
    assert HIT.objects.count() == 82

    people_work(study)
    page.reload()
    see("study-watched")
    page.screenshot(path=SCREENSHOTS / "study-watched-first-view.png")
    assert page.locator(".watch").get_by_text("1 non-toxic, 1 ambiguous, 1 toxic").first.is_visible()

    follow(page, page.get_by_role("link", name="Extend"))
    see("study-extend")
    page.go_back()
    follow(page, page.get_by_role("link", name="Stop the study"))
    see("study-stop")
    follow(page, page.get_by_role("button", name="Stop the study"))
    see("study-stopped")
    assert HITType.objects.get().stopped_at
    follow(page, page.get_by_role("button", name="Go on with the study"))
    assert not HITType.objects.get().stopped_at

    page.goto("/admin/annotator/hittype/")
    see("study-list")
