"""What the load consists of: annotators who judge one statement after the other, and visitors of the floor."""

import html
import random
import re
from collections.abc import Container

from annotator.questions import QUESTIONS, Question
from benchmarks.web.browser import Browser, Response

STATEMENT = re.compile(r"<blockquote[^>]*>(.*?)</blockquote>", re.DOTALL)
CSRF_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
TASK = re.compile(r"/task/[0-9a-f-]{36}/")
SENTENCE = re.compile(r'<(?:p class="lead"|title)>(.*?)</')


class Unexpected(Exception):
    """The server answered something else than an annotator expects; the message says what."""


class Annotator:
    """Comes in by an invite link; then a cycle is to see a statement and to submit its nine answers."""

    def __init__(
        self, browser: Browser, *, invite_path: str, accept_path: str, statements: Container[str], seed: int
    ) -> None:
        self.browser = browser
        self.invite_path = invite_path
        self.accept_path = accept_path
        self.statements = statements
        self.random = random.Random(seed)
        self.task = ""
        self.acknowledged = 0

    async def cycle(self) -> None:
        """See the statement at hand and submit the answers; whoever has none comes in first."""
        if not self.task:
            await self.come_in()
        path, self.task = self.task, ""
        page = await self.browser.get(path)
        text = found(STATEMENT, expect(200, page))
        if html.unescape(text) not in self.statements:
            raise Unexpected(f"The page shows a text that was never published: {text}")
        answers = {"csrfmiddlewaretoken": found(CSRF_TOKEN, page)} | self.answers()
        submitted = expect(302, await self.browser.post(path, answers))
        self.acknowledged += 1
        self.task = next_task(submitted)

    async def come_in(self) -> None:
        """Open the invite link, which leads home, and take a statement there."""
        home = expect(302, await self.browser.get(self.invite_path)).header("location")
        page = expect(200, await self.browser.get(home))
        form = {"csrfmiddlewaretoken": found(CSRF_TOKEN, page)}
        self.task = next_task(expect(302, await self.browser.post(self.accept_path, form)))

    def answers(self) -> dict[str, object]:
        """Nine answers at random, and the text fields, as a browser sends them."""
        sent = {}
        for question in QUESTIONS:
            sent |= self.answer(question)
        return sent

    def answer(self, question: Question) -> dict[str, object]:
        chosen = self.random.choice(question.values)
        free_text = question.free_text
        if free_text is None:
            return {question.key: chosen}
        return {question.key: chosen, free_text.key: "people who sing" if chosen == free_text.required_by else ""}


class Visitor:
    """Asks for the floor's page."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    async def cycle(self) -> None:
        expect(200, await self.browser.post("/floor/", {}))


def expect(status: int, response: Response) -> Response:
    """The response, if it has the status; otherwise ``Unexpected`` with what the page says."""
    if response.status != status:
        said = SENTENCE.findall(response.body) or [response.header("location") or response.body[:200]]
        raise Unexpected(f"Status {response.status} instead of {status}: {said[-1]}")
    return response


def found(pattern: re.Pattern[str], page: Response) -> str:
    """What the pattern's group matches in the page."""
    if match := pattern.search(page.body):
        return match[1]
    raise Unexpected(f"The page has nothing like {pattern.pattern}: {page.body[:200]}")


def next_task(redirect: Response) -> str:
    """The address of the statement that was handed out."""
    location = redirect.header("location")
    if TASK.fullmatch(location):
        return location
    raise Unexpected(f"No next statement was handed out: sent to {location}")
