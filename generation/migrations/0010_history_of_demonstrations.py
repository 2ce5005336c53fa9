import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.functions.text
import simple_history.models
from django.conf import settings
from django.db import migrations, models

BEGIN_THEIR_HISTORY = """
INSERT INTO generation_historicaldemonstration (
    id, group_id, label, text, origin, created_at, retired_at, retired_reason, history_date, history_type
)
SELECT id, group_id, label, text, origin, created_at, retired_at, retired_reason, created_at, '+'
FROM generation_demonstration ORDER BY id;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0009_cells_of_runs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="HistoricalDemonstration",
            fields=[
                ("id", models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID")),
                ("label", models.CharField(choices=[("benign", "benign"), ("toxic", "toxic")], max_length=10)),
                ("text", models.CharField(max_length=500)),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("written", "written here"),
                            ("imported", "imported"),
                            ("promoted", "promoted from a response"),
                        ],
                        default="written",
                        editable=False,
                        max_length=10,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "retired_at",
                    models.DateTimeField(blank=True, help_text="From then on no prompt is drawn from it.", null=True),
                ),
                (
                    "retired_reason",
                    models.CharField(
                        blank=True,
                        help_text="Why it is a bad example, for whoever looks later.",
                        max_length=200,
                        verbose_name="why it was retired",
                    ),
                ),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                ("history_change_reason", models.CharField(max_length=100, null=True)),
                (
                    "history_type",
                    models.CharField(choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1),
                ),
            ],
            options={
                "verbose_name": "historical demonstration",
                "verbose_name_plural": "historical demonstrations",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.AlterModelOptions(
            name="demonstration",
            options={
                "ordering": ["group", "label", "text"],
                "permissions": [("fill_toxic_set", "Can fill toxic sets of demonstrations")],
            },
        ),
        migrations.AddField(
            model_name="demonstration",
            name="created_by",
            field=models.ForeignKey(
                editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="demonstration",
            name="origin",
            field=models.CharField(
                choices=[
                    ("written", "written here"),
                    ("imported", "imported"),
                    ("promoted", "promoted from a response"),
                ],
                default="written",
                editable=False,
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="demonstration",
            name="retired_reason",
            field=models.CharField(
                blank=True,
                help_text="Why it is a bad example, for whoever looks later.",
                max_length=200,
                verbose_name="why it was retired",
            ),
        ),
        migrations.AddConstraint(
            model_name="demonstration",
            constraint=models.CheckConstraint(
                condition=models.Q(("origin__in", ["written", "imported", "promoted"])),
                name="demonstration_origin_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="demonstration",
            constraint=models.CheckConstraint(
                condition=models.Q(("retired_reason", ""), ("retired_at__isnull", False), _connector="OR"),
                name="demonstration_retired_if_it_says_why",
            ),
        ),
        migrations.AddField(
            model_name="historicaldemonstration",
            name="created_by",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="historicaldemonstration",
            name="group",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="generation.targetgroup",
            ),
        ),
        migrations.AddField(
            model_name="historicaldemonstration",
            name="history_user",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.RunSQL(BEGIN_THEIR_HISTORY, migrations.RunSQL.noop),
    ]
