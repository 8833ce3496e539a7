"""What differs between the stages; everything else is the same in all of them."""

import platform
import re
from dataclasses import dataclass
from typing import Final, Literal

from aws_cdk import RemovalPolicy
from aws_cdk.aws_logs import RetentionDays

Architecture = Literal["arm64", "x86_64"]

_SERVICE_ENTRY: Final = re.compile("[a-z][a-z0-9-]{0,31}")

_SWEEP_EVERY: Final = range(5, 61)
"""Minutes: never two at once, each of which may take four; and once an hour at least."""
_AT_ONCE: Final = range(2, 1_001)
"""What Lambda takes as a mapping's maximum concurrency."""

_VPC_ID: Final = re.compile("vpc-([0-9a-f]{8}|[0-9a-f]{17})")
_SUBNET_ID: Final = re.compile("subnet-([0-9a-f]{8}|[0-9a-f]{17})")
_CACHE_SUBNETS: Final = range(2, 4)
_CACHE_GB: Final = range(1, 5_001)
_CACHE_ECPU: Final = range(1_000, 15_000_001)
"""A second: ElastiCache's own bounds, as those of subnets and gigabytes."""

_MOST_DAYS: Final = 36_500
"""S3 locks for a hundred years at most."""
_FIRST_TIER_DAYS: Final = 30
"""The least that an object is in S3's first tier, and is billed for in the next."""
_SCANNED_GB: Final = range(1, 10_001)


@dataclass(frozen=True, slots=True)
class PageDomain:
    """A name of your own for the page, and its certificate, which ACM has in us-east-1.

    A record in your DNS that leads from the name to the distribution is up to you.
    """

    name: str
    certificate_arn: str


@dataclass(frozen=True, slots=True)
class CoordinationSettings:
    """A cache of Valkey for workers in a VPC of yours; the one thing here that is paid for by the
    hour.

    `subnet_ids` are two or three, each in an availability zone of its own, which AWS alone can
    check. `max_gb` and `max_ecpu_per_second` are what it may come to: beyond them keys are evicted
    and commands are throttled. Raises ValueError for an id or a number that cannot be one.
    """

    vpc_id: str
    subnet_ids: tuple[str, ...]
    max_gb: int = 1
    max_ecpu_per_second: int = 5_000

    def __post_init__(self) -> None:
        if not _VPC_ID.fullmatch(self.vpc_id):
            raise ValueError(f"vpc_id is {self.vpc_id!r}; it matches {_VPC_ID.pattern}")
        for each in self.subnet_ids:
            if not _SUBNET_ID.fullmatch(each):
                raise ValueError(f"subnet_ids has {each!r}; each matches {_SUBNET_ID.pattern}")
        if len(set(self.subnet_ids)) != len(self.subnet_ids):
            raise ValueError(f"subnet_ids has one twice: {', '.join(self.subnet_ids)}")
        _require("number of subnet_ids", len(self.subnet_ids), _CACHE_SUBNETS)
        _require("max_gb", self.max_gb, _CACHE_GB)
        _require("max_ecpu_per_second", self.max_ecpu_per_second, _CACHE_ECPU)


@dataclass(frozen=True, slots=True)
class LakeSettings:
    """A lake of ended runs as Parquet, and Athena to ask it; on AWS alone.

    For `retention_days` after it was last written a file is kept, as long as the run itself or
    longer. For `object_lock_days` after it is written nobody can delete a file's version, not even
    the account itself (S3 Object Lock in compliance mode): there is no way back, nor to fewer days
    for what is written. `infrequent_after_days` and `archive_after_days` move files to S3's tiers
    Standard-IA and Glacier Instant Retrieval; S3 leaves those below 128 KB where they are.
    `own_key` encrypts by a key of the account instead of S3's, $1 a month. A query may scan
    `athena_scan_limit_gb`. Raises ValueError for a number that cannot be one.
    """

    retention_days: int
    object_lock_days: int = 0
    infrequent_after_days: int | None = None
    archive_after_days: int | None = None
    own_key: bool = False
    athena_scan_limit_gb: int = 10

    def __post_init__(self) -> None:
        _require("retention_days", self.retention_days, range(1, _MOST_DAYS + 1))
        _require("object_lock_days", self.object_lock_days, range(_MOST_DAYS + 1))
        _require("athena_scan_limit_gb", self.athena_scan_limit_gb, _SCANNED_GB)
        earliest = _FIRST_TIER_DAYS
        for name in ("infrequent_after_days", "archive_after_days"):
            days: int | None = getattr(self, name)
            if days is not None:
                _require(name, days, range(earliest, _MOST_DAYS + 1))
                earliest = days + _FIRST_TIER_DAYS
                self._require_kept(name, days + 1)
        self._require_kept("object_lock_days", self.object_lock_days)

    def _require_kept(self, name: str, days: int) -> None:
        if days > self.retention_days:
            given = getattr(self, name)
            raise ValueError(f"{name} is {given}: files are kept for {self.retention_days} days")


@dataclass(frozen=True, slots=True)
class StageSettings:
    """One stage: a full set of stacks of its own, `runtally-{stage}-…`.

    `retention_days` is how long a run is kept, and also how old an event may be when it arrives.
    `keep_data` protects table, buckets, queues and logs against deletion with their stack.
    `service_entries` names the services that can be called through the API. `cors_origins` are the
    web origins, other than the API's own, whose pages may read it. `requests_per_second` and
    `request_burst` limit the API as a whole. `page_domain` replaces CloudFront's name of the page.
    `redaction` lets the API redact what it takes, by the managed rules, before it queues it.
    `alarm_email` is told of alarms, once whoever reads it has agreed to that. Every
    `sweep_minutes`, 5 to 60, somebody looks for stale runs. At most `ingest_at_once` batches of
    messages are recorded at a time, 2 to 1,000: that many take tens of thousands of steps a second.
    `coordination` adds a cache that workers share, `lake` files of ended runs, both on AWS alone.
    Raises ValueError for a name, an origin or a number that cannot be one.
    """

    stage: str
    retention_days: int
    log_retention: RetentionDays
    keep_data: bool = True
    tls_only: bool = True
    architecture: Architecture = "arm64"
    service_entries: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    requests_per_second: int = 100
    request_burst: int = 200
    page_domain: PageDomain | None = None
    redaction: bool = False
    alarm_email: str | None = None
    sweep_minutes: int = 5
    ingest_at_once: int = 30
    coordination: CoordinationSettings | None = None
    lake: LakeSettings | None = None

    def __post_init__(self) -> None:
        for name in self.service_entries:
            if not _SERVICE_ENTRY.fullmatch(name):
                raise ValueError(
                    f"no name of a service entry: {name!r}; it matches {_SERVICE_ENTRY.pattern}"
                )
        for origin in self.cors_origins:
            if "*" in origin:
                raise ValueError(f"no web origin: {origin!r}; each one is named in full")
        _require("sweep_minutes", self.sweep_minutes, _SWEEP_EVERY)
        _require("ingest_at_once", self.ingest_at_once, _AT_ONCE)
        if self.coordination and self.is_local:
            raise ValueError(
                "coordination is for stages on AWS: the embedded one has no ElastiCache"
            )
        if self.lake and self.is_local:
            raise ValueError(
                "lake is for stages on AWS: of the local one, `runtally export` makes the files"
            )
        if self.lake and self.lake.retention_days < self.retention_days:
            raise ValueError(
                f"the lake's retention_days is {self.lake.retention_days}:"
                f" runs themselves are kept for {self.retention_days} days"
            )

    @property
    def api_bundle(self) -> Literal["api", "redacting-api"]:
        return "redacting-api" if self.redaction else "api"

    @property
    def prefix(self) -> str:
        return f"runtally-{self.stage}"

    @property
    def metrics_namespace(self) -> str:
        """Each stage's own: two of them in one account must not add up."""
        return f"runtally/{self.stage}"

    @property
    def removal_policy(self) -> RemovalPolicy:
        return RemovalPolicy.RETAIN if self.keep_data else RemovalPolicy.DESTROY

    @property
    def is_local(self) -> bool:
        """Deployed to the embedded AWS, whose functions run on this very machine."""
        return self.stage == "local"


def _require(name: str, value: int, allowed: range) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value}; it is {allowed[0]} to {allowed[-1]}")


def _this_machine() -> Architecture:
    return "arm64" if platform.machine() in {"arm64", "aarch64"} else "x86_64"


_STAGES: Final = (
    StageSettings(
        "local",
        retention_days=3650,  # recorded runs of past years are replayed here
        log_retention=RetentionDays.ONE_WEEK,
        keep_data=False,
        # The embedded AWS speaks plain HTTP on the loopback interface; where it enforces policies,
        # "TLS only" would refuse every request.
        tls_only=False,
        architecture=_this_machine(),
        service_entries=("research",),
    ),
    StageSettings("dev", retention_days=30, log_retention=RetentionDays.ONE_MONTH),
    StageSettings("prod", retention_days=365, log_retention=RetentionDays.THREE_MONTHS),
)
STAGES: Final = {settings.stage: settings for settings in _STAGES}


def settings_of(stage: str) -> StageSettings:
    """Raises ValueError for a stage that does not exist, naming those that do."""
    if stage not in STAGES:
        raise ValueError(f"no stage {stage!r}: choose one of {', '.join(STAGES)} (-c stage=…)")
    return STAGES[stage]
