from django.db import migrations, models
import django.db.models.deletion


class Migration(migrations.Migration):

    dependencies = [
        ('board', '0005_approvals_in_full'),
    ]

    operations = [
        migrations.CreateModel(
            name='Grant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tool', models.CharField(max_length=80)),
                ('input', models.JSONField(default=dict)),
                ('scripts', models.JSONField(default=dict)),
                ('granted_at', models.DateTimeField()),
                ('withdrawn_at', models.DateTimeField(blank=True, null=True)),
                ('approval', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='board.approval')),
                ('granted_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='board.user')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='grants', to='board.project')),
                ('withdrawn_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='board.user')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(condition=models.Q(('withdrawn_at__isnull', True)), fields=['project'], name='grant_in_force')],
            },
        ),
    ]
