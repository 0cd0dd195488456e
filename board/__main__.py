"""`manage.py`, `python -m board` and the installed `pullcord`: one command line."""

import os
import sys


def main() -> None:
    """Run the management command that the command line names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "board.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit("Django is missing here. `make setup` installs it into .venv.") from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
