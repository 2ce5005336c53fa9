import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0010_imported_work"),
        ("generation", "0012_statements_in_random_order"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="hittype",
            name="stopped_at",
            field=models.DateTimeField(
                editable=False, help_text="From then on nobody is given its HITs and no new ones are made.", null=True
            ),
        ),
        migrations.CreateModel(
            name="StatementDraw",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("filters", models.JSONField(default=dict, help_text="Which statements were to choose from.")),
                (
                    "a_cell",
                    models.PositiveIntegerField(help_text="How many were wanted of each group, label and method."),
                ),
                ("seed", models.BigIntegerField()),
                ("found", models.PositiveIntegerField(help_text="How many statements were drawn.")),
                ("made", models.PositiveIntegerField(help_text="How many HITs were made of them.")),
                ("made_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.AddField(
            model_name="statementdraw",
            name="hit_type",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="draws",
                to="annotator.hittype",
                verbose_name="study",
            ),
        ),
        migrations.AddField(
            model_name="statementdraw",
            name="made_by",
            field=models.ForeignKey(
                editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
            ),
        ),
    ]
