"""The stored replays of searches."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0005_words_that_name_groups"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lease_expires_at", models.DateTimeField(null=True)),
                ("leases", models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")),
                ("finished_at", models.DateTimeField(null=True)),
                ("failure", models.TextField(blank=True)),
                ("text", models.TextField(blank=True, help_text="The statement that it found.")),
                ("steps", models.JSONField(default=list, help_text="As generation/search_steps.py packs them.")),
                ("environment", models.JSONField(default=dict, help_text="Device and versions.")),
                (
                    "generation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="replay", to="generation.generation"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("finished_at", None), ("lease_expires_at", None), _connector="OR"),
                        name="replay_finished_is_not_leased",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("failure", ""), ("finished_at", None), ("steps", [])),
                            models.Q(
                                models.Q(("failure", ""), _negated=True), ("finished_at__isnull", False), ("steps", [])
                            ),
                            models.Q(
                                models.Q(("steps", []), _negated=True), ("failure", ""), ("finished_at__isnull", False)
                            ),
                            _connector="OR",
                        ),
                        name="replay_finished_with_steps_or_a_failure",
                    ),
                ],
            },
        ),
    ]
