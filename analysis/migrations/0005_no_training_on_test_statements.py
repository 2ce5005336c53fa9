"""No classifier is trained on a statement of a HUMANVAL set, or on one that is too similar to its statements.

Held by the database, since a score on a set whose statements were trained on is worth nothing. Rows are looked at
together, once a statement that stores them: a training has hundreds of thousands. What is drawn after a training may
have statements of it; the report on classifiers says so.
"""

from django.db import migrations

REFUSE = """
CREATE FUNCTION analysis_refuse_test_statements() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    refused bigint;
BEGIN
    SELECT new_rows.generation_id INTO refused FROM new_rows
    WHERE EXISTS (
        SELECT FROM analysis_humanvalstatement AS own JOIN analysis_humanvalset AS its ON its.id = own.humanval_set_id
        WHERE own.generation_id = new_rows.generation_id AND its.state IN ('drawn', 'published', 'frozen')
    ) OR EXISTS (
        SELECT FROM analysis_removedfromtraining AS own JOIN analysis_humanvalset AS its ON its.id = own.humanval_set_id
        WHERE own.generation_id = new_rows.generation_id AND its.state IN ('drawn', 'published', 'frozen')
    ) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'Statement % is of a HUMANVAL set, or too similar to one: it is not for training.', refused
        USING ERRCODE = 'check_violation', CONSTRAINT = 'training_statement_is_not_for_testing';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER analysis_refuse_test_statements
AFTER INSERT ON analysis_trainingstatement
REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION analysis_refuse_test_statements();

CREATE TRIGGER analysis_refuse_changed_test_statements
AFTER UPDATE ON analysis_trainingstatement
REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION analysis_refuse_test_statements();
"""

DROP = """
DROP TRIGGER analysis_refuse_changed_test_statements ON analysis_trainingstatement;
DROP TRIGGER analysis_refuse_test_statements ON analysis_trainingstatement;
DROP FUNCTION analysis_refuse_test_statements();
"""


class Migration(migrations.Migration):
    dependencies = [("analysis", "0004_classifiers_and_test_sets")]

    operations = [migrations.RunSQL(REFUSE, DROP)]
