"""Ids that reach a use case from outside: what is built of them must name nobody else's data."""

import msgspec

from functions.core.errors import Rejected
from functions.core.keys import RunRef
from runtally.wire import RunId, TenantId


def check_tenant_id(tenant_id: str) -> None:
    """Raises Rejected for what can be no tenant's id, such as one that goes on with `/` or `#`."""
    if not _is(TenantId, tenant_id):
        detail = f"{tenant_id!r} is no tenant id: 1 to 64 of A-Z a-z 0-9 . _ -, no sign first"
        raise Rejected("invalid", "tenant_id", detail)


def check_run(ref: RunRef) -> None:
    """Raises Rejected for what can be no run's reference."""
    check_tenant_id(ref.tenant_id)
    if not _is(RunId, ref.run_id):
        detail = f"{ref.run_id!r} is no run id: 1 to 128 of A-Z a-z 0-9 . _ : -, no sign first"
        raise Rejected("invalid", "run_id", detail)


def _is(kind: object, value: str) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
