"""The address of a repository as people may see it: without a password or token. Plain Python."""

import re

# All before the host: a token may stand in place of the user's name, and a password may hold an @.
_SIGN_IN = re.compile(r"(?i)(?<=https://)[^/?#\s]+(?=@)|(?<=http://)[^/?#\s]+(?=@)")
_PASSWORD = re.compile(r"(?<=://)([^/?#\s:@]*):[^/?#\s]+(?=@)")  # ssh://git:password@host


def without_sign_in(repository: str) -> str:
    """Return an address in which `…` stands for the user name, password or token of a URL.

    The user name of other protocols, such as ssh's `git`, stays.
    """
    return _PASSWORD.sub(r"\1:…", _SIGN_IN.sub("…", repository))
