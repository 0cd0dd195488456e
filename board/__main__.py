"""`manage.py`, `python -m board` and the installed `pullcord`: one command line."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path


def main() -> None:
    """Run the management command that the command line names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "board.settings")
    if sys.argv[1:2] == ["up"]:
        take_options(sys.argv[2:])
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit("Django is missing here. `make setup` installs it into .venv.") from error
    execute_from_command_line(sys.argv)


def take_options(arguments: Sequence[str]) -> None:
    """Put the options of `up` where the settings find them, which are read before any command runs."""
    parser = ArgumentParser(prog="up", add_help=False, allow_abbrev=False)
    parser.add_argument("--data", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    options, _ = parser.parse_known_args(arguments)
    for name, value in vars(options).items():
        if value is not None:
            os.environ[f"PULLCORD_{name.upper()}"] = str(value)


if __name__ == "__main__":
    main()
