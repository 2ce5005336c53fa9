"""Parameters keyed by method, as runs of two methods need them."""

from django.db import migrations


def key_by_method(apps, schema_editor):
    for run in apps.get_model("generation", "GenerationRun").objects.only("method", "parameters").iterator():
        run.parameters = {run.method: run.parameters}
        run.save(update_fields=["parameters"])


def key_no_more(apps, schema_editor):
    for run in apps.get_model("generation", "GenerationRun").objects.only("method", "parameters").iterator():
        run.parameters = run.parameters.get("topk", {})
        run.save(update_fields=["parameters"])


class Migration(migrations.Migration):
    dependencies = [("generation", "0003_alice_and_pairs")]

    operations = [migrations.RunPython(key_by_method, key_no_more)]
