"""The smallest pieces of HTML: escaped text, icons, faces, times and amounts. No queries here."""

from datetime import datetime
from functools import cache
from html import escape

from django.templatetags.static import static

from board.models import User
from board.models.accounts import HUES

MINUS = "\N{MINUS SIGN}"
URGENT = 3  # what is more is shown the same
MINUTE, HOUR = 60, 3600  # seconds
PRECISE = 10  # seconds below which tenths matter
CENT = 0.01  # dollars
THOUSAND, MILLION = 1_000, 1_000_000
PROFILES = {
    "read-only": "Read only",
    "edit": "Edit files",
    "edit-test": "Edit and test",
    "full": "Everything",
}
PRIORITIES = {0: "Low", 1: "Normal", 2: "High", 3: "Urgent"}


@cache  # a board of 1,000 cards draws each some hundred times
def icon(name: str, size: str = "") -> str:
    """Return an icon of the sprite; `size` is "", "s" or "l". It is decoration: say the word beside it."""
    extra = f" icon--{size}" if size else ""
    return f'<svg class="icon{extra}" aria-hidden="true"><use href="{static("icons.svg")}#{name}"/></svg>'


def face(user: User) -> str:
    """Return the round face of a person."""
    name = escape(str(user))
    return (
        f'<span class="face hue-{user.hue}" title="{name}">{escape(user.initials)}'
        f'<span class="sr"> {name}</span></span>'
    )


def agent_face(agent: str) -> str:
    """Return the square face of an agent such as `agent-3`."""
    number = agent.rpartition("-")[2]
    hue = HUES[int(number) % len(HUES)] if number.isascii() and number.isdigit() else HUES[2]
    return (
        f'<span class="face face--bot hue-{hue}" title="{escape(agent)}">{escape(number[:2])}'
        f'<span class="sr"> {escape(agent)}</span></span>'
    )


def since(moment: datetime | None, kind: str = "ago") -> str:
    """Return a time that times.js turns into words: `ago` (6 min ago), `for` (6 min), `clock` (03:12) or `day`."""
    if moment is None:
        return ""
    stamp = moment.isoformat(timespec="seconds")
    return f'<time datetime="{stamp}" data-time="{kind}">{moment:%H:%M}</time>'


def seconds(value: float) -> str:
    """Return a duration for people: 0.3 s, 41 s, 14 min, 2 h 5 min."""
    if value < PRECISE:
        return f"{value:.1f} s"
    if value < MINUTE:
        return f"{value:.0f} s"
    hours, minutes = divmod(round(value / MINUTE), HOUR // MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def money(microusd: int) -> str:
    """Return an amount: $0.42, or $0.0042 where cents would be nothing."""
    dollars = microusd / MILLION
    if 0 < dollars < CENT:
        return f"${dollars:.4f}"
    return f"${dollars:,.2f}"


def tokens(count: int) -> str:
    """Return a number of tokens: 940, 9.4k, 118k, 1.2M."""
    if count < THOUSAND:
        return str(count)
    if count < MILLION:
        thousands = count / THOUSAND
        return f"{thousands:.1f}k" if thousands < PRECISE else f"{thousands:.0f}k"
    return f"{count / MILLION:.1f}M"


@cache
def priority_bars(priority: int) -> str:
    """Return the bars of a priority; the sprite counts from 1 (most) to 3."""
    name = PRIORITIES.get(min(priority, URGENT), "Urgent")
    bars = {0: 3, 1: 2}.get(priority, 1)
    urgent = " card__prio--urgent" if priority >= URGENT else ""
    return (
        f'<span class="card__prio{urgent}" title="{name} priority">{icon(f"priority-{bars}")}'
        f'<span class="sr">{name} priority</span></span>'
    )


def plural(count: int, noun: str, more: str = "") -> str:
    """Return `1 check`, `2 checks`; `more` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else more or noun + 's'}"
