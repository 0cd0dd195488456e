"""`manage.py`, `python -m board` and the installed `pullcord`: one command line."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Run the management command that the command line names."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "board.settings")
    try:
        if sys.argv[1:2] == ["up"] and not take_options(sys.argv[2:]):
            # What it starts loads Django; it would only wait for a Django of its own. The rest, such as
            # --help, is the command's.
            raise SystemExit(import_module("agents.starting").start())
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit("Django is missing here. `make setup` installs it into .venv.") from error
    execute_from_command_line(sys.argv)


def take_options(arguments: Sequence[str]) -> list[str]:
    """Put the options of `up` where the settings find them, which are read before any command runs.

    Return what is none of them.
    """
    parser = ArgumentParser(prog="up", add_help=False, allow_abbrev=False)
    parser.add_argument("--data", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    options, others = parser.parse_known_args(arguments)
    for name, value in vars(options).items():
        if value is not None:
            os.environ[f"PULLCORD_{name.upper()}"] = str(value)
    return others


if __name__ == "__main__":
    main()
