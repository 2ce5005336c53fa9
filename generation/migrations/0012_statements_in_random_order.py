import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.functions.text
from django.core.management.base import CommandError
from django.db import migrations, models
from django.db.models import Count, Min
from django.db.models.functions import MD5, Coalesce

REPETITIONS_NAMED = 10


def refuse_repetitions(apps, schema_editor) -> None:
    """Say which statements stand in the way of ``generation_imported_once``, before the database only says that."""
    statements = apps.get_model("generation", "Generation").objects.filter(run=None).exclude(method="written")
    key = {"digest": MD5("text"), "any_prompt": Coalesce("prompt", 0)}
    same = ("digest", "any_prompt", "group", "label", "method")
    repeated = list(
        statements.order_by()
        .annotate(**key)
        .values(*same)
        .annotate(number=Count("pk"), first=Min("pk"))
        .filter(number__gt=1)
        .order_by("first")
    )
    if not repeated:
        return
    named = []
    for row in repeated[:REPETITIONS_NAMED]:
        equal = statements.annotate(**key).filter(**{name: row[name] for name in same}).order_by("pk")
        named.append(" = ".join(map(str, equal.values_list("pk", flat=True)[:REPETITIONS_NAMED])))
    more = len(repeated) - len(named)
    raise CommandError(
        "Of statements outside of runs only one may have the same text, prompt, group, label and method. These are "
        f"equal, by their ids in generation_generation: {'; '.join(named)}{f'; and {more} more' if more else ''}. "
        "Nothing was changed. Keep one of each: delete the others, or, where a HIT shows them, set their method to "
        "'written'. Then run migrate again."
    )


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0011_trials_of_prompts"),
    ]

    operations = [
        migrations.RunPython(refuse_repetitions, migrations.RunPython.noop),
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
