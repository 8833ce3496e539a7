from collections.abc import Iterator

import pytest

from tests.integrations.serving import Place, serve


@pytest.fixture
def place() -> Iterator[Place]:
    with serve() as place:
        yield place
