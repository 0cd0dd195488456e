from django.conf import settings
from django.db import migrations, models
import django.db.models.deletion

PROFILES = [('read-only', 'read-only'), ('edit', 'edit'), ('edit-test', 'edit-test'), ('full', 'full')]


class Migration(migrations.Migration):

    dependencies = [
        ('board', '0007_move_grants'),
    ]

    operations = [
        migrations.DeleteModel(name='PolicyVersion'),
        migrations.CreateModel(
            name='PolicyVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scope', models.CharField(choices=[('organisation', 'organisation'), ('project', 'project'), ('card', 'card')], max_length=12)),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('comment', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('before', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='board.policyversion')),
                ('card', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='policies', to='board.card')),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='policies', to='board.project')),
            ],
            options={
                'ordering': ['number'],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('scope', 'organisation')), fields=('number',), name='policy_number_once'),
                    models.UniqueConstraint(condition=models.Q(('scope', 'project')), fields=('project', 'number'), name='policy_number_once_a_project'),
                    models.UniqueConstraint(condition=models.Q(('scope', 'card')), fields=('card', 'number'), name='policy_number_once_a_card'),
                    models.CheckConstraint(condition=models.Q(models.Q(('card__isnull', True), ('project__isnull', True), ('scope', 'organisation')), models.Q(('card__isnull', True), ('project__isnull', False), ('scope', 'project')), models.Q(('card__isnull', False), ('project__isnull', False), ('scope', 'card')), _connector='OR'), name='policy_has_its_scope'),
                ],
            },
        ),
        migrations.AddField(
            model_name='project',
            name='tool_profile',
            field=models.CharField(choices=PROFILES, default='full', max_length=10),
        ),
        migrations.AddField(
            model_name='card',
            name='tool_profile',
            field=models.CharField(blank=True, choices=PROFILES, default='', max_length=10),
        ),
    ]
