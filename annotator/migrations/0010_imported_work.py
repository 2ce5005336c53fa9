from django.db import migrations, models

# Imported work was paid elsewhere: it is approved without being owed.
NOT_OWED = """
CREATE OR REPLACE FUNCTION annotator_owe_for_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_payment (worker_id, kind, amount, assignment_id, reason, created_by_id)
    SELECT
        NEW.worker_id, CASE WHEN hit_type.grants_id IS NULL THEN 'assignment' ELSE 'test' END,
        NEW.reward, NEW.id, '', NEW.decided_by_id
    FROM annotator_hit hit JOIN annotator_hittype hit_type ON hit_type.id = hit.hit_type_id
    WHERE hit.id = NEW.hit_id AND NOT hit_type.imported;
    RETURN NULL;
END $$;

CREATE FUNCTION annotator_keep_imported() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Whether a study holds imported work is decided when it is made.'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'hit_type_keeps_whether_it_is_imported';
END $$;

CREATE TRIGGER annotator_keep_imported
BEFORE UPDATE OF imported ON annotator_hittype
FOR EACH ROW WHEN (OLD.imported <> NEW.imported)
EXECUTE FUNCTION annotator_keep_imported();

CREATE FUNCTION annotator_check_imported_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM annotator_hit hit JOIN annotator_hittype hit_type ON hit_type.id = hit.hit_type_id
        WHERE hit.id = NEW.hit_id AND hit_type.imported
    ) THEN
        RAISE EXCEPTION 'A study of imported work has nothing to hand out.'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'assignment_of_imported_work_is_done';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotator_check_imported_assignment
BEFORE INSERT ON annotator_assignment
FOR EACH ROW WHEN (NEW.status NOT IN ('approved', 'rejected'))
EXECUTE FUNCTION annotator_check_imported_assignment();
"""

OWED_AGAIN = """
DROP TRIGGER annotator_check_imported_assignment ON annotator_assignment;
DROP FUNCTION annotator_check_imported_assignment();
DROP TRIGGER annotator_keep_imported ON annotator_hittype;
DROP FUNCTION annotator_keep_imported();
CREATE OR REPLACE FUNCTION annotator_owe_for_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_payment (worker_id, kind, amount, assignment_id, reason, created_by_id)
    SELECT
        NEW.worker_id, CASE WHEN hit_type.grants_id IS NULL THEN 'assignment' ELSE 'test' END,
        NEW.reward, NEW.id, '', NEW.decided_by_id
    FROM annotator_hit hit JOIN annotator_hittype hit_type ON hit_type.id = hit.hit_type_id
    WHERE hit.id = NEW.hit_id;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0009_surveys"),
    ]

    operations = [
        migrations.AddField(
            model_name="hittype",
            name="imported",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="Work done and paid elsewhere: nobody is given its HITs, and nothing is owed.",
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="imported_hash",
            field=models.CharField(
                blank=True,
                editable=False,
                help_text="Of somebody whose work was imported: the hash that stands for them in files.",
                max_length=128,
            ),
        ),
        migrations.AddConstraint(
            model_name="hittype",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("imported", False), models.Q(("grants", None), ("reward", 0), ("run", None)), _connector="OR"
                ),
                name="hit_type_imported_pays_nothing",
                violation_error_message="A study of imported work pays nothing: the work was paid elsewhere.",
            ),
        ),
        migrations.AddConstraint(
            model_name="worker",
            constraint=models.UniqueConstraint(
                condition=models.Q(("imported_hash", ""), _negated=True),
                fields=("imported_hash",),
                name="worker_imported_once",
            ),
        ),
        migrations.RunSQL(NOT_OWED, OWED_AGAIN),
    ]
