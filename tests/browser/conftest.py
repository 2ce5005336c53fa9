"""A browser and a running Humanval, as a newcomer starts it: ``make run``."""

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOTS = ROOT / "var" / "test" / "screenshots"
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
CHROMIUM_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
MINUTES = 60
COMPLAINTS: list[str] = []


@dataclass
class Site:
    """A running Humanval with what its start printed."""

    url: str
    invite_links: list[str]
    logins: dict[str, str]
    process: subprocess.Popen
    state: Path
    environment: dict[str, str]


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium was found: install Debian's chromium for the browser tests")
    from playwright.sync_api import sync_playwright

    # Playwright keeps a loop in this thread; between its calls tests use the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def no_complaints():
    """What browsers complained of during the test, by ``visiting.new_context``."""
    COMPLAINTS.clear()
    yield
    assert COMPLAINTS == []


@pytest.fixture(scope="module")
def site(browser) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="humanval-") as state, own_database() as database:
        output = Path(state) / "output.txt"
        port = free_port()
        environment = {**os.environ, **database, "HUMANVAL_VAR": state}
        for name in ("HUMANVAL_HTTPS", "DJANGO_SETTINGS_MODULE", "DJANGO_ALLOW_ASYNC_UNSAFE"):
            environment.pop(name, None)
        with output.open("w") as out:
            process = subprocess.Popen(
                ["make", "run", f"PORT={port}", f"HUMANVAL_VAR={state}"],
                cwd=ROOT,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_for(lambda: "Listening at" in output.read_text() or process.poll() is not None, 10 * MINUTES)
            text = output.read_text()
            assert process.poll() is None, text
            yield Site(
                url=f"http://localhost:{port}",
                invite_links=re.findall(r"^  (http\S+/invite/\S+)$", text, re.MULTILINE),
                logins=dict(re.findall(r"^  (admin|researcher) +(\S+)$", text, re.MULTILINE)),
                process=process,
                state=Path(state),
                environment=environment,
            )
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
                process.wait(timeout=MINUTES)
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            shutil.copy(output, SCREENSHOTS / "make-run.txt")
            wait_for(lambda: not (Path(state) / "postgres" / "postmaster.pid").exists(), MINUTES)


@contextmanager
def own_database() -> Iterator[dict[str, str]]:
    """A database of its own on the server that DATABASE_URL names; the embedded one without."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        yield {}
        return
    name = f"humanval_browser_{os.getpid()}"
    server = psycopg2.connect(urlunsplit(urlsplit(url)._replace(path="/postgres")))
    server.autocommit = True
    with server.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    try:
        yield {"DATABASE_URL": urlunsplit(urlsplit(url)._replace(path=f"/{name}"))}
    finally:
        with server.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
        server.close()


def follow(page, control) -> None:
    """Click what leads to another page and wait until that is shown; the next step would else meet the old one."""
    with page.expect_event("load"):
        control.click()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, seconds: float):
    """Return what ``condition`` returns once that is true; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.2)
    pytest.fail(f"waited {seconds} s in vain for {condition}")
