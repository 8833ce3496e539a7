"""A deployed stage: the outputs of its stacks, how to reach it, and the file that remembers one."""

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from local.cloud import Cloud
from local.emulator import Access
from local.page import ServedPage

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient

_WITHOUT_SERVICE_ENTRIES: Final = {
    "DeadJobsFunction": "",
    "ServiceEntryQueueUrls": "{}",
    "ServiceEntryDeadLetterUrls": "{}",
}
_WITHOUT_LAKE: Final = {"LakeUrl": "", "LakeFunction": "", "LakeRetentionDays": "0"}
_NUMBERS: Final = ("retention_days", "quiet_s", "lake_retention_days")


@dataclass(frozen=True)
class Stage:
    """The outputs of the stacks, and the cloud in which they stand.

    The URLs of the service entries' queues are JSON objects, by name. `lake_url` is such as
    `s3://bucket/lake/`; it and `lake_function` are empty where there is no lake, and
    `lake_retention_days`, for which that keeps a file, is 0.
    """

    table_name: str
    bucket_name: str
    event_queue_url: str
    event_queue_dead_letter_url: str
    recount_queue_url: str
    recount_dead_letter_url: str
    erasure_queue_url: str
    erasure_dead_letter_url: str
    ingest_function: str
    summarize_function: str
    recount_function: str
    erase_function: str
    sweep_function: str
    api_id: str
    api_function: str
    dead_jobs_function: str
    service_entry_queue_urls: str
    service_entry_dead_letter_urls: str
    retention_days: int
    quiet_s: int
    stage: str
    api_url: str
    cloud: Cloud
    lake_url: str = ""
    lake_function: str = ""
    lake_retention_days: int = 0

    @classmethod
    def of_outputs(cls, outputs: Mapping[str, str], cloud: Cloud) -> Self:
        """From stack outputs such as `TableName`. Raises KeyError for one that is missing."""
        outputs = {**_WITHOUT_SERVICE_ENTRIES, **_WITHOUT_LAKE, **outputs}
        said: dict[str, Any] = {
            field.name: outputs[output_name(field.name)]
            for field in fields(cls)
            if field.name not in {"api_url", "cloud"}
        }
        said |= {name: int(said[name]) for name in _NUMBERS}
        return cls(
            **said,
            api_url=cloud.api_url(outputs),
            cloud=cloud,
        )

    @property
    def functions(self) -> tuple[str, ...]:
        names = (
            self.ingest_function,
            self.summarize_function,
            self.recount_function,
            self.erase_function,
            self.sweep_function,
            self.api_function,
            self.dead_jobs_function,
        )
        return tuple(filter(None, names))

    @property
    def lake_bucket(self) -> str:
        return self.lake_url.removeprefix("s3://").partition("/")[0]

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
        """A boto3 client, made once."""
        if service not in self._clients:
            self._clients[service] = self.cloud.client(service)
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
    """A stage that was left running, and the processes to end when it is no longer wanted."""

    stage: Stage
    access: Access
    pid: int
    folder: Path
    page: ServedPage | None = None

    def save(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        stage = {f.name: getattr(self.stage, f.name) for f in fields(Stage) if f.name != "cloud"}
        content = {
            "stage": stage,
            "access": asdict(self.access),
            "pid": self.pid,
            "folder": str(self.folder),
            "page": self.page and asdict(self.page),
        }
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
        access = Access(**content["access"])
        stage = Stage(**content["stage"], cloud=access)
        page = content.get("page")  # which those who began without pages did not write
        return cls(
            stage, access, content["pid"], Path(content["folder"]), page and ServedPage(**page)
        )
