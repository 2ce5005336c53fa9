"""``manage.py verify_humanval``: prove a HUMANVAL set again from the texts.

Ends with 1 if anything is wrong with the set, with 2 if an argument is, and with 3 if it could not be checked.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from analysis.humanval.freezing import WrongState
from analysis.humanval.proving import Proof, prove
from analysis.management.progress import Progress
from analysis.models import HumanvalSet, HumanvalState
from generation.readings import ReadingFailed

WRONG_ARGUMENT, COULD_NOT_CHECK = 2, 3
SHOWN = 20


class Command(BaseCommand):
    help = (
        "Embed all machine-generated statements anew and check exactly that no training statement has a cosine above "
        "the threshold with a statement of the set; besides the strata, the frozen rows and the exports."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs):
        """With a --version of our own in place of Django's, which tells Django's."""
        return super().create_parser(prog_name, subcommand, conflict_handler="resolve", **kwargs)

    def add_arguments(self, parser) -> None:
        parser.add_argument(
            "--version", type=int, help="of the set; the newest one that is frozen, or drawn, otherwise"
        )
        parser.add_argument("--out", type=Path, help="write all that was found to this JSON file")

    def handle(self, *, version: int | None, out: Path | None, **options) -> None:
        humanval_set = _chosen(version)
        if out is not None:
            _refuse_unwritable(out)
        try:
            proof = prove(humanval_set, on_step=Progress(self.stderr))
        except (WrongState, ReadingFailed) as refused:
            raise CommandError(str(refused), returncode=COULD_NOT_CHECK) from refused
        if out is not None:
            _write(out, proof)
        self.tell(proof)
        if not proof.holds:
            raise CommandError(proof.sentence)
        self.stdout.write(proof.sentence)

    def tell(self, proof: Proof) -> None:
        for problem in proof.problems[:SHOWN]:
            self.stdout.write(problem.sentence)
        if len(proof.problems) > SHOWN:
            self.stdout.write(f"… and {len(proof.problems) - SHOWN:,} more; --out FILE.json writes them all.")
        for sentence in proof.notes:
            self.stdout.write(sentence)
        if proof.not_compared:
            self.stdout.write(
                f"{proof.not_compared:,} statements were stored after the last comparison; exports for training leave "
                f"them out until manage.py build_humanval --update-removed {proof.version}."
            )
        if proof.checksum:
            self.stdout.write(f"SHA-256 of its rows: {proof.checksum}")
        self.stdout.write(f"Encoder: {proof.encoder}. {proof.seconds:,.1f} seconds.")


def _chosen(version: int | None) -> HumanvalSet:
    """That version, or the newest that is frozen, or else drawn."""
    sets = HumanvalSet.objects.select_related("reader", "hit_type")
    if version is not None:
        found = sets.filter(version=version).first()
        if found is None:
            raise CommandError(f"There is no HUMANVAL set {version}.", returncode=WRONG_ARGUMENT)
        return found
    drawn = sets.drawn()
    found = drawn.filter(state=HumanvalState.FROZEN).first() or drawn.first()
    if found is None:
        raise CommandError(
            "There is no HUMANVAL set yet. Draw one: manage.py build_humanval", returncode=COULD_NOT_CHECK
        )
    return found


def _refuse_unwritable(out: Path) -> None:
    """Before the check, which takes a while: a file is made there and taken away again."""
    was_there = out.exists()
    with _told(out):
        out.open("a").close()
        if not was_there:
            out.unlink()


def _write(out: Path, proof: Proof) -> None:
    with _told(out):
        out.write_text(json.dumps(proof.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def _told(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CommandError(
            f"{out} cannot be written: {error.strerror}. Choose another place.", returncode=WRONG_ARGUMENT
        ) from error
