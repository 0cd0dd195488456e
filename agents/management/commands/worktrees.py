"""`manage.py worktrees`: which folders of runs lie on this machine, how large they are, and what may go."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import filesizeformat

from agents import janitor
from agents.workspaces.errors import WorkspaceError


class Command(BaseCommand):
    """Prints a line for each folder. Changes nothing unless told to."""

    help = "Show the worktrees of runs on this machine, and which of them nobody needs any more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the flag and the projects."""
        parser.add_argument("projects", nargs="*", metavar="PROJECT", help="only these projects")
        parser.add_argument(
            "--remove",
            action="store_true",
            help="remove what nobody needs now, not within the hour",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the folders, and remove them if asked to."""
        known = janitor.project_keys()
        for key in options["projects"]:
            if key not in known:
                raise CommandError(f"{key} has no worktrees on this machine. There are: {known}")
        total = free = 0
        for key in options["projects"] or known:
            for found in janitor.survey(key):
                size = found.leftover.size_bytes
                total += size
                free += 0 if found.kept_because else size
                why = f"kept: {found.kept_because}" if found.kept_because else "goes"
                words = filesizeformat(size).replace("\xa0", " ")
                self.stdout.write(f"{words:>10}  {found.leftover.path}  ({why})")
            if options["remove"]:
                self._remove(key)
        sums = [filesizeformat(size).replace("\xa0", " ") for size in (total, free)]
        self.stdout.write(f"{sums[0]:>10}  in all, {sums[1]} of it not needed any more")

    def _remove(self, key: str) -> None:
        try:
            removed = janitor.tidy(key)
        except WorkspaceError as error:
            raise CommandError(f"{key}: a worker tidies it now. Try again in a minute.") from error
        for path in removed:
            self.stdout.write(f"   removed  {path}")
