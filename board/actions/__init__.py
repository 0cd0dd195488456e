"""Every write of the board, one module for each noun. Nothing else changes a row."""
