"""What an agent can do: files, search, shell, its plan and its report."""
