"""Objects of runs, and bodies that were too large for the queue, in the one bucket."""

from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from functions.core.errors import Rejected, Unavailable

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_EXISTS: Final = "PreconditionFailed"
# 409, a conflict with a put under way, settles nothing (F11): it must not be read as "exists".


class S3ObjectStore:
    """core.ports.ObjectStore on a bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put_object(self, key: str, content: bytes, buckets: int) -> None:
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=content,
                IfNoneMatch="*",
                ContentType="application/gzip",
                Metadata={"buckets": str(buckets)},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != _EXISTS:
                raise Unavailable(f"S3 put of {key}: {error}") from error
            if self._read(key) != content:
                raise Unavailable(f"S3 holds other bytes under {key}") from error
        except BotoCoreError as error:
            raise Unavailable(f"S3 put of {key}: {error}") from error

    def get_claimed(self, key: str, size: int) -> bytes:
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=key)
            if answer["ContentLength"] != size:
                found = f"the object has {answer['ContentLength']:,} bytes"
                raise Rejected("invalid_claim", "claim.bytes", found)
            return answer["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                raise Rejected("invalid_claim", "claim.key", "there is no such object") from None
            raise Unavailable(f"S3 get of {key}: {error}") from error
        except BotoCoreError as error:
            raise Unavailable(f"S3 get of {key}: {error}") from error

    def put_dead_letter_body(self, key: str, body: bytes) -> None:
        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 put of {key}: {error}") from error

    def _read(self, key: str) -> bytes:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 get of {key}: {error}") from error
