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


@dataclass(frozen=True, slots=True)
class PageDomain:
    """A name of your own for the page, and its certificate, which ACM has in us-east-1.

    A record in your DNS that leads from the name to the distribution is up to you.
    """

    name: str
    certificate_arn: str


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

    def __post_init__(self) -> None:
        for name in self.service_entries:
            if not _SERVICE_ENTRY.fullmatch(name):
                raise ValueError(
                    f"no name of a service entry: {name!r}; it matches {_SERVICE_ENTRY.pattern}"
                )
        for origin in self.cors_origins:
            if "*" in origin:
                raise ValueError(f"no web origin: {origin!r}; each one is named in full")
        if self.sweep_minutes not in _SWEEP_EVERY:
            least, most = _SWEEP_EVERY[0], _SWEEP_EVERY[-1]
            raise ValueError(f"sweep_minutes is {self.sweep_minutes}; it is {least} to {most}")
        if self.ingest_at_once not in _AT_ONCE:
            least, most = _AT_ONCE[0], _AT_ONCE[-1]
            raise ValueError(f"ingest_at_once is {self.ingest_at_once}; it is {least} to {most}")

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
