"""The triggers that refuse to rewrite the audit, as migrations make them and take them away."""

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
