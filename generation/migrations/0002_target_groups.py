"""The 13 target groups of the paper (table 2), with the slugs of the released data."""

from django.db import migrations

GROUPS = [
    ("black", "Black", "Black people"),
    ("asian", "Asian", "Asian people"),
    ("native_american", "Native American", "Native American people"),
    ("latino", "Latino", "Latino people"),
    ("jewish", "Jewish", "Jewish people"),
    ("muslim", "Muslim", "Muslim people"),
    ("chinese", "Chinese", "Chinese people"),
    ("mexican", "Mexican", "Mexican people"),
    ("middle_east", "Middle Eastern", "Middle Eastern people"),
    ("lgbtq", "LGBTQ+", "LGBTQ+ people"),
    ("women", "Women", "women"),
    ("mental_dis", "Mental disabilities", "people with mental disabilities"),
    ("physical_dis", "Physical disabilities", "people with physical disabilities"),
]


def add_groups(apps, schema_editor):
    apps.get_model("generation", "TargetGroup").objects.bulk_create(
        apps.get_model("generation", "TargetGroup")(slug=slug, name=name, words=words, position=position)
        for position, (slug, name, words) in enumerate(GROUPS, start=1)
    )


class Migration(migrations.Migration):
    dependencies = [("generation", "0001_initial")]

    operations = [migrations.RunPython(add_groups, migrations.RunPython.noop)]
