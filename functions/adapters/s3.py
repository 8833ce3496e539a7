"""Objects of runs, and bodies that were too large for the queue, in the one bucket."""

import zlib
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from functions.core import keys
from functions.core.errors import Rejected, Unavailable
from functions.core.keys import Pointer, RunRef

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_GZIP: Final = 16 + zlib.MAX_WBITS
_EXISTS: Final = 412
"""What `If-None-Match: *` is answered with when there is an object, by status: a body may be lost.
409, a conflict with a put under way, settles nothing (F11) and must not be read as "exists"."""


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
            if not _exists(error):
                raise Unavailable(f"S3 put of {key}: {error}") from error
            if self._read(key) != content:
                raise Unavailable(f"S3 holds other bytes under {key}") from error
        except BotoCoreError as error:
            raise Unavailable(f"S3 put of {key}: {error}") from error

    def put_claimed(self, key: str, body: bytes) -> None:
        """A body on its way to ingest; the key holds its hash."""
        self._put(key, body)

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

    def read_line(self, ref: RunRef, pointer: Pointer, limit: int) -> bytes | None:
        """As core.api_ports.Lines: a byte range of the object is a gzip member, which is a line."""
        try:
            answer = self._client.get_object(
                Bucket=self._bucket,
                Key=keys.object_of_run(ref, pointer.name),
                Range=pointer.byte_range,
            )
            member = answer["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchKey":
                return None
            if error.response["Error"]["Code"] == "InvalidRange":
                raise ValueError("the object is too short") from None
            raise Unavailable(f"S3 get of {pointer.name}: {error}") from error
        except BotoCoreError as error:
            raise Unavailable(f"S3 get of {pointer.name}: {error}") from error
        return _line_in(member, limit)

    def link_to_line(self, ref: RunRef, pointer: Pointer, seconds: int) -> str:
        """As core.api_ports.Lines. The range is signed too: the link opens nothing else."""
        return self._link(keys.object_of_run(ref, pointer.name), seconds, Range=pointer.byte_range)

    def put_whole_result(self, key: str, text: bytes) -> None:
        """As core.api_ports.Results. The name holds their hash: what is there is these bytes."""
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=text,
                IfNoneMatch="*",
                ContentType="text/plain; charset=utf-8",
            )
        except ClientError as error:
            if not _exists(error):
                raise Unavailable(f"S3 put of {key}: {error}") from error
        except BotoCoreError as error:
            raise Unavailable(f"S3 put of {key}: {error}") from error

    def link_to_result(self, key: str, seconds: int) -> str:
        """As core.api_ports.Results."""
        return self._link(key, seconds)

    def _link(self, key: str, seconds: int, **more: str) -> str:
        return self._client.generate_presigned_url(
            "get_object",
            Params={"Bucket": self._bucket, "Key": key, **more},
            ExpiresIn=seconds,
        )

    def put_dead_letter_body(self, key: str, body: bytes) -> None:
        self._put(key, body)

    def _put(self, key: str, body: bytes) -> None:
        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 put of {key}: {error}") from error

    def _read(self, key: str) -> bytes:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 get of {key}: {error}") from error


def _exists(error: ClientError) -> bool:
    return error.response["ResponseMetadata"]["HTTPStatusCode"] == _EXISTS


def _line_in(member: bytes, limit: int) -> bytes:
    """Never more than `limit` bytes, whatever the member claims to hold."""
    decompressor = zlib.decompressobj(_GZIP)
    try:
        line = decompressor.decompress(member, limit + 2)
    except zlib.error as error:
        raise ValueError(f"no gzip member: {error}") from None
    if not decompressor.eof or decompressor.unused_data or not line.endswith(b"\n"):
        raise ValueError("not one whole line")
    return line[:-1]
