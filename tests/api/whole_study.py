"""A whole study through the API alone: from the first demonstrations to the labelled set in files.

    python tests/api/whole_study.py http://localhost:8000 TOKEN FOLDER

needs a token of an admin, made in the workspace under Data, API. Three annotators come in by their links, as people
with a browser do, and answer. It knows Humanval by HTTP alone.
"""

import argparse
import html.parser
import time
from collections.abc import Callable
from pathlib import Path

import requests

DEMONSTRATIONS = [
    "the lighthouse keeper paints the door every spring",
    "our neighbour bakes bread with rye and honey",
    "the river is calm behind the old mill",
    "she repairs violins in a shop by the station",
    "the library opens an hour later on mondays",
    "they grow pears along the garden wall",
    "his brother drives the night bus to the harbour",
]
CONSENT = {
    "title": "Before you begin",
    "warning": "Some statements may be unpleasant.",
    "purpose": "You judge statements, which makes software better.",
    "risks": "Reading may be tiring. Stop whenever you like.",
    "pay": "Every statement is paid, also when you stop early.",
    "contact": "Write to study@example.org.",
    "withdrawal": "You may withdraw at any time.",
}
ANSWERS = {
    "human_or_ai": "ai",
    "harmful_if_ai": "1",
    "harmful_if_human": "2",
    "pos_stereo": "no",
    "harmful_intent": "1",
    "lewd": "no",
    "which_group": "none_or_unclear",
    "group_framing": "none",
    "fact_or_opinion": "factual",
}


class Refused(Exception):
    """The API refused something; the message is its problem."""


class Api:
    """The API at an address, in the name of a token."""

    def __init__(self, base: str, token: str) -> None:
        self.base = base.rstrip("/")
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"

    def get(self, address: str, **filters):
        return self._ask("GET", address, params=filters).json()

    def post(self, address: str, **body):
        return self._ask("POST", address, json=body).json()

    def patch(self, address: str, **body):
        return self._ask("PATCH", address, json=body).json()

    def rows(self, address: str, **filters) -> list[dict]:
        """All rows of a list, page by page."""
        page = self.get(address, **filters)
        found = page["results"]
        while page["next"]:
            page = self.session.get(page["next"]).json()
            found += page["results"]
        return found

    def save(self, address: str, file: Path, **filters) -> None:
        with self._ask("GET", address, params=filters, stream=True) as response, file.open("wb") as out:
            for part in response.iter_content(65536):
                out.write(part)

    def _ask(self, method: str, address: str, **sent) -> requests.Response:
        response = self.session.request(method, f"{self.base}/api/{address}", timeout=60, **sent)
        if response.status_code >= 400:
            raise Refused(f"{method} {address}: {response.text}")
        return response


class Forms(html.parser.HTMLParser):
    """The forms of a page: where each leads, and the hidden values it carries."""

    def __init__(self, page: requests.Response) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self._here = page.url
        self.feed(page.text)

    def handle_starttag(self, tag, attrs) -> None:
        values = dict(attrs)
        if tag == "form":
            self.found.append((requests.compat.urljoin(self._here, values.get("action") or self._here), {}))
        elif tag == "input" and values.get("type") == "hidden" and self.found:
            self.found[-1][1][values["name"]] = values.get("value") or ""


class Annotator:
    """A person with a browser: comes in by a link, agrees, and answers what is there."""

    def __init__(self, link: str, base: str) -> None:
        self.browser = requests.Session()
        # A link begins with the address that people know, which need not be the one that this script calls.
        self.page = self._open(base + "/" + link.split("/", 3)[3])

    def agree(self) -> None:
        self.page = self._open(requests.compat.urljoin(self.page.url, "/consent/"))
        self._send("/consent/", agree="on")

    def work(self, study: int) -> int:
        """Answer the study's statements until there are none; return how many."""
        self.page = self._open(requests.compat.urljoin(self.page.url, "/"))
        answered = 0
        self._send(f"/study/{study}/accept/")
        while "/task/" in self.page.url:
            self._send("/task/", **ANSWERS)
            answered += 1
        return answered

    def _send(self, address: str, **values: str) -> None:
        leads, hidden = next(form for form in Forms(self.page).found if self._is_it(form, address))
        self.page = self._checked(
            self.browser.post(leads, data=hidden | values, headers={"Referer": self.page.url}, timeout=60)
        )

    @staticmethod
    def _is_it(form: tuple[str, dict], address: str) -> bool:
        return address in form[0] and not form[0].endswith(("/return/", "/draft/"))

    def _open(self, address: str) -> requests.Response:
        return self._checked(self.browser.get(address, timeout=60))

    @staticmethod
    def _checked(page: requests.Response) -> requests.Response:
        page.raise_for_status()
        return page


def whole_study(api: Api, folder: Path, *, slug: str, wait: Callable[[], None], say=print) -> dict:
    """Do a whole study and save its files; ``wait`` is called while others work. Returns what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    grow_a_set(api, slug, wait)
    say(f"The set of {slug} has {len(api.rows('demonstrations/', group=slug, retired='false'))} demonstrations.")
    run = generate(api, slug, wait)
    say(f"Run {run['id']} wrote {run['progress']['stored']} statements.")
    study, hits = publish(api, slug, run)
    say(f"Study {study['id']} has {hits} HITs.")
    answered = annotate(api, study["id"])
    say(f"Three annotators gave {answered} answers.")
    approved = review(api, study["id"])
    agreement = agreement_of(api, study["id"], wait)
    for figure in agreement["figures"]:
        said = figure["reason"] if figure["value"] is None else round(figure["value"], 3)
        say(f"{figure['name']}: {said} (n = {figure['n_statements']})")
    files = export(api, study["id"], folder)
    say(f"Saved: {', '.join(file.name for file in files)}")
    return {
        "run": run, "study": study["id"], "hits": hits, "answered": answered, "approved": approved,
        "agreement": agreement, "files": files, "watch": api.get(f"studies/{study['id']}/watch/"),
    }  # fmt: skip


def grow_a_set(api: Api, slug: str, wait: Callable[[], None]) -> None:
    """A group of its own, some demonstrations, and one more from the model's own responses."""
    if not api.rows("groups/", slug=slug):
        api.post("groups/", slug=slug, name=slug.title(), words=f"{slug} people", naming_words=slug)
    api.post("demonstrations/", group=slug, label="benign", texts=DEMONSTRATIONS)
    trial = api.post("trials/", group=slug, label="benign", count=4, seed=7)
    while not trial["finished_at"]:
        wait()
        trial = api.get(f"trials/{trial['id']}/")
    if trial["failure"]:
        raise Refused(trial["failure"])
    good, bad = trial["responses"][0], trial["responses"][1]
    api.post(f"responses/{good['id']}/promote/")
    api.post(f"responses/{bad['id']}/mark-bad/", because="no_sense")


def generate(api: Api, slug: str, wait: Callable[[], None]) -> dict:
    cells = [{"group": slug, "label": "benign", "count": 6}]
    run = api.post("runs/", cells=cells, method="topk", topk={"max_new_tokens": 12}, seed=7)
    while run["state"] in ("queued", "running"):
        wait()
        run = api.get(f"runs/{run['id']}/")
    if run["state"] != "finished":
        raise Refused(f"The run is {run['state']}: {run['failure']}")
    return run


def agreement_of(api: Api, study: int, wait: Callable[[], None]) -> dict:
    """Worked out on the queue from the first time that somebody asks."""
    agreement = api.get(f"agreement/{study}/")
    while not agreement["made_at"]:
        if agreement["failure"]:
            raise Refused(agreement["failure"])
        wait()
        agreement = api.get(f"agreement/{study}/")
    return agreement


def publish(api: Api, slug: str, run: dict) -> tuple[dict, int]:
    """A study of statements drawn at random, once what it takes was looked at."""
    study = api.post(
        "studies/", title=f"Statements about {slug}", description="Read a text and answer nine questions.",
        reward="0.25", expected_time="00:01:45", max_assignments=3,
    )  # fmt: skip
    choice = {"groups": [slug], "run": run["id"], "a_cell": 4, "seed": 11}
    preview = api.post(f"studies/{study['id']}/choose/preview/", **choice)
    drawn = api.post(f"studies/{study['id']}/choose/publish/", **choice, fingerprint=preview["fingerprint"])
    return study, drawn["made"]


def annotate(api: Api, study: int) -> int:
    """Put a consent form in force if there is none, invite three people, and have them answer."""
    forms = api.rows("consent-forms/")
    if not any(form["published_at"] and form["version"] for form in forms):
        form = api.post("consent-forms/", version=1, **CONSENT)
        api.post(f"consent-forms/{form['id']}/publish/")
    answered = 0
    for number in range(3):
        invitation = api.post("invitations/", note=f"person {number + 1}")
        annotator = Annotator(invitation["link"], api.base)
        annotator.agree()
        answered += annotator.work(study)
    return answered


def review(api: Api, study: int) -> int:
    waiting = [row["id"] for row in api.rows("assignments/", study=study, status="submitted")]
    looked_at = api.get(f"assignments/{waiting[0]}/")
    if looked_at["annotation"]["not_understood"]:
        raise Refused("An answer is none.")
    return len(api.post("assignments/approve/", ids=waiting)["changed"])


def export(api: Api, study: int, folder: Path) -> list[Path]:
    files = []
    for name in ("annotated", "annotations", "wide"):
        for kind in ("csv", "jsonl", "parquet"):
            files.append(folder / f"{name}.{kind}")
            api.save(f"exports/{name}/{kind}/", files[-1], study=study)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="such as http://localhost:8000")
    parser.add_argument("token")
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--group", default="gardeners", help="the slug of the group; made if there is none")
    asked = parser.parse_args()
    whole_study(Api(asked.base, asked.token), asked.folder, slug=asked.group, wait=lambda: time.sleep(1))


if __name__ == "__main__":
    main()
