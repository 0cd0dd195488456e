"""The Celery application: wake-ups for workers and short housekeeping. It never carries a card."""

import os
import warnings

from celery import Celery
from celery.exceptions import SecurityWarning

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "board.settings")

# Celery warns of root because of pickle, which is not accepted here; `manage.py up` has its own note.
warnings.filterwarnings("ignore", category=SecurityWarning)

app = Celery("pullcord")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["board", "agents"])
# The agents' loop and beat live in the worker; named as strings, for the board does not know the agents.
app.steps["worker"].update({"agents.loop:AgentsStep", "agents.beat:BeatStep"})
