"""The lake's files in its bucket: one of each table for every run."""

import hashlib
import tempfile
from collections.abc import Callable, Iterable
from http import HTTPStatus
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.parquet import write_parquet
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.lake import Row, Table
from functions.core.lake_ports import ROWS, object_of_run, objects_of_run

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


type WriteFile = Callable[[Table, Iterable[Row], Path], int]
"""Write rows to a file; returns how many there were."""

_SHA256: Final = "sha256"
_NOT_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN})


class S3LakeFiles:
    """core.lake_ports.LakeFiles on a bucket.

    A file that is there already is left alone: what comes twice costs no put, and no version that a
    lock would hold. Whoever finds it there may be overtaken as if it had put it at that moment.
    """

    def __init__(self, client: "S3Client", bucket: str, write: WriteFile = write_parquet) -> None:
        self._client = client
        self._bucket = bucket
        self._write = write

    def put_rows(self, ref: RunRef, table: Table, day: str, rows: Iterable[Row]) -> int:
        key = object_of_run(table, ref, day)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.parquet"
            count = self._write(table, rows, file)
            with file.open("rb") as content:
                self._put(key, content, count)
        return count

    def _put(self, key: str, content: BufferedReader, rows: int) -> None:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
        if self._sha256_of(key) == sha256:
            return
        content.seek(0)
        try:
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=content,
                # A bucket with Object Lock takes nothing without one.
                ChecksumAlgorithm="CRC32",
                ContentType="application/vnd.apache.parquet",
                Metadata={_SHA256: sha256, ROWS: str(rows)},
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 put of {key}: {error}") from error

    def _sha256_of(self, key: str) -> str | None:
        """None where there is no such object: without the right to list, S3 answers 403 then."""
        try:
            answer = self._client.head_object(Bucket=self._bucket, Key=key)
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and _status(error) in _NOT_THERE:
                return None
            raise Unavailable(f"S3 head of {key}: {error}") from error
        return answer["Metadata"].get(_SHA256)

    def hide(self, ref: RunRef, day: str) -> None:
        """A delete marker each: the versions stay for as long as the bucket keeps them."""
        wanted = [{"Key": key} for key in objects_of_run(ref, day)]
        try:
            answer = self._client.delete_objects(
                Bucket=self._bucket,
                Delete={"Objects": wanted, "Quiet": True},  # type: ignore[typeddict-item]
            )
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 delete of {wanted[0]['Key']}: {error}") from error
        for refused in answer.get("Errors", ()):
            raise Unavailable(f"S3 delete of {refused['Key']}: {refused.get('Code', '')}")


def _status(error: ClientError) -> int:
    return error.response["ResponseMetadata"]["HTTPStatusCode"]
