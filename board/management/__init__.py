"""Commands of `manage.py`, and the set-up that runs before them."""
