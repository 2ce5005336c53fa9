"""What no single-row constraint can hold of HUMANVAL sets, held by the database all the same.

- A set is wanted, then drawn or failed, then published, then frozen, and never goes back. What it was drawn with stays
  from the drawing on, its study from its publishing on, its labels and its checksum from its freezing on. That later
  statements were compared with it may be noted.
- The statements of a set that is with annotators stay; their labels are filled in when it is frozen, and stay then.
- What was removed from training for such a set stays removed. More may be: of statements that are stored later. What
  it is too similar to is of the set.

Whoever may truncate tables or switch triggers off can still do all of it; ``verify_humanval`` then says what is wrong.
"""

from django.db import migrations

KEEP_SETS = """
CREATE FUNCTION analysis_keep_set() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        RAISE EXCEPTION 'A HUMANVAL set is drawn before it is published and frozen.'
        USING ERRCODE = 'check_violation', CONSTRAINT = 'humanval_states_in_order';
    ELSIF TG_OP = 'DELETE' THEN
        RAISE EXCEPTION 'HUMANVAL % is %: it stays.', OLD.version, OLD.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'humanval_set_stays';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN (
        ('wanted', 'drawn'), ('wanted', 'failed'), ('drawn', 'published'), ('published', 'frozen')
    ) THEN
        RAISE EXCEPTION 'HUMANVAL % is %: it cannot become %.', OLD.version, OLD.state, NEW.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'humanval_states_in_order';
    END IF;
    -- Who made it may be deleted, and newer statements be compared with it.
    IF OLD.state IN ('drawn', 'published', 'frozen') AND (
        (OLD.version, OLD.based_on_id, OLD.size, OLD.threshold, OLD.candidates, OLD.seed, OLD.filters, OLD.reader_id,
         OLD.report, OLD.created_at, OLD.finished_at)
        IS DISTINCT FROM
        (NEW.version, NEW.based_on_id, NEW.size, NEW.threshold, NEW.candidates, NEW.seed, NEW.filters, NEW.reader_id,
         NEW.report, NEW.created_at, NEW.finished_at)
        OR NEW.compared_up_to < OLD.compared_up_to
        OR OLD.state <> 'drawn' AND (
            NEW.hit_type_id IS DISTINCT FROM OLD.hit_type_id
            OR NEW.created_by_id IS DISTINCT FROM OLD.created_by_id AND NEW.created_by_id IS NOT NULL
        )
        OR OLD.state = 'frozen' AND (OLD.agreement, OLD.checksum, OLD.frozen_at)
            IS DISTINCT FROM (NEW.agreement, NEW.checksum, NEW.frozen_at)
    ) THEN
        RAISE EXCEPTION 'HUMANVAL % is %: it stays as it is. Make a new version.', OLD.version, OLD.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'humanval_set_stays';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER analysis_keep_set_in_order
BEFORE INSERT ON analysis_humanvalset
FOR EACH ROW WHEN (NEW.state IN ('published', 'frozen')) EXECUTE FUNCTION analysis_keep_set();

CREATE TRIGGER analysis_keep_set_as_it_is
BEFORE UPDATE ON analysis_humanvalset
FOR EACH ROW WHEN (OLD IS DISTINCT FROM NEW) EXECUTE FUNCTION analysis_keep_set();

CREATE TRIGGER analysis_keep_set
BEFORE DELETE ON analysis_humanvalset
FOR EACH ROW WHEN (OLD.state IN ('published', 'frozen')) EXECUTE FUNCTION analysis_keep_set();
"""

DROP_KEEP_SETS = """
DROP TRIGGER analysis_keep_set ON analysis_humanvalset;
DROP TRIGGER analysis_keep_set_as_it_is ON analysis_humanvalset;
DROP TRIGGER analysis_keep_set_in_order ON analysis_humanvalset;
DROP FUNCTION analysis_keep_set();
"""

# The set is locked, so that it is not published or frozen until the change of its statement is stored.
KEEP_STATEMENTS = """
CREATE FUNCTION analysis_keep_humanval_statements() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    its_state text;
    its_version integer;
BEGIN
    SELECT state, version INTO its_state, its_version FROM analysis_humanvalset
    WHERE id = CASE TG_OP WHEN 'INSERT' THEN NEW.humanval_set_id ELSE OLD.humanval_set_id END FOR SHARE;
    IF its_state = 'published' AND TG_OP = 'UPDATE' THEN
        IF (NEW.id, NEW.humanval_set_id, NEW.generation_id, NEW.neighbours)
            = (OLD.id, OLD.humanval_set_id, OLD.generation_id, OLD.neighbours)
        THEN
            RETURN NEW;
        END IF;
    ELSIF TG_OP = 'UPDATE' AND NEW.humanval_set_id <> OLD.humanval_set_id THEN
        RAISE EXCEPTION 'A statement of HUMANVAL % stays with its set.', its_version
        USING ERRCODE = 'check_violation', CONSTRAINT = 'humanval_statements_stay';
    ELSIF its_state NOT IN ('published', 'frozen') OR its_state IS NULL THEN
        RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
    END IF;
    RAISE EXCEPTION 'HUMANVAL % is %: its statements stay as they are.', its_version, its_state
    USING ERRCODE = 'check_violation', CONSTRAINT = 'humanval_statements_stay';
END $$;

CREATE TRIGGER analysis_keep_humanval_statements
BEFORE INSERT OR UPDATE OR DELETE ON analysis_humanvalstatement
FOR EACH ROW EXECUTE FUNCTION analysis_keep_humanval_statements();
"""

DROP_KEEP_STATEMENTS = """
DROP TRIGGER analysis_keep_humanval_statements ON analysis_humanvalstatement;
DROP FUNCTION analysis_keep_humanval_statements();
"""

KEEP_REMOVED = """
CREATE FUNCTION analysis_keep_removed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    its_state text;
    its_version integer;
BEGIN
    SELECT state, version INTO its_state, its_version FROM analysis_humanvalset
    WHERE id = OLD.humanval_set_id FOR SHARE;
    IF its_state IN ('published', 'frozen') THEN
        RAISE EXCEPTION 'HUMANVAL % is %: what was removed from training for it stays removed.', its_version, its_state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'humanval_removed_stay_removed';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;

CREATE TRIGGER analysis_keep_removed
BEFORE UPDATE OR DELETE ON analysis_removedfromtraining
FOR EACH ROW EXECUTE FUNCTION analysis_keep_removed();

ALTER TABLE analysis_removedfromtraining ADD CONSTRAINT removed_statement_is_near_one_of_the_set
FOREIGN KEY (humanval_set_id, nearest_id) REFERENCES analysis_humanvalstatement (humanval_set_id, generation_id)
ON DELETE CASCADE;
"""

DROP_KEEP_REMOVED = """
ALTER TABLE analysis_removedfromtraining DROP CONSTRAINT removed_statement_is_near_one_of_the_set;
DROP TRIGGER analysis_keep_removed ON analysis_removedfromtraining;
DROP FUNCTION analysis_keep_removed();
"""


class Migration(migrations.Migration):
    dependencies = [("analysis", "0002_reports_and_humanval_sets")]

    operations = [
        migrations.RunSQL(KEEP_SETS, DROP_KEEP_SETS),
        migrations.RunSQL(KEEP_STATEMENTS, DROP_KEEP_STATEMENTS),
        migrations.RunSQL(KEEP_REMOVED, DROP_KEEP_REMOVED),
    ]
