"""Rows as HTML, the same for the pages and for the live push: neutral towards who looks."""
