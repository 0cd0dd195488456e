"""The product's own template tags and filters, available in every template."""

from datetime import datetime

from django import template
from django.utils.safestring import SafeString, mark_safe

from board.models import User
from board.templatetags import markup

register = template.Library()


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """Return an icon of the sprite: `{% icon "plus" "s" %}`."""
    return mark_safe(markup.icon(name, size))  # noqa: S308 - names come from templates


@register.simple_tag
def face(user: User) -> SafeString:
    """Return the round face of a person."""
    return mark_safe(markup.face(user))  # noqa: S308 - the name is escaped


@register.simple_tag
def agent_face(agent: str) -> SafeString:
    """Return the square face of an agent."""
    return mark_safe(markup.agent_face(agent))  # noqa: S308 - the name is escaped


@register.simple_tag
def since(moment: datetime | None, kind: str = "ago") -> SafeString:
    """Return a `<time>` that the browser turns into local words."""
    return mark_safe(markup.since(moment, kind))  # noqa: S308 - made of a date only


@register.simple_tag
def priority_bars(priority: int) -> SafeString:
    """Return the bars of a priority with its word."""
    return mark_safe(markup.priority_bars(priority))  # noqa: S308 - made of a number only


@register.filter
def money(microusd: int) -> str:
    """Return micro-dollars as an amount."""
    return markup.money(microusd)


@register.filter
def tokens(count: int) -> str:
    """Return a number of tokens, short."""
    return markup.tokens(count)


@register.filter
def duration(value: float) -> str:
    """Return seconds as a duration for people."""
    return markup.seconds(value)


@register.filter
def counted(number: int, noun: str) -> str:
    """Return `2 checks`: `{{ n|counted:"check" }}`."""
    return markup.plural(number, noun)
