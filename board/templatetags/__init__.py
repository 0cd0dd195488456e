"""The board's template tags."""
