"""Every key of the table and of the bucket, built and parsed here and nowhere else.

The encoding is injective because no id may hold `#` or `/` (wire.TenantId, wire.RunId,
wire.StepId), and a tenant's data sits behind the tenant's id, so that no key of one tenant can name
an item of another.
"""

import re
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

OPEN_RUN_SHARDS: Final = 8
"""Partitions in which open runs are listed; a few, so that none gets hot."""

RUN: Final = "RUN"
RESULT: Final = "RESULT"
TOTALS: Final = "TOTALS"
PREVIEW: Final = "PREVIEW"
SUMMARY: Final = "SUMMARY"
LAKE: Final = "LAKE"
TENANT: Final = "TENANT"
API_KEY: Final = "APIKEY"
INVOCATION: Final = "INVOCATION"
SWEEP: Final = "SWEEP"
STEP_PREFIX: Final = "AGENT#"
LOG_PREFIX: Final = "LOG#"

RUN_OBJECTS: Final = "agent-runs/"
INBOX: Final = "inbox/"
DEAD_LETTERS: Final = "dead-letters/"
INVOCATION_OBJECTS: Final = "invocations/"
LAKE_OBJECTS: Final = "lake/"

_OBJECT_OF_RUN: Final = re.compile(rf"{RUN_OBJECTS}([^/]+)/([^/]+)/[^/]+\.json\.gz")

INVOCATION_PREFIX: Final = "INVOCATION#"
RUN_PREFIX: Final = "PIPELINERUN#"
TENANT_PREFIX: Final = "TENANT#"
_LISTED_RUN = "RUN#"
_ALL_TENANTS = "TENANTS"
_API_KEY_PREFIX = "APIKEY#"
_OPEN_PREFIX = "OPEN#"
_DELETING_PREFIX = "DELETING#"

Whole = Literal["RUN", "RESULT", "TOTALS", "PREVIEW", "SUMMARY", "LAKE"]


class RunRef(NamedTuple):
    """Which run: its tenant and its id within the tenant."""

    tenant_id: str
    run_id: str


class InvocationRef(NamedTuple):
    """Which invocation of a service entry: its tenant and its id within the tenant."""

    tenant_id: str
    invocation_id: str


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
    key = f"{RUN_PREFIX}{run.tenant_id}#{run.run_id}"
    return f"{key}#{bucket}" if bucket else key


def parse_run_partition(partition: str) -> tuple[RunRef, int]:
    """The run and bucket behind a partition key. Raises ValueError when it is no run's."""
    prefix, _, rest = partition.partition("#")
    tenant_id, _, rest = rest.partition("#")
    run_id, _, bucket = rest.partition("#")
    if f"{prefix}#" != RUN_PREFIX or not tenant_id or not run_id:
        raise ValueError(f"not the partition key of a run: {partition!r}")
    return RunRef(tenant_id, run_id), int(bucket or 0)


def bucket_of(step_id: str, buckets: int) -> int:
    return zlib.crc32(step_id.encode()) % buckets


def runs_of_tenant(run: RunRef, started_at: int) -> ItemKey:
    """Newest first when read backwards: the time is 19 digits until the year 2286."""
    return ItemKey(_of_tenant(run.tenant_id), f"{_LISTED_RUN}{started_at:019d}#{run.run_id}")


def runs_between(tenant_id: str, since: int, until: int) -> tuple[str, str, str]:
    """The partition, and the first and last sort key, of runs that started in [since, until)."""
    first, last = f"{_LISTED_RUN}{since:019d}#", f"{_LISTED_RUN}{until - 1:019d}#~"
    return _of_tenant(tenant_id), first, last


def parse_listed_run(sort: str) -> tuple[int, str]:
    """Start and run id behind a sort key of `runs_of_tenant`. Raises ValueError when it is none."""
    at, _, run_id = sort.removeprefix(_LISTED_RUN).partition("#")
    if not sort.startswith(_LISTED_RUN) or not run_id:
        raise ValueError(f"not the sort key of a listed run: {sort!r}")
    return int(at), run_id


def open_runs(run: RunRef) -> ItemKey:
    """Where the sweep looks for runs without an end."""
    shard = zlib.crc32(f"{run.tenant_id}#{run.run_id}".encode()) % OPEN_RUN_SHARDS
    return ItemKey(f"{_OPEN_PREFIX}{shard}", f"{run.tenant_id}#{run.run_id}")


def all_open_runs(shard: int) -> tuple[str, str, str]:
    """The partition of the index, and the first and last sort key, of a shard's open runs."""
    return f"{_OPEN_PREFIX}{shard}", "0", "~"  # every tenant's id begins with a letter or digit


def sweep_item() -> ItemKey:
    """Where the sweep notes how far it came, when its time was up."""
    return ItemKey(SWEEP, SWEEP)


def unfinished_deletion(run: RunRef, requested_at: int) -> ItemKey:
    """Where the sweep looks for tombstones of runs that are not all gone yet, the oldest first."""
    shard = open_runs(run).partition.removeprefix(_OPEN_PREFIX)
    name = f"{requested_at:019d}#{run.tenant_id}#{run.run_id}"
    return ItemKey(f"{_DELETING_PREFIX}{shard}", name)


def parse_unfinished_deletion(sort: str) -> tuple[RunRef, int]:
    """The run, and when its deletion was asked for, behind a sort key of `unfinished_deletion`."""
    requested_at, tenant_id, run_id = sort.split("#")
    return RunRef(tenant_id, run_id), int(requested_at)


def deletions_before(shard: int, until: int) -> tuple[str, str, str]:
    """The partition of the index, and the first and last sort key, of a shard's deletions that
    were asked for before `until` and are not finished."""
    return f"{_DELETING_PREFIX}{shard}", "0", f"{until - 1:019d}#~"


def tenant_item(tenant_id: str) -> ItemKey:
    return ItemKey(_of_tenant(tenant_id), TENANT)


def api_key_item(sha256: str) -> ItemKey:
    return ItemKey(f"{_API_KEY_PREFIX}{sha256}", API_KEY)


def parse_api_key_item(partition: str) -> str:
    """The hash behind the partition key of an API key. Raises ValueError when it is none's."""
    sha256 = partition.removeprefix(_API_KEY_PREFIX)
    if sha256 == partition or not sha256:
        raise ValueError(f"not the partition key of an API key: {partition!r}")
    return sha256


def listed_tenant(tenant_id: str) -> ItemKey:
    """All tenants in one partition of the index, by id: they are few and seldom made."""
    return ItemKey(_ALL_TENANTS, _of_tenant(tenant_id))


def listed_api_key(tenant_id: str, created_at: int, key_id: str) -> ItemKey:
    """Newest first when read backwards, beside the tenant's runs."""
    return ItemKey(_of_tenant(tenant_id), f"{_API_KEY_PREFIX}{created_at:019d}#{key_id}")


def all_tenants() -> tuple[str, str, str]:
    """The partition of the index, and the first and last sort key, of all tenants."""
    return _ALL_TENANTS, *beginning_with(TENANT_PREFIX)


def all_api_keys(tenant_id: str) -> tuple[str, str, str]:
    """The partition of the index, and the first and last sort key, of a tenant's API keys."""
    return _of_tenant(tenant_id), *beginning_with(_API_KEY_PREFIX)


def _of_tenant(tenant_id: str) -> str:
    """The partition of the tenant's own item, and in the index of its runs and API keys."""
    return f"{TENANT_PREFIX}{tenant_id}"


def invocation_item(ref: InvocationRef) -> ItemKey:
    return ItemKey(f"{INVOCATION_PREFIX}{ref.tenant_id}#{ref.invocation_id}", INVOCATION)


def parse_invocation_item(partition: str) -> InvocationRef:
    """The invocation behind a partition key. Raises ValueError when it is none's."""
    tenant_id, _, invocation_id = partition.removeprefix(INVOCATION_PREFIX).partition("#")
    if not partition.startswith(INVOCATION_PREFIX) or not invocation_id:
        raise ValueError(f"not the partition key of an invocation: {partition!r}")
    return InvocationRef(tenant_id, invocation_id)


def result_object(ref: InvocationRef, sha256: str) -> str:
    """Named after what it holds as well, so that another answer never takes its place."""
    return f"{INVOCATION_OBJECTS}{ref.tenant_id}/{ref.invocation_id}/{sha256[:16]}.txt"


def object_of_run(run: RunRef, name: str) -> str:
    return f"{objects_of_run(run)}{name}.json.gz"


def parse_object_of_run(key: str) -> RunRef:
    """The run behind the key of an object. Raises ValueError when it is none's."""
    parsed = _OBJECT_OF_RUN.fullmatch(key)
    if parsed is None:
        raise ValueError(f"not the key of a run's object: {key!r}")
    return RunRef(*parsed.groups())


def objects_of_run(run: RunRef) -> str:
    """It ends with a slash, as `inbox_prefix` does: or run `a` would share it with run `ab`."""
    return f"{RUN_OBJECTS}{run.tenant_id}/{run.run_id}/"


def objects_of_tenant(tenant_id: str) -> tuple[str, ...]:
    """Below these lies all that the bucket holds of a tenant, but for dead letters."""
    folders = (RUN_OBJECTS, INBOX, INVOCATION_OBJECTS)
    return tuple(f"{folder}{tenant_id}/" for folder in folders)


def invocations_of_tenant(tenant_id: str) -> str:
    """What the partition keys of a tenant's invocations begin with."""
    return f"{INVOCATION_PREFIX}{tenant_id}#"


def inbox_prefix(run: RunRef) -> str:
    """`_` begins no run id: it holds the messages that belong to no run."""
    return f"{INBOX}{run.tenant_id}/{run.run_id or '_'}/"


def dead_letter_object(sha256: str) -> str:
    return f"{DEAD_LETTERS}{sha256}"


def beginning_with(prefix: str) -> tuple[str, str]:
    """The first and the last sort key that can begin so: `~` sorts behind all that an id holds."""
    return prefix, f"{prefix}~"


class Pointer(NamedTuple):
    """Where in which object of its run an event's line lies, as one gzip member."""

    name: str
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.name}:{self.offset}+{self.length}"

    @property
    def byte_range(self) -> str:
        return f"bytes={self.offset}-{self.offset + self.length - 1}"

    @classmethod
    def parse(cls, text: str) -> "Pointer":
        name, _, span = text.partition(":")
        offset, _, length = span.partition("+")
        return cls(name, int(offset), int(length))
