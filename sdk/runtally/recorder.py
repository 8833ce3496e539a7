"""The way in: one Recorder a process, one run a `with`."""

import functools
import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from runtally import environment, wire
from runtally.courier import Courier
from runtally.cuts import AFTER_S
from runtally.outbox import Outbox, Unsent
from runtally.run import Run, record
from runtally.senders import Sender, SqsSender
from runtally.spool import DEFAULT_MAX_BYTES, Spool

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sqs import SQSClient
    from typing_extensions import Self

    from runtally.redaction import Redact, Redactor

_log = logging.getLogger("runtally")

FLUSH_S: Final = 30.0
_BEFORE_FREEZE_S: Final = 1.0
_LONGEST_WAIT_S: Final = 300
_Answer = TypeVar("_Answer")


class RecordingLost(Exception):  # noqa: N818 - the fact
    """Events are lost for good; only raised by flush and close, and only with `on_loss="raise"`."""

    def __init__(self, unsent: Unsent) -> None:
        super().__init__(f"{unsent.lost} events are lost")
        self.unsent = unsent


class Recorder:
    """Records runs in the background; thread-safe, meant to live as long as the process.

    Messages go to `queue_url`, with `bucket` for those over the SQS limit, or to a `sender` of your
    own. While they cannot be sent they wait in `spool_dir` (by default a private directory below
    the system's temporary one; with a sender of your own none). What is left at exit is flushed.
    An event waits for others of its run for `send_after_s` seconds, 10 unless said otherwise: less
    shows it sooner and costs more, as each message is an object of its own.
    Every text goes through `redact` first, for instance `runtally.redaction.rules()`.
    Raises ValueError for settings that cannot work; after that, recording raises nothing.
    """

    def __init__(  # noqa: PLR0913 - one keyword a setting
        self,
        *,
        tenant_id: str,
        queue_url: str | None = None,
        bucket: str | None = None,
        region: str | None = None,
        sqs: "SQSClient | None" = None,
        s3: "S3Client | None" = None,
        sender: Sender | None = None,
        spool_dir: str | Path | None = None,
        max_spool_bytes: int = DEFAULT_MAX_BYTES,
        on_loss: Literal["log", "raise"] = "log",
        redact: "Redact | None" = None,
        send_after_s: float = AFTER_S,
    ) -> None:
        try:
            self.tenant_id = msgspec.convert(tenant_id, wire.TenantId)
        except msgspec.ValidationError as error:
            raise ValueError(f"tenant_id {tenant_id!r}: {error}") from None
        if (sender is None) == (queue_url is None):
            raise ValueError("a Recorder needs either queue_url or sender")
        if not 0 < send_after_s <= _LONGEST_WAIT_S:
            raise ValueError(f"send_after_s is {send_after_s}: not in (0, {_LONGEST_WAIT_S}]")
        spool: Spool | None = None
        if queue_url is not None:
            sender = SqsSender(queue_url, bucket, region=region, sqs=sqs, s3=s3)
            directory = _spool_of(queue_url, spool_dir)
            spool = Spool(directory, max_spool_bytes) if directory else None
        elif spool_dir is not None:
            spool = Spool(Path(spool_dir), max_spool_bytes)
        assert sender is not None  # noqa: S101 - for the type checker: one of the two was given
        self._on_loss = on_loss
        self._outbox = Outbox(
            Courier(sender, spool), redactor=_redactor(redact), send_after_s=send_after_s
        )

    @classmethod
    def from_environment(cls) -> "Self":
        """Settings from RUNTALLY_TENANT_ID, RUNTALLY_QUEUE_URL and, optional, RUNTALLY_BUCKET,
        RUNTALLY_SPOOL_DIR, RUNTALLY_SEND_AFTER_S and RUNTALLY_REDACT, which may be `rules`. Raises
        ValueError that names what is missing or wrong."""
        tenant_id, queue_url = environment.required("RUNTALLY_TENANT_ID", "RUNTALLY_QUEUE_URL")
        return cls(
            tenant_id=tenant_id,
            queue_url=queue_url,
            bucket=environment.optional("RUNTALLY_BUCKET"),
            spool_dir=environment.optional("RUNTALLY_SPOOL_DIR"),
            redact=environment.redact(),
            send_after_s=environment.seconds("RUNTALLY_SEND_AFTER_S", AFTER_S),
        )

    def run(  # noqa: PLR0913 - one keyword a field
        self,
        pipeline: str,
        *,
        run_id: str | None = None,
        attributes: Mapping[str, object] | None = None,
        session_id: str | None = None,
        stale_after_s: int | None = None,
        buckets: int = 1,
    ) -> Run:
        """A run, to be entered with `with` or `async with`. Its id is made unless one is given.

        `buckets` spreads a run of more than about a thousand steps a second over as many
        partitions.
        """
        return Run(
            self._outbox,
            self.tenant_id,
            pipeline,
            run_id=run_id,
            attributes=attributes,
            session_id=session_id,
            stale_after_s=stale_after_s,
            buckets=buckets,
        )

    def redacted(self, text: str) -> str:
        """The text as it would be recorded: the same where nothing is redacted."""
        redactor = self._outbox.redactor
        return text if redactor is None else redactor.text(text)

    def record_events(
        self, run_id: str, events: Sequence[wire.RunEvent], *, at_once: bool = False
    ) -> None:
        """Record events as they are, in order: for what translates other formats into valid ones.

        `at_once` sends the last without waiting for more of its run. Raises nothing.
        """
        head = wire.Head(1, self.tenant_id, run_id)
        for number, event in enumerate(events, start=1):
            self._record(head, event, at_once=at_once and number == len(events))

    def count_lost(self, events: int, why: str) -> None:
        """Have events that could not even be made reported as lost by the next flush."""
        self._outbox.count_lost(events, why)

    def flush(self, timeout: float = FLUSH_S) -> Unsent:
        """Send everything now; returns what could not be sent within `timeout` seconds, false if
        nothing.

        Raises RecordingLost when events were lost since the last flush and `on_loss` is "raise".
        """
        return self._judged(self._outbox.flush(timeout))

    def close(self, timeout: float = FLUSH_S) -> Unsent:
        """Flush and end the background thread."""
        return self._judged(self._outbox.close(timeout))

    def lambda_handler(
        self, handler: Callable[[dict[str, object], object], _Answer]
    ) -> Callable[[dict[str, object], object], _Answer]:
        """Decorates a Lambda handler: flushes before the invocation ends, since what is frozen
        sends nothing.

        A second before the function's timeout it stops waiting and leaves the rest to the spool.
        """

        @functools.wraps(handler)
        def flushing(event: dict[str, object], context: object) -> _Answer:
            try:
                return handler(event, context)
            finally:
                self.flush(_time_left(context))

        return flushing

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _record(self, head: wire.Head, event: wire.Event, *, at_once: bool) -> None:
        record(self._outbox, head, lambda: event, at_once=at_once)

    def _judged(self, unsent: Unsent) -> Unsent:
        if unsent.lost and self._on_loss == "raise":
            raise RecordingLost(unsent)
        return unsent


def _redactor(redact: "Redact | None") -> "Redactor | None":
    if redact is None:
        return None
    from runtally.redaction import Redactor  # noqa: PLC0415 - for those who want it

    return Redactor(redact)


def _time_left(context: object) -> float:
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    if not callable(remaining):
        return FLUSH_S
    return max(0.0, min(FLUSH_S, float(remaining()) / 1000 - _BEFORE_FREEZE_S))


def _spool_of(queue_url: str, directory: str | Path | None) -> Path | None:
    """Where messages for one queue wait: its own directory, so that none goes to another stage."""
    queue = hashlib.sha256(queue_url.encode()).hexdigest()[:16]
    if directory is not None:
        return Path(directory) / queue
    user = os.getuid() if hasattr(os, "getuid") else 0
    private = Path(tempfile.gettempdir()) / f"runtally-{user}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        if private.is_symlink() or (hasattr(os, "getuid") and private.stat().st_uid != user):
            raise PermissionError(f"{private} belongs to somebody else")
    except OSError as error:
        _log.warning("runtally: nothing waits on disk while the queue is out of reach: %s", error)
        return None
    return private / queue
