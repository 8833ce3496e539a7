"""PutItem, encoded, signed and sent without botocore.

Ingest makes one a step, and botocore's models, events and parsers were two fifths of what a step
took. Its pool of connections, urllib3's, is kept.
"""

import hashlib
import logging
import os
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit
from zlib import crc32

import msgspec
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies
from urllib3 import HTTPConnectionPool, PoolManager, Timeout
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from functions.adapters.signatures import Signer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_REFUSED: Final = "ConditionalCheckFailedException"
_GIVEN_UP_AFTER: Final = 200
"""More than a throttled batch has at once: one answer in between, and counting begins anew."""
_KEEP_ALIVE: Final = (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

_log: Final = logging.getLogger(__name__)
_read: Final = msgspec.json.Decoder(dict[str, Any]).decode


def with_direct_puts(client: "DynamoDBClient", credentials: Credentials | None) -> "DynamoDBClient":
    """A client whose puts go out from here first, as patient and as trusting as the one given.

    It is the one given where only botocore knows the way: through a proxy, to an endpoint with a
    path or of the FIPS kind, which it resolves anew for each request, or with nothing to sign.
    """
    endpoint = client.meta.endpoint_url
    parts = urlsplit(endpoint)
    plain = parts.path in {"", "/"} and "fips" not in parts.netloc
    if credentials is None or not plain or parts.scheme in get_environ_proxies(endpoint):
        return client
    config: Any = client.meta.config
    pools = PoolManager(
        maxsize=config.max_pool_connections,
        timeout=Timeout(connect=config.connect_timeout, read=config.read_timeout),
        socket_options=[*HTTPConnection.default_socket_options, _KEEP_ALIVE],
        retries=False,
        cert_reqs="CERT_REQUIRED",
        ca_certs=_authorities(),
    )
    pool = pools.connection_from_url(endpoint)
    return cast("DynamoDBClient", DirectPuts(client, credentials, pool))


def _authorities() -> Any:
    """The file of certificates that botocore trusts."""
    own = os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE")
    return own or get_cert_path(True)


class DirectPuts:
    """boto3's client, but that the first attempt of a put goes out from here.

    Stored and refused are answers, given as boto3 gives them, with bytes as `attributes` reads
    them. After anything else (throttled, failed, not connected, not answered, credentials that
    expired, a clock that is wrong), the client puts the item, with its own retries, errors and
    patience. Both may then have been carried out, as with every retry: callers put on a condition,
    and know their own item by its id and digest.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        credentials: Credentials,
        pool: HTTPConnectionPool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._credentials = credentials
        self._pool = pool
        self._now = now
        self._unanswered = 0
        meta: Any = client.meta
        self._signer = Signer("dynamodb", meta.region_name)
        self._user_agent = {"user-agent": meta.config.user_agent}
        self._always = {
            "content-type": "application/x-amz-json-1.0",
            "host": urlsplit(meta.endpoint_url).netloc,
            "x-amz-target": "DynamoDB_20120810.PutItem",
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def close(self) -> None:
        self._pool.close()
        self._client.close()

    def put_item(self, **request: Any) -> Any:
        answer = self._answer_to(request) if self._unanswered < _GIVEN_UP_AFTER else None
        if answer is None:
            return self._client.put_item(**request)
        if "__type" in answer:
            error = {"Code": _REFUSED, "Message": answer.get("message", "")}
            raise ClientError(cast("Any", answer | {"Error": error}), "PutItem")
        return answer

    def _answer_to(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """None where the client has to ask: at once, when so many in a row had no answer."""
        answer = self._answer_of(msgspec.json.encode(request))
        self._unanswered = self._unanswered + 1 if answer is None else 0
        if self._unanswered == _GIVEN_UP_AFTER:
            _log.warning(
                "puts go by boto3 alone from here on: none of the last %s was answered otherwise",
                _GIVEN_UP_AFTER,
            )
        return answer

    def _answer_of(self, body: bytes) -> dict[str, Any] | None:
        try:
            answer = self._pool.urlopen("POST", "/", body=body, headers=self._headers(body))
            told = _read(answer.data)
        except (BotoCoreError, HTTPError, msgspec.DecodeError):
            return None
        whole = answer.headers.get("x-amz-crc32") in {None, str(crc32(answer.data))}
        refused = str(told.get("__type", "")).endswith(_REFUSED)
        expected = HTTPStatus.BAD_REQUEST if refused else HTTPStatus.OK
        known = refused or "ConsumedCapacity" in told  # which is asked for with each put
        return told if whole and known and answer.status == expected else None

    def _headers(self, body: bytes) -> dict[str, str]:
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._now()))
        content = hashlib.sha256(body).hexdigest()
        by = self._credentials.get_frozen_credentials()
        return self._user_agent | self._signer.signed(
            "POST /", self._always | {"x-amz-date": at}, content, by
        )
