"""Names of files that hold secrets (rule A12), for the gate and for the search tools."""

import fnmatch
import re
from functools import lru_cache

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

_SECRET = re.compile("|".join(fnmatch.translate(glob) for glob in SECRET_GLOBS))
_EXAMPLES = (".example", ".sample", ".template", ".dist")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a file or folder of this name holds secrets."""
    name = name.casefold()
    if name.startswith(".env.") and name.endswith(_EXAMPLES):
        return False
    return _SECRET.match(name) is not None


# What the globs above stand for, to find out whether another pattern would find such a file.
_EXAMPLES_OF_SECRETS = [
    ".env",
    ".env.local",
    ".env.production",
    "cert.pem",
    "server.key",
    "cert.p12",
    "cert.pfx",
    "store.jks",
    "a.keystore",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "credentials.json",
    "secrets.yml",
    "secrets.yaml",
    ".netrc",
    ".git-credentials",
    "terraform.tfstate",
    ".bash_history",
    ".zsh_history",
    ".python_history",
]
_ORDINARY = ("x", "x.json", "x.yml", "x.yaml")


def may_match_secret(pattern: str) -> bool:
    """Whether a pattern looks for secrets; one that finds everything of a kind does not."""
    if not set("*?[") & set(pattern):
        return False
    pattern = pattern.casefold()
    if any(fnmatch.fnmatchcase(name, pattern) for name in _ORDINARY):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for name in _EXAMPLES_OF_SECRETS)
