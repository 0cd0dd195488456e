"""The system checks of a start that others can reach."""

import os
import secrets
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.core.checks.registry import registry

from board.checks import check_encoding, check_safe_start
from tests.databases import URL
from tests.documents import ROOT

SAFE_KEY = "kJ3-x9_Qm7vRt2Lw8ZpYd5HsUf4NcBgA6eTiOo1"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, []),
        ({"SECRET_KEY": "short"}, ["pullcord.E001"]),
        ({"SECRET_KEY": "a" * 64}, ["pullcord.E001"]),
        ({"ALLOWED_HOSTS": ["*"]}, ["pullcord.E002"]),
        ({"PUBLIC_URL": "board.example.org"}, ["pullcord.E003"]),
        ({"DEBUG": True}, []),
        ({"DEBUG": True, "PUBLIC_URL": "https://board.example.org"}, ["pullcord.E004"]),
        ({"PUBLIC_URL": "http://board.example.org"}, ["pullcord.W001"]),
        ({"PUBLIC_URL": "https://board.example.org"}, []),
    ],
)
def test_a_setting_that_is_unsafe_for_others_to_reach_is_named(settings, values, found):
    settings.SECRET_KEY = SAFE_KEY
    for name, value in values.items():
        setattr(settings, name, value)
    ids = [message.id for message in check_safe_start(None)]
    assert ids == found


def test_the_checks_run_with_all_others():
    assert check_safe_start in registry.get_checks()


@pytest.mark.django_db
def test_the_encoding_of_our_own_databases_is_fine():
    assert check_encoding(None, databases=["default"]) == []


@pytest.mark.django_db
def test_a_database_that_cannot_hold_every_text_is_not_migrated(tmp_path):
    server = os.environ.get(URL)
    if not server:
        return  # SQLite has no such encodings
    name = f"ascii_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        how = "ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        if connection.info.server_version >= 150000:  # the first with other providers
            how += " LOCALE_PROVIDER libc"
        connection.execute(f'CREATE DATABASE "{name}" {how}'.encode())
        environment = {
            "PATH": os.environ["PATH"],
            "PULLCORD_DATA": str(tmp_path),
            "SECRET_KEY": SAFE_KEY,
            "DATABASE_URL": urlunsplit(urlsplit(server)._replace(path=f"/{name}")),
        }
        command = [sys.executable, "manage.py", "migrate", "--no-input"]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "pullcord.E005" in done.stderr
        assert "Applying" not in done.stdout
        connection.execute(f'DROP DATABASE "{name}"'.encode())
