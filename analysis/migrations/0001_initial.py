import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("annotator", "0011_draws_of_statements"),
        ("generation", "0012_statements_in_random_order"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DataImport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("demonstrations", "demonstrations"),
                            ("prompts", "prompts"),
                            ("train", "train: statements with their prompts"),
                            ("annotated", "annotated: statements with their human labels"),
                            ("annotations", "annotations: one row an annotation"),
                            ("mturk", "mturk: the results of a Mechanical Turk batch"),
                        ],
                        max_length=20,
                    ),
                ),
                ("file_name", models.CharField(help_text="As whoever uploaded it called it.", max_length=300)),
                (
                    "path",
                    models.CharField(blank=True, editable=False, help_text="Where the upload waits.", max_length=1000),
                ),
                (
                    "options",
                    models.JSONField(
                        default=dict, help_text="As given: group, label, study, what to do with bad rows."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("finished", "finished"),
                            ("refused", "refused: nothing was stored"),
                            ("failed", "failed: nothing was stored"),
                        ],
                        default="queued",
                        editable=False,
                        max_length=10,
                    ),
                ),
                ("failure", models.TextField(blank=True, help_text="Why nothing was stored.")),
                ("bytes_total", models.BigIntegerField(default=0)),
                ("bytes_read", models.BigIntegerField(default=0)),
                ("rows", models.PositiveIntegerField(default=0, help_text="Rows that were read.")),
                ("new", models.PositiveIntegerField(default=0, help_text="Rows that were stored.")),
                ("known", models.PositiveIntegerField(default=0, help_text="Rows that were there already.")),
                ("bad", models.PositiveIntegerField(default=0, help_text="Rows with a fault.")),
                (
                    "stored",
                    models.JSONField(
                        default=dict, help_text="How many rows of each kind were made: statements, prompts, …"
                    ),
                ),
                (
                    "notes",
                    models.JSONField(default=list, help_text="What else whoever imports should know, as sentences."),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("lease_expires_at", models.DateTimeField(null=True)),
                ("leases", models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "import",
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="HumanLabel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("factual", models.CharField(blank=True, max_length=100, verbose_name="factual?")),
                ("ingroup_effect", models.CharField(blank=True, max_length=100)),
                ("lewd", models.CharField(blank=True, max_length=100)),
                ("framing", models.CharField(blank=True, max_length=100)),
                (
                    "predicted_group",
                    models.TextField(blank=True, help_text="A sentence, or a list of sentences as Python writes it."),
                ),
                ("stereotyping", models.CharField(blank=True, max_length=100)),
                ("intent", models.FloatField(null=True)),
                ("toxicity_ai", models.FloatField(null=True)),
                ("toxicity_human", models.FloatField(null=True)),
                ("predicted_author", models.CharField(blank=True, max_length=20)),
                (
                    "data_import",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="analysis.dataimport",
                    ),
                ),
                (
                    "generation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="human_label",
                        to="generation.generation",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportedAnnotation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("columns", models.JSONField(default=dict, help_text="By name, as the file writes them.")),
                (
                    "annotation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="imported", to="annotator.annotation"
                    ),
                ),
                (
                    "data_import",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="analysis.dataimport",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportFault",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("file", models.CharField(blank=True, help_text="Of a folder: which file.", max_length=300)),
                (
                    "line",
                    models.PositiveIntegerField(help_text="Its first line in the file, from 1; of Parquet the row."),
                ),
                ("column", models.CharField(blank=True, max_length=200)),
                ("value", models.CharField(blank=True, help_text="Its beginning.", max_length=200)),
                ("message", models.TextField(help_text="What is wrong and what to do.")),
                (
                    "data_import",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="faults", to="analysis.dataimport"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="StudyAgreement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("annotations", models.PositiveIntegerField(help_text="How many counted annotations they rest on.")),
                ("newest", models.BigIntegerField(default=0, help_text="The id of the newest of these.")),
                ("figures", models.JSONField(help_text="As analysis/figures.py packs them.")),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "hit_type",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="agreement", to="annotator.hittype"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="dataimport",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("format__in", ["demonstrations", "prompts", "train", "annotated", "annotations", "mturk"])
                ),
                name="import_format_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="dataimport",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["queued", "running", "finished", "refused", "failed"])),
                name="import_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="dataimport",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at", None), ("state__in", ("queued", "running"))),
                    models.Q(
                        models.Q(("state__in", ("queued", "running")), _negated=True),
                        ("ended_at__isnull", False),
                        ("lease_expires_at", None),
                    ),
                    _connector="OR",
                ),
                name="import_ended_when_its_state_says_so",
            ),
        ),
        migrations.AddConstraint(
            model_name="dataimport",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("failure__regex", "\\S"), ("new", 0), ("state__in", ["refused", "failed"])),
                    models.Q(models.Q(("state__in", ["refused", "failed"]), _negated=True), ("failure", "")),
                    _connector="OR",
                ),
                name="import_that_stored_nothing_says_why",
            ),
        ),
        migrations.AddConstraint(
            model_name="dataimport",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "rows",
                        django.db.models.expressions.CombinedExpression(
                            django.db.models.expressions.CombinedExpression(models.F("new"), "+", models.F("known")),
                            "+",
                            models.F("bad"),
                        ),
                    ),
                    models.Q(("state", "finished"), _negated=True),
                    _connector="OR",
                ),
                name="import_accounts_for_every_row",
            ),
        ),
        migrations.AddConstraint(
            model_name="humanlabel",
            constraint=models.CheckConstraint(
                condition=models.Q(("intent__isnull", True), ("intent__range", (1, 5)), _connector="OR"),
                name="human_label_intent_on_its_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="humanlabel",
            constraint=models.CheckConstraint(
                condition=models.Q(("toxicity_ai__isnull", True), ("toxicity_ai__range", (1, 5)), _connector="OR"),
                name="human_label_toxicity_ai_on_its_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="humanlabel",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("toxicity_human__isnull", True), ("toxicity_human__range", (1, 5)), _connector="OR"
                ),
                name="human_label_toxicity_human_on_its_scale",
            ),
        ),
    ]
