"""What a command and all that it starts may use of the machine."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Resource limits of a command and each of its descendants. None leaves a limit as it is.

    `memory_bytes` counts writable private memory of one process (RLIMIT_DATA): address space is no
    measure, because Node and Java reserve far more of it than they use. `processes` counts per
    user and user namespace, so it is of use inside the sandbox only.
    """

    cpu_seconds: int | None = None
    file_bytes: int | None = None
    open_files: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None

    def wrap(self, argv: Sequence[str], *, first: str = "") -> list[str]:
        """`argv` behind a small shell that sets the limits before anything of the command runs.

        `first` is a line of shell that it does before.

        Setting them from outside (prlimit) would come too late for a child that forks at once, and
        `preexec_fn` is not safe in a program with threads.
        """
        wanted = [
            ("-t", self.cpu_seconds),
            ("-f", self.file_bytes and self.file_bytes // 512),
            ("-n", self.open_files),
            ("-d", self.memory_bytes and self.memory_bytes // 1024),
        ]
        lines = [first] if first else []
        lines.append("ulimit -c 0")
        # A hard limit that is lower already is kept.
        lines += [f"ulimit {flag} {n} 2>/dev/null || :" for flag, n in wanted if n is not None]
        if self.processes is not None:  # bash says -u, dash says -p
            n = self.processes
            lines.append(f"ulimit -u {n} 2>/dev/null || ulimit -p {n} 2>/dev/null || :")
        lines.append('exec "$@"')
        return ["/bin/sh", "-c", "; ".join(lines), "sh", *argv]
