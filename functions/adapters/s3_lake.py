"""The lake's files in its bucket: one of each table for every run."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.parquet import write_parquet
from functions.core.errors import Unavailable
from functions.core.keys import RunRef
from functions.core.lake import Row, Table
from functions.core.lake_ports import object_of_run, objects_of_run

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


class S3LakeFiles:
    """core.lake_ports.LakeFiles on a bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put_rows(self, ref: RunRef, table: Table, day: str, rows: Iterable[Row]) -> int:
        key = object_of_run(table, ref, day)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.parquet"
            count = write_parquet(table, rows, file)
            try:
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=key,
                    Body=file.read_bytes(),
                    # A bucket with Object Lock takes nothing without one.
                    ChecksumAlgorithm="CRC32",
                    ContentType="application/vnd.apache.parquet",
                )
            except (ClientError, BotoCoreError) as error:
                raise Unavailable(f"S3 put of {key}: {error}") from error
        return count

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
