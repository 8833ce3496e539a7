import pytest

from runtally import Recorder
from tests.unit.sdk.recording import KeepingSender


@pytest.fixture
def sender() -> KeepingSender:
    return KeepingSender()


@pytest.fixture
def recorder(sender: KeepingSender) -> Recorder:
    return Recorder(tenant_id="acme", sender=sender)
