"""What git work costs, one card's way: python -m benchmarks.workspaces [--files 2000] [--rounds 7] [--folder F]

Milliseconds of each operation on a repository of so many files, in a folder below F.
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from agents.workspaces import (
    Author,
    Candidate,
    Worktree,
    add_worktree,
    check_out,
    commit_all,
    deliver,
    diff,
    fetch_hub,
    land_merge,
    prepare_merge,
    remove_worktree,
    take_over,
)
from benchmarks.machine import describe
from tests.agents.workspaces.repos import make_repository

AUTHOR = Author("Alice", "alice@example.org")


def main() -> None:
    """Print the median and the best of each operation, in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", help="where to work; else the machine's temporary folder")
    options = parser.parse_args()
    describe()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options.files, options.rounds)


def measure(folder: Path, files: int, rounds: int) -> None:
    """One card's way through git, each step several times."""
    source, hub, clone = folder / "source", folder / "hub.git", folder / "trees/clone.git"
    make_repository(source, {f"d{n % 40}/f{n}.txt": f"{n}\n" * 50 for n in range(files)})
    base = fetch_hub(hub, str(source), "main").target_sha
    made: list[Worktree] = []
    shas: list[str] = []

    def add(name: str) -> Worktree:
        path = folder / "trees" / name
        return add_worktree(clone, hub, path, branch=f"cards/{name}", base_sha=base)

    def save(number: int) -> None:
        for name in ("new.txt", "d1/f1.txt"):
            (made[number].path / name).write_text(f"{number}\n")
        shas.append(commit_all(made[number], "Turn").sha)

    def merge(number: int) -> Candidate:
        merged = prepare_merge(hub, "main", shas[number], message="Merge", author=AUTHOR)
        assert isinstance(merged, Candidate)  # noqa: S101  the first merge cannot conflict
        return merged

    add("K-0")  # makes the clone
    report("fetch, nothing new", lambda _: fetch_hub(hub, str(source), "main"), rounds=rounds)
    report("add_worktree", lambda number: made.append(add(f"K-{number + 1}")), rounds=rounds)
    report_eight(lambda number: add(f"M-{number}"))
    report("commit_all, two files", save, rounds=rounds)
    report("commit_all, nothing", lambda number: commit_all(made[number], "Turn"), rounds=rounds)
    report(
        "take_over",
        lambda n: take_over(hub, clone, sha=shas[n], branch=made[n].branch),
        rounds=rounds,
    )
    report("prepare_merge", merge, rounds=rounds)
    candidate = merge(0)
    report(
        "check_out",
        lambda _: check_out(clone, hub, folder / "trees/checks", candidate.sha),
        rounds=rounds,
    )
    report("diff", lambda _: diff(hub, base, candidate.sha), rounds=rounds)
    report("land_merge", lambda _: land_merge(hub, candidate), rounds=1)
    report("deliver", lambda _: deliver(hub, str(source), "main", candidate.sha), rounds=1)
    report("remove_worktree", lambda number: remove_worktree(made[number], hub), rounds=rounds)


def report(name: str, work: Callable[[int], object], *, rounds: int) -> None:
    """Time `work(0)`, `work(1)`, ..."""
    times = []
    for number in range(rounds):
        started = time.perf_counter()
        work(number)
        times.append((time.perf_counter() - started) * 1000)
    print(f"{name:24} median {statistics.median(times):6.0f} ms   best {min(times):6.0f} ms")


def report_eight(work: Callable[[int], object]) -> None:
    """Time eight at once."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{'8 x add_worktree at once':24} all {(time.perf_counter() - started) * 1000:9.0f} ms")


if __name__ == "__main__":
    main()
