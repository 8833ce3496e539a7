import pytest

from tests.unit.local.terminal import Terminal


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Of 120 columns, with one tenant, acme, to whom the commands speak without being told."""
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("RUNTALLY_STAGE", "RUNTALLY_TENANT_ID"):
        monkeypatch.delenv(name, raising=False)
    terminal = Terminal(capsys)
    terminal("tenants", "create", "acme")
    terminal.memory.dynamodb.settle()
    return terminal
