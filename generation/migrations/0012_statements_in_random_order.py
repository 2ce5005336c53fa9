import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0011_trials_of_prompts"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="generation",
            name="generation_text_once_a_run",
        ),
        migrations.RemoveConstraint(
            model_name="generation",
            name="generation_once_a_place",
        ),
        migrations.AddField(
            model_name="generation",
            name="shuffle",
            field=models.FloatField(
                db_default=django.db.models.functions.math.Random(),
                editable=False,
                help_text="Its place in the order that random draws walk along.",
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="chunk",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="generations",
                to="generation.generationchunk",
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="generations",
                to="generation.targetgroup",
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="run",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="generations",
                to="generation.generationrun",
            ),
        ),
        migrations.AlterField(
            model_name="generation",
            name="toxic_prob",
            field=models.FloatField(
                blank=True,
                help_text="A classifier's probability that the text is toxic: the run's, or the imported file's.",
                null=True,
            ),
        ),
        migrations.AddIndex(
            model_name="generation",
            index=models.Index(fields=["group", "label", "method", "shuffle"], name="generation_at_random"),
        ),
        migrations.AddIndex(
            model_name="generation",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.search.SearchVector("text", config="simple"), name="generation_words"
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(
                condition=models.Q(("chunk__isnull", False)),
                fields=("chunk", "position", "method"),
                name="generation_once_a_place",
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(
                models.F("run"),
                django.db.models.functions.text.MD5(models.Func("text", template='LOWER(%(expressions)s COLLATE "C")')),
                condition=models.Q(("run__isnull", False)),
                name="generation_text_once_a_run",
            ),
        ),
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.MD5("text"),
                django.db.models.functions.comparison.Coalesce("prompt", 0),
                models.F("group"),
                models.F("label"),
                models.F("method"),
                condition=models.Q(("run__isnull", True), models.Q(("method", "written"), _negated=True)),
                name="generation_imported_once",
            ),
        ),
    ]
