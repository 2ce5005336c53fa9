import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.exceptions import IrreversibleError

# Approving writes the ledger, whoever approves and however: work cannot be approved and not owed.
WRITE_THE_LEDGER = """
CREATE FUNCTION annotator_owe_for_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_payment (worker_id, kind, amount, assignment_id, reason, created_by_id)
    SELECT
        NEW.worker_id, CASE WHEN hit_type.grants_id IS NULL THEN 'assignment' ELSE 'test' END,
        NEW.reward, NEW.id, '', NEW.decided_by_id
    FROM annotator_hit hit JOIN annotator_hittype hit_type ON hit_type.id = hit.hit_type_id
    WHERE hit.id = NEW.hit_id;
    RETURN NULL;
END $$;

CREATE TRIGGER annotator_owe_for_new_assignment
AFTER INSERT ON annotator_assignment
FOR EACH ROW WHEN (NEW.status = 'approved')
EXECUTE FUNCTION annotator_owe_for_assignment();

CREATE TRIGGER annotator_owe_for_assignment
AFTER UPDATE OF status ON annotator_assignment
FOR EACH ROW WHEN (OLD.status <> NEW.status AND NEW.status = 'approved')
EXECUTE FUNCTION annotator_owe_for_assignment();

INSERT INTO annotator_payment (worker_id, kind, amount, assignment_id, reason, created_at)
SELECT worker_id, 'assignment', reward, id, '', decided_at FROM annotator_assignment WHERE status = 'approved';

ALTER TABLE annotator_assignment ADD CONSTRAINT assignment_of_one_worker UNIQUE (id, worker_id);
ALTER TABLE annotator_payment ADD CONSTRAINT payment_to_the_worker_of_its_assignment
FOREIGN KEY (assignment_id, worker_id) REFERENCES annotator_assignment (id, worker_id) DEFERRABLE INITIALLY DEFERRED;

CREATE FUNCTION annotator_keep_ledger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Rows of the ledger are never changed or deleted. Add a row that says what is owed besides.'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_never_edited';
END $$;

CREATE TRIGGER annotator_keep_payments
BEFORE UPDATE OR DELETE ON annotator_payment
FOR EACH ROW EXECUTE FUNCTION annotator_keep_ledger();

CREATE TRIGGER annotator_keep_paid_out
BEFORE UPDATE OR DELETE ON annotator_paidout
FOR EACH ROW EXECUTE FUNCTION annotator_keep_ledger();
"""

DROP_WRITE_THE_LEDGER = """
DROP TRIGGER annotator_keep_paid_out ON annotator_paidout;
DROP TRIGGER annotator_keep_payments ON annotator_payment;
DROP FUNCTION annotator_keep_ledger();
ALTER TABLE annotator_payment DROP CONSTRAINT payment_to_the_worker_of_its_assignment;
ALTER TABLE annotator_assignment DROP CONSTRAINT assignment_of_one_worker;
DROP TRIGGER annotator_owe_for_assignment ON annotator_assignment;
DROP TRIGGER annotator_owe_for_new_assignment ON annotator_assignment;
DROP FUNCTION annotator_owe_for_assignment();
"""


def refuse_to_lose_what_is_owed(apps, schema_editor) -> None:
    if apps.get_model("annotator", "Payment").objects.exists():
        raise IrreversibleError("The ledger has rows, and migrating back would lose what is owed.")


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0007_assignments_keep_drafts_and_rewards"),
    ]

    operations = [
        migrations.CreateModel(
            name="PaidOut",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ],
        ),
        migrations.CreateModel(
            name="Payment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("assignment", "approved work"), ("test", "qualification test"), ("bonus", "bonus")],
                        max_length=10,
                    ),
                ),
                ("amount", models.DecimalField(decimal_places=2, max_digits=8)),
                ("reason", models.TextField(blank=True, help_text="Of a bonus. The worker reads it.")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Payout",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.AddField(
            model_name="payment",
            name="assignment",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="payments",
                to="annotator.assignment",
            ),
        ),
        migrations.AddField(
            model_name="payment",
            name="created_by",
            field=models.ForeignKey(
                editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="payment",
            name="worker",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="payments", to="annotator.worker"
            ),
        ),
        migrations.AddField(
            model_name="paidout",
            name="payment",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="paid_out", to="annotator.payment"
            ),
        ),
        migrations.AddField(
            model_name="payout",
            name="created_by",
            field=models.ForeignKey(
                editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddField(
            model_name="payout",
            name="payments",
            field=models.ManyToManyField(related_name="payouts", through="annotator.PaidOut", to="annotator.payment"),
        ),
        migrations.AddField(
            model_name="paidout",
            name="payout",
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to="annotator.payout"),
        ),
        migrations.AddConstraint(
            model_name="payment",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["assignment", "test", "bonus"])), name="payment_kind_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="payment",
            constraint=models.UniqueConstraint(
                condition=models.Q(("kind", "bonus"), _negated=True),
                fields=("assignment",),
                name="payment_once_an_assignment",
            ),
        ),
        migrations.AddConstraint(
            model_name="payment",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind", "bonus"), ("assignment__isnull", False), _connector="OR"),
                name="payment_of_work_has_its_assignment",
            ),
        ),
        migrations.AddConstraint(
            model_name="payment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("amount__gt", 0), models.Q(("amount", 0), ("assignment__isnull", False)), _connector="OR"
                ),
                name="payment_amount_positive",
                violation_error_message="A bonus is more than 0.",
            ),
        ),
        migrations.AddConstraint(
            model_name="payment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "bonus"), _negated=True), ("reason__regex", "\\S"), _connector="OR"
                ),
                name="payment_bonus_has_a_reason",
                violation_error_message="Say what the bonus is for: the worker reads the reason.",
            ),
        ),
        migrations.RunSQL(WRITE_THE_LEDGER, DROP_WRITE_THE_LEDGER),
        migrations.RunPython(migrations.RunPython.noop, refuse_to_lose_what_is_owed),
    ]
