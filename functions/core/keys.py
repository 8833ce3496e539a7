"""Every key of the table and of the bucket, built and parsed here and nowhere else.

The encoding is injective because no id may hold `#` or `/` (wire.TenantId, wire.RunId,
wire.StepId), and a tenant's data sits behind the tenant's id, so that no key of one tenant can name
an item of another.
"""

import zlib
from typing import Final, Literal, NamedTuple

PARTITION: Final = "PK"
SORT: Final = "SK"
BY_TENANT: Final = "GSI1"
BY_TENANT_PARTITION: Final = "GSI1PK"
BY_TENANT_SORT: Final = "GSI1SK"
OPEN_RUNS: Final = "GSI2"
OPEN_RUNS_PARTITION: Final = "GSI2PK"
OPEN_RUNS_SORT: Final = "GSI2SK"
EXPIRES: Final = "expires_at"

RUN: Final = "RUN"
RESULT: Final = "RESULT"
TOTALS: Final = "TOTALS"
PREVIEW: Final = "PREVIEW"
SUMMARY: Final = "SUMMARY"
STEP_PREFIX: Final = "AGENT#"
LOG_PREFIX: Final = "LOG#"

RUN_OBJECTS: Final = "agent-runs/"
INBOX: Final = "inbox/"
DEAD_LETTERS: Final = "dead-letters/"

_RUN_PREFIX = "PIPELINERUN#"
_OPEN_RUN_SHARDS = 8

Whole = Literal["RUN", "RESULT", "TOTALS", "PREVIEW", "SUMMARY"]


class RunRef(NamedTuple):
    """Which run: its tenant and its id within the tenant."""

    tenant_id: str
    run_id: str


class ItemKey(NamedTuple):
    partition: str
    sort: str


def item_of_run(run: RunRef, which: Whole) -> ItemKey:
    return ItemKey(run_partition(run), which)


def step_item(run: RunRef, buckets: int, step_id: str) -> ItemKey:
    return ItemKey(run_partition(run, bucket_of(step_id, buckets)), STEP_PREFIX + step_id)


def log_item(run: RunRef, log_id: str) -> ItemKey:
    return ItemKey(run_partition(run), LOG_PREFIX + log_id)


def run_partition(run: RunRef, bucket: int = 0) -> str:
    """Bucket 0 shares the partition key of RUN and the other single items."""
    key = f"{_RUN_PREFIX}{run.tenant_id}#{run.run_id}"
    return f"{key}#{bucket}" if bucket else key


def parse_run_partition(partition: str) -> tuple[RunRef, int]:
    """The run and bucket behind a partition key. Raises ValueError when it is no run's."""
    prefix, _, rest = partition.partition("#")
    tenant_id, _, rest = rest.partition("#")
    run_id, _, bucket = rest.partition("#")
    if f"{prefix}#" != _RUN_PREFIX or not tenant_id or not run_id:
        raise ValueError(f"not the partition key of a run: {partition!r}")
    return RunRef(tenant_id, run_id), int(bucket or 0)


def bucket_of(step_id: str, buckets: int) -> int:
    return zlib.crc32(step_id.encode()) % buckets


def runs_of_tenant(run: RunRef, started_at: int) -> ItemKey:
    """Newest first when read backwards: the time is 19 digits until the year 2286."""
    return ItemKey(f"TENANT#{run.tenant_id}", f"RUN#{started_at:019d}#{run.run_id}")


def open_runs(run: RunRef) -> ItemKey:
    """Where the sweep looks for runs without an end; a few partitions, so that none gets hot."""
    shard = zlib.crc32(f"{run.tenant_id}#{run.run_id}".encode()) % _OPEN_RUN_SHARDS
    return ItemKey(f"OPEN#{shard}", f"{run.tenant_id}#{run.run_id}")


def object_of_run(run: RunRef, name: str) -> str:
    return f"{RUN_OBJECTS}{run.tenant_id}/{run.run_id}/{name}.json.gz"


def inbox_prefix(run: RunRef) -> str:
    return f"{INBOX}{run.tenant_id}/{run.run_id}/"


def dead_letter_object(sha256: str) -> str:
    return f"{DEAD_LETTERS}{sha256}"


class Pointer(NamedTuple):
    """Where in which object of its run an event's line lies, as one gzip member."""

    name: str
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.name}:{self.offset}+{self.length}"

    @classmethod
    def parse(cls, text: str) -> "Pointer":
        name, _, span = text.partition(":")
        offset, _, length = span.partition("+")
        return cls(name, int(offset), int(length))
