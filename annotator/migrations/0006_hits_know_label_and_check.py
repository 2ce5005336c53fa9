from django.db import migrations, models

COPY_LABELS = """
UPDATE annotator_hit SET prompt_label = generation.label
FROM generation_generation generation WHERE generation.id = generation_id;
"""

# The new HIT locks its generation, so that a change under way is waited for, and takes its label over.
KEEP_LABELS = """
CREATE OR REPLACE FUNCTION annotator_lock_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT label INTO NEW.prompt_label FROM generation_generation WHERE id = NEW.generation_id FOR SHARE;
    RETURN NEW;
END $$;

DROP TRIGGER annotator_freeze_text ON generation_generation;
CREATE TRIGGER annotator_freeze_text
BEFORE UPDATE OF text, label, group_id ON generation_generation
FOR EACH ROW WHEN ((OLD.text, OLD.label, OLD.group_id) IS DISTINCT FROM (NEW.text, NEW.label, NEW.group_id))
EXECUTE FUNCTION annotator_freeze_text();

DROP TRIGGER annotator_keep_statement_of_hit ON annotator_hit;
CREATE TRIGGER annotator_keep_statement_of_hit
BEFORE UPDATE OF hit_type_id, generation_id, prompt_label, is_check ON annotator_hit
FOR EACH ROW WHEN (
    (OLD.hit_type_id, OLD.generation_id, OLD.prompt_label, OLD.is_check)
    IS DISTINCT FROM (NEW.hit_type_id, NEW.generation_id, NEW.prompt_label, NEW.is_check)
)
EXECUTE FUNCTION annotator_keep_statement_of_hit();
"""

DROP_KEEP_LABELS = """
DROP TRIGGER annotator_keep_statement_of_hit ON annotator_hit;
CREATE TRIGGER annotator_keep_statement_of_hit
BEFORE UPDATE OF hit_type_id, generation_id ON annotator_hit
FOR EACH ROW WHEN (OLD.hit_type_id <> NEW.hit_type_id OR OLD.generation_id <> NEW.generation_id)
EXECUTE FUNCTION annotator_keep_statement_of_hit();

DROP TRIGGER annotator_freeze_text ON generation_generation;
CREATE TRIGGER annotator_freeze_text
BEFORE UPDATE OF text ON generation_generation
FOR EACH ROW WHEN (OLD.text IS DISTINCT FROM NEW.text)
EXECUTE FUNCTION annotator_freeze_text();

CREATE OR REPLACE FUNCTION annotator_lock_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM generation_generation WHERE id = NEW.generation_id FOR SHARE;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0005_studies_that_pay_test_and_care"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="hit",
            name="hit_next",
        ),
        migrations.AddField(
            model_name="hit",
            name="is_check",
            field=models.BooleanField(
                default=False,
                editable=False,
                help_text="It tests the annotator and makes no label.",
                verbose_name="known answers",
            ),
        ),
        migrations.AddField(
            model_name="hit",
            name="prompt_label",
            field=models.CharField(
                default="",
                editable=False,
                help_text="Its statement's. Kept by a trigger, never written elsewhere.",
                max_length=10,
            ),
            preserve_default=False,
        ),
        migrations.AddIndex(
            model_name="hit",
            index=models.Index(
                condition=models.Q(("disposed_at", None), ("free_places__gt", 0)),
                fields=["hit_type", "is_check", "prompt_label", "free_places", "shuffle"],
                name="hit_next_of_a_study",
            ),
        ),
        migrations.RunSQL(COPY_LABELS, migrations.RunSQL.noop),
        migrations.RunSQL(KEEP_LABELS, DROP_KEEP_LABELS),
    ]
