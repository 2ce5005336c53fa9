"""Workers in processes of their own, which lose their connections and are killed at any moment.

Run as a program of its own: a process without threads and connections is one that can be forked. What workers
attempted and what they were told goes to its standard output, an object a line, where it outlives them.
"""

import json
import logging
import multiprocessing
import os
import random
import signal
import sys
import time
from functools import partial

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q
from django.db.models.signals import post_save

from annotator import assigning, submitting
from annotator.models import HIT, Annotation, Assignment, Worker
from tests.factories import accept, answers, lapse

SEED = 7
CUT_OFF = (None, "57P01")  # PostgreSQL's code for an error: none, as there was no time for it, or admin_shutdown

fork = multiprocessing.get_context("fork")


def main(database: str) -> None:
    """Keep a process for each worker alive until the study is complete; fail when one of them fails."""
    connection.settings_dict["NAME"] = database
    logging.disable()
    post_save.connect(have_an_accident_now_and_then, sender=Annotation)
    acts = {f"worker {worker.pk}": partial(work, worker) for worker in Worker.objects.all()}
    connection.close()
    keep_alive(acts | {"expirer": expire, "cutter": cut_connections})


def keep_alive(acts: dict) -> None:
    """Run each act in a process until it is done, while killing any of them over and over."""
    random.seed(SEED)
    lives = dict.fromkeys(acts, 1)
    processes = {name: start(f"{name}, life 1", act) for name, act in acts.items()}
    while processes:
        time.sleep(0.1)
        random.choice(list(processes.values())).kill()
        for name, process in list(processes.items()):
            exitcode = process.exitcode
            if exitcode == 0:
                del processes[name]
            elif exitcode == -signal.SIGKILL:
                tell(event="killed", by=process.name)
                lives[name] += 1
                processes[name] = start(f"{name}, life {lives[name]}", acts[name])
            elif exitcode is not None:
                for other in processes.values():
                    other.kill()
                sys.exit(f"{process.name} failed")


def start(name: str, act) -> multiprocessing.Process:
    process = fork.Process(name=name, target=run, args=[act])
    process.start()
    return process


def run(act) -> None:
    random.seed(f"{SEED} {fork.current_process().name}")
    act()


def tell(**line) -> None:
    """In one write, so that lines of processes stay apart and a kill leaves no half of one."""
    os.write(sys.stdout.fileno(), json.dumps(line).encode() + b"\n")


# --- A worker -----------------------------------------------------------------------------


def work(worker: Worker) -> None:
    while not request(is_complete):
        assignment = request(partial(accept_or_none, worker))
        if assignment:
            do(assignment, worker)
        else:
            time.sleep(1)


def is_complete() -> bool:
    return not HIT.objects.filter(Q(free_places__gt=0) | Q(open_assignments__gt=0)).exists()


def accept_or_none(worker: Worker) -> Assignment | None:
    try:
        return accept(worker)
    except assigning.NoHITLeft:
        return None


def do(assignment: Assignment, worker: Worker) -> None:
    roll = random.random()
    if roll < 0.1:
        if request(partial(assigning.return_assignment, assignment=assignment)):
            tell(event="returned", assignment=assignment.pk)
    elif roll < 0.2:
        request(partial(lapse, assignment))  # and forgotten
        if worker.pk % 6 == 0:
            sys.exit()  # one of the ten who then never come back
    elif roll < 0.35:
        request(partial(lapse, assignment))
        time.sleep(0.05)
        submit(assignment)
    elif roll < 0.4:
        submit(assignment, not_understood=True)
    elif roll < 0.7 and worker.pk % 4 == 0:  # few: it takes a second connection, of which there are a hundred for all
        submit_and_accept_twice_at_once(assignment, worker)
    else:
        submit(assignment)


def submit(assignment: Assignment, **changes) -> None:
    """Submit answers that carry the name of this process."""
    attempt = {"by": fork.current_process().name, "assignment": assignment.pk}
    given = answers(other_groups=attempt["by"], **changes)
    tell(event="attempted", **attempt)
    outcome = request(partial(submitting.submit, assignment=assignment, answers=given))
    tell(event="acknowledged", **attempt, outcome=outcome.value)


def submit_and_accept(assignment: Assignment, worker: Worker) -> None:
    submit(assignment)
    request(partial(accept_or_none, worker))


def submit_and_accept_twice_at_once(assignment: Assignment, worker: Worker) -> None:
    connection.close()  # or both would talk over it
    double = start(f"{fork.current_process().name}, double", partial(submit_and_accept, assignment, worker))
    submit_and_accept(assignment, worker)
    double.join()
    if double.exitcode not in (0, -signal.SIGKILL):
        sys.exit(f"{double.name} failed")


def request(act):
    """What the act returns, asked for again, as people do, whenever the connection broke."""
    while True:
        try:
            return act()
        except (OperationalError, InterfaceError) as error:
            if getattr(error.__cause__, "pgcode", None) not in CUT_OFF:
                raise  # a deadlock, say
            connection.close()
            tell(event="cut", by=fork.current_process().name)


# --- What happens to them -----------------------------------------------------------------


def have_an_accident_now_and_then(**_) -> None:
    """At the two worst moments of a submit: all but stored, and stored but not acknowledged."""
    if random.random() < 0.15:
        accident = random.choice([be_killed, be_cut_off])
        random.choice([accident, partial(transaction.on_commit, accident)])()


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def be_cut_off() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def cut_connections() -> None:
    while not request(is_complete):
        request(cut_anybody_off)
        time.sleep(0.05)


def cut_anybody_off() -> None:
    """Cut one connection, whatever goes over it just then; none that waits for a lock, as a deadlock is to be seen."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT pg_terminate_backend((
                SELECT pid FROM pg_stat_activity
                WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
                    AND wait_event_type IS DISTINCT FROM 'Lock'
                ORDER BY random() LIMIT 1
            ))
            """
        )


def expire() -> None:
    """The periodic task, far too often."""
    while not request(is_complete):
        request(assigning.expire_lapsed)
        time.sleep(0.02)
