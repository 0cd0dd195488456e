"""The system checks of a start that others can reach."""

import pytest
from django.core.checks.registry import registry

from board.checks import check_safe_start

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
