"""Drawing the statements of a study: at random by a seed, so many of each cell, and publishing just these."""

import random
import re
from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.models import HumanLabel
from annotator import choosing, publishing, stopping, wages
from annotator.choosing import Filters
from annotator.models import HIT, HITType, KnownAnswers, Qualification, StatementDraw
from generation.models import AuditEntry, Generation, Label, Method
from tests.factories import make_generation, make_group, make_hit, make_hit_type, make_run

pytestmark = pytest.mark.django_db

WOMEN = Filters(groups=("women",), labels=("benign",), methods=("topk",))


@pytest.fixture
def study():
    return make_hit_type()


def make_statements(number, *, group=None, label="benign", method="topk", **fields):
    """Statements of one cell, in an order that is the same in every run of the test."""
    group = group or make_group()
    places = random.Random(f"{group.slug} {label} {method}")
    return Generation.objects.bulk_create(
        Generation(
            group=group, label=label, method=method, text=f"number {n} of {label}", shuffle=places.random(), **fields
        )
        for n in range(number)
    )


def drawn(study, filters=WOMEN, a_cell=3, seed=1):
    return choosing.draw(hit_type=study, filters=filters, a_cell=a_cell, seed=seed)


def publish(study, filters=WOMEN, a_cell=3, seed=1, **options):
    return choosing.publish_draw(
        hit_type=study, filters=filters, a_cell=a_cell, seed=seed, by=options.pop("by", None), **options
    )


# --- Which statements


def test_so_many_of_each_group_label_and_method_are_drawn(study):
    for slug in ("women", "asian"):
        for label in Label.values:
            for method in ("topk", "alice"):
                make_statements(5, group=make_group(slug), label=label, method=method)
    draw = drawn(study, Filters(groups=("women", "asian")), a_cell=2)
    statements = Generation.objects.filter(pk__in=draw.ids)
    cells = Counter(statements.values_list("group__slug", "label", "method"))
    assert len(cells) == 8
    assert set(cells.values()) == {2}
    assert draw.short == []


def test_a_cell_with_fewer_than_were_wanted_gives_all_it_has_and_says_so(study):
    few = make_statements(3, method="topk")
    make_statements(9, method="alice")
    draw = drawn(study, Filters(groups=("women",), labels=("benign",)), a_cell=5)
    assert [(cell.method, cell.wanted, cell.found, cell.is_short) for cell in draw.cells] == [
        ("topk", 5, 3, True),
        ("alice", 5, 5, False),
    ]
    assert {statement.pk for statement in few} < set(draw.ids)


@pytest.mark.parametrize(
    ("filters", "texts"),
    [
        ({"toxic_from": 0.5}, {"ninety", "fifty"}),
        ({"toxic_to": 0.5}, {"fifty", "ten"}),
        ({"toxic_from": 0.2, "toxic_to": 0.6}, {"fifty"}),
        ({"imported": True}, {"ninety", "fifty", "ten", "no score"}),
        ({"labels": ("toxic",)}, {"of a toxic prompt"}),
        ({"methods": ("alice",)}, {"by ALICE"}),
        ({"groups": ("asian",)}, {"of another group"}),
    ],
)
def test_what_the_filters_leave_out_is_not_drawn(study, filters, texts):
    for text, score in (("ninety", 0.9), ("fifty", 0.5), ("ten", 0.1), ("no score", None)):
        make_generation(text, toxic_prob=score)
    make_generation("of a toxic prompt", label="toxic")
    make_generation("by ALICE", method="alice")
    make_generation("of another group", group=make_group("asian"))
    run = make_run()
    make_generation("of a run", run=run, chunk=run.chunks.first(), position=0)
    wanted = {"groups": ("women",), "labels": ("benign",), "methods": ("topk",)} | filters
    draw = drawn(study, Filters(**wanted), a_cell=100)
    assert set(Generation.objects.filter(pk__in=draw.ids).values_list("text", flat=True)) == texts


def test_of_a_run_only_its_own_cells_and_statements_are_drawn(study):
    run = make_run()
    mine = make_generation("of the run", run=run, chunk=run.chunks.first(), position=0)
    make_generation("of none")
    draw = drawn(study, Filters(run=run.pk))
    assert [(cell.group.slug, cell.label, cell.method) for cell in draw.cells] == [("women", "benign", "topk")]
    assert draw.ids == [mine.pk]


def test_what_the_run_of_the_study_writes_is_not_drawn_and_comes_by_itself_as_a_whole(study):
    run = make_run(count=8)
    chunk = run.chunks.get()
    for place in range(8):
        make_generation(run=run, chunk=chunk, position=place)
    chunk.finished_at = run.created_at
    chunk.save()
    make_statements(3)
    study.run = run
    study.save()
    assert publish(study, a_cell=5).found == 3
    assert publishing.publish_new_statements() == 8
    assert study.hits.count() == 11


def test_what_no_study_has_yet_is_drawn_or_if_asked_for_what_this_one_has_not(study):
    new, elsewhere, here = make_generation(), make_generation(), make_generation()
    make_hit(generation=elsewhere)
    make_hit(generation=here, hit_type=study)
    assert drawn(study).ids == [new.pk]
    assert drawn(study, Filters(groups=("women",), is_new=False)).ids == [new.pk, elsewhere.pk]


def test_what_came_with_human_labels_is_not_new(study):
    labelled, new = make_statements(2)
    HumanLabel.objects.create(generation=labelled, toxicity_human=1.0)
    assert drawn(study).ids == [new.pk]
    assert drawn(study, Filters(groups=("women",), is_new=False)).ids == [labelled.pk, new.pk]


def test_statements_with_known_answers_and_those_that_people_wrote_are_never_drawn(study):
    KnownAnswers.objects.create(generation=make_generation(), expected={"lewd": ["no"]})
    make_generation(method=Method.WRITTEN)
    assert drawn(study, Filters()).ids == []


# --- At random, and again


def test_the_same_seed_draws_the_same_statements_and_another_one_others(study):
    make_statements(200)
    assert drawn(study, a_cell=20).ids == drawn(study, a_cell=20).ids
    assert drawn(study, a_cell=20, seed=1).ids != drawn(study, a_cell=20, seed=2).ids
    assert drawn(study, a_cell=20).fingerprint != drawn(study, a_cell=20, seed=2).fingerprint


def test_a_larger_draw_with_the_same_seed_holds_the_smaller_one(study):
    make_statements(200)
    assert set(drawn(study, a_cell=20).ids) < set(drawn(study, a_cell=60).ids)


def test_a_draw_goes_on_at_the_beginning_of_the_order_when_it_comes_to_its_end(study):
    statements = make_statements(10)
    in_order = [statement.pk for statement in sorted(statements, key=lambda statement: statement.shuffle)]
    starts = set()
    for seed in range(40):
        ids = drawn(study, a_cell=4, seed=seed).cells[0].ids
        start = in_order.index(ids[0])
        assert ids == (in_order + in_order)[start : start + 4]
        starts.add(start)
    assert len(starts) > 4
    assert max(starts) > 6, "no draw came to the end"
    assert sorted(drawn(study, a_cell=10).ids) == sorted(in_order)


def test_a_draw_is_a_uniform_sample_of_its_cell(study):
    statements = make_statements(2000)
    tenth = {statement.pk: number // 200 for number, statement in enumerate(statements)}
    counts = Counter(tenth[pk] for seed in range(20) for pk in drawn(study, a_cell=100, seed=seed).ids)
    expected = 20 * 100 / 10
    chi_square = sum((counts[number] - expected) ** 2 / expected for number in range(10))
    assert chi_square < 27.9  # the 0.1 % point of chi-square with 9 degrees of freedom


def test_two_seeds_share_as_many_statements_as_two_independent_draws_would_on_average(study):
    make_statements(1000)
    draws = [set(drawn(study, a_cell=200, seed=seed).ids) for seed in range(30)]
    shared = [len(one & other) for place, one in enumerate(draws) for other in draws[:place]]
    assert 30 < sum(shared) / len(shared) < 50  # 200 · 200 / 1000
    assert min(shared) == 0


def test_a_draw_of_a_few_reads_a_few_rows_of_many(study):
    """The rows that PostgreSQL fetched of the table, as it counts them itself."""
    make_20_000_statements()
    KnownAnswers.objects.create(generation=Generation.objects.first(), expected={"lewd": ["no"]})
    filters = Filters(groups=("women", "asian"))
    publish(study, filters, a_cell=10, seed=5)
    before = rows_read()
    with CaptureQueriesContext(connection) as context:
        draw = drawn(study, filters, a_cell=10, seed=5)
    assert len(draw.ids) == 80
    read = rows_read() - before
    assert read <= 80 + 80 + 8, f"{read} of 20,000 rows were read"  # what it took, and walked past, and a bit
    walks = [query["sql"] for query in context if "shuffle" in query["sql"]]
    assert len(walks) <= 2 * 8
    for sql in walks:
        assert "generation_at_random" in plan(sql)


def make_20_000_statements():
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO generation_generation (group_id, label, method, text, hypotheses, finish_reason) "
            "SELECT (ARRAY[%s, %s])[1 + number %% 2], (ARRAY['benign', 'toxic'])[1 + number / 2 %% 2], "
            "(ARRAY['topk', 'alice'])[1 + number / 4 %% 2], 'number ' || number, '[]', '' "
            "FROM generate_series(1, 20000) number",
            [make_group("women").pk, make_group("asian").pk],
        )
        cursor.execute("ANALYZE generation_generation")


def rows_read():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'generation_generation'"
        )
        return cursor.fetchone()[0]


def plan(sql):
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + sql)
        return "\n".join(line for (line,) in cursor.fetchall())


# --- Publishing it


def test_what_was_drawn_becomes_hits_and_is_kept_with_its_seed(study):
    make_statements(20)
    ada = User.objects.create(username="ada")
    draw = drawn(study, a_cell=5, seed=7)
    kept = publish(study, a_cell=5, seed=7, agreed=draw.fingerprint, by=ada)
    assert sorted(study.hits.values_list("generation", flat=True)) == draw.ids
    assert (kept.hit_type, kept.seed, kept.a_cell, kept.found, kept.made, kept.made_by) == (study, 7, 5, 5, 5, ada)
    assert kept.filters == {"groups": ["women"], "labels": ["benign"], "methods": ["topk"], "is_new": True}


def test_publishing_is_noted_in_the_audit_trail(study):
    make_statements(20)
    ada = User.objects.create(username="ada")
    publish(study, a_cell=5, seed=7, by=ada)
    entry = AuditEntry.objects.get(act="statements published")
    assert (entry.by, entry.subject) == (ada, f"study {study.pk}")
    assert (entry.details["seed"], entry.details["found"], entry.details["hits"]) == (7, 5, 5)


def test_the_same_draw_is_published_once(study):
    make_statements(20)
    draw = drawn(study)
    publish(study, agreed=draw.fingerprint)
    with pytest.raises(
        choosing.PublishedBefore,
        match=r"^These statements were published already: 3 HITs, with the seed 1\. Nothing was made twice\. ",
    ):
        publish(study, agreed=draw.fingerprint)
    assert (HIT.objects.count(), StatementDraw.objects.count()) == (3, 1)


def test_another_seed_adds_others(study):
    make_statements(20)
    publish(study, seed=1)
    assert publish(study, seed=2).made == 3
    assert study.hits.count() == 6


def test_statements_that_were_not_looked_at_are_not_published(study):
    make_statements(3)
    draw = drawn(study, a_cell=5)
    make_generation("stored since")
    with pytest.raises(choosing.DrawChanged, match=r"^Nothing was published: statements were stored or published"):
        publish(study, a_cell=5, agreed=draw.fingerprint)
    assert not HIT.objects.exists()


def test_a_draw_of_nothing_is_not_published(study):
    with pytest.raises(choosing.CannotPublishDraw, match="no statement passes these filters"):
        publish(study)
    assert not StatementDraw.objects.exists()


def test_a_draw_that_is_too_large_is_not_published(study, monkeypatch):
    monkeypatch.setattr(choosing, "MOST_IN_ALL", 2)
    make_statements(3)
    with pytest.raises(choosing.CannotPublishDraw, match="these are 3 statements, and at most 2 become HITs in one go"):
        publish(study)


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"reward": "0.01"}, wages.PayTooLow),
        ({"pass_mark": 80, "grants": True}, publishing.KnownAnswersOnly),
        ({"imported": True, "reward": 0}, publishing.ImportedStudy),
    ],
)
def test_a_study_that_publishes_nothing_publishes_no_draw(fields, refusal):
    if "grants" in fields:
        fields = fields | {"grants": Qualification.objects.create(name="reads English")}
    study = HITType.objects.get(pk=make_hit_type(**fields).pk)
    make_statements(3)
    with pytest.raises(refusal):
        publish(study)
    assert (HIT.objects.count(), StatementDraw.objects.count(), AuditEntry.objects.count()) == (0, 0, 0)


def test_a_stopped_study_publishes_no_draw(study):
    make_statements(3)
    stopping.stop(hit_type=study, by=None)
    with pytest.raises(publishing.StudyClosed, match=r"was stopped on .*Go on with it first\.$"):
        publish(study)


def test_the_sample_takes_from_every_cell_in_turn(study):
    make_statements(3, method="topk")
    make_statements(3, method="alice")
    draw = drawn(study, Filters(groups=("women",), labels=("benign",)))
    assert [statement.method for statement in draw.sample(4)] == ["topk", "alice", "topk", "alice"]
    assert len(draw.sample(100)) == 6


def test_filters_are_kept_as_what_they_leave_out():
    assert Filters(groups=("women", "asian"), toxic_from=0.0, is_new=False).as_json() == {
        "groups": ["asian", "women"],
        "toxic_from": 0.0,
    }
    assert re.fullmatch("[0-9]+", str(choosing.new_seed()))
