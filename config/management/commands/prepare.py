"""``manage.py prepare``: everything between a fresh clone and a running server, safe to repeat.

Migrates, collects the static files, makes the log-ins and the demo study on first use, and
prints where to go. What is there is kept.
"""

import json
import secrets
import socket

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from annotator import inviting
from annotator.models import ConsentForm, HITType, Invitation
from config import demo
from config.roles import RESEARCHER
from config.state import write_private

LOGINS = "logins.json"


class Command(BaseCommand):
    help = "Set Humanval up on this machine and print its addresses and log-ins."

    def add_arguments(self, parser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="the port that the web server will listen on")
        parser.add_argument("--no-demo", action="store_true", help="do not make the demo study")

    def handle(self, *, port: int, no_demo: bool, **options) -> None:
        check_port(port)
        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        if not ConsentForm.objects.exists() and not HITType.objects.exists():
            with transaction.atomic():
                demo.make_consent_form()
                demo.load_demonstrations()
                if not no_demo:
                    demo.make_study()
        logins = make_logins()
        self.stdout.write(
            f"\nHumanval: {settings.SITE_URL}/\nWorkspace: {settings.SITE_URL}/admin/\n\nLog-ins for the workspace:"
        )
        for name, password in logins.items():
            self.stdout.write(f"  {name:<11} {password}")
        if not logins:
            self.stdout.write("  made before, elsewhere; manage.py changepassword NAME sets a new password")
        self.stdout.write("\nInvite links, one an annotator (open each in a browser window of its own):")
        for invitation in Invitation.objects.filter(note__startswith=demo.INVITATION_NOTE, revoked_at=None).order_by(
            "pk"
        ):
            self.stdout.write(f"  {inviting.link(invitation)}")
        self.stdout.write("\nStop with Ctrl-C. What is there is kept for the next start.\n")


def check_port(port: int) -> None:
    """Refuse a port that somebody listens on before anything is started."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise CommandError(
                f"Port {port} cannot be used ({error}). Choose another, for example: make run PORT=8001"
            ) from error


def make_logins() -> dict[str, str]:
    """Make the users that are missing; return the generated passwords by user name.

    The file keeps them for its owner alone. A user who is there already keeps their password,
    and one who changed it has it no more here.
    """
    path = settings.VAR / LOGINS
    passwords = json.loads(path.read_text()) if path.exists() else {}
    users = get_user_model().objects
    with transaction.atomic():
        for name in ("admin", RESEARCHER):
            if users.filter(username=name).exists():
                continue
            passwords.setdefault(name, secrets.token_urlsafe(15))
            user = users.create_user(name, password=passwords[name], is_staff=True, is_superuser=name == "admin")
            if name == RESEARCHER:
                user.groups.add(Group.objects.get(name=RESEARCHER))
        write_private(path, json.dumps(passwords, indent=2))
    return passwords
