"""The whole environment of a command: an allow-list, and values that keep programs quiet and git at home."""

from collections.abc import Mapping

# The variables that a command may inherit; every other one stays outside, so no list of secrets
# has to be complete.
ALLOWED_VARIABLES = frozenset({"LANG", "LC_ALL", "LC_CTYPE", "TZ"})

_FIXED = {
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "TERM": "dumb",
    "CI": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Agent",
    "GIT_AUTHOR_EMAIL": "agent@localhost",
    "GIT_COMMITTER_NAME": "Agent",
    "GIT_COMMITTER_EMAIL": "agent@localhost",
    # A collection would fail on the read-only store, at the end of a commit.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "gc.auto",
    "GIT_CONFIG_VALUE_0": "0",
}


def strip_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """What of `environment` a command may see: an allow-list, so no secret is in it."""
    return {name: value for name, value in environment.items() if name in ALLOWED_VARIABLES}


def neutral(inherited: Mapping[str, str], *, path: str, home: str, scratch: str) -> dict[str, str]:
    """The environment of a command whose programs are found in `path`."""
    places = {"PATH": path, "HOME": home, "TMPDIR": scratch}
    return {"LANG": "C.UTF-8", **strip_secrets(inherited), **places, **_FIXED}
