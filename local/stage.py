"""A deployed local stage: the outputs of its stacks, how to reach it, and the file that says so."""

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import boto3
from botocore.config import Config

from local.emulator import REGION, Access

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

_CLIENT_CONFIG = Config(retries={"mode": "standard", "total_max_attempts": 5}, read_timeout=30)


@dataclass(frozen=True)
class Stage:
    """The outputs of the stacks, and the access to the embedded AWS in which they stand."""

    table_name: str
    bucket_name: str
    event_queue_url: str
    event_queue_dead_letter_url: str
    recount_queue_url: str
    recount_dead_letter_url: str
    ingest_function: str
    summarize_function: str
    recount_function: str
    retention_days: int
    stage: str
    access: Access

    @classmethod
    def of_outputs(cls, outputs: Mapping[str, str], access: Access) -> Self:
        """From stack outputs such as `TableName`. Raises KeyError for one that is missing."""
        texts = {
            field.name: outputs[output_name(field.name)]
            for field in fields(cls)
            if field.name not in {"retention_days", "access"}
        }
        return cls(**texts, retention_days=int(outputs["RetentionDays"]), access=access)

    @property
    def functions(self) -> tuple[str, ...]:
        return (self.ingest_function, self.summarize_function, self.recount_function)

    @property
    def dynamodb(self) -> "DynamoDBClient":
        client: DynamoDBClient = self.client("dynamodb")
        return client

    @property
    def sqs(self) -> "SQSClient":
        client: SQSClient = self.client("sqs")
        return client

    @property
    def s3(self) -> "S3Client":
        client: S3Client = self.client("s3")
        return client

    def client(self, service: str) -> Any:
        """A boto3 client for the embedded AWS, whatever this process's environment says."""
        if service not in self._clients:
            self._clients[service] = boto3.session.Session().client(  # type: ignore[call-overload]
                service,
                endpoint_url=self.access.endpoint,
                aws_access_key_id=self.access.access_key_id,
                aws_secret_access_key=self.access.secret_access_key,
                region_name=REGION,
                config=_CLIENT_CONFIG,
            )
        return self._clients[service]

    def close(self) -> None:
        """Close the connections of all clients."""
        while self._clients:
            self._clients.popitem()[1].close()

    @functools.cached_property
    def _clients(self) -> dict[str, Any]:
        return {}


def output_name(field: str) -> str:
    return "".join(word.capitalize() for word in field.split("_"))


@dataclass(frozen=True, slots=True)
class Running:
    """A stage that was left running, and the process to end when it is no longer wanted."""

    stage: Stage
    pid: int
    folder: Path

    def save(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        content = {"stage": asdict(self.stage), "pid": self.pid, "folder": str(self.folder)}
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(content, indent=2) + "\n")
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """What was saved last, or None. Whether it still runs is another question."""
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        access = Access(**content["stage"].pop("access"))
        stage = Stage(**content["stage"], access=access)
        return cls(stage, content["pid"], Path(content["folder"]))
