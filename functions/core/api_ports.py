"""What the api needs from the outside, and ingest of invocations. docs/access-patterns.md describes
each method's request.

Every method may raise Unavailable: the caller may repeat.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from functions.core.errors import NewerSchema
from functions.core.invocations import Invocation, Settlement
from functions.core.items import Item
from functions.core.keys import InvocationRef, Pointer, RunRef
from functions.core.model import PreviewEntry, Run, Summary, Totals
from functions.core.ports import Runs
from functions.core.tenants import ApiKey, Tenant


@dataclass(frozen=True, slots=True)
class RunQuery:
    """A tenant's runs that started in [since, until) nanoseconds; `where` may name `status` and
    `pipeline`."""

    tenant_id: str
    since: int
    until: int
    where: Mapping[str, str] = field(default_factory=dict)


class IndexedRun(NamedTuple):
    """A run as the index of its tenant shows it, which lags behind the run itself."""

    ref: RunRef
    started_at: int
    pipeline: str
    status: str


class IndexPage(NamedTuple):
    """`last` is where to go on; None at the end. A page may be empty and still not be the last."""

    runs: list[IndexedRun]
    last: tuple[int, str] | None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What stands in the table about a run besides its calls and logs."""

    run: Run | None = None
    totals: Totals = field(default_factory=Totals)
    preview: Sequence[PreviewEntry] = ()
    summary: Summary | None = None
    result: Item | None = None


class RunReader(Runs, Protocol):
    def page_of_runs(self, query: RunQuery, after: tuple[int, str] | None, limit: int) -> IndexPage:
        """One request's worth, newest first, behind a (start, run id).

        `limit` counts what is read, not what `where` leaves.
        """

    def records_of(self, refs: Sequence[RunRef]) -> dict[RunRef, RunRecord]:
        """The records of many runs, which may lag by a moment; without their results."""

    def record_of(self, ref: RunRef) -> RunRecord:
        """The record of one run as it is now (strongly consistent), its result included."""

    def newest_logs(self, ref: RunRef, most: int) -> Sequence[Item]:
        """The run's newest log items, the newest first (strongly consistent)."""

    def calls_of_run(self, run: Run, after: str) -> Iterator[Item]:
        """The run's step items behind a step id, in step order over all buckets (strongly
        consistent); read a page at a time, as they are taken."""

    def load_call(self, run: Run, step_id: str) -> Item | None:
        """One step item (strongly consistent)."""


class Lines(Protocol):
    """The stored lines of events, in the objects of their runs."""

    def read_line(self, ref: RunRef, pointer: Pointer, limit: int) -> bytes | None:
        """The line behind a pointer; None when its object is gone.

        Raises ValueError when the object holds no such line, or one of more than `limit` bytes.
        """

    def link_to_line(self, ref: RunRef, pointer: Pointer, seconds: int) -> str:
        """A URL for that range of the object, gzipped, that works without credentials for so
        long."""


class Tenants(Protocol):
    """Tenants and their API keys. None of the writes changes anything when it is repeated."""

    def create_tenant(self, tenant: Tenant) -> bool:
        """Store the tenant unless another one has its id; returns whether it stands now."""

    def load_tenant(self, tenant_id: str) -> Tenant | None:
        """The tenant as it is now (strongly consistent)."""

    def list_tenants(self) -> list[Tenant]:
        """Every tenant, by id; one made a moment ago may be missing. Raises NewerSchema."""

    def each_tenant(self) -> list[Tenant | NewerSchema]:
        """The same for those who do without the tenants that this code may misread."""

    def set_retention(self, tenant_id: str, days: int | None) -> Tenant | None:
        """Let the tenant's runs be kept so long, or as long as the stage's for None; returns the
        tenant as it is now, None when there is none."""

    def create_key(self, key: ApiKey) -> None:
        """Store an API key."""

    def load_key(self, sha256: str) -> ApiKey | None:
        """The API key with that hash as it is now: one GetItem, strongly consistent."""

    def list_keys(self, tenant_id: str) -> list[ApiKey]:
        """A tenant's API keys as they are now, newest first; one made a moment ago may be
        missing."""

    def revoke_key(self, key: ApiKey, revoked_at: int) -> None:
        """Let the key hold no longer; the first revocation's time stands."""

    def limit_key(self, key: ApiKey, valid_until: int) -> None:
        """Let the key hold until then (seconds), unless it is revoked or ends before."""


class Settling(Protocol):
    """What ends invocations: ingest, with their answers, as well as the api."""

    def settle_invocation(
        self, ref: InvocationRef, settlement: Settlement
    ) -> tuple[bool, Invocation]:
        """Let an invocation that is pending end so. Raises NotFound when there is none.

        Returns whether it was pending, and the invocation as it stands now.
        """

    def load_invocation(self, ref: InvocationRef) -> Invocation | None:
        """The invocation as it is now (strongly consistent), also when its time is over."""


class Invocations(Settling, Protocol):
    def create_invocation(self, invocation: Invocation) -> Invocation:
        """Store the invocation unless its id is taken; returns the one that stands."""

    def mark_sent(self, ref: InvocationRef, sent_at: int) -> None:
        """Say that the job is on its queue; the first time stands."""


class JobQueues(Protocol):
    """The work queue of each service entry."""

    def names(self) -> Collection[str]:
        """The service entries that there are."""

    def send_job(self, service_entry: str, tenant_id: str, body: str) -> None:
        """Put a sealed job on the work queue, with a fair share for every tenant."""


class Results(Protocol):
    """Results of invocations that are too long for their items."""

    def put_whole_result(self, key: str, text: bytes) -> None:
        """Store a result, as text in UTF-8, under a name that only it may have."""

    def link_to_result(self, key: str, seconds: int) -> str:
        """A URL for the result that works without credentials for so long."""


class DeadLetterBodies(Protocol):
    def put_dead_letter_body(self, key: str, body: bytes) -> None:
        """Keep the body of a message under the hash of its bytes."""


class EventQueue(Protocol):
    def send_events(self, tenant_id: str, body: bytes) -> None:
        """Put a sealed message of up to 64 MB on the queue that ingest reads, with a fair share
        for every tenant. Raises Unavailable; sending it again does no harm."""

    def send_all(self, tenant_id: str, bodies: Sequence[bytes]) -> None:
        """The same with many, several at a time. Raises Unavailable when one was not taken."""
