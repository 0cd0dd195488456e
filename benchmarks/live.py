"""The open board: a drag's answer, how soon other browsers have it, and a log of many lines.

    python -m benchmarks.live [--cards 1000] [--watchers 50] [--moves 60] [--lines 5000] [--seconds 60]

The real web server and Valkey in processes of their own; the browsers are sockets without a page, so what
a browser needs to draw is not in these figures.
"""

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
import urllib.parse
import urllib.request
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, figure, value
from benchmarks.sockets import Socket
from tests.product import Product

KEY = "BENCH"
BATCH_SECONDS = 0.1  # as the worker collects a log: agents/log_sink.py
PIECE = 16_000  # characters of one item of a log
CSRF = "c" * 32
WAIT_SECONDS = 30.0


@dataclass
class Scene:
    """A product with a board, seen by one person."""

    url: str
    cookie: str
    column: int
    cards: deque[str]  # in that column, neighbours
    run_id: int

    @property
    def headers(self) -> dict[str, str]:
        """What a browser of that person sends."""
        return {"Cookie": f"{self.cookie}; pullcord_csrf={CSRF}", "Origin": self.url}

    def move(self) -> int:
        """Drop the first of the cards below the last one, as the page does, and return the board's seq."""
        card, above = self.cards[0], self.cards[-1]
        self.cards.rotate(-1)
        request = urllib.request.Request(  # noqa: S310  ours
            f"{self.url}/cards/{card}/move/",
            data=urllib.parse.urlencode({"column": self.column, "above": above}).encode(),
            headers={**self.headers, "X-CSRFToken": CSRF, "Accept": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return int(json.load(answer)["seq"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, default=1_000)
    parser.add_argument("--watchers", type=int, default=50)
    parser.add_argument("--moves", type=int, default=60)
    parser.add_argument("--lines", type=int, default=5_000, help="a second")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    describe()
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        Product(Path(folder), None, workers=0) as product,
    ):
        scene = make_scene(product, options.cards)
        asyncio.run(watch(scene, options.watchers, options.moves))
        asyncio.run(follow(scene, options.lines, options.seconds))


def make_scene(product: Product, number: int) -> Scene:
    """Fill the board, in this process and on the product's own database."""
    os.environ.update(product.environment)
    import django

    django.setup()
    from benchmarks.fill import fill, make_project, make_run, sign_in
    from board.models import Card, Column, User

    user = User.objects.get(is_owner=True)
    project = make_project(user, KEY)
    fill(project, user, number)
    column = Column.objects.get(project=project, lane="backlog")
    drafts = Card.objects.filter(column=column).select_related("project").order_by("rank")[:20]
    refs = deque(card.ref for card in drafts)
    return Scene(product.url, sign_in(user), column.pk, refs, make_run(project, user))


async def watch(scene: Scene, watchers: int, moves: int) -> None:
    """Move cards by turns; from the drop until each watcher has the frame."""
    heard: list[dict[int, float]] = [{} for _ in range(watchers)]
    sockets = [await Socket.open(scene.url, f"/ws/projects/{KEY}/", scene.headers) for _ in heard]
    tasks = [asyncio.create_task(listen(s, h)) for s, h in zip(sockets, heard, strict=True)]
    await wait(lambda: all(heard))
    answers, delays = [], []
    for _ in range(moves):
        begun = time.perf_counter()
        seq = await asyncio.to_thread(scene.move)
        answers.append(time.perf_counter() - begun)
        await wait(lambda seq=seq: all(seq in each for each in heard))
        delays += [each[seq] - begun for each in heard]
    figure("drag: drop -> answer", answers[3:], goal="p95 <= 120 ms")
    figure(f"drag: drop -> frame at {watchers} watchers", delays, goal="p95 <= 100 ms")
    for task, socket in zip(tasks, sockets, strict=True):
        task.cancel()
        socket.close()


async def listen(socket: Socket, heard: dict[int, float]) -> None:
    """Note when each seq of the board is heard."""
    async for frame in socket:
        now = time.perf_counter()
        match frame["type"]:
            case "hello" | "ev":
                heard[frame["seq"]] = now
            case "batch":
                heard |= dict.fromkeys(range(frame["from"], frame["to"] + 1), now)
            case "hb":
                socket.send(type="pong")
            case _:  # of what is drawn, not of the board's seq
                pass


async def follow(scene: Scene, rate: int, seconds: float) -> None:
    """Write lines as a worker does, and see how soon one viewer has them."""
    from board.actions.logs import append_log

    socket = await Socket.open(scene.url, f"/ws/projects/{KEY}/", scene.headers)
    seen: list[tuple[int, float]] = [(0, time.perf_counter())]  # the last line, and when it came
    gaps: list[int] = []
    task = asyncio.create_task(read_log(socket, scene.run_id, seen, gaps))
    socket.send(type="log.sub", run=scene.run_id, off=0)
    written: list[tuple[int, float]] = []
    begun, last = time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < seconds:
        due = int((passed + BATCH_SECONDS) * rate)
        text = "".join(f"line-{number} {'x' * 60}\n" for number in range(last + 1, due + 1))
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        items: list[tuple[str, dict[str, Any]]] = [
            ("output", {"call": f"call_{int(passed)}", "text": piece}) for piece in pieces
        ]
        written.append((due, time.perf_counter()))
        await asyncio.to_thread(append_log, scene.run_id, items)
        last = due
        await asyncio.sleep(max(0.0, written[-1][1] + BATCH_SECONDS - time.perf_counter()))
    await wait(lambda: seen[-1][0] >= last or bool(gaps))
    numbers = [number for number, _ in seen]
    delays = [
        seen[place][1] - at
        for number, at in written
        if (place := bisect_right(numbers, number - 1)) < len(seen)
    ]
    value(
        "log: lines written", f"{last} in {seconds:.0f} s, {last / seconds:.0f}/s", goal=f"{rate}/s"
    )
    value("log: lines that the viewer has", f"{numbers[-1]}, {len(gaps)} gaps", goal="all, no gap")
    figure("log: written -> at the viewer", delays or [float("inf")])
    task.cancel()
    socket.close()


async def read_log(
    socket: Socket, run_id: int, seen: list[tuple[int, float]], gaps: list[int]
) -> None:
    """Note the last line of each frame, and say what was shown, as a page does."""
    async for frame in socket:
        if frame["type"] == "log":
            socket.send(type="ack", run=run_id, off=frame["off"])
            lines = [
                int(number)
                for op in frame["ops"]
                for number in re.findall(r"line-(\d+) ", op.get("html", ""))
            ]
            if lines:
                seen.append((max(lines), time.perf_counter()))
        elif frame["type"] in {"log.gap", "lag"}:
            gaps.append(frame.get("off", 0))
        elif frame["type"] == "hb":
            socket.send(type="pong")


async def wait(look: Any) -> None:
    """Wait until it is true."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not look():  # noqa: ASYNC110  anything
            await asyncio.sleep(0.001)


if __name__ == "__main__":
    main()
