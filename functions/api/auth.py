"""Who asks: the API key of a request, looked up by its hash."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from functions.core.api_ports import Tenants
from functions.core.tenants import KeyStatus, hash_of

_SCHEME: Final = "bearer"


class Unauthorized(Exception):  # noqa: N818 - the fact, as the handler reads it
    """No key that holds. It does not say why, and never holds what was sent."""


@dataclass(frozen=True, slots=True)
class Authenticate:
    tenants: Tenants
    now_ns: Callable[[], int]

    def __call__(self, authorization: str | None) -> str:
        """The tenant whose key the `Authorization` header carries.

        One strongly consistent read whatever was sent, so that a revocation counts at once and
        neither answer nor time tells a missing key from a wrong or a revoked one. Finding an item
        by the hash of the whole key is the comparison; its time depends on the hash alone. Raises
        Unauthorized.
        """
        scheme, _, sent = (authorization or "").partition(" ")
        key = self.tenants.load_key(hash_of(sent.strip(" ")))
        if (
            scheme.lower() != _SCHEME
            or key is None
            or key.status_at(self.now_ns()) is not KeyStatus.ACTIVE
        ):
            raise Unauthorized("no valid API key")
        return key.tenant_id
