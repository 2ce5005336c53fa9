import datetime
from decimal import Decimal

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0004_panels_preferences_and_grants"),
        ("generation", "0007_written_statements"),
    ]

    operations = [
        migrations.CreateModel(
            name="KnownAnswers",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("expected", models.JSONField()),
                (
                    "note",
                    models.CharField(blank=True, help_text="For you: why these answers are right.", max_length=200),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "verbose_name": "known answers",
                "verbose_name_plural": "known answers",
            },
        ),
        migrations.CreateModel(
            name="TestResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("right", models.PositiveSmallIntegerField(help_text="Statements answered as expected.")),
                ("total", models.PositiveSmallIntegerField()),
                ("passed", models.BooleanField()),
                (
                    "taken_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
        ),
        migrations.AddField(
            model_name="hittype",
            name="break_after",
            field=models.DurationField(
                default=datetime.timedelta(seconds=1200),
                help_text="After so much work without one, a break is suggested.",
            ),
        ),
        migrations.AddField(
            model_name="hittype",
            name="check_every",
            field=models.PositiveSmallIntegerField(
                default=20,
                help_text="On average, at random, for each worker, as long as there are some.",
                validators=[django.core.validators.MinValueValidator(2)],
                verbose_name="a known answer every … statements",
            ),
        ),
        migrations.AddField(
            model_name="hittype",
            name="daily_cap",
            field=models.PositiveIntegerField(
                default=50,
                help_text=(
                    "Nobody is given more statements in 24 hours, all studies together, also if they return some."
                ),
            ),
        ),
        migrations.AddField(
            model_name="hittype",
            name="expected_time",
            field=models.DurationField(
                default=datetime.timedelta(seconds=105),
                help_text="By your own trial, as hours:minutes:seconds. Used until ten submissions tell better.",
                verbose_name="expected time a HIT",
            ),
        ),
        migrations.AddField(
            model_name="hittype",
            name="grants",
            field=models.ForeignKey(
                blank=True,
                help_text="Makes this study a paid qualification test.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="tests",
                to="annotator.qualification",
                verbose_name="qualification to earn",
            ),
        ),
        migrations.AddField(
            model_name="hittype",
            name="pass_mark",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text=(
                    "Of a test: the share of its statements that must be answered right. Statements about groups that "
                    "a worker does not want to read about are left out; whoever leaves out more than half does not "
                    "pass."
                ),
                null=True,
                validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)],
                verbose_name="pass mark (%)",
            ),
        ),
        migrations.AddField(
            model_name="hittype",
            name="wage_floor",
            field=models.DecimalField(
                decimal_places=2,
                default=Decimal("8.00"),
                help_text="Nothing is published that pays less; if the work takes longer than expected you are warned.",
                max_digits=6,
                validators=[django.core.validators.MinValueValidator(Decimal("0.00"))],
                verbose_name="wage floor (USD an hour)",
            ),
        ),
        migrations.AlterField(
            model_name="hittype",
            name="qualifications",
            field=models.ManyToManyField(
                blank=True,
                help_text="A worker must have all of them.",
                related_name="studies",
                to="annotator.qualification",
            ),
        ),
        migrations.AddField(
            model_name="knownanswers",
            name="created_by",
            field=models.ForeignKey(
                editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="knownanswers",
            name="generation",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="known_answers",
                to="generation.generation",
                verbose_name="statement",
            ),
        ),
        migrations.AddField(
            model_name="hittype",
            name="known_answers",
            field=models.ManyToManyField(
                blank=True,
                help_text="Statements with known answers, mixed in; of a qualification test, all there is.",
                related_name="studies",
                to="annotator.knownanswers",
            ),
        ),
        migrations.AddConstraint(
            model_name="hittype",
            constraint=models.CheckConstraint(
                condition=models.Q(("expected_time__gt", datetime.timedelta(0))),
                name="hit_type_expected_time_positive",
                violation_error_message="A statement takes some time: give a duration above 0.",
            ),
        ),
        migrations.AddConstraint(
            model_name="hittype",
            constraint=models.CheckConstraint(
                condition=models.Q(("wage_floor__gte", 0)),
                name="hit_type_wage_floor_not_negative",
                violation_error_message="The wage floor cannot be below 0.",
            ),
        ),
        migrations.AddConstraint(
            model_name="hittype",
            constraint=models.CheckConstraint(
                condition=models.Q(("daily_cap__gte", 1)),
                name="hit_type_daily_cap_positive",
                violation_error_message="A daily cap of 0 would let nobody work: give at least 1.",
            ),
        ),
        migrations.AddConstraint(
            model_name="hittype",
            constraint=models.CheckConstraint(
                condition=models.Q(("break_after__gt", datetime.timedelta(0))),
                name="hit_type_break_after_positive",
                violation_error_message="A break can be suggested after some work only: give a duration above 0.",
            ),
        ),
        migrations.AddConstraint(
            model_name="hittype",
            constraint=models.CheckConstraint(
                condition=models.Q(("check_every__gte", 2)),
                name="hit_type_check_every_leaves_room",
                violation_error_message="At most every second statement can be one with known answers: give 2 or more.",
            ),
        ),
        migrations.AddConstraint(
            model_name="hittype",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("grants", None), ("pass_mark", None)),
                    models.Q(
                        ("grants__isnull", False),
                        ("pass_mark__isnull", False),
                        ("pass_mark__range", (1, 100)),
                        ("run", None),
                    ),
                    _connector="OR",
                ),
                name="hit_type_test_has_a_pass_mark",
                violation_error_message=(
                    "A qualification test needs a qualification to earn, a pass mark of 1 to 100 and no run; "
                    "any other study needs none of the first two."
                ),
            ),
        ),
        migrations.AddField(
            model_name="testresult",
            name="test",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="results", to="annotator.hittype"
            ),
        ),
        migrations.AddField(
            model_name="testresult",
            name="worker",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="test_results", to="annotator.worker"
            ),
        ),
        migrations.AddConstraint(
            model_name="knownanswers",
            constraint=models.CheckConstraint(
                condition=models.Q(("expected", {}), _negated=True), name="known_answers_expect_something"
            ),
        ),
        migrations.AddConstraint(
            model_name="testresult",
            constraint=models.UniqueConstraint(fields=("test", "worker"), name="test_result_once_a_worker"),
        ),
        migrations.AddConstraint(
            model_name="testresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("right__lte", models.F("total")), ("total__gt", 0)), name="test_result_is_a_share"
            ),
        ),
    ]
