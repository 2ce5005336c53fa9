"""What has to be done inside Django, each in a process of its own: ``python -m benchmarks.io.within WHAT FILE``.

Each prints a JSON object. ``import`` and ``export`` are the project's own, ``copy-in`` and ``copy-out`` PostgreSQL's
of the same rows; ``memory_mb`` is what the process held at most, ``grown_mb`` by how much that is more than before.
"""

import argparse
import json
import logging
import resource
import time
from pathlib import Path
from statistics import median

import django
from django.core.management import call_command

django.setup()

from django.contrib import admin  # noqa: E402 - models can be imported once Django is set up
from django.contrib.auth.models import User  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.db.models import TextField  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import NoReverseMatch, get_resolver, reverse  # noqa: E402
from django.utils import timezone  # noqa: E402

from analysis.reports import storing  # noqa: E402
from analysis.reports.catalogue import PAGES, REPORTS  # noqa: E402
from annotator.models import ConsentForm, HITType  # noqa: E402
from benchmarks.io import data, filling  # noqa: E402
from generation.models import TargetGroup  # noqa: E402

FLOOR = "admin:password_change_done"
ROUNDS = 7
STATEMENT_OF_BARE = "prompt, generation, generation_method, target_group, prompt_label, roberta_prediction"

# What the project's tables of prompts and statements are indexed by.
BARE = """
CREATE TABLE bare (
    id bigserial PRIMARY KEY, prompt text, generation text, generation_method text, target_group text,
    prompt_label smallint, roberta_prediction double precision, shuffle double precision DEFAULT random()
);
CREATE INDEX ON bare (md5(prompt), target_group, prompt_label);
CREATE UNIQUE INDEX ON bare (md5(generation), md5(prompt), target_group, prompt_label, generation_method);
CREATE INDEX ON bare (target_group, prompt_label, generation_method, shuffle);
CREATE INDEX ON bare USING gin (to_tsvector('simple', generation));
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=ACTS)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--statements", type=int, default=filling.FULL.statements)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    print(json.dumps(ACTS[options.what](options)))


def prepare(options) -> dict:
    """Make the database, and the file."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    groups = list(TargetGroup.objects.values_list("slug", flat=True))
    data.write_train(options.file, statements=options.statements, groups=groups, seed=options.seed)
    return {"bytes": options.file.stat().st_size}


def copy_in(options) -> dict:
    with connection.cursor() as cursor, options.file.open("rb") as file:
        cursor.execute(BARE)
        return timed(lambda: cursor.copy_expert(f"COPY bare ({STATEMENT_OF_BARE}) FROM STDIN CSV HEADER", file))


def copy_out(options) -> dict:
    with connection.cursor() as cursor, options.file.open("wb") as file:
        copy = f"COPY (SELECT {STATEMENT_OF_BARE} FROM bare ORDER BY id) TO STDOUT CSV HEADER"
        return timed(lambda: cursor.copy_expert(copy, file))


def import_train(options) -> dict:
    return timed(lambda: call_command("import", "train", str(options.file), verbosity=0))


def export_train(options) -> dict:
    return timed(lambda: call_command("export", "train", str(options.file), verbosity=0))


def timed(work) -> dict:
    before, started = memory_mb(), time.perf_counter()
    work()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "memory_mb": memory_mb(), "grown_mb": memory_mb() - before}


def memory_mb() -> float:
    """What this process held at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def pages(options) -> dict:
    """Add the work on the statements; return the median milliseconds of each page, and of the floor beside it."""
    logging.disable()  # pages that refuse are met on the way to those that do not
    client = make_work(options.statements)
    timed_pages = {}
    for address in workspace_addresses(client):
        page, floor = zip(*((ms(client, address), ms(client, reverse(FLOOR))) for _ in range(ROUNDS)), strict=True)
        timed_pages[address] = {"ms": round(median(page), 1), "floor_ms": round(median(floor), 1)}
    return timed_pages


def make_work(statements: int) -> Client:
    """HITs, annotations and payments in the shares of the released dataset; return the browser of an admin."""
    share = statements / filling.FULL.statements
    size = filling.Size(statements=statements, hits=round(filling.FULL.hits * share), prompts=0)
    parts = (field.name for field in ConsentForm._meta.fields if isinstance(field, TextField))
    with transaction.atomic():
        form = ConsentForm.objects.create(
            version=1, title="Before you begin", published_at=timezone.now(), **dict.fromkeys(parts, "You judge texts.")
        )
        study = HITType.objects.create(title="Is this statement harmful?", description="Nine questions.")
        filling.fill(size, hit_type_id=study.pk, form_id=form.pk)
    for name in REPORTS:
        storing.work_out(stored=storing.look_at(name, {}).pk)
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("bench"))
    return client


def workspace_addresses(client: Client) -> list[str]:
    """Every page of the workspace that takes no parameter, and those of the newest row of each model."""
    found = [route for route in routes(get_resolver().url_patterns) if route.startswith("admin/") and "<" not in route]
    addresses = [f"/{route}" for route in found if "(" not in route]
    for model in admin.site._registry:
        if newest := model._default_manager.order_by("-pk").first():
            name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
            addresses += [reverse(f"{name}_change", args=[newest.pk]), reverse(f"{name}_history", args=[newest.pk])]
    addresses += [
        address for name in ("watch", "choose", "extend", "stop") if (address := address_of(f"admin:annotator_{name}"))
    ]
    addresses += [reverse("report", args=[page]) for page in PAGES]
    addresses.append(f"{reverse('admin:generation_generation_changelist')}?q=herons+garden+777")
    return [address for address in dict.fromkeys(addresses) if client.get(address).status_code == 200]


def routes(patterns, before: str = ""):
    for pattern in patterns:
        here = before + str(pattern.pattern)
        yield from routes(pattern.url_patterns, here) if hasattr(pattern, "url_patterns") else [here]


def address_of(name: str) -> str | None:
    """The page of the newest study with this name, if there is one."""
    try:
        return reverse(name, args=[HITType.objects.latest("pk").pk])
    except NoReverseMatch:
        return None


def ms(client: Client, address: str) -> float:
    started = time.perf_counter()
    client.get(address).content  # noqa: B018 - of a stream, this would be what reads it
    return 1000 * (time.perf_counter() - started)


ACTS = {
    "prepare": prepare,
    "copy-in": copy_in,
    "copy-out": copy_out,
    "import": import_train,
    "export": export_train,
    "pages": pages,
}

if __name__ == "__main__":
    main()
