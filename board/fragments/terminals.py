"""The terminals of running commands: their state between two batches of output, kept or found again."""

from collections import OrderedDict

from board.ansi import Terminal
from board.models import LogItem, Run

REPLAYED = 40  # output items read again to find a terminal's state; each holds up to 16 KB
KEPT = 512  # terminals whose state is kept

_terminals: OrderedDict[tuple[int, str, int], Terminal] = OrderedDict()


def terminal_before(run: Run, call: str, seq: int) -> Terminal:
    """Return the state of the call's terminal before item `seq`: kept, or found by replaying."""
    earlier = LogItem.objects.filter(run=run, seq__lt=seq, kind="output", data__call=call)
    last = earlier.order_by("-seq").values_list("seq", flat=True).first()
    if last is None:
        return Terminal()
    kept = _terminals.get((run.pk, call, last))
    if kept is not None:
        return kept
    terminal = Terminal()
    for item in reversed(earlier.order_by("-seq")[:REPLAYED]):
        terminal, _, _ = terminal.feed(str(item.data.get("text", "")))
    return terminal


def keep_terminal(run: Run, call: str, seq: int, terminal: Terminal) -> None:
    """Remember the state of the call's terminal after item `seq`."""
    _terminals[run.pk, call, seq] = terminal
    while len(_terminals) > KEPT:
        _terminals.popitem(last=False)


def forget_terminals() -> None:
    """Forget all states, as a process that starts does."""
    _terminals.clear()
