"""The answers that last, from lists in policy versions to rows of their own."""

from django.db import migrations


def move(apps, schema_editor):
    version_rows, grants = apps.get_model('board', 'PolicyVersion'), apps.get_model('board', 'Grant')
    project_ids = version_rows.objects.order_by().values_list('project_id', flat=True).distinct()
    for project_id in project_ids:
        known = []
        rows = list(version_rows.objects.filter(project_id=project_id).order_by('version'))
        for version in rows:
            for rule in version.rules:
                # The newest version counts; the older ones say since when.
                if rule in known or rule not in rows[-1].rules or rule.get('tier') != 'allow':
                    continue
                known.append(rule)
                grants.objects.create(
                    project_id=project_id,
                    tool=rule['tool'],
                    input=rule['input'],
                    scripts=rule.get('scripts', {}),
                    granted_by_id=version.author_id,
                    granted_at=version.created_at,
                )


class Migration(migrations.Migration):

    dependencies = [
        ('board', '0006_grants'),
    ]

    operations = [
        migrations.RunPython(move, migrations.RunPython.noop, elidable=True),
    ]
