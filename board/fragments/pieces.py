"""Log items as pieces of HTML with named places, into which later items write.

A piece is a list of text and `Place`s. A place called `k` is an element with `data-key="k"`:
`append` adds to the end of its content, `set` replaces the whole element.
"""

from dataclasses import dataclass, field


@dataclass
class Place:
    """An element that later items may lengthen or replace."""

    key: str
    opening: str  # the start tag, with data-key
    content: list["Part"] = field(default_factory=list)
    closing: str = "</span>"

    def __str__(self) -> str:
        return self.opening + flat(self.content) + self.closing


Part = str | Place


def flat(parts: "list[Part]") -> str:
    """Return the parts as one HTML text."""
    return "".join(str(part) for part in parts)


def place(key: str, *content: Part, tag: str = "span", classes: str = "", more: str = "") -> Place:
    """Return an element called `key`."""
    css = f' class="{classes}"' if classes else ""
    return Place(key, f'<{tag}{css} data-key="{key}"{more}>', list(content), f"</{tag}>")


@dataclass(frozen=True)
class Op:
    """One thing to do to a log: `add` an element at the end, `append` to `to`, or `set` it."""

    op: str
    key: str
    to: str | None
    parts: list[Part]

    def as_dict(self) -> dict[str, str | None]:
        """Return the op as it goes over the wire."""
        return {"op": self.op, "key": self.key, "to": self.to, "html": flat(self.parts)}


def assemble(ops: list[Op]) -> str:
    """Return the log that a browser has after all of `ops`; what has no place to go is left out."""
    log: list[Part] = []
    places: dict[str, Place] = {}
    for op in ops:
        target = places.get(op.to or op.key)
        match op.op:
            case "add" if op.to is None:
                log.extend(op.parts)
            case "add" | "append" if target is not None:
                target.content.extend(op.parts)
            case "set" if target is not None:
                target.opening = target.closing = ""
                target.content[:] = op.parts
            case _:
                continue
        _note_places(op.parts, places)
    return flat(log)


def _note_places(parts: list[Part], places: dict[str, Place]) -> None:
    for part in parts:
        if isinstance(part, Place):
            places[part.key] = part
            _note_places(part.content, places)
