"""Stream batches that Lambda gave up on and left in S3, as told by the bucket's notifications."""

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from botocore.exceptions import BotoCoreError, ClientError

from functions.core import keys
from functions.core.errors import Unavailable
from functions.core.keys import RunRef

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client


class S3FailedBatches:
    """core.ports.FailedBatches on a bucket."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def runs_in(self, notification: dict[str, Any]) -> dict[RunRef, bool]:
        """The runs whose records a failed batch held, and whether an end was among them.

        The object is Lambda's invocation record; for S3 destinations it keeps the whole event under
        `payload`: https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
        """
        found: dict[RunRef, bool] = {}
        for record in notification["Records"]:
            key = unquote_plus(record["s3"]["object"]["key"])
            payload = json.loads(self._read(key))["payload"]
            event = json.loads(payload) if isinstance(payload, str) else payload
            for ref, is_end in filter(None, map(_run_of, event["Records"])):
                found[ref] = found.get(ref, False) or is_end
        return found

    def _read(self, key: str) -> bytes:
        try:
            return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(f"S3 get of {key}: {error}") from error


def _run_of(record: dict[str, Any]) -> tuple[RunRef, bool] | None:
    """None for a record that names no run: there is nothing to recount."""
    try:
        key = record["dynamodb"]["Keys"]
        ref, _ = keys.parse_run_partition(key[keys.PARTITION]["S"])
        return ref, key[keys.SORT]["S"] == keys.RUN
    except (KeyError, ValueError, TypeError):
        return None
