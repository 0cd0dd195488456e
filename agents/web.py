"""The web server of `manage.py up`: prepares the database and the pages, then listens.

`python -m agents.web --host HOST --port PORT [--report FD]`. With FD, at the first start, it checks and
migrates before anything is served, and says on FD what the supervisor tells the person: a line of
JSON with a `greeting`, or with the `problem` that keeps it from starting.
"""

import gc
import json
import os
import sys
from argparse import ArgumentParser
from types import ModuleType
from typing import cast

# Parts of the web server's libraries that do nothing here and take a fifth of its start: it speaks plain
# HTTP behind the loopback address or a proxy, so Twisted needs no TLS; and Autobahn's native code, which
# browsers' small messages do not need, is bound by a parser of C.
LEFT_OUT = ("OpenSSL", "_nvx_utf8validator")


def main() -> int:
    """Serve until stopped; return the exit code."""
    parser = ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", required=True)
    parser.add_argument("--report", type=int)
    options = parser.parse_args()
    load()
    if options.report is not None and not report(options.report):
        return 1
    serve(options.host, options.port)
    return 0


def load() -> None:
    """Import everything that pages need."""
    # An import of these fails, for which their importers are made.
    sys.modules.update(dict.fromkeys(LEFT_OUT, cast("ModuleType", None)))
    gc.disable()  # nothing of what is loaded becomes garbage, and to find that out takes time
    import daphne.cli  # noqa: F401

    from board import asgi, urls  # noqa: F401  the names are found in their modules later

    gc.freeze()
    gc.enable()


def report(descriptor: int) -> bool:
    """Prepare everything and say what came of it; return whether to go on."""
    from agents.preflight import Problem
    from agents.preparing import prepare

    try:
        said = {"greeting": prepare()}
    except Problem as problem:
        said = {"problem": str(problem)}
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        pipe.write(json.dumps(said) + "\n")
    return "greeting" in said


def serve(host: str, port: str) -> None:
    """Listen until a signal comes."""
    from daphne.cli import CommandLineInterface

    where = ["-b", host, "-p", port]
    quiet = ["--verbosity", "0", "--no-server-name"]
    # Twice what a browser of ours may send: see MAX_FRAME in board/consumers.py.
    limits = [f"--websocket-max-{what}-size={128 * 1024}" for what in ("message", "frame")]
    CommandLineInterface().run([*where, *quiet, *limits, "board.asgi:application"])


if __name__ == "__main__":
    sys.exit(main())
