"""How the client is set up, and which of its errors mean that the server cannot answer."""

from typing import Any, Final

from valkey import exceptions
from valkey.backoff import FullJitterBackoff

ATTEMPTS: Final = 3
"""Of a request, and within each of its attempts of connecting: nine timeouts where nothing answers
at all, after which what was renewed five seconds before is still held."""
RETRIED: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    # A replica, or what was the primary before a failover: the next connection finds the new one.
    exceptions.ReadOnlyError,
)
UNREACHABLE: Final = (
    *RETRIED,
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.OutOfMemoryError,
    exceptions.TryAgainError,
    exceptions.ValkeyClusterException,
    OSError,
)
UNREACHABLE_CODES: Final = frozenset({"BUSY", "MISCONF", "NOREPLICAS"})

BACKOFF: Final = FullJitterBackoff(cap=0.25, base=0.02)


def options(timeout_s: float, iam: object | None) -> dict[str, Any]:
    """What either client takes. A request is repeated within itself: the script knows it again."""
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry_on_error": list(RETRIED),
        "credential_provider": iam,
    }


def is_unreachable(error: Exception) -> bool:
    if isinstance(error, UNREACHABLE):
        return True
    code = str(error).partition(" ")[0]
    return isinstance(error, exceptions.ResponseError) and code in UNREACHABLE_CODES


def refuse_decoding(client: Any) -> None:
    """Raises ValueError for a client whose answers are text: values of the scratchpad are bytes."""
    if client.get_encoder().decode_responses:
        raise ValueError("client has decode_responses=True: answers must come as bytes")
