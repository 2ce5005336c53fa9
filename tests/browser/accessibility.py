"""What axe finds on a page: the rules of WCAG 2.2 AA and the field's best practices."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

OPTIONS = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
axe = Axe()


def violations(page: Page, *, within: str | None = None) -> list[str]:
    """What is wrong, a line for each element: the rule, what it asks, and where it is broken.

    ``within`` selects the part that is judged: our part of a page whose frame is django-unfold's.

    Playwright evaluates scripts past the page's content security policy, so that pages are
    judged as they are served.
    """
    return [
        f"{found['id']}: {found['help']}: {', '.join(map(str, node['target']))}: {node['failureSummary']}"
        for found in axe.run(page, context=within, options=OPTIONS).response["violations"]
        for node in found["nodes"]
    ]
