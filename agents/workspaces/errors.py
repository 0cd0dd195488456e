"""What can go wrong with git, said so that a person knows what to do."""


class WorkspaceError(Exception):
    """Git work that could not be done. The text says what happened and what to do about it.

    `code` names the case for programs. `field` is the form field the text belongs beside:
    `repository`, `target_branch`, or None.
    """

    def __init__(self, message: str, *, code: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.field = field


class GitError(WorkspaceError):
    """A git command that ended badly and that nobody expected to; `stderr` says why."""

    def __init__(self, command: str, *, exit_code: int | None, ended_by: str, stderr: str) -> None:
        reason = _last_line(stderr) or f"exit code {exit_code}"
        if ended_by == "timeout":
            message = f"git {command} took too long and was stopped. Try again."
        elif ended_by == "cancelled":
            message = f"git {command} was cancelled."
        else:
            message = f"git {command} failed: {reason}"
        super().__init__(message, code="timeout" if ended_by == "timeout" else "git_failed")
        self.exit_code = exit_code
        self.ended_by = ended_by
        self.stderr = stderr


def _last_line(stderr: str) -> str:
    """The line of git's complaint that says most: the first `fatal:` or `error:`, or the last."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for mark in ("fatal:", "error:"):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark).strip()
    return lines[-1] if lines else ""
