"""Compare ranks bytewise on PostgreSQL, whatever the database's language; SQLite does so already."""

from django.db import migrations


def compare_bytewise(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            'ALTER TABLE board_card ALTER COLUMN rank TYPE varchar(1000) COLLATE "C"'
        )


class Migration(migrations.Migration):
    dependencies = [("board", "0001_initial")]

    operations = [migrations.RunPython(compare_bytewise, migrations.RunPython.noop)]
