from django.db import migrations, models

HELP_LINES = [
    ("Crisis Text Line", "text HOME to 741741 in the US, any time", "https://www.crisistextline.org/"),
    ("988 Suicide & Crisis Lifeline", "call or text 988 in the US, any time", "https://988lifeline.org/"),
    ("Find A Helpline", "free lines in your country", "https://findahelpline.com/"),
]


def add_help_lines(apps, schema_editor) -> None:
    apps.get_model("annotator", "HelpLine").objects.bulk_create(
        apps.get_model("annotator", "HelpLine")(name=name, how=how, url=url, position=position)
        for position, (name, how, url) in enumerate(HELP_LINES, start=1)
    )


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0002_triggers"),
    ]

    operations = [
        migrations.CreateModel(
            name="HelpLine",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("how", models.CharField(help_text="How to reach it, from where and when.", max_length=200)),
                ("url", models.URLField(blank=True, verbose_name="address")),
                ("position", models.PositiveSmallIntegerField(default=0, help_text="The smallest comes first.")),
            ],
            options={
                "ordering": ["position", "pk"],
            },
        ),
        migrations.RunPython(add_help_lines, migrations.RunPython.noop),
        migrations.RemoveConstraint(
            model_name="consent",
            name="consent_once_a_version",
        ),
        # The whole of an old form stays where it is read first; a published one is not edited.
        migrations.RenameField("consentform", "body", "purpose"),
        migrations.AlterField(
            "consentform",
            "purpose",
            models.TextField(help_text="What the study is for, and what one does in it."),
        ),
        migrations.AddField(
            model_name="consentform",
            name="contact",
            field=models.TextField(default="", help_text="Who answers questions, and how to reach them."),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="consentform",
            name="debrief",
            field=models.TextField(blank=True, help_text="Read at the end: what the work was for, and thanks."),
        ),
        migrations.AddField(
            model_name="consentform",
            name="pay",
            field=models.TextField(default="", help_text="What is paid, when, and what happens when one stops early."),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="consentform",
            name="risks",
            field=models.TextField(default="", help_text="What may hurt, and what can be done about it."),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="consentform",
            name="withdrawal",
            field=models.TextField(default="", help_text="How to withdraw, and what happens to past answers."),
            preserve_default=False,
        ),
        migrations.AlterField(
            model_name="consentform",
            name="warning",
            field=models.TextField(
                help_text="Read first: name the kinds of harm. The groups of the statements are listed below it."
            ),
        ),
        migrations.AddConstraint(
            model_name="consent",
            constraint=models.UniqueConstraint(
                condition=models.Q(("withdrawn_at", None)),
                fields=("worker", "form"),
                name="consent_in_force_once_a_version",
            ),
        ),
    ]
