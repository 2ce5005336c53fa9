"""Settings are documented and safe by default; secrets are private and made once."""

import ast
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.state import StateFolderError, make_state_folder, secret, write_private

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTATION = (ROOT / "docs" / "settings.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| (.+?) \| ", DOCUMENTATION, flags=re.MULTILINE))
OF_MAKE = {"PORT", "CUDA", "PYTHON", "ARGS"}


def environment_of_the_settings():
    """Each variable that config/settings.py reads, with its default."""
    tree = ast.parse((ROOT / "config" / "settings.py").read_text())
    reads = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "env"
        and node.func.attr != "db_url_config"
    ]
    return {node.args[0].value: ast.literal_eval(node.keywords[0].value) for node in reads}


def run(code, **environment):
    """Run Python with a bare environment; a database is named, so that none is started, and not connected to."""
    bare = {"PATH": os.environ["PATH"], "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}
    return subprocess.run(
        [sys.executable, *code], cwd=ROOT, env=bare | environment, text=True, capture_output=True, timeout=60
    )


# --- Documentation


def test_every_variable_that_the_settings_read_is_documented():
    assert environment_of_the_settings().keys() - ROWS.keys() == set()


def test_every_documented_variable_is_read():
    makefile = (ROOT / "Makefile").read_text() + (ROOT / "config" / "install.py").read_text()
    assert {name for name in OF_MAKE if name not in makefile} == set()
    assert ROWS.keys() - environment_of_the_settings().keys() == OF_MAKE


def test_the_settings_read_the_environment_through_that_block_alone():
    assert "environ[" not in (ROOT / "config" / "settings.py").read_text()
    assert "getenv" not in (ROOT / "config" / "settings.py").read_text()


@pytest.mark.parametrize(("name", "default"), environment_of_the_settings().items())
def test_the_documented_default_is_the_one_in_force(name, default):
    if default in ("", []):
        assert ROWS[name].startswith(("none", "made", "`var` in the repository"))
    else:
        shown = {True: "on", False: "off"}.get(default, default) if isinstance(default, bool) else default
        shown = ",".join(shown) if isinstance(shown, list) else str(shown)
        assert ROWS[name].strip("`") == shown


# --- Safe by default


def test_production_settings_pass_djangos_own_check(tmp_path):
    done = run(["manage.py", "check", "--deploy", "--fail-level", "WARNING"], HUMANVAL_VAR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "System check identified no issues (0 silenced).\n"), done.stderr


def test_cookies_are_secure_and_http_is_redirected_unless_told_otherwise(tmp_path):
    code = (
        "import json; from config import settings as s; print(json.dumps({name: getattr(s, name) for name in dir(s) "
        "if name.startswith(('SECURE_', 'SESSION_COOKIE', 'CSRF_COOKIE', 'DEBUG', 'X_FRAME'))}))"
    )
    by_default = json.loads(run(["-c", code], HUMANVAL_VAR=str(tmp_path)).stdout)
    assert by_default == {
        "CSRF_COOKIE_HTTPONLY": True,
        "CSRF_COOKIE_SAMESITE": "Lax",
        "CSRF_COOKIE_SECURE": True,
        "DEBUG": False,
        "SECURE_HSTS_INCLUDE_SUBDOMAINS": True,
        "SECURE_HSTS_PRELOAD": True,
        "SECURE_HSTS_SECONDS": 31536000,
        "SECURE_PROXY_SSL_HEADER": ["HTTP_X_FORWARDED_PROTO", "https"],
        "SECURE_REFERRER_POLICY": "same-origin",
        "SECURE_SSL_REDIRECT": True,
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Lax",
        "SESSION_COOKIE_SECURE": True,
        "X_FRAME_OPTIONS": "DENY",
    }
    at_home = json.loads(run(["-c", code], HUMANVAL_VAR=str(tmp_path), HUMANVAL_HTTPS="0").stdout)
    changed = {name for name in by_default if by_default[name] != at_home[name]}
    assert changed == {
        "CSRF_COOKIE_SECURE",
        "SECURE_HSTS_INCLUDE_SUBDOMAINS",
        "SECURE_HSTS_PRELOAD",
        "SECURE_HSTS_SECONDS",
        "SECURE_PROXY_SSL_HEADER",
        "SECURE_SSL_REDIRECT",
        "SESSION_COOKIE_SECURE",
    }


def test_over_http_a_page_is_redirected_to_https(client, settings):
    settings.SECURE_SSL_REDIRECT = True
    response = client.get("/declined/")
    assert (response.status_code, response["Location"]) == (301, "https://testserver/declined/")


def test_a_state_folder_that_cannot_be_made_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "var"
    done = run(["manage.py", "check"], HUMANVAL_VAR=str(folder))
    assert done.returncode == 1
    assert done.stderr == (
        f"The state folder {folder} cannot be made: Not a directory. Set HUMANVAL_VAR to a folder that can.\n"
    )


# --- Secrets


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_for_their_owner_alone_long_and_differ(tmp_path):
    values = {name: secret(tmp_path, name) for name in ("secret_key", "worker_hash_salt")}
    assert values["secret_key"] != values["worker_hash_salt"]
    for name, value in values.items():
        assert (mode(tmp_path / name), len(value)) == (0o600, 64)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret_key", "worker_hash_salt"]


def test_secrets_stay_the_same(tmp_path):
    assert secret(tmp_path, "secret_key") == secret(tmp_path, "secret_key")


def test_two_installations_have_different_secrets(tmp_path):
    one, other = make_state_folder(tmp_path / "one"), make_state_folder(tmp_path / "other")
    assert secret(one, "secret_key") != secret(other, "secret_key")


def test_processes_that_start_at_once_agree_on_one_secret(tmp_path):
    code = (
        "import sys; from pathlib import Path; from config.state import secret; print('ready', flush=True); "
        "sys.stdin.read(1); print(secret(Path(sys.argv[1]), 'secret_key'))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("x")
        process.stdin.flush()
    agreed = {process.communicate(timeout=30)[0] for process in processes}
    assert agreed == {secret(tmp_path, "secret_key") + "\n"}
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_who_comes_second_takes_the_secret_of_who_came_first(tmp_path, monkeypatch):
    (tmp_path / "secret_key").write_text("the first one's")
    monkeypatch.setattr(Path, "exists", lambda self: False)  # as it was a moment ago
    assert secret(tmp_path, "secret_key") == "the first one's"


def test_a_secret_that_cannot_be_read_is_said_in_a_sentence(tmp_path):
    (tmp_path / "secret_key").mkdir()
    with pytest.raises(StateFolderError) as refusal:
        secret(tmp_path, "secret_key")
    assert str(refusal.value) == (
        f"{tmp_path}/secret_key cannot be made or read: Is a directory. Run Humanval as the user who owns {tmp_path}, "
        "or set HUMANVAL_VAR to a folder of your own."
    )


def test_a_private_file_is_replaced_whole_and_stays_private(tmp_path):
    path = tmp_path / "logins.json"
    path.write_text("a longer text that was there before")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["logins.json"]
