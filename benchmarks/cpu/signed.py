"""AWS requests with nothing around them: signed by hand, sent over one connection that is kept.

No retries, no parsing of answers beyond their status: what is left out here is what an SDK is for.
"""

import hashlib
import os
import time
from http.client import HTTPConnection
from typing import Final
from urllib.parse import urlparse

import msgspec
from botocore.credentials import ReadOnlyCredentials

from functions.adapters.signatures import Signer

_TARGET: Final = "DynamoDB_20120810."


class SignedConnection:
    """To one service, at the endpoint and with the credentials that the environment names."""

    def __init__(self, service: str) -> None:
        self._host = urlparse(os.environ["AWS_ENDPOINT_URL"]).netloc
        self._signer = Signer(service, os.environ["AWS_REGION"])
        self._credentials = ReadOnlyCredentials(
            os.environ["AWS_ACCESS_KEY_ID"],
            os.environ["AWS_SECRET_ACCESS_KEY"],
            os.environ["AWS_SESSION_TOKEN"],
        )
        self._connection = HTTPConnection(self._host)

    def put(self, path: str, body: bytes) -> None:
        self._send("PUT", path, body, {"content-type": "application/gzip", "if-none-match": "*"})

    def ask(self, operation: str, request: object) -> None:
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": f"{_TARGET}{operation}",
        }
        self._send("POST", "/", msgspec.json.encode(request), headers)

    def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
        content = hashlib.sha256(body).hexdigest()
        headers |= {
            "host": self._host,
            "x-amz-content-sha256": content,
            "x-amz-date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        }
        signed = self._signer.signed(f"{method} {path}", headers, content, self._credentials)
        self._connection.request(method, path, body, signed)
        answer = self._connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise AssertionError(f"{self._signer.service} answered {answer.status}")
