"""ALICE as a method of runs, alone or beside top-k, and what it leaves on a generation; runs that are paused."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0002_target_groups"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="generation",
            name="generation_once_a_place",
        ),
        migrations.RemoveConstraint(
            model_name="generation",
            name="generation_method_known",
        ),
        migrations.RemoveConstraint(
            model_name="generationrun",
            name="run_state_known",
        ),
        migrations.RemoveConstraint(
            model_name="generationrun",
            name="run_method_known",
        ),
        migrations.RemoveConstraint(
            model_name="generationrun",
            name="run_ended_when_its_state_says_so",
        ),
        migrations.RemoveConstraint(
            model_name="generationrun",
            name="run_failed_with_a_reason",
        ),
        migrations.AddField(
            model_name="generation",
            name="hypotheses",
            field=models.JSONField(
                blank=True,
                default=list,
                editable=False,
                help_text="ALICE's n best, best first, with both models' votes.",
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="score",
            field=models.FloatField(
                blank=True,
                help_text="What ALICE ranked it by: the mean over its tokens of the weighted votes.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="generation",
            name="toxic_prob",
            field=models.FloatField(
                blank=True, help_text="The run's classifier's probability that the text is toxic.", null=True
            ),
        ),
        migrations.AddField(
            model_name="generationchunk",
            name="classifier_runs",
            field=models.PositiveIntegerField(default=0, help_text="Texts that the classifier read in searches."),
        ),
        migrations.AddField(
            model_name="generationrun",
            name="classifier",
            field=models.CharField(blank=True, max_length=300),
        ),
        migrations.AddField(
            model_name="generationrun",
            name="precision",
            field=models.CharField(
                choices=[("float32", "float32"), ("bfloat16", "bfloat16")], default="float32", max_length=10
            ),
        ),
        migrations.AddField(
            model_name="targetgroup",
            name="naming_words",
            field=models.CharField(
                blank=True,
                help_text="Separated by blanks. ALICE may use them though they stand in the prompt.",
                max_length=300,
                verbose_name="words that name it",
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="finish_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("stop", "at a newline"),
                    ("length", "at the token limit"),
                    ("none_allowed", "no token was allowed"),
                ],
                max_length=20,
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="method",
            field=models.CharField(choices=[("topk", "top-k"), ("alice", "ALICE")], max_length=10),
        ),
        migrations.AlterField(
            model_name="generationrun",
            name="method",
            field=models.CharField(
                choices=[("topk", "top-k"), ("alice", "ALICE"), ("paired", "both, from the same prompts")],
                default="topk",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="generationrun",
            name="parameters",
            field=models.JSONField(default=dict, editable=False, help_text="The decoding parameters of each method."),
        ),
        migrations.AlterField(
            model_name="generationrun",
            name="state",
            field=models.CharField(
                choices=[
                    ("queued", "queued"),
                    ("running", "running"),
                    ("paused", "paused"),
                    ("finished", "finished"),
                    ("failed", "failed"),
                    ("cancelled", "cancelled"),
                ],
                default="queued",
                editable=False,
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(fields=("chunk", "position", "method"), name="generation_once_a_place"),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.CheckConstraint(
                condition=models.Q(("method__in", ["topk", "alice"])), name="generation_method_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.CheckConstraint(
                condition=models.Q(("toxic_prob", None), ("toxic_prob__range", (0, 1)), _connector="OR"),
                name="generation_toxic_prob_is_a_probability",
            ),
        ),
        migrations.AddConstraint(
            model_name="generationrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["queued", "running", "paused", "finished", "failed", "cancelled"])),
                name="run_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="generationrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("method__in", ["topk", "alice", "paired"])), name="run_method_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="generationrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("precision__in", ["float32", "bfloat16"])), name="run_precision_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="generationrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("classifier", ""), ("method", "topk")),
                    models.Q(models.Q(("method", "topk"), _negated=True), models.Q(("classifier", ""), _negated=True)),
                    _connector="OR",
                ),
                name="run_has_the_classifier_that_it_needs",
            ),
        ),
        migrations.AddConstraint(
            model_name="generationrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at", None), ("state__in", ("queued", "running", "paused"))),
                    models.Q(
                        models.Q(("state__in", ("queued", "running", "paused")), _negated=True),
                        models.Q(("ended_at", None), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="run_ended_when_its_state_says_so",
            ),
        ),
        migrations.AddConstraint(
            model_name="generationrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state__in", ("failed", "paused")), ("failure", ""), _connector="OR"),
                    models.Q(("failure", ""), ("state", "failed"), _negated=True),
                ),
                name="run_failed_with_a_reason",
            ),
        ),
    ]
