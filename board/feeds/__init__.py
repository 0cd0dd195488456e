"""One reader for each watched board and log of this process, and who gets what it reads.

The database is asked, not told: a doorbell only makes it sooner. See docs/explanation/live-board.md.
"""
