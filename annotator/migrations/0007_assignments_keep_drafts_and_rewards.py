import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

FILL_IN = """
UPDATE annotator_assignment SET
    reward = hit_type.reward,
    holds_place = holds_place AND status <> 'rejected',
    decided_at = CASE WHEN status IN ('approved', 'rejected') THEN COALESCE(decided_at, submitted_at) END
FROM annotator_hit hit JOIN annotator_hittype hit_type ON hit_type.id = hit.hit_type_id
WHERE hit.id = hit_id;
"""

# Mechanical Turk's ways of an assignment, late work besides, which is submitted after it was given back.
KEEP_TO_THE_WAYS = """
CREATE FUNCTION annotator_check_move_of_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.status, NEW.status) NOT IN (
        ('accepted', 'submitted'), ('accepted', 'returned'), ('accepted', 'expired'),
        ('returned', 'submitted'), ('expired', 'submitted'),
        ('submitted', 'approved'), ('submitted', 'rejected'), ('rejected', 'approved')
    ) THEN
        RAISE EXCEPTION 'An assignment that is % cannot become %.', OLD.status, NEW.status
        USING ERRCODE = 'check_violation', CONSTRAINT = 'assignment_moves_as_it_may';
    END IF;
    IF OLD.status = 'rejected' AND OLD.decided_at < now() - interval '30 days' THEN
        RAISE EXCEPTION 'An assignment can be approved within 30 days of its rejection.'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'assignment_approved_within_30_days_of_its_rejection';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotator_check_move_of_assignment
BEFORE UPDATE OF status ON annotator_assignment
FOR EACH ROW WHEN (OLD.status <> NEW.status)
EXECUTE FUNCTION annotator_check_move_of_assignment();

CREATE FUNCTION annotator_keep_reward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'An assignment keeps the reward that was promised when it was accepted. Pay a bonus instead.'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'assignment_keeps_its_reward';
END $$;

CREATE TRIGGER annotator_keep_reward
BEFORE UPDATE OF reward ON annotator_assignment
FOR EACH ROW WHEN (OLD.reward <> NEW.reward)
EXECUTE FUNCTION annotator_keep_reward();
"""

DROP_KEEP_TO_THE_WAYS = """
DROP TRIGGER annotator_keep_reward ON annotator_assignment;
DROP FUNCTION annotator_keep_reward();
DROP TRIGGER annotator_check_move_of_assignment ON annotator_assignment;
DROP FUNCTION annotator_check_move_of_assignment();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0006_hits_know_label_and_check"),
    ]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="answers_deleted_at",
            field=models.DateTimeField(
                editable=False, help_text="The worker withdrew and had the answers deleted; the pay stays.", null=True
            ),
        ),
        migrations.AddField(
            model_name="assignment",
            name="working_since",
            field=models.DateTimeField(
                editable=False, help_text="When the worker's stretch of work without a break began.", null=True
            ),
        ),
        migrations.AddField(
            model_name="assignment",
            name="draft",
            field=models.JSONField(
                editable=False,
                help_text="What was typed and not submitted yet, by field as the form sends it.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="assignment",
            name="reward",
            field=models.DecimalField(
                decimal_places=2,
                default=0,
                help_text="In US dollars, as promised when it was accepted.",
                max_digits=6,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="assignment",
            name="decided_by",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                help_text="Nobody: approved by itself.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(FILL_IN, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="assignment",
            name="consent",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="assignments",
                to="annotator.consent",
            ),
        ),
        # Dropping the index of the field takes this one along: it is on the same column.
        migrations.RemoveConstraint("assignment", "assignment_one_open_a_worker"),
        migrations.AlterField(
            model_name="assignment",
            name="worker",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="assignments",
                to="annotator.worker",
            ),
        ),
        migrations.AddConstraint(
            "assignment",
            models.UniqueConstraint(
                condition=models.Q(("status", "accepted")), fields=("worker",), name="assignment_one_open_a_worker"
            ),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                condition=models.Q(("status", "submitted")), fields=["submitted_at"], name="assignment_to_review"
            ),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["worker", "accepted_at"], name="assignment_of_a_worker"),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "rejected"), _negated=True), ("holds_place", False), _connector="OR"
                ),
                name="assignment_rejected_frees_its_place",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status__in", ("approved", "rejected")), _negated=True),
                    ("decided_at__isnull", False),
                    _connector="OR",
                ),
                name="assignment_decided_when_its_status_says_so",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("answers_deleted_at", None),
                    models.Q(("draft__isnull", True), ("holds_place", False)),
                    _connector="OR",
                ),
                name="assignment_without_answers_holds_no_place",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("draft__isnull", True),
                    models.Q(("status__in", ("submitted", "approved", "rejected")), _negated=True),
                    _connector="OR",
                ),
                name="assignment_draft_ends_with_submitting",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(("reward__gte", 0)), name="assignment_reward_not_negative"
            ),
        ),
        migrations.RunSQL(KEEP_TO_THE_WAYS, DROP_KEEP_TO_THE_WAYS),
    ]
