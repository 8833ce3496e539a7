"""The one place where AWS clients are made, with nothing left to the SDK's changing defaults."""

import contextlib
import random
import time
from collections.abc import Callable
from functools import cache
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

import boto3
import msgspec
from botocore.config import Config
from botocore.handlers import add_expect_header

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

MESSAGES_AT_ONCE: Final = 10
STEPS_AT_ONCE: Final = 32
"""What one function has under way at once: each has a connection, or waits for none."""

CONFIG: Final = Config(
    # botocore's default went from 10 attempts to 4 for DynamoDB; back-off is capped at 20 s each.
    retries={"mode": "standard", "total_max_attempts": 6},
    connect_timeout=2,
    read_timeout=10,
    max_pool_connections=MESSAGES_AT_ONCE + STEPS_AT_ONCE,
    # Half of botocore's own work a call: it checks again what the types here already say, and
    # builds its User-Agent twice.
    parameter_validation=False,
    user_agent="runtally",
    tcp_keepalive=True,
)


ANSWERING: Final = CONFIG.merge(
    Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=1, read_timeout=3)
)
"""For functions that somebody waits for: API Gateway gives up after 30 seconds, whatever hangs."""

_LINKS: Final = Config(
    # The old way of signing knows no signed headers. Links are signed for the bucket's own region:
    # the global host would redirect them, and in the newer regions never work.
    signature_version="s3v4",
    s3={"addressing_style": "virtual"},
)

_THROTTLED: Final = frozenset({"ThrottlingException", "ProvisionedThroughputExceededException"})
_LONGEST_PAUSE_S: Final = 5

_making: Final = Lock()


def _once[**P, T](make: Callable[P, T]) -> Callable[P, T]:
    """One client a service, whichever thread asks first: boto3's default session, with which they
    are made, is not safe to use from several at once (F16), and `cache` alone would make two."""
    made = cache(make)

    def client(*args: P.args, **kwargs: P.kwargs) -> T:
        with _making:
            return made(*args, **kwargs)  # type: ignore[arg-type] # Config hashes as itself

    return client


@_once
def dynamodb(config: Config = CONFIG) -> "DynamoDBClient":
    client = boto3.client("dynamodb", config=config)
    for reading in ("Query", "BatchGetItem"):
        client.meta.events.register(f"before-parse.dynamodb.{reading}", _read_as_json)
    return client


def credentials() -> "Credentials | None":
    """What the clients sign with, refreshed for all of them; only once there is a client."""
    session = boto3.DEFAULT_SESSION
    return session.get_credentials() if session else None


def _read_as_json(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """Take an answer that holds many items past botocore's parser, which looks into its model for
    every attribute of every item: four fifths of what a recount costs. Bytes stay base64, as in
    the records of a stream; `attributes` reads either."""
    if response_dict["status_code"] < HTTPStatus.MULTIPLE_CHOICES:
        with contextlib.suppress(msgspec.DecodeError):  # botocore sees what is damaged, and repeats
            customized_response_dict.update(msgspec.json.decode(response_dict["body"]))
            response_dict["body"] = b"{}"


class Context(Protocol):
    """What Lambda says of an invocation."""

    def get_remaining_time_in_millis(self) -> int: ...


class Patience:
    """For how long the invocation at hand makes throttled requests again.

    A function that writes to one partition as fast as that takes would fail by botocore alone: its
    quota of retries is used up after some hundred of a client. Then one refused step of a message
    brings all of them again, twelve minutes later and each for another write unit, and after some
    rounds the message is a dead letter. Half of an invocation's time is what there is for it: what
    fails by then is told of one by one, where a function that is ended fails whole.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until = 0.0

    def begin(self, left_ms: int) -> None:
        """An invocation has so much time."""
        self._until = self._now() + left_ms / 2_000

    def pause(self, response: tuple[object, dict[str, Any]] | None, **_: object) -> float | None:
        """How many seconds to wait before the next attempt; None for no more, or another error."""
        error = response[1].get("Error", {}) if response else {}
        pause = random.uniform(0, _LONGEST_PAUSE_S)  # noqa: S311 - jitter
        late = self._now() + pause > self._until
        return None if late or error.get("Code") not in _THROTTLED else pause


PATIENCE: Final = Patience()
"""Of the one invocation that a function's process has at a time."""


def patient[T](client: T) -> T:
    """The client, with PATIENCE where botocore has no more."""
    client.meta.events.register_last("needs-retry.dynamodb", PATIENCE.pause)  # type: ignore[attr-defined] # any client has it
    return client


@_once
def s3(config: Config = CONFIG) -> "S3Client":
    client = boto3.client("s3", config=config.merge(_LINKS))
    # Asking whether a body may come costs a round trip a put, and nothing here is ever too large.
    client.meta.events.unregister("before-call.s3", add_expect_header)
    return client


@_once
def events(config: Config = CONFIG) -> Any:
    return boto3.client("events", config=config)


@_once
def sqs(config: Config = CONFIG) -> "SQSClient":
    return boto3.client("sqs", config=config)
