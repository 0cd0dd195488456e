"""What `manage.py up` does with the database before the web server listens."""

import os
import pkgutil
from importlib import import_module

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from agents.preflight import Problem
from board.actions.accounts import create_owner_link


def prepare() -> str:
    """Check the settings and the policy, migrate, and return what to say once the address answers.

    Raises Problem with what to do if it cannot be started so.
    """
    check_settings()
    check_policy()
    try:
        if is_behind():
            check_database()
            call_command("migrate", verbosity=0, interactive=False)
        return greeting()
    except OperationalError as error:
        raise Problem(
            f"The database does not answer: {str(error).strip()}\nStart it, or correct DATABASE_URL."
        ) from error


def check_settings() -> None:
    """Stop a start that is not safe, and print warnings."""
    try:
        # The other checks read every address, which takes as long as the rest.
        BaseCommand().check(tags=[checks.Tags.security])
    except CommandError as error:
        raise Problem(str(error)) from error


def check_database() -> None:
    """Stop before a database that cannot hold every text is migrated."""
    try:
        BaseCommand().check(tags=[checks.Tags.database], databases=["default"])
    except CommandError as error:
        raise Problem(str(error)) from error


def check_policy() -> None:
    """Say a fault in the installation's own rules now, and not when the first run begins."""
    if not (settings.DATA / "policy.yaml").exists():
        return  # the shipped rules are tested, and reading them would hold up each start
    from agents.harness.policy.load import PolicyError
    from agents.policies import loaded_policy

    try:
        loaded_policy()
    except PolicyError as error:
        raise Problem(str(error)) from error


def is_behind() -> bool:
    """Return whether the database lacks a migration.

    Only their names are compared; to load them, as `migrate` does to find that out, takes a second.
    """
    applied = MigrationRecorder(connection).applied_migrations()
    return not shipped_migrations() <= applied.keys()


def shipped_migrations() -> set[tuple[str, str]]:
    """Return the label of the app and the name of each migration that the code brings."""
    found = set()
    for config in apps.get_app_configs():
        name, _ = MigrationLoader.migrations_module(config.label)
        if name is None or config.module is None:
            continue
        try:
            package = import_module(name)
        except ModuleNotFoundError:
            continue  # an app without models
        found |= {
            (config.label, module.name)
            for module in pkgutil.iter_modules(package.__path__)
            if module.name[0] not in "_~"
        }
    return found


def greeting() -> str:
    """Return what is said once the address answers, with a link while nobody owns the installation."""
    lines = ["", f"Pullcord is at {settings.PUBLIC_URL}"]
    token = create_owner_link()
    if token is not None:
        lines += [
            "Nobody owns it yet. Open this link, it works once:",
            f"{settings.PUBLIC_URL}/setup/{token}/",
        ]
    if os.geteuid() == 0:
        lines.append(
            "This runs as root, for whom the limits on agents' commands do not hold. "
            "An ordinary user is safer."
        )
    lines.append("Ctrl-C stops it.")
    return "\n".join(f"  {line}" if line else "" for line in lines) + "\n"
