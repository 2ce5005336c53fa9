"""Plain words that name each of the 13 groups, which ALICE may use though they stand in the prompt."""

from django.db import migrations

WORDS = {
    "black": "black african africans american americans",
    "asian": "asian asians asia american americans",
    "native_american": "native natives american americans indigenous",
    "latino": "latino latinos latina latinas latinx hispanic hispanics latin american americans",
    "jewish": "jewish jew jews judaism",
    "muslim": "muslim muslims islam islamic",
    "chinese": "chinese china",
    "mexican": "mexican mexicans mexico american americans",
    "middle_east": "middle east eastern arab arabs arabic",
    "lgbtq": "lgbt lgbtq lgbtq+ gay lesbian lesbians bisexual bisexuals transgender trans queer nonbinary",
    "women": "woman women female females girl girls lady ladies",
    "mental_dis": (
        "mental mentally intellectual intellectually disability disabilities disabled autism autistic illness "
        "condition conditions disorder disorders"
    ),
    "physical_dis": (
        "physical physically disability disabilities disabled deaf blind wheelchair wheelchairs impairment "
        "impairments impaired"
    ),
}


def add_words(apps, schema_editor):
    for slug, words in WORDS.items():
        apps.get_model("generation", "TargetGroup").objects.filter(slug=slug, naming_words="").update(
            naming_words=words
        )


class Migration(migrations.Migration):
    dependencies = [("generation", "0004_parameters_by_method")]

    operations = [migrations.RunPython(add_words, migrations.RunPython.noop)]
