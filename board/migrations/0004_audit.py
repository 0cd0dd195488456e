"""The audit and its guards. A later migration that rebuilds the table on SQLite must call `guard` again."""

from django.db import migrations, models

from board.migrations._audit_guards import begin, end


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
