"""Passwords of fifteen minutes, made from the worker's own AWS credentials."""

import threading
import time
from typing import Final

from valkey import ConnectionError as NotConnected
from valkey import CredentialProvider

_VALID_S: Final = 900
_RENEW_S: Final = 600


class ElastiCacheIam(CredentialProvider):
    """Signs in to an ElastiCache cache as one of its IAM users; the role of the worker needs
    `elasticache:Connect` on both, which the stage's policy CoordinationAccess holds.

    `cache` is the name of a serverless cache. boto3 finds region and credentials. A connection ends
    after twelve hours, and the client opens another. Where there are no AWS credentials, or none
    for now, whoever asks the server for something gets Unavailable, which says so.
    Source: https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html
    """

    def __init__(self, user: str, cache: str, region: str | None = None) -> None:
        self._user = user
        self._cache = cache
        self._region = region
        self._lock = threading.Lock()
        self._password = ""
        self._made_at = float("-inf")

    def get_credentials(self) -> tuple[str, str]:
        with self._lock:
            if time.monotonic() - self._made_at > _RENEW_S:
                self._password, self._made_at = self._made(), time.monotonic()
            return self._user, self._password

    def _made(self) -> str:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - as below

        try:
            return self._signed()
        except BotoCoreError as error:
            # As the client knows it, which closes the connection and tries again.
            raise NotConnected(f"no password can be made: {error}") from error

    def _signed(self) -> str:
        # Not before they are needed: who signs in with a password needs neither.
        import boto3  # noqa: PLC0415
        from botocore.exceptions import NoCredentialsError  # noqa: PLC0415
        from botocore.model import ServiceId  # noqa: PLC0415
        from botocore.signers import RequestSigner  # noqa: PLC0415

        session = boto3.Session(region_name=self._region)
        credentials = session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        signer = RequestSigner(
            ServiceId("elasticache"),
            session.region_name,
            "elasticache",
            "v4",
            credentials,
            session.events,
        )
        query = f"Action=connect&User={self._user}&ResourceType=ServerlessCache"
        url = f"https://{self._cache}/?{query}"
        signed: str = signer.generate_presigned_url(
            {"method": "GET", "url": url, "body": {}, "headers": {}, "context": {}},
            operation_name="connect",
            expires_in=_VALID_S,
            region_name=session.region_name,
        )
        return signed.removeprefix("https://")
