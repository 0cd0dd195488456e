"""Tags of the pages around the board: the drawings of the cord and the large faces."""

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from board.models import User

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
