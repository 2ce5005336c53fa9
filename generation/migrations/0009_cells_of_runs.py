import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.functions.text
from django.db import migrations, models

FILL_IN = """
INSERT INTO generation_generationcell (
    run_id, group_id, label, places, demonstrations, naming_words, stored, decoding_seconds, empty, duplicate, copy,
    classifier_runs
)
SELECT
    chunk.run_id, chunk.group_id, chunk.label, sum(chunk.size), '[]', target.naming_words,
    (
        SELECT count(*) FROM generation_generation generation
        WHERE generation.run_id = chunk.run_id AND generation.group_id = chunk.group_id
        AND generation.label = chunk.label
    ),
    sum(chunk.decoding_seconds), sum(chunk.empty), sum(chunk.duplicate), sum(chunk.copy), sum(chunk.classifier_runs)
FROM generation_generationchunk chunk
JOIN generation_targetgroup target ON target.id = chunk.group_id
GROUP BY chunk.run_id, chunk.group_id, chunk.label, target.naming_words;
"""


def keep_sets(apps, schema_editor) -> None:
    """Keep the sets as they are for runs that have not begun, so that these can be repeated.

    What the finished chunks of others drew their prompts from is not known any more: they go on with the sets as they
    are when a chunk is taken up, and so do runs whose chunks are not those of their cells, since a group could be
    chosen twice.
    """
    run_model = apps.get_model("generation", "GenerationRun")
    for run in run_model.objects.filter(ended_at=None):
        chunks = list(run.chunks.order_by("index").values_list("group_id", "label", "size", "finished_at"))
        if [chunk[:3] for chunk in chunks] != as_cut_today([chunk[:3] for chunk in chunks]):
            continue
        begun = {(group, label) for group, label, _, finished_at in chunks if finished_at}
        for cell in run.cells.all():
            if (cell.group_id, cell.label) not in begun:
                usable = cell.group.demonstrations.filter(label=cell.label, retired_at=None)
                cell.demonstrations = list(usable.order_by("text").values_list("text", flat=True))
                cell.save(update_fields=["demonstrations"])


def as_cut_today(chunks: list[tuple[int, str, int]]) -> list[tuple[int, str, int]]:
    """The chunks, as (group, label, size), of a run with as many statements of each group and label."""
    places: dict[tuple[int, str], int] = {}
    for group, label, size in chunks:
        places[group, label] = places.get((group, label), 0) + size
    most = max((size for *_, size in chunks[: len(places)]), default=1)
    parts = [
        (start, number, (*cell, min(most, count - start)))
        for number, (cell, count) in enumerate(places.items())
        for start in range(0, count, most)
    ]
    return [part for _, _, part in sorted(parts)]


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0008_audit_trail"),
    ]

    operations = [
        migrations.AddField(
            model_name="generationrun",
            name="repeats",
            field=models.ForeignKey(
                editable=False,
                help_text="The run whose seed, parameters and sets it has.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="generation.generationrun",
            ),
        ),
        migrations.CreateModel(
            name="GenerationCell",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(choices=[("benign", "benign"), ("toxic", "toxic")], max_length=10)),
                (
                    "places",
                    models.PositiveIntegerField(
                        help_text="Prompts that are decoded: each method writes so many statements."
                    ),
                ),
                ("demonstrations", models.JSONField(default=list, help_text="The texts that prompts are drawn from.")),
                (
                    "naming_words",
                    models.CharField(blank=True, help_text="The group's, which ALICE may use.", max_length=300),
                ),
                (
                    "stored",
                    models.PositiveIntegerField(default=0, help_text="Statements written, of all methods together."),
                ),
                ("decoding_seconds", models.FloatField(default=0)),
                (
                    "empty",
                    models.PositiveIntegerField(default=0, help_text="Outputs drawn again because they were empty."),
                ),
                (
                    "duplicate",
                    models.PositiveIntegerField(default=0, help_text="Outputs drawn again because the run had them."),
                ),
                (
                    "copy",
                    models.PositiveIntegerField(
                        default=0, help_text="Outputs drawn again because they copied their prompt."
                    ),
                ),
                (
                    "near_duplicate",
                    models.PositiveIntegerField(
                        help_text="Statements that say nearly what an earlier one of the run says.",
                        null=True,
                    ),
                ),
                (
                    "classifier_runs",
                    models.PositiveIntegerField(default=0, help_text="Texts that the classifier read in searches."),
                ),
            ],
            options={
                "ordering": ["run", "group", "label"],
            },
        ),
        migrations.AddField(
            model_name="generationcell",
            name="group",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, to="generation.targetgroup"
            ),
        ),
        migrations.AddField(
            model_name="generationcell",
            name="run",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="cells",
                to="generation.generationrun",
            ),
        ),
        migrations.AddConstraint(
            model_name="generationcell",
            constraint=models.UniqueConstraint(fields=("run", "group", "label"), name="cell_once_a_run"),
        ),
        migrations.AddConstraint(
            model_name="generationcell",
            constraint=models.CheckConstraint(condition=models.Q(("places__gt", 0)), name="cell_has_places"),
        ),
        migrations.AddConstraint(
            model_name="generationcell",
            constraint=models.CheckConstraint(
                condition=models.Q(("label__in", ["benign", "toxic"])), name="cell_label_known"
            ),
        ),
        migrations.RunSQL(FILL_IN, migrations.RunSQL.noop),
        migrations.RunPython(keep_sets, migrations.RunPython.noop),
    ]
