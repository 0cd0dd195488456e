"""Reads what a person typed as a repository: a folder on the server, or a URL.

Nothing here changes anything, and nothing here looks into the repository.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from agents.workspaces.errors import WorkspaceError
from agents.workspaces.git import LOCAL_PROTOCOLS, REMOTE_PROTOCOLS

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEMES = ("https", "ssh", "git", "http")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SHORT_SSH = re.compile(r"^(?P<host>[^/:\s]+):(?!//)(?P<path>.+)$")  # git@host:path
_HELPER = re.compile(r"^[A-Za-z0-9+.-]+::")  # ext::sh -c ...

# Answers git's question for a password from its environment, which other users cannot read;
# in the command line or in the URL they could, and git would repeat the URL in its messages.
_CREDENTIAL_HELPER = (
    '!f() { test "$1" = get || exit 0; '
    'echo "username=$PULLCORD_GIT_USERNAME"; echo "password=$PULLCORD_GIT_PASSWORD"; }; f'
)


@dataclass(frozen=True)
class Address:
    """Where a repository is: a folder (`path`), or a URL without its password (`url`)."""

    text: str  # as it may be shown: without a password
    path: Path | None = None
    url: str = ""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def location(self) -> str:
        """What git is told."""
        return self.url or str(self.path)

    @property
    def protocols(self) -> str:
        """The only protocols over which git may follow this address."""
        return LOCAL_PROTOCOLS if self.path else REMOTE_PROTOCOLS

    @property
    def configuration(self) -> Mapping[str, str]:
        """What git must be told to sign in there."""
        return {"credential.helper": _CREDENTIAL_HELPER} if self._signs_in else {}

    @property
    def _signs_in(self) -> bool:
        return bool(self.username or self.password)

    def variables(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """`environment` (see REMOTE_VARIABLES) and the sign-in, for a command that goes there."""
        if self.path:
            return {}
        sign_in = {
            "PULLCORD_GIT_USERNAME": self.username,
            "PULLCORD_GIT_PASSWORD": self.password,
        }
        return {**environment, **(sign_in if self._signs_in else {})}


def read_address(typed: str, *, home: str = "") -> Address:
    """Understand `typed`. Raises WorkspaceError with field `repository` if it cannot be one.

    `home` is the folder that `~` stands for.
    """
    text = typed.strip()
    for is_wrong, message in (
        (not text, "Write the path of a repository on the server, or its URL."),
        (_CONTROL.search(text), "The repository holds a line break or a control character."),
        (text.startswith("-"), "A repository cannot start with a dash. Write its whole path."),
        (_HELPER.match(text), "This form runs a program. Use a path, or an https or ssh URL."),
    ):
        if is_wrong:
            raise _refused(message)
    if "://" in text:
        return _read_url(text)
    if not text.startswith(("/", "~", ".")) and (match := _SHORT_SSH.match(text)):
        if match["host"].startswith("-") or match["path"].startswith("-"):
            raise _refused("This is no address of a repository. Write user@host:path.")
        return Address(text=text, url=text)
    if home and (text == "~" or text.startswith("~/")):
        text = home + text[1:]
    if not text.startswith("/"):
        raise _refused("Write the whole path, from / on, or a URL such as https://host/name.git.")
    return Address(text=text, path=Path(text))


def _read_url(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise _refused(f"This URL cannot be read: {error}.") from error
    if parts.scheme == "file":
        if host not in ("", "localhost"):
            raise _refused("A file URL names a folder on this server: file:///path.")
        return read_address(unquote(parts.path))
    if parts.scheme not in _SCHEMES:
        raise _refused(f"{parts.scheme}:// is not supported. Use a path, or an https or ssh URL.")
    if not host or host.startswith("-"):
        raise _refused("The URL names no host. Write it as https://host/name.git.")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise _refused("http:// would send the sign-in and the code unprotected. Use https://.")
    # Many servers take a token in place of the user's name, so that is no less of a secret.
    if not (parts.username or parts.password) or parts.scheme not in ("https", "http"):
        return Address(text=text, url=text)
    bracketed = f"[{host}]" if ":" in host else host
    clean = urlunsplit((parts.scheme, bracketed + port, parts.path, parts.query, parts.fragment))
    return Address(
        text=clean,
        url=clean,
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def _refused(message: str) -> WorkspaceError:
    return WorkspaceError(message, code="bad_repository", field="repository")
