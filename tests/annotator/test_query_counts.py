"""What accepting and submitting ask of the database: little, and no more at 100,000 HITs than at 100."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotator.models import Assignment
from tests.factories import answers, log_in, make_group, make_hit_type

pytestmark = pytest.mark.django_db

ACCEPT, SUBMIT_AND_ACCEPT, SEE = 6, 12, 5


def fill(study, *, hits, workers):
    """So many HITs of the study, and of each worker 40 submitted assignments; by SQL, since there are many."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")  # without the triggers, which count one by one
        cursor.execute(
            "INSERT INTO generation_generation (group_id, label, method, text, hypotheses, finish_reason) "
            "SELECT %s, CASE number %% 2 WHEN 0 THEN 'benign' ELSE 'toxic' END, 'topk', "
            "'number ' || number || %s, '[]', '' "
            "FROM generate_series(1, %s) number",
            [make_group().pk, f" of study {study.pk}", hits],
        )
        cursor.execute(
            "INSERT INTO annotator_hit (hit_type_id, generation_id, prompt_label, is_check, max_assignments, "
            "held_places, open_assignments, expires_at) "
            "SELECT %s, id, label, false, 3, 0, 0, now() + interval '1 day' FROM generation_generation",
            [study.pk],
        )
        cursor.execute(
            "INSERT INTO annotator_worker "
            "(pseudonym, blocked_reason, pay_reference, imported_hash, covers_statements, uses_shortcuts) "
            "SELECT %s || '-' || number, '', '', '', true, true FROM generate_series(1, %s) number",
            [study.pk, workers],
        )
        cursor.execute(
            "INSERT INTO annotator_consent (worker_id, form_id) "
            "SELECT worker.id, form.id FROM annotator_worker worker, annotator_consentform form "
            "WHERE pseudonym LIKE %s || '-%%'",
            [study.pk],
        )
        cursor.execute(
            "INSERT INTO annotator_assignment (key, hit_id, worker_id, consent_id, status, holds_place, reward, "
            "accepted_at, deadline, submitted_at, rejection_reason) "
            "SELECT gen_random_uuid(), hit.id, consent.worker_id, consent.id, 'submitted', true, 0.25, "
            "now() - interval '3 days', now() - interval '2 days', now() - interval '3 days', '' "
            "FROM annotator_consent consent, LATERAL (SELECT id FROM annotator_hit WHERE hit_type_id = %s "
            "AND id %% %s = consent.id %% %s LIMIT 40) hit ON CONFLICT DO NOTHING",
            [study.pk, max(1, hits // 50), max(1, hits // 50)],
        )
        cursor.execute("SET LOCAL session_replication_role = origin")
        for table in ("generation_generation", "annotator_hit", "annotator_worker", "annotator_assignment"):
            cursor.execute(f"ANALYZE {table}")


def queries_of(request):
    """The queries of a request.

    Not its savepoints, which in production are the transaction itself, and not what is prepared once a connection.
    """
    with CaptureQueriesContext(connection) as context:
        response = request()
    assert response.status_code in (200, 302), response.content
    return [query["sql"] for query in context if not re.search("SAVEPOINT|^PREPARE", query["sql"])]


def a_cycle(client, study):
    """The statements of accepting, seeing and submitting as a browser does it, the first statement being done."""
    accept = queries_of(lambda: client.post(f"/study/{study.pk}/accept/", {"rested": "1"}))
    task = f"/task/{Assignment.objects.accepted().get(worker=client.worker).key}/"
    see = queries_of(lambda: client.get(task))
    submit = queries_of(lambda: client.post(task, answers()))
    return {"accept": accept, "see": see, "submit": submit}


@pytest.fixture
def cycle_at(client):
    """What a cycle asks of the database with so many HITs in the study."""

    def cycle_at(hits, workers):
        study = make_hit_type(daily_cap=1000)
        client.worker = log_in(client)
        fill(study, hits=hits, workers=workers)
        a_cycle(client, study)
        Assignment.objects.accepted().filter(worker=client.worker).update(
            status="returned", holds_place=False, given_back_at="2026-01-01T00:00Z"
        )
        return a_cycle(client, study)

    return cycle_at


def scans(sql):
    """The tables that a statement reads from end to end."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + sql)
        return set(re.findall(r"Seq Scan on (\w+)", "\n".join(line for (line,) in cursor.fetchall())))


def numbers(cycle):
    return {name: len(queries) for name, queries in cycle.items()}


def test_a_cycle_at_a_hundred_thousand_hits_asks_what_it_asks_at_a_hundred_and_reads_no_table_from_end_to_end(
    cycle_at,
):
    few = cycle_at(100, workers=5)
    many = cycle_at(100_000, workers=1000)
    assert numbers(many) == numbers(few)
    assert numbers(many)["accept"] <= ACCEPT
    assert numbers(many)["submit"] <= SUBMIT_AND_ACCEPT
    assert numbers(many)["see"] <= SEE
    scanned = {table for queries in many.values() for sql in queries for table in scans(sql)}
    assert not scanned & {"annotator_hit", "annotator_assignment", "generation_generation"}
