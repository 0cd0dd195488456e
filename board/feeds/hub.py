"""All feeds of one process, or rather of one event loop: a process has one, a test makes many."""

import asyncio
from weakref import WeakKeyDictionary

from board.feeds.boards import BoardFeed, Watcher
from board.feeds.doorbells import Doorbells
from board.feeds.logs import LogFeed
from board.feeds.people import People
from board.models import Project


class Hub:
    """Starts a feed for the first who watches and forgets it after the last."""

    def __init__(self) -> None:
        self.doorbells = Doorbells()
        self.doorbells.on_change = self._tell_health
        self.people = People()
        self._boards: dict[int, BoardFeed] = {}
        self._logs: dict[int, LogFeed] = {}

    def watch_board(self, project: Project, watcher: Watcher) -> BoardFeed:
        """Return the feed of the board, which tells `watcher` all that happens after `project` was read.

        End it with `leave_board`.
        """
        feed = self._boards.get(project.pk)
        if feed is None:
            feed = BoardFeed(project, self.doorbells, on_question=self.people.poke)
            self._boards[project.pk] = feed
        feed.join(watcher)
        return feed

    def leave_board(self, feed: BoardFeed, watcher: Watcher) -> None:
        """Tell `watcher` nothing more."""
        feed.leave(watcher)
        if not feed.is_watched and self._boards.get(feed.project_id) is feed:
            del self._boards[feed.project_id]

    def watch_log(self, run_id: int) -> LogFeed:
        """Return the feed of a run's log, with one more follower. End with `leave_log`."""
        feed = self._logs.get(run_id)
        if feed is None:
            feed = self._logs[run_id] = LogFeed(run_id, self.doorbells)
        feed.join()
        return feed

    def leave_log(self, feed: LogFeed) -> None:
        """Take one follower away."""
        if feed.leave() and self._logs.get(feed.run_id) is feed:
            del self._logs[feed.run_id]

    def _tell_health(self) -> None:
        for feed in self._boards.values():
            feed.beat()


_hubs: "WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = WeakKeyDictionary()


def current_hub() -> Hub:
    """Return the hub of the running event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
