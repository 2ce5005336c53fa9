"""``manage.py prepare`` takes an empty database to a demo study, and keeps what is there."""

import errno
import importlib
import json
import socket
import stat
from contextlib import closing

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from annotator.models import Consent, ConsentForm, HITType, Invitation, Worker
from config.demo import load_demonstrations
from generation.demonstrating import edit
from generation.models import Demonstration, GenerationRun, TargetGroup
from tests.factories import make_consent_form, make_hit_type

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def state(settings, tmp_path):
    """A state folder of its own."""
    settings.VAR = tmp_path
    settings.STATICFILES_FINDERS = []  # what is collected is Django's business
    return tmp_path


@pytest.fixture(autouse=True)
def groups():
    """The migration's groups, also where a transactional test emptied the table before."""
    from django.apps import apps

    if not TargetGroup.objects.exists():
        importlib.import_module("generation.migrations.0002_target_groups").add_groups(apps, None)


@pytest.fixture
def port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def prepare(port, capsys):
    def call(*options):
        call_command("prepare", f"--port={port}", *options)
        return capsys.readouterr().out

    return call


def log_ins(output):
    lines = output.split("Log-ins for the workspace:\n")[1].split("\n\n")[0].splitlines()
    return dict(line.split() for line in lines)


def links(output):
    return [line.strip() for line in output.splitlines() if "/invite/" in line]


def stored():
    models = (ConsentForm, Demonstration, GenerationRun, HITType, Invitation, Worker, User, TargetGroup)
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in models}


def test_an_empty_database_becomes_a_demo_study(prepare):
    prepare()
    study = HITType.objects.get()
    assert (study.title, study.max_assignments, str(study.reward)) == ("Is this statement harmful?", 3, "0.25")
    assert ConsentForm.objects.current().version == 1
    assert study.run.progress()["wanted"] == 26
    assert Invitation.objects.count() == 3
    assert set(Demonstration.objects.values_list("label", flat=True)) == {"benign"}
    assert set(Demonstration.objects.values_list("group", flat=True)) == set(
        TargetGroup.objects.values_list("pk", flat=True)
    )


def test_the_texts_that_come_with_the_project_are_in_the_history_so_that_no_edit_loses_them(prepare):
    prepare()
    assert Demonstration.history.count() == Demonstration.objects.count()
    first = Demonstration.objects.first()
    edit(demonstration_id=first.pk, text="she sails far", by=None)
    [edited, added] = first.history.all()
    assert (added.history_type, added.text, added.origin) == ("+", first.text, "written")
    assert added.history_change_reason == "comes with Humanval"
    assert (edited.history_type, edited.text) == ("~", "she sails far")
    records = Demonstration.history.count()
    load_demonstrations()  # of which one is new again
    assert Demonstration.history.count() == records + 1


def test_the_printed_log_ins_open_the_workspace(prepare, client):
    printed = log_ins(prepare())
    assert set(printed) == {"admin", "researcher"}
    admin = authenticate(username="admin", password=printed["admin"])
    assert (admin.is_staff, admin.is_superuser) == (True, True)
    assert client.login(username="researcher", password=printed["researcher"])
    assert client.get("/admin/").status_code == 200
    researcher = User.objects.get(username="researcher")
    assert (researcher.is_superuser, [group.name for group in researcher.groups.all()]) == (False, ["researcher"])


def test_the_printed_links_let_three_annotators_in(prepare, client):
    printed = links(prepare())
    assert len(printed) == 3
    let_in = set()
    for link in printed:
        assert client.get(link.removeprefix("http://localhost:8000"))["Location"] == "/"
        let_in.add(client.session["invitation"])
    assert let_in == set(Invitation.objects.values_list("pk", flat=True))


def test_preparing_again_keeps_everything_and_prints_the_same(prepare):
    first = prepare()
    before = stored()
    assert prepare() == first
    assert stored() == before


def test_what_is_printed_says_where_to_go_and_how_to_stop(prepare):
    output = prepare()
    assert "Humanval: http://localhost:8000/\nWorkspace: http://localhost:8000/admin/\n" in output
    assert output.endswith("\nStop with Ctrl-C. What is there is kept for the next start.\n")


def test_the_log_ins_are_kept_for_their_owner_alone(prepare, state):
    printed = log_ins(prepare())
    assert json.loads((state / "logins.json").read_text()) == printed
    assert stat.S_IMODE((state / "logins.json").stat().st_mode) == 0o600


def test_there_is_no_password_that_two_installations_share(prepare, state):
    first = log_ins(prepare())
    (state / "logins.json").unlink()
    User.objects.all().delete()
    second = log_ins(prepare())
    assert not set(first.values()) & set(second.values())
    assert len({*first.values(), *second.values()}) == 4
    assert min(map(len, second.values())) >= 20


def test_a_password_that_somebody_changed_stays_changed(prepare, state):
    prepare()
    admin = User.objects.get(username="admin")
    admin.set_password("one of my own choice")
    admin.save()
    prepare()
    assert authenticate(username="admin", password="one of my own choice")


def test_users_who_are_there_keep_their_passwords_when_the_file_is_lost(prepare, state):
    printed = log_ins(prepare())
    (state / "logins.json").unlink()
    output = prepare()
    assert authenticate(username="admin", password=printed["admin"])
    assert "  made before, elsewhere; manage.py changepassword NAME sets a new password\n" in output


def test_in_another_database_the_log_ins_of_the_file_open_the_workspace(prepare):
    printed = log_ins(prepare())
    User.objects.all().delete()  # as in a new database
    assert log_ins(prepare()) == printed
    assert authenticate(username="researcher", password=printed["researcher"])


def test_a_study_of_somebodys_own_gets_no_demo_beside_it(prepare):
    make_consent_form(), make_hit_type(title="My study")
    output = prepare()
    assert [study.title for study in HITType.objects.all()] == ["My study"]
    assert links(output) == []


def test_without_the_demo_there_are_a_consent_form_and_demonstrations(prepare):
    prepare("--no-demo")
    assert (ConsentForm.objects.count(), HITType.objects.count(), Invitation.objects.count()) == (1, 0, 0)
    assert Demonstration.objects.count() >= 13 * 20


def test_a_revoked_link_is_not_printed(prepare):
    prepare()
    Invitation.objects.filter(pk=Invitation.objects.first().pk).update(revoked_at=timezone.now())
    assert len(links(prepare())) == 2


def test_nobody_is_taken_to_have_consented(prepare):
    prepare()
    assert not Consent.objects.exists()


def test_a_port_in_use_is_refused_before_anything_is_done(port):
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(CommandError) as refusal:
            call_command("prepare", f"--port={port}")
    assert str(refusal.value) == (
        f"Port {port} cannot be used ([Errno {errno.EADDRINUSE}] Address already in use). "
        "Choose another, for example: make run PORT=8001"
    )
    assert not ConsentForm.objects.exists()


@pytest.mark.parametrize("number", ["70000", "-1"])
def test_a_port_that_is_none_is_refused(number):
    with pytest.raises(CommandError, match=r"Choose another, for example: make run PORT=8001$"):
        call_command("prepare", f"--port={number}")
