import pytest

from runtally import Recorder
from tests.unit.sdk.recording import KeepingSender


@pytest.fixture
def sender() -> KeepingSender:
    return KeepingSender()


@pytest.fixture
def recorder(sender: KeepingSender) -> Recorder:
    """One that sends nothing by itself while a test lasts."""
    return Recorder(tenant_id="acme", sender=sender, send_after_s=300)
