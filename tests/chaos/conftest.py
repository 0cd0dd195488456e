"""One product for all tests of a module: it takes seconds to start."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.messages_api import MessagesApi
from tests.product import Product, make_repository, running_product

NewProject = Callable[..., None]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, MessagesApi]]:
    """One worker with one slot, and leases of 8 s."""
    with running_product(tmp_path_factory.mktemp("product"), workers=1, slots=1) as both:
        yield both


@pytest.fixture
def new_project(parts: tuple[Product, MessagesApi], tmp_path: Path) -> NewProject:
    """Make a project whose repository holds these files: `new_project("BIL", {"a.txt": "one"})`."""
    product, _ = parts

    def make(key: str, files: dict[str, str] | None = None) -> None:
        made = product.project(key, make_repository(tmp_path / f"{key.lower()}.git", files))
        assert made["state"] == "ready", made

    return make
