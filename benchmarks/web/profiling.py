"""Where the time of a cycle goes: annotators in turn and the application in this process, without a server."""

import cProfile
import io
import itertools
import pstats
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import contextmanager
from wsgiref.util import setup_testing_defaults

from django.core.wsgi import get_wsgi_application
from django.db import connection

from benchmarks.web.annotators import Annotator, Visitor
from benchmarks.web.browser import Browser, Response

LINES = 25
SQL_CHARACTERS = 150


class InProcess:
    """Carries requests to the application, as gunicorn does, and adds up their seconds by method.

    ``waited`` are seconds on the clock, ``computed`` those of this process on a core; PostgreSQL's are in the former.
    """

    def __init__(self) -> None:
        self.application = get_wsgi_application()
        self.waited: Counter[str] = Counter()
        self.computed: Counter[str] = Counter()

    async def exchange(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "HTTP_HOST": "127.0.0.1",
            "HTTP_COOKIE": headers.get("Cookie", ""),
            "CONTENT_TYPE": headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
        }
        setup_testing_defaults(environ)
        clock, processor = time.perf_counter(), time.process_time()
        status, pairs, content = self._run(environ)
        self.waited[method] += time.perf_counter() - clock
        self.computed[method] += time.process_time() - processor
        return Response(int(status.split()[0]), [(name.lower(), value) for name, value in pairs], content.decode())

    def _run(self, environ: dict[str, object]) -> tuple[str, list[tuple[str, str]], bytes]:
        head = []
        result = self.application(environ, lambda status, headers, exc_info=None: head.extend([status, headers]))
        try:
            content = b"".join(result)
        finally:
            result.close()
        return *head, content


def profile(site: InProcess, annotators: Sequence[Annotator], *, cycles: int) -> None:
    """Print how long requests and queries took, then, of as many cycles again, the profiler's longest lists."""
    in_turn = itertools.cycle(annotators)
    print_requests("floor", site, Visitor(Browser(site.exchange)).cycle, cycles)
    print_requests("annotator", site, lambda: next(in_turn).cycle(), cycles)
    print_queries(lambda: next(in_turn).cycle(), cycles)
    profiler = cProfile.Profile()
    profiler.runcall(repeat, lambda: next(in_turn).cycle(), cycles)
    for order in ("cumulative", "tottime"):
        pstats.Stats(profiler, stream=sys.stdout).strip_dirs().sort_stats(order).print_stats(LINES)


def print_requests(name: str, site: InProcess, cycle: Callable[[], Coroutine], cycles: int) -> None:
    site.waited.clear()
    site.computed.clear()
    repeat(cycle, cycles)
    for method, seconds in site.waited.items():
        took, own = 1000 * seconds / cycles, 1000 * site.computed[method] / cycles
        print(f"{took:8.2f} ms  {name}'s {method}, {own:.2f} ms of it this process's own")


def print_queries(cycle: Callable[[], Coroutine], cycles: int) -> None:
    with timed_queries() as (seconds, times):
        repeat(cycle, cycles)
    print(f"{1000 * seconds.total() / cycles:8.2f} ms  {times.total() / cycles:4.1f} queries a cycle, without commits")
    prepared = prepared_statements()
    for sql, total in seconds.most_common():
        print(f"{1000 * total / cycles:8.2f} ms  {times[sql] / cycles:4.1f} × {shortened(prepared.get(sql, sql))}")


def repeat(cycle: Callable[[], Coroutine], cycles: int) -> None:
    for _ in range(cycles):
        run(cycle())


def run(coroutine: Coroutine) -> None:
    """Run a coroutine that never waits: inside an event loop, Django refuses to use the database."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("The coroutine waits for something.")


@contextmanager
def timed_queries():
    """Counters of the seconds and of the times of each query, by its SQL."""
    seconds, times = Counter(), Counter()

    def timed(execute, sql, parameters, many, context):
        began = time.perf_counter()
        try:
            return execute(sql, parameters, many, context)
        finally:
            seconds[sql] += time.perf_counter() - began
            times[sql] += 1

    with connection.execute_wrapper(timed):
        yield seconds, times


def prepared_statements() -> dict[str, str]:
    """What PostgreSQL has prepared on this connection, by the SQL that executes it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements")
        return {
            f"EXECUTE {name} ({', '.join(['%s'] * parameters)})": statement.partition(" AS ")[2]
            for name, statement, parameters in cursor
        }


def shortened(sql: str) -> str:
    """The verb and what follows the list of columns."""
    verb, _, rest = sql.partition(" ")
    return f"{verb} … {rest[rest.find(' FROM ') + 1 :]}"[:SQL_CHARACTERS] if verb == "SELECT" else sql[:SQL_CHARACTERS]
