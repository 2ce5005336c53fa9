"""Fills a migrated database with as much as the released dataset holds, in seconds: by SQL, past the triggers.

Benign sentences of the real length, the same at every run: what a row says follows from its number. What triggers
keep is written as they would have kept it.
"""

from dataclasses import dataclass

from django.db import connection

PLACES = 3
WORKERS = 150
TO_REVIEW = 2_000

PEOPLE = ("my aunt", "our neighbor", "the baker", "her sister", "a friend of mine", "the choir", "his teacher")
ACTS = (
    "drives a crane", "repairs old radios", "plants tomatoes", "measures the depth", "opens the bakery",
    "carries the letters", "sings in three languages", "paints the fences", "counts the herons", "tunes the piano",
    "reads the newspaper",
)  # fmt: skip
PLACES_TO_BE = (
    "at the harbor", "on the roof", "by the lake", "in the old library", "behind the station", "near the mill",
    "under the bridge", "across the valley", "at the night school", "in the garden of the museum", "along the river",
    "on the second floor", "next to the town hall",
)  # fmt: skip
TIMES = (
    "every thursday before the market closes", "whenever it rains for more than an hour", "since the first of may",
    "as long as there is light enough to see", "until somebody calls from the other bank",
)  # fmt: skip
DEMONSTRATIONS_A_PROMPT = 6


@dataclass(frozen=True)
class Size:
    """How many rows there are in all when the database is filled."""

    statements: int
    hits: int
    prompts: int


SMALL = Size(statements=1_000, hits=1_000, prompts=100)
FULL = Size(statements=274_186, hits=9_150, prompts=26_000)


def sentence(number: str) -> str:
    """The SQL of the sentence with this number, itself SQL. It ends with the number, so none is there twice."""
    parts = (words_of(PEOPLE, number, 1), words_of(ACTS, number, 7), words_of(PLACES_TO_BE, number, 77))
    return " || ' ' || ".join([*parts, words_of(TIMES, number, 1001), f"({number}) || ' times'"])


def words_of(choices: tuple[str, ...], number: str, divisor: int) -> str:
    array = ", ".join(f"'{words}'" for words in choices)
    return f"(ARRAY[{array}])[1 + (({number}) / {divisor}) % {len(choices)}]"


def fill(size: Size, *, hit_type_id: int, form_id: int) -> None:
    """Make the database hold as much as ``size`` says: in the study, and of its newest assignments some to review.

    Called again with more, it adds what is missing. Needs the rights of a superuser, and a transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # what waits for its check keeps an index from being made
        cursor.execute("SET LOCAL maintenance_work_mem = '256MB'")
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SELECT array_agg(id ORDER BY id) FROM generation_targetgroup")
        [groups] = cursor.fetchone()
        group = f"(ARRAY{groups})[1 + i % {len(groups)}]"
        label = f"(ARRAY['benign', 'toxic'])[1 + i / {len(groups)} % 2]"
        for statement in (
            prompts(size, group=group, label=label),
            # An index of words is made in a third of the time that it takes to add to it row by row.
            "SELECT indexdef INTO TEMPORARY dropped FROM pg_indexes WHERE indexname = 'generation_words'",
            "DROP INDEX generation_words",
            statements(size, group=group, label=label),
            "DO $$ BEGIN EXECUTE (SELECT indexdef FROM dropped); DROP TABLE dropped; END $$",
            workers(form_id=form_id),
            hits(size, hit_type_id=hit_type_id),
            assignments(hit_type_id=hit_type_id),
            annotations(),
            payments(),
        ):
            cursor.execute(statement)
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE")


def missing(table: str, number: int) -> str:
    """The numbers of the rows that are to be added to a table, so that it has ``number`` in all."""
    return f"generate_series((SELECT count(*) FROM {table}) + 1, {number}) i"


def prompts(size: Size, *, group: str, label: str) -> str:
    lines = " || E'\\n' || ".join(f"'- ' || {sentence(f'(i * 7 + {line})')}" for line in range(DEMONSTRATIONS_A_PROMPT))
    return f"""
        INSERT INTO generation_prompt (group_id, label, text)
        SELECT {group}, {label}, {lines} || E'\\n-' FROM {missing("generation_prompt", size.prompts)}
    """


def statements(size: Size, *, group: str, label: str) -> str:
    return f"""
        INSERT INTO generation_generation
            (group_id, label, method, text, toxic_prob, hypotheses, finish_reason, prompt_id)
        SELECT {group}, {label}, 'topk', {sentence("i")}, i % 1000 / 1000.0, '[]', '',
            (SELECT min(id) FROM generation_prompt) + i % {size.prompts}
        FROM {missing("generation_generation", size.statements)}
    """


def workers(*, form_id: int) -> str:
    return f"""
        WITH new AS (
            INSERT INTO annotator_worker
                (pseudonym, pay_reference, imported_hash, blocked_reason, covers_statements, uses_shortcuts)
            SELECT 'F' || i, 'reference ' || i, '', '', true, true FROM {missing("annotator_worker", WORKERS)}
            RETURNING id
        )
        INSERT INTO annotator_consent (worker_id, form_id) SELECT id, {form_id} FROM new
    """


def hits(size: Size, *, hit_type_id: int) -> str:
    return f"""
        INSERT INTO annotator_hit
            (hit_type_id, generation_id, max_assignments, held_places, open_assignments, is_check, prompt_label,
             expires_at)
        SELECT {hit_type_id}, id, {PLACES}, {PLACES}, 0, false, label, now() + interval '7 days'
        FROM generation_generation
        WHERE id NOT IN (SELECT generation_id FROM annotator_hit) ORDER BY id
        LIMIT {size.hits} - (SELECT count(*) FROM annotator_hit)
    """


def assignments(*, hit_type_id: int) -> str:
    """Each place of a HIT without any is taken by another worker; the last ones wait for review."""
    return f"""
        WITH crowd AS (
            SELECT consent.id AS consent_id, worker_id, row_number() OVER (ORDER BY worker_id) - 1 AS number
            FROM annotator_consent consent JOIN annotator_worker worker ON worker.id = worker_id
            WHERE pseudonym LIKE 'F%'
        ), free AS (
            SELECT id, row_number() OVER (ORDER BY id) AS number, count(*) OVER () AS of FROM annotator_hit hit
            WHERE hit_type_id = {hit_type_id} AND held_places = {PLACES}
                AND NOT EXISTS (SELECT 1 FROM annotator_assignment WHERE hit_id = hit.id)
        ), taken AS (
            SELECT free.id AS hit_id, worker_id, consent_id, (free.of - free.number) * {PLACES} < {TO_REVIEW} AS waits,
                now() - (free.of - free.number) * interval '1 minute' AS accepted_at
            FROM free CROSS JOIN generate_series(0, {PLACES} - 1) place
            JOIN crowd ON crowd.number = (free.number * {PLACES} + place) % (SELECT count(*) FROM crowd)
        )
        INSERT INTO annotator_assignment (
            key, hit_id, worker_id, consent_id, status, holds_place, reward, accepted_at, deadline,
            submitted_at, decided_at, rejection_reason
        )
        SELECT gen_random_uuid(), hit_id, worker_id, consent_id, CASE WHEN waits THEN 'submitted' ELSE 'approved' END,
            true, 0.25, accepted_at, accepted_at + interval '30 minutes', accepted_at + interval '90 seconds',
            CASE WHEN NOT waits THEN accepted_at + interval '1 day' END, ''
        FROM taken ORDER BY accepted_at
    """


def annotations() -> str:
    return """
        INSERT INTO annotator_annotation (
            assignment_id, not_understood, human_or_ai, harmful_if_ai, harmful_if_human, pos_stereo, harmful_intent,
            lewd, which_group, group_framing, fact_or_opinion, other_groups, other_framing
        )
        SELECT id, false, 'ai', 1 + (hit_id + id % 7 / 5) % 5, 1 + (hit_id + id % 5 / 3) % 5, 'no', 1 + hit_id % 5,
            'no', 'directly', 'none', 'factual', '', ''
        FROM annotator_assignment assignment
        WHERE status IN ('submitted', 'approved')
            AND NOT EXISTS (SELECT 1 FROM annotator_annotation WHERE assignment_id = assignment.id)
        ORDER BY id
    """


def payments() -> str:
    return """
        INSERT INTO annotator_payment (worker_id, kind, amount, assignment_id, reason)
        SELECT worker_id, 'assignment', reward, id, '' FROM annotator_assignment assignment
        WHERE status = 'approved'
            AND NOT EXISTS (SELECT 1 FROM annotator_payment WHERE assignment_id = assignment.id)
        ORDER BY id
    """
