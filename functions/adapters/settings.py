"""What the stack tells a function about its surroundings; read when needed, never at import."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

TABLE: Final = "RUNTALLY_TABLE"
BUCKET: Final = "RUNTALLY_BUCKET"
DEAD_LETTER_QUEUE_URL: Final = "RUNTALLY_DEAD_LETTER_QUEUE_URL"
RETENTION_DAYS: Final = "RUNTALLY_RETENTION_DAYS"
SWEEP_MINUTES: Final = "RUNTALLY_SWEEP_MINUTES"
RECOUNT_QUEUE_URL: Final = "RUNTALLY_RECOUNT_QUEUE_URL"
FAILED_BATCHES_BUCKET: Final = "RUNTALLY_FAILED_BATCHES_BUCKET"
EVENT_QUEUE_URL: Final = "RUNTALLY_EVENT_QUEUE_URL"
SERVICE_ENTRIES: Final = "RUNTALLY_SERVICE_ENTRIES"
REDACT: Final = "RUNTALLY_REDACT"
ERASURE_QUEUE_URL: Final = "RUNTALLY_ERASURE_QUEUE_URL"
QUIET_S: Final = "RUNTALLY_QUIET_S"
LAKE_BUCKET: Final = "RUNTALLY_LAKE_BUCKET"

VERSION: Final = "RUNTALLY_VERSION"
SCHEMA_VERSION: Final = "RUNTALLY_SCHEMA_VERSION"
"""Of the code that is deployed; no function reads these two, `runtally doctor` does."""


@dataclass(frozen=True, slots=True)
class IngestSettings:
    table: str
    bucket: str
    dead_letter_queue_url: str
    retention_days: int
    erasure_queue_url: str

    @classmethod
    def from_environment(cls) -> Self:
        return cls(
            table=os.environ[TABLE],
            bucket=os.environ[BUCKET],
            dead_letter_queue_url=os.environ[DEAD_LETTER_QUEUE_URL],
            retention_days=int(os.environ[RETENTION_DAYS]),
            erasure_queue_url=os.environ[ERASURE_QUEUE_URL],
        )


@dataclass(frozen=True, slots=True)
class SummarizeSettings:
    table: str
    recount_queue_url: str

    @classmethod
    def from_environment(cls) -> Self:
        return cls(table=os.environ[TABLE], recount_queue_url=os.environ[RECOUNT_QUEUE_URL])


@dataclass(frozen=True, slots=True)
class RecountSettings:
    table: str
    failed_batches_bucket: str

    @classmethod
    def from_environment(cls) -> Self:
        return cls(table=os.environ[TABLE], failed_batches_bucket=os.environ[FAILED_BATCHES_BUCKET])


@dataclass(frozen=True, slots=True)
class SweepSettings:
    table: str
    recount_queue_url: str
    erasure_queue_url: str
    retention_days: int
    every_s: int

    @classmethod
    def from_environment(cls) -> Self:
        return cls(
            table=os.environ[TABLE],
            recount_queue_url=os.environ[RECOUNT_QUEUE_URL],
            erasure_queue_url=os.environ[ERASURE_QUEUE_URL],
            retention_days=int(os.environ[RETENTION_DAYS]),
            every_s=60 * int(os.environ[SWEEP_MINUTES]),
        )


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """`service_entries` has the URL of the work queue of each service entry, by its name. With
    `redact`, what comes in goes through the managed rules before it reaches a queue."""

    table: str
    bucket: str
    event_queue_url: str
    retention_days: int
    service_entries: Mapping[str, str]
    erasure_queue_url: str
    redact: bool = False

    @classmethod
    def from_environment(cls) -> Self:
        return cls(
            table=os.environ[TABLE],
            bucket=os.environ[BUCKET],
            event_queue_url=os.environ[EVENT_QUEUE_URL],
            retention_days=int(os.environ[RETENTION_DAYS]),
            service_entries=json.loads(os.environ[SERVICE_ENTRIES]),
            erasure_queue_url=os.environ[ERASURE_QUEUE_URL],
            redact=REDACT in os.environ,
        )


@dataclass(frozen=True, slots=True)
class EraseSettings:
    """`quiet_s`: for how long a deleted run may still be written to, at the most. `lake_bucket` is
    empty in a stage without a lake."""

    table: str
    bucket: str
    erasure_queue_url: str
    quiet_s: int
    lake_bucket: str = ""

    @classmethod
    def from_environment(cls) -> Self:
        return cls(
            table=os.environ[TABLE],
            bucket=os.environ[BUCKET],
            erasure_queue_url=os.environ[ERASURE_QUEUE_URL],
            quiet_s=int(os.environ[QUIET_S]),
            lake_bucket=os.environ.get(LAKE_BUCKET, ""),
        )


@dataclass(frozen=True, slots=True)
class LakeSettings:
    """`retention_days` is the lake's own."""

    table: str
    lake_bucket: str
    retention_days: int

    @classmethod
    def from_environment(cls) -> Self:
        return cls(
            table=os.environ[TABLE],
            lake_bucket=os.environ[LAKE_BUCKET],
            retention_days=int(os.environ[RETENTION_DAYS]),
        )


@dataclass(frozen=True, slots=True)
class DeadJobsSettings:
    table: str
    bucket: str

    @classmethod
    def from_environment(cls) -> Self:
        return cls(table=os.environ[TABLE], bucket=os.environ[BUCKET])
