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
        ("generation", "0010_history_of_demonstrations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Response",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                ("text", models.TextField()),
                ("tokens", models.PositiveSmallIntegerField()),
                (
                    "log_prob",
                    models.FloatField(
                        help_text="Sum over its tokens of the language model's log-probability.", null=True
                    ),
                ),
                (
                    "finish_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("stop", "at a newline"),
                            ("length", "at the token limit"),
                            ("none_allowed", "no token was allowed"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "mentions_group",
                    models.BooleanField(help_text="Whether it has one of the words that name the group."),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("undecided", "not looked at yet"),
                            ("promoted", "promoted into the set"),
                            ("bad", "bad"),
                        ],
                        default="undecided",
                        max_length=10,
                    ),
                ),
                (
                    "bad_because",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("other_group", "not about the group"),
                            ("other_label", "not what the label says"),
                            ("no_sense", "makes no sense"),
                            ("copy", "too close to a demonstration"),
                            ("explicit", "explicit: it has slurs or swear words"),
                            ("other", "something else"),
                        ],
                        max_length=20,
                    ),
                ),
                ("note", models.CharField(blank=True, max_length=200)),
                ("judged_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["trial", "position"],
            },
        ),
        migrations.CreateModel(
            name="Trial",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(choices=[("benign", "benign"), ("toxic", "toxic")], max_length=10)),
                ("language_model", models.CharField(max_length=300)),
                ("parameters", models.JSONField(default=dict, help_text="Of top-k.")),
                ("seed", models.BigIntegerField()),
                ("count", models.PositiveSmallIntegerField(default=8, help_text="Responses that were asked for.")),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lease_expires_at", models.DateTimeField(null=True)),
                ("leases", models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")),
                ("finished_at", models.DateTimeField(null=True)),
                ("failure", models.TextField(blank=True)),
                ("environment", models.JSONField(default=dict, help_text="Device and versions.")),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.AddField(
            model_name="response",
            name="demonstration",
            field=models.OneToOneField(
                blank=True,
                help_text="What it became.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="response",
                to="generation.demonstration",
            ),
        ),
        migrations.AddField(
            model_name="response",
            name="judged_by",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="trial",
            name="demonstrations",
            field=models.ManyToManyField(
                help_text="Those in the prompt.", related_name="trials", to="generation.demonstration"
            ),
        ),
        migrations.AddField(
            model_name="trial",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="trials",
                to="generation.targetgroup",
            ),
        ),
        migrations.AddField(
            model_name="trial",
            name="prompt",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="trials", to="generation.prompt"
            ),
        ),
        migrations.AddField(
            model_name="trial",
            name="requested_by",
            field=models.ForeignKey(
                blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="response",
            name="trial",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="responses",
                to="generation.trial",
            ),
        ),
        migrations.AddIndex(
            model_name="trial",
            index=models.Index(fields=["group", "label", "-id"], name="trial_of_a_set"),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(("label__in", ["benign", "toxic"])), name="trial_label_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(("count__range", (1, 50))), name="trial_count_in_range"
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(("finished_at", None), ("lease_expires_at", None), _connector="OR"),
                name="trial_finished_is_not_leased",
            ),
        ),
        migrations.AddConstraint(
            model_name="trial",
            constraint=models.CheckConstraint(
                condition=models.Q(("failure", ""), ("finished_at__isnull", False), _connector="OR"),
                name="trial_failed_is_finished",
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.UniqueConstraint(fields=("trial", "position"), name="response_once_a_position"),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.CheckConstraint(condition=models.Q(("text__regex", "\\S")), name="response_has_text"),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["undecided", "promoted", "bad"])), name="response_verdict_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("bad_because__in", ["other_group", "other_label", "no_sense", "copy", "explicit", "other"]),
                        ("verdict", "bad"),
                    ),
                    models.Q(models.Q(("verdict", "bad"), _negated=True), ("bad_because", "")),
                    _connector="OR",
                ),
                name="response_bad_because_of_something",
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.CheckConstraint(
                condition=models.Q(("demonstration", None), ("verdict", "promoted"), _connector="OR"),
                name="response_in_the_set_was_promoted",
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("judged_at", None), ("verdict", "undecided")),
                    models.Q(models.Q(("verdict", "undecided"), _negated=True), ("judged_at__isnull", False)),
                    _connector="OR",
                ),
                name="response_judged_when_its_verdict_says_so",
            ),
        ),
    ]
