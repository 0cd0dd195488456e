"""Names of files that hold secrets (rule A12), for the gate and for the search tools."""

import fnmatch

# Patterns for one component of a path, compared without regard to case.
SECRET_GLOBS = (
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    "credentials.json",
    "secrets.yml",
    "secrets.yaml",
    ".netrc",
    ".git-credentials",
    "terraform.tfstate",
    ".bash_history",
    ".zsh_history",
    ".python_history",
)

_EXAMPLES = (".example", ".sample", ".template", ".dist")


def is_secret_name(name: str) -> bool:
    """Whether a file or folder of this name holds secrets."""
    name = name.casefold()
    if name.startswith(".env.") and name.endswith(_EXAMPLES):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in SECRET_GLOBS)
