#!/usr/bin/env python3
"""The command line of a checkout: `.venv/bin/python manage.py COMMAND`."""

from board.__main__ import main

if __name__ == "__main__":
    main()
