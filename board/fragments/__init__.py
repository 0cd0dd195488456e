"""Rows as HTML, the same for the pages and for the live push: neutral towards who looks."""

from board.fragments.cards import BoardCard, board_cards, column_cards, render_card
from board.fragments.logs import log_html, render_log
from board.fragments.notices import render_notices
from board.fragments.questions import render_cord
from board.fragments.runs import render_run_head

__all__ = [
    "BoardCard",
    "board_cards",
    "column_cards",
    "log_html",
    "render_card",
    "render_cord",
    "render_log",
    "render_notices",
    "render_run_head",
]
