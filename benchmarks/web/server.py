"""Where the benchmark runs: cores of its own, a database of its own, and gunicorn with the Procfile's options."""

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg2

ROOT = Path(__file__).resolve().parents[2]
CORES = 2
START_SECONDS = 60
STOP_SECONDS = 30
EXCEPTIONS, EXCEPTION_CHARACTERS = 3, 700


@dataclass(frozen=True)
class Cores:
    """Those of the server and its database, and those of the load; the same where there are too few."""

    server: frozenset[int]
    load: frozenset[int]

    @classmethod
    def split(cls) -> "Cores":
        """Two of this process's cores for the server, the others for the load; all for both if there are just two."""
        if not hasattr(os, "sched_getaffinity"):  # macOS lets nobody choose
            return cls(frozenset(), frozenset())
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) <= CORES:
            return cls(frozenset(allowed), frozenset(allowed))
        return cls(frozenset(allowed[:CORES]), frozenset(allowed[CORES:]))


def stay_on(cores: frozenset[int]) -> None:
    """Keep this process, and whatever it starts from now on, on these cores."""
    if cores:
        os.sched_setaffinity(0, cores)


Backends = Callable[[], list[psutil.Process]]


@dataclass
class Watch:
    """The processes of the server and of its database: kept on their cores, and what they compute added up."""

    server: psutil.Process
    backends: Backends
    cores: frozenset[int]
    seconds: dict[int, float] = field(default_factory=dict)
    saw_database: bool = False
    refused: bool = False

    def look(self) -> None:
        backends = self.backends()
        self.saw_database |= bool(backends)
        for process in (self.server, *self.server.children(recursive=True), *backends):
            try:
                times = process.cpu_times()
                self.seconds[process.pid] = times.user + times.system
                if self.cores:
                    process.cpu_affinity(sorted(self.cores))
            except psutil.NoSuchProcess:
                continue  # it has ended meanwhile
            except psutil.AccessDenied:
                self.refused = True

    @property
    def total_seconds(self) -> float:
        """What all processes seen so far have computed, those included that have ended."""
        return sum(self.seconds.values())

    @property
    def holds_database(self) -> bool:
        """Whether the database is on this machine, and on the same cores as the server."""
        return self.saw_database and not self.refused


@dataclass(frozen=True)
class Site:
    """A database and a state folder of its own; ``environment`` is what processes find them by."""

    environment: dict[str, str]
    state: Path
    port: int
    backends: Backends

    @property
    def log(self) -> Path:
        return self.state / "gunicorn.log"

    def last_exceptions(self) -> list[str]:
        """The ends of the last few exceptions that the server logged."""
        lines = self.log.read_text().splitlines()
        return [line[-EXCEPTION_CHARACTERS:] for line in lines if '"exception"' in line][-EXCEPTIONS:]

    def run(self, *arguments: object) -> str:
        """What ``python -m benchmarks.web.study`` prints."""
        command = [sys.executable, "-m", "benchmarks.web.study", *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, text=True, capture_output=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def served(self, cores: frozenset[int]) -> Iterator[Watch]:
        """Served by gunicorn as the Procfile has it; what it logged is told if it does not start."""
        with self.log.open("w") as out:
            process = subprocess.Popen(
                web_command(self.port),
                cwd=ROOT,
                env=self.environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_for("gunicorn", lambda: process.poll() is not None or listens(self.port), START_SECONDS)
            if process.poll() is not None:
                raise SystemExit(f"gunicorn did not start:\n{self.log.read_text()}")
            yield Watch(psutil.Process(process.pid), self.backends, cores)
        finally:
            stop(process)


@contextlib.contextmanager
def own_site() -> Iterator[Site]:
    """A site with nothing in it, on a database of its own: of the server that DATABASE_URL names, or the embedded one.

    The embedded server inherits the cores of whoever starts it.
    """
    port = free_port()
    state = Path(tempfile.mkdtemp(prefix="humanval-web-"))
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HUMANVAL_") and name not in ("DEBUG", "ALLOWED_HOSTS", "CELERY_BROKER_URL")
    }
    environment |= {
        "DJANGO_SETTINGS_MODULE": "benchmarks.web.settings",
        "HUMANVAL_VAR": str(state),
        "HUMANVAL_HTTPS": "0",
        "HUMANVAL_SITE_URL": f"http://127.0.0.1:{port}",
    }
    try:
        if url := os.environ.get("DATABASE_URL"):
            with own_database(url) as (own_url, backends):
                yield Site(environment | {"DATABASE_URL": own_url}, state, port, backends)
        else:
            yield Site(environment, state, port, partial(embedded_backends, state))
    finally:
        wait_for("the database's end", lambda: not postmaster(state).exists(), STOP_SECONDS)
        shutil.rmtree(state, ignore_errors=True)


@contextlib.contextmanager
def own_database(url: str) -> Iterator[tuple[str, Backends]]:
    """The address of a new database, which is dropped at the end, and what lists the processes that serve it."""
    name = f"humanval_web_{os.getpid()}"
    with contextlib.closing(psycopg2.connect(urlunsplit(urlsplit(url)._replace(path="/postgres")))) as server:
        server.autocommit = True
        with server.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
            try:
                yield urlunsplit(urlsplit(url)._replace(path=f"/{name}")), partial(backends_of, cursor, name)
            finally:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def backends_of(cursor, database: str) -> list[psutil.Process]:
    """The processes that serve a database, if they run on this machine: PostgreSQL titles them with its name."""
    cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [database])
    found = []
    for (pid,) in cursor.fetchall():
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended, or it is another machine's number
            process = psutil.Process(pid)
            if database in " ".join(process.cmdline()):
                found.append(process)
    return found


def embedded_backends(state: Path) -> list[psutil.Process]:
    """All processes of the embedded PostgreSQL, which serves nobody else."""
    try:
        server = psutil.Process(int(postmaster(state).read_text().partition("\n")[0]))
        return [server, *server.children()]
    except (FileNotFoundError, psutil.NoSuchProcess):
        return []


def postmaster(state: Path) -> Path:
    """The file that is there while the embedded PostgreSQL runs."""
    return state / "postgres" / "postmaster.pid"


def web_command(port: int) -> list[str]:
    """The Procfile's web line."""
    lines = (ROOT / "Procfile").read_text().splitlines()
    web = next(line.removeprefix("web:") for line in lines if line.startswith("web:"))
    program, *options = shlex.split(web.replace("${PORT}", str(port)))
    return [sys.executable, "-m", program, *options]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def wait_for(what: str, condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"Waited {seconds} s in vain for {what}.")
        time.sleep(0.1)
