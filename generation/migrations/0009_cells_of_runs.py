import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.functions.text
from django.db import migrations, models

# What an ended run drew its prompts from is not known any more; one under way goes on with the sets as they are.
FILL_IN = """
INSERT INTO generation_generationcell (
    run_id, group_id, label, places, demonstrations, naming_words, stored, decoding_seconds, empty, duplicate, copy,
    classifier_runs
)
SELECT
    chunk.run_id, chunk.group_id, chunk.label, sum(chunk.size),
    CASE WHEN run.ended_at IS NULL THEN COALESCE((
        SELECT jsonb_agg(demonstration.text ORDER BY demonstration.text)
        FROM generation_demonstration demonstration
        WHERE demonstration.group_id = chunk.group_id AND demonstration.label = chunk.label
        AND demonstration.retired_at IS NULL
    ), '[]') ELSE '[]' END,
    target.naming_words,
    (
        SELECT count(*) FROM generation_generation generation
        WHERE generation.run_id = chunk.run_id AND generation.group_id = chunk.group_id
        AND generation.label = chunk.label
    ),
    sum(chunk.decoding_seconds), sum(chunk.empty), sum(chunk.duplicate), sum(chunk.copy), sum(chunk.classifier_runs)
FROM generation_generationchunk chunk
JOIN generation_generationrun run ON run.id = chunk.run_id
JOIN generation_targetgroup target ON target.id = chunk.group_id
GROUP BY chunk.run_id, chunk.group_id, chunk.label, run.ended_at, target.naming_words;
"""


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
    ]
