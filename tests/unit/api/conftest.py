from collections.abc import Callable

import pytest

from tests.api import HttpClient, issue_key
from tests.memory_stage import MemoryStage


@pytest.fixture
def stage() -> MemoryStage:
    return MemoryStage()


@pytest.fixture
def key_of(stage: MemoryStage) -> Callable[[str], str]:
    """A new key of a tenant, which is made when there is none."""
    return lambda tenant_id: issue_key(stage, tenant_id)


@pytest.fixture
def client(stage: MemoryStage, key_of: Callable[[str], str]) -> HttpClient:
    return HttpClient(stage, key_of("acme"))
