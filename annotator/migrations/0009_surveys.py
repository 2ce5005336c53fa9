import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0008_ledger"),
    ]

    operations = [
        migrations.CreateModel(
            name="Survey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "race_ethnicity",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("white", "White"),
                                ("black", "Black or African American"),
                                ("hispanic", "Hispanic or Latino"),
                                ("asian", "Asian"),
                                ("pacific_islander", "Pacific Islander"),
                                ("native_american", "Native American or Alaska Native"),
                                ("middle_eastern", "Middle Eastern or North African"),
                                ("other", "Other"),
                                ("describe", "I describe myself:"),
                                ("prefer_not", "Prefer not to say"),
                            ],
                            max_length=20,
                        ),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("race_ethnicity_described", models.CharField(blank=True, max_length=100)),
                (
                    "gender",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("female", "Female"),
                            ("male", "Male"),
                            ("non_binary", "Non-binary"),
                            ("describe", "I describe myself:"),
                            ("prefer_not", "Prefer not to say"),
                        ],
                        max_length=20,
                    ),
                ),
                ("gender_described", models.CharField(blank=True, max_length=100)),
                (
                    "age_band",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("18_24", "18 to 24"),
                            ("25_34", "25 to 34"),
                            ("35_44", "35 to 44"),
                            ("45_54", "45 to 54"),
                            ("55_64", "55 to 64"),
                            ("65_up", "65 or older"),
                            ("describe", "I describe myself:"),
                            ("prefer_not", "Prefer not to say"),
                        ],
                        max_length=20,
                    ),
                ),
                ("age_band_described", models.CharField(blank=True, max_length=100)),
                (
                    "political_leaning",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("very_left", "Very left-leaning"),
                            ("left", "Left-leaning"),
                            ("moderate", "Moderate"),
                            ("right", "Right-leaning"),
                            ("very_right", "Very right-leaning"),
                            ("describe", "I describe myself:"),
                            ("prefer_not", "Prefer not to say"),
                        ],
                        max_length=20,
                    ),
                ),
                ("political_leaning_described", models.CharField(blank=True, max_length=100)),
                (
                    "lgbtq",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("yes", "Yes"),
                            ("no", "No"),
                            ("describe", "I describe myself:"),
                            ("prefer_not", "Prefer not to say"),
                        ],
                        max_length=20,
                    ),
                ),
                ("lgbtq_described", models.CharField(blank=True, max_length=100)),
                ("answered_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.AddField(
            model_name="survey",
            name="worker",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="survey", to="annotator.worker"
            ),
        ),
    ]
