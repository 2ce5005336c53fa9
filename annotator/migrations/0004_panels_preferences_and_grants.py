import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

COPY_GRANTS = """
INSERT INTO annotator_grant (qualification_id, worker_id)
SELECT qualification_id, worker_id FROM annotator_qualification_workers;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""

COPY_GRANTS_BACK = """
INSERT INTO annotator_qualification_workers (qualification_id, worker_id)
SELECT qualification_id, worker_id FROM annotator_grant;
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0003_consent_in_parts"),
    ]

    operations = [
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "granted_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Panel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("name", models.CharField(help_text="For you: where the link was given out.", max_length=200)),
                (
                    "max_workers",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="How many people may join by it; empty: any number.",
                        null=True,
                        verbose_name="places",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.AddField(
            model_name="worker",
            name="avoided_groups",
            field=models.ManyToManyField(
                blank=True,
                help_text="Groups they do not want to read about.",
                related_name="avoided_by",
                to="generation.targetgroup",
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="covers_statements",
            field=models.BooleanField(default=True, help_text="Statements stay covered until they are asked for."),
        ),
        migrations.AddField(
            model_name="worker",
            name="pay_reference",
            field=models.CharField(
                blank=True,
                help_text="What whoever pays knows them by, such as a panel's participant id.",
                max_length=100,
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="uses_shortcuts",
            field=models.BooleanField(default=True, help_text="Keys answer the questions."),
        ),
        migrations.AlterField(
            model_name="qualification",
            name="description",
            field=models.TextField(blank=True, help_text="The worker reads it."),
        ),
        migrations.AddField(
            model_name="grant",
            name="granted_by",
            field=models.ForeignKey(
                editable=False,
                help_text="Nobody: earned in a test.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="grant",
            name="qualification",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="grants", to="annotator.qualification"
            ),
        ),
        migrations.AddField(
            model_name="grant",
            name="worker",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="grants", to="annotator.worker"
            ),
        ),
        migrations.RunSQL(COPY_GRANTS, COPY_GRANTS_BACK),
        migrations.RemoveField("qualification", "workers"),
        migrations.AddField(
            "qualification",
            "workers",
            models.ManyToManyField(
                blank=True, related_name="qualifications", through="annotator.Grant", to="annotator.worker"
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="panel",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="workers",
                to="annotator.panel",
            ),
        ),
        migrations.AddConstraint(
            model_name="worker",
            constraint=models.UniqueConstraint(
                models.F("panel"),
                models.F("pay_reference"),
                condition=models.Q(
                    models.Q(("pay_reference", ""), _negated=True), models.Q(("panel", None), _negated=True)
                ),
                name="worker_once_a_participant_of_a_panel",
            ),
        ),
        migrations.AddConstraint(
            model_name="grant",
            constraint=models.UniqueConstraint(fields=("worker", "qualification"), name="grant_once_a_worker"),
        ),
    ]
