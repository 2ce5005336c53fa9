import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

KEEP_THE_TRAIL = """
CREATE FUNCTION generation_keep_audit_trail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Entries of the audit trail are never changed or deleted.'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'audit_trail_never_edited';
END $$;

CREATE TRIGGER generation_keep_audit_trail
BEFORE UPDATE OR DELETE ON generation_auditentry
FOR EACH ROW EXECUTE FUNCTION generation_keep_audit_trail();
"""

DROP_KEEP_THE_TRAIL = """
DROP TRIGGER generation_keep_audit_trail ON generation_auditentry;
DROP FUNCTION generation_keep_audit_trail();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("generation", "0007_written_statements"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                (
                    "act",
                    models.CharField(
                        help_text="As a verb and its object: “run started”, “annotations exported”.", max_length=50
                    ),
                ),
                ("subject", models.CharField(blank=True, help_text="What it was done to: “run 7”.", max_length=200)),
                ("details", models.JSONField(default=dict, help_text="What else is needed to know what was done.")),
            ],
            options={
                "verbose_name_plural": "audit entries",
                "ordering": ["-pk"],
            },
        ),
        migrations.AddField(
            model_name="auditentry",
            name="by",
            field=models.ForeignKey(
                editable=False,
                help_text="Nobody: the command line, or the machine by itself.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["act", "-id"], name="audit_by_act"),
        ),
        migrations.RunSQL(KEEP_THE_TRAIL, DROP_KEEP_THE_TRAIL),
    ]
