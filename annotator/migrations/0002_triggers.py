"""What no single-row constraint can hold, held by the database all the same.

- A HIT's ``held_places`` and ``open_assignments`` follow its assignments and nothing else, so that
  the check ``hit_never_over_its_max_assignments`` holds for every writer under any concurrency.
- An assignment stays with its HIT and worker, a HIT with its study and statement.
- A generation's text, once in a HIT, never changes.
- A consent form, once published, never changes.
- An assignment rests on a consent of its own worker.
"""

from django.db import migrations

COUNT_PLACES = """
CREATE FUNCTION annotator_count_places() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held integer := 0;
    opened integer := 0;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        held := held + NEW.holds_place::int;
        opened := opened + (NEW.status = 'accepted')::int;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        held := held - OLD.holds_place::int;
        opened := opened - (OLD.status = 'accepted')::int;
    END IF;
    IF held <> 0 OR opened <> 0 THEN
        UPDATE annotator_hit
        SET held_places = held_places + held, open_assignments = open_assignments + opened
        WHERE id = COALESCE(NEW.hit_id, OLD.hit_id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER annotator_count_places
AFTER INSERT OR DELETE OR UPDATE OF holds_place, status ON annotator_assignment
FOR EACH ROW EXECUTE FUNCTION annotator_count_places();

CREATE FUNCTION annotator_keep_counts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'HIT %: its places are counted from its assignments. Save its other fields alone.', NEW.id
    USING ERRCODE = 'check_violation', CONSTRAINT = 'hit_counts_follow_its_assignments';
END $$;

CREATE TRIGGER annotator_start_counts_at_none
BEFORE INSERT ON annotator_hit
FOR EACH ROW WHEN (NEW.held_places <> 0 OR NEW.open_assignments <> 0)
EXECUTE FUNCTION annotator_keep_counts();

-- Depth 0 is a statement of somebody else's; annotator_count_places writes from depth 1.
CREATE TRIGGER annotator_keep_counts
BEFORE UPDATE OF held_places, open_assignments ON annotator_hit
FOR EACH ROW WHEN (
    pg_trigger_depth() = 0
    AND (OLD.held_places, OLD.open_assignments) IS DISTINCT FROM (NEW.held_places, NEW.open_assignments)
)
EXECUTE FUNCTION annotator_keep_counts();
"""

DROP_COUNT_PLACES = """
DROP TRIGGER annotator_keep_counts ON annotator_hit;
DROP TRIGGER annotator_start_counts_at_none ON annotator_hit;
DROP FUNCTION annotator_keep_counts();
DROP TRIGGER annotator_count_places ON annotator_assignment;
DROP FUNCTION annotator_count_places();
"""

KEEP_TOGETHER = """
CREATE FUNCTION annotator_keep_hit_of_assignment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'An assignment stays with its HIT and its worker.'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'assignment_keeps_its_hit_and_worker';
END $$;

CREATE TRIGGER annotator_keep_hit_of_assignment
BEFORE UPDATE OF hit_id, worker_id ON annotator_assignment
FOR EACH ROW WHEN (OLD.hit_id <> NEW.hit_id OR OLD.worker_id <> NEW.worker_id)
EXECUTE FUNCTION annotator_keep_hit_of_assignment();

CREATE FUNCTION annotator_keep_statement_of_hit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'A HIT stays with its study and its statement.'
    USING ERRCODE = 'check_violation', CONSTRAINT = 'hit_keeps_its_study_and_statement';
END $$;

CREATE TRIGGER annotator_keep_statement_of_hit
BEFORE UPDATE OF hit_type_id, generation_id ON annotator_hit
FOR EACH ROW WHEN (OLD.hit_type_id <> NEW.hit_type_id OR OLD.generation_id <> NEW.generation_id)
EXECUTE FUNCTION annotator_keep_statement_of_hit();
"""

DROP_KEEP_TOGETHER = """
DROP TRIGGER annotator_keep_statement_of_hit ON annotator_hit;
DROP FUNCTION annotator_keep_statement_of_hit();
DROP TRIGGER annotator_keep_hit_of_assignment ON annotator_assignment;
DROP FUNCTION annotator_keep_hit_of_assignment();
"""

# The new HIT locks its generation, so that a change of text under way is waited for.
FREEZE_TEXT = """
CREATE FUNCTION annotator_lock_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM generation_generation WHERE id = NEW.generation_id FOR SHARE;
    RETURN NEW;
END $$;

CREATE TRIGGER annotator_lock_generation
BEFORE INSERT ON annotator_hit
FOR EACH ROW EXECUTE FUNCTION annotator_lock_generation();

CREATE FUNCTION annotator_freeze_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM annotator_hit WHERE generation_id = OLD.id) THEN
        RAISE EXCEPTION 'Generation % is in a HIT: its text cannot change.', OLD.id
        USING ERRCODE = 'check_violation', CONSTRAINT = 'generation_text_frozen_in_a_hit';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER annotator_freeze_text
BEFORE UPDATE OF text ON generation_generation
FOR EACH ROW WHEN (OLD.text IS DISTINCT FROM NEW.text)
EXECUTE FUNCTION annotator_freeze_text();
"""

DROP_FREEZE_TEXT = """
DROP TRIGGER annotator_freeze_text ON generation_generation;
DROP FUNCTION annotator_freeze_text();
DROP TRIGGER annotator_lock_generation ON annotator_hit;
DROP FUNCTION annotator_lock_generation();
"""

FREEZE_CONSENT_FORM = """
CREATE FUNCTION annotator_freeze_consent_form() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Consent form version % is published: make a new version instead.', OLD.version
    USING ERRCODE = 'check_violation', CONSTRAINT = 'consent_form_frozen_once_published';
END $$;

CREATE TRIGGER annotator_freeze_consent_form
BEFORE UPDATE ON annotator_consentform
FOR EACH ROW WHEN (OLD.published_at IS NOT NULL AND OLD IS DISTINCT FROM NEW)
EXECUTE FUNCTION annotator_freeze_consent_form();
"""

DROP_FREEZE_CONSENT_FORM = """
DROP TRIGGER annotator_freeze_consent_form ON annotator_consentform;
DROP FUNCTION annotator_freeze_consent_form();
"""

OWN_CONSENT = """
ALTER TABLE annotator_consent ADD CONSTRAINT consent_of_one_worker UNIQUE (id, worker_id);
ALTER TABLE annotator_assignment ADD CONSTRAINT assignment_rests_on_its_workers_consent
FOREIGN KEY (consent_id, worker_id) REFERENCES annotator_consent (id, worker_id) DEFERRABLE INITIALLY DEFERRED;
"""

DROP_OWN_CONSENT = """
ALTER TABLE annotator_assignment DROP CONSTRAINT assignment_rests_on_its_workers_consent;
ALTER TABLE annotator_consent DROP CONSTRAINT consent_of_one_worker;
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0001_initial")]

    operations = [
        migrations.RunSQL(COUNT_PLACES, DROP_COUNT_PLACES),
        migrations.RunSQL(KEEP_TOGETHER, DROP_KEEP_TOGETHER),
        migrations.RunSQL(FREEZE_TEXT, DROP_FREEZE_TEXT),
        migrations.RunSQL(FREEZE_CONSENT_FORM, DROP_FREEZE_CONSENT_FORM),
        migrations.RunSQL(OWN_CONSENT, DROP_OWN_CONSENT),
    ]
