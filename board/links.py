"""Whether a path in a call goes through a link to another place. Plain Python."""

import posixpath
from collections.abc import Mapping
from typing import Any


def leads_elsewhere(written: str, real: str, *, folder: str) -> bool:
    """Return whether a path goes through a link: it is not where its words say, seen from `folder`.

    A call may have gone into a folder below before it names the path, which is no link.
    """
    words = posixpath.normpath(written)
    if posixpath.normpath(posixpath.join(folder, words)) == real:
        return False
    is_inside = not words.startswith(("/", ".."))
    if is_inside and folder and not real.startswith(folder.rstrip("/") + "/"):
        return True
    return not ("/" + real).endswith("/" + words.lstrip("/"))


def links_in(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths of a call that are not where their words say, with where they lead."""
    folder = str(facts.get("cwd") or "")
    pairs = ((str(one), str(two)) for one, two in dict(facts.get("paths") or {}).items())
    return {
        written: real for written, real in pairs if leads_elsewhere(written, real, folder=folder)
    }
