"""AWS's Signature Version 4, for requests without a query that are sent past botocore."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from botocore.credentials import ReadOnlyCredentials

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Signer:
    """For one service in one region."""

    service: str
    region: str

    def signed(
        self, request: str, headers: Mapping[str, str], content: str, by: ReadOnlyCredentials
    ) -> dict[str, str]:
        """The headers of a request, such as `POST /`, and those that prove who sends it.

        All are signed: names are in lower case, `host` and `x-amz-date` among them. `content` is
        the SHA-256 of the body, in hexadecimal.
        """
        signed = {**headers, "x-amz-security-token": by.token} if by.token else {**headers}
        names = sorted(signed)
        listed = ";".join(names)
        lines = "".join(f"{name}:{signed[name]}\n" for name in names)
        method, path = request.split(" ")
        canonical = f"{method}\n{path}\n\n{lines}\n{listed}\n{content}"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        at = headers["x-amz-date"]
        scope = f"{at[:8]}/{self.region}/{self.service}/aws4_request"
        key = _signing_key(by.secret_key, scope)
        signature = _hmac(key, f"{_ALGORITHM}\n{at}\n{scope}\n{digest}").hex()
        signed["authorization"] = (
            f"{_ALGORITHM} Credential={by.access_key}/{scope},"
            f" SignedHeaders={listed}, Signature={signature}"
        )
        return signed


@lru_cache(maxsize=4)
def _signing_key(secret: str, scope: str) -> bytes:
    """Good for a day."""
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    return key


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
