"""Tags of the pages around the board: the drawings of the cord and the large faces."""

from django import template
from django.templatetags.static import static
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from board.addresses import without_sign_in
from board.models import User
from board.unseen import is_unseen

register = template.Library()


@register.simple_tag
def drawing(name: str, classes: str = "") -> SafeString:
    """Return a figure of the sprite that is not an icon: the mark, the notch of the cord."""
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="{}#{}"/></svg>',
        classes,
        static("icons.svg"),
        name,
    )


@register.simple_tag
def portrait(user: User) -> SafeString:
    """Return the large round face of a person, as decoration beside the name."""
    return format_html(
        '<span class="face face--l hue-{}" aria-hidden="true">{}</span>', user.hue, user.initials
    )


@register.filter
def address(repository: str) -> str:
    """Return a repository's address as people may see it: without a user name or a token in it."""
    return without_sign_in(repository)


@register.filter
def exact(text: str) -> SafeString:
    """Return text in which nothing is hidden: a character that cannot be seen is named, `<U+202E>`."""
    return mark_safe("".join(map(_seen, text)))  # noqa: S308  each character is escaped


def _seen(character: str) -> str:
    if is_unseen(character):
        return f'<span class="unseen">&lt;U+{ord(character):04X}&gt;</span>'
    return escape(character)
