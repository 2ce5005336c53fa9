"""A test set in a browser: ask for it, watch it being drawn, publish, freeze, check and correct it."""

import pytest

from analysis.humanval import drawing, proving
from analysis.models import HumanvalSet
from annotator import reviewing
from annotator.models import Assignment
from tests.analysis.humanval_world import ids_of, judge, scattered
from tests.browser.accessibility import violations
from tests.browser.conftest import CHROMIUM, SCREENSHOTS, follow  # noqa: F401
from tests.browser.visiting import PHONE, WIDE, workspace_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def page(request, browser, live_server):
    with workspace_of(live_server, browser, java_script_enabled=request.param) as page:
        page.has_scripts = request.param
        yield page


def see(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        if page.has_scripts:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
            assert [found for found in violations(page) if "#content-main" in found or ".panel" in found] == []
            page.screenshot(path=SCREENSHOTS / f"{name}-{size['width']}.png", full_page=True)


def look_again(page, text):
    """Until the page says so: by itself, or by the link."""
    if page.has_scripts:
        page.get_by_text(text).first.wait_for()
    else:
        follow(page, page.get_by_role("link", name="Look again"))
        assert page.get_by_text(text).first.is_visible()


def test_a_set_is_drawn_judged_frozen_checked_and_corrected(page):
    page.goto("/admin/analysis/humanvalset/add/")
    page.get_by_label("Statements", exact=True).fill("8")
    follow(page, page.get_by_role("button", name="Draw the set"))
    assert page.get_by_text("There is no statement to choose from.").is_visible()

    scattered(4)
    page.goto("/admin/analysis/humanvalset/add/")
    page.get_by_label("Statements", exact=True).fill("8")
    page.get_by_label("Seed", exact=True).fill("3")
    follow(page, page.get_by_role("button", name="Preview"))
    assert page.get_by_role("heading", name="What there is to choose from").is_visible()
    assert page.get_by_label("Seed", exact=True).input_value() == "3"
    see(page, "humanval-preview")
    follow(page, page.get_by_role("button", name="Draw the set"))
    assert page.get_by_text("It waits for a worker.").is_visible()
    see(page, "humanval-waiting")
    wanted = HumanvalSet.objects.get()
    drawing.work_on_set(set_id=wanted.pk)
    look_again(page, "8 statements, drawn from 32")
    see(page, "humanval-drawn")

    page.get_by_label("Reward a statement (USD)").fill("0.01")
    follow(page, page.get_by_role("button", name="Publish as a study"))
    assert page.get_by_text("Raise the reward to at least").is_visible()
    page.get_by_label("Reward a statement (USD)").fill("0.25")
    follow(page, page.get_by_role("button", name="Publish as a study"))
    assert page.get_by_text("0 of 24 places are filled").is_visible()
    follow(page, page.get_by_role("button", name="Freeze with its labels"))
    assert page.get_by_text("Nothing was frozen: 24 places are free.").is_visible()
    see(page, "humanval-published")

    wanted.refresh_from_db()
    judge(wanted, *[(1, 1, 2), (5, 4, 5), (3, 3, 1), (1, 2, 1)] * 2)
    follow(page, page.get_by_role("button", name="Freeze with its labels"))
    assert page.get_by_text("The answers are those it was frozen with.").is_visible()
    follow(page, page.get_by_role("button", name="Check it from the texts"))
    assert page.get_by_text("A check is under way").is_visible()
    see(page, "humanval-frozen")
    wanted.refresh_from_db()
    [proof] = wanted.proofs.all()
    proving.work_on_proof(proof_id=proof.pk)
    look_again(page, "HUMANVAL 1 does not hold" if not proof_holds(proof) else "HUMANVAL 1 holds")
    see(page, "humanval-checked")

    work = Assignment.objects.filter(hit__generation=ids_of(wanted)[0])
    reviewing.reopen(ids=list(work.values_list("pk", flat=True)[:1]))
    wanted.hit_type.hits.update(expires_at=wanted.frozen_at)
    page.reload()
    assert page.get_by_text("Its answers have changed since").is_visible()
    follow(page, page.get_by_role("button", name="Freeze anew, as the next version"))
    assert page.get_by_text("HUMANVAL 1 with the answers there were later").is_visible()
    see(page, "humanval-second-version")
    page.goto("/admin/analysis/humanvalset/")
    assert page.get_by_role("link", name="HUMANVAL 2").first.is_visible()
    see(page, "humanval-list")


def proof_holds(proof):
    """The texts of made-up vectors are nearly alike, so that the real encoder may find what the vectors hid."""
    proof.refresh_from_db()
    return proof.found["holds"]
