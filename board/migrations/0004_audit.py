"""The audit and its guards. A later migration that rebuilds the table on SQLite must call `guard` again."""

from django.db import migrations, models

EMPTY = "0" * 64  # the hash before the first entry
ENTRIES = "audit entries are never changed or deleted"
HEAD = "the head of the audit only moves forward"

SQLITE = {
    "audit_no_update": ("BEFORE UPDATE ON board_auditentry", "", ENTRIES),
    "audit_no_delete": ("BEFORE DELETE ON board_auditentry", "", ENTRIES),
    "audit_head_forward": ("BEFORE UPDATE ON board_audithead", "WHEN NEW.number <= OLD.number", HEAD),
    "audit_head_stays": ("BEFORE DELETE ON board_audithead", "", HEAD),
}
POSTGRES = {
    "audit_no_update": ("BEFORE UPDATE OR DELETE ON board_auditentry FOR EACH ROW", "", ENTRIES),
    "audit_no_truncate": ("BEFORE TRUNCATE ON board_auditentry FOR EACH STATEMENT", "", ENTRIES),
    "audit_head_forward": (
        "BEFORE UPDATE ON board_audithead FOR EACH ROW", "WHEN (NEW.number <= OLD.number)", HEAD
    ),
    "audit_head_stays": ("BEFORE DELETE ON board_audithead FOR EACH ROW", "", HEAD),
    "audit_head_no_truncate": ("BEFORE TRUNCATE ON board_audithead FOR EACH STATEMENT", "", HEAD),
}


def guard(connection):
    """Make the triggers that refuse to rewrite the audit."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "CREATE OR REPLACE FUNCTION board_refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE = 'integrity_constraint_violation'; END $$"
            )
            for name, (when, condition, message) in POSTGRES.items():
                cursor.execute(
                    f"CREATE TRIGGER {name} {when} {condition} "
                    f"EXECUTE FUNCTION board_refuse_rewriting('{message}')"
                )
        else:
            for name, (when, condition, message) in SQLITE.items():
                cursor.execute(
                    f"CREATE TRIGGER {name} {when} {condition} "
                    f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
                )


def unguard(connection):
    """Take the triggers away."""
    with connection.cursor() as cursor:
        for name, (when, *_) in (POSTGRES if connection.vendor == "postgresql" else SQLITE).items():
            table = when.split(" ON ")[1].split()[0]
            where = f" ON {table}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{where}")


def begin(apps, schema_editor):
    apps.get_model("board", "AuditHead").objects.create(pk=1, number=0, hash=EMPTY)
    guard(schema_editor.connection)


def end(apps, schema_editor):
    unguard(schema_editor.connection)


class Migration(migrations.Migration):

    dependencies = [
        ('board', '0003_sign_in_tries'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditHead',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.BigIntegerField(default=0)),
                ('hash', models.CharField(max_length=64)),
            ],
        ),
        migrations.AddField(
            model_name='project',
            name='secret_files',
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('number', models.BigIntegerField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
                ('kind', models.CharField(max_length=40)),
                ('actor', models.CharField(max_length=120)),
                ('user_id', models.BigIntegerField(blank=True, null=True)),
                ('project_id', models.BigIntegerField(blank=True, null=True)),
                ('project', models.CharField(blank=True, default='', max_length=10)),
                ('card', models.CharField(blank=True, default='', max_length=24)),
                ('run_id', models.BigIntegerField(blank=True, null=True)),
                ('step', models.PositiveIntegerField(blank=True, null=True)),
                ('verdict', models.CharField(blank=True, default='', max_length=10)),
                ('rule', models.CharField(blank=True, default='', max_length=40)),
                ('data', models.TextField(default='{}')),
                ('previous', models.CharField(max_length=64)),
                ('hash', models.CharField(max_length=64)),
            ],
            options={
                'ordering': ['number'],
                'indexes': [models.Index(fields=['project_id', '-number'], name='audit_of_project'), models.Index(fields=['run_id', 'number'], name='audit_of_run'), models.Index(fields=['kind', '-number'], name='audit_of_kind'), models.Index(fields=['user_id', '-number'], name='audit_of_person')],
            },
        ),
        migrations.RunPython(begin, end),
    ]
