"""Where a stage stands, and the one way in which the command line makes AWS clients for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from boto3.session import Session
from botocore.config import Config

MOST_AT_ONCE: Final = 32
"""So many requests to a service have a connection each."""
CLIENT_CONFIG: Final = Config(
    retries={"mode": "standard", "total_max_attempts": 5},
    read_timeout=30,
    max_pool_connections=MOST_AT_ONCE,
)
# An invocation is answered when it is done; five minutes is what the slowest function may take.
_OF_LAMBDA: Final = CLIENT_CONFIG.merge(Config(read_timeout=310, tcp_keepalive=True))


class Cloud(Protocol):
    def client(self, service: str) -> Any:
        """A new boto3 client, which the caller closes."""

    def api_url(self, outputs: Mapping[str, str]) -> str:
        """Where the HTTP API answers that a stage's outputs name; no slash at the end."""


@dataclass(frozen=True, slots=True)
class Account:
    """The AWS account and region of a profile, or of whatever else boto3 finds."""

    session: Session

    def client(self, service: str) -> Any:
        config = _OF_LAMBDA if service == "lambda" else CLIENT_CONFIG
        return self.session.client(service, config=config)  # type: ignore[call-overload]

    def api_url(self, outputs: Mapping[str, str]) -> str:
        return outputs["ApiUrl"]
