"""One product for all process tests of this folder that kill nothing: it takes seconds to start."""

from collections.abc import Iterator

import pytest

from tests.messages_api import MessagesApi
from tests.product import Product, running_product


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, MessagesApi]]:
    """A product with one worker and the model that it talks to. Each test takes a key of its own."""
    with running_product(tmp_path_factory.mktemp("product")) as both:
        yield both
