from django.db import migrations


def frozen(*columns: str) -> str:
    """The trigger that keeps these columns of statements in HITs."""
    old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    return f"""
        DROP TRIGGER annotator_freeze_text ON generation_generation;
        CREATE TRIGGER annotator_freeze_text
        BEFORE UPDATE OF {", ".join(columns)} ON generation_generation
        FOR EACH ROW WHEN (({old}) IS DISTINCT FROM ({new}))
        EXECUTE FUNCTION annotator_freeze_text();
    """


class Migration(migrations.Migration):
    """Who wrote a statement that people judge stays, too: test sets and the files for training rest on it."""

    dependencies = [
        ("annotator", "0011_draws_of_statements"),
    ]

    operations = [
        migrations.RunSQL(frozen("text", "label", "group_id", "method"), frozen("text", "label", "group_id")),
    ]
