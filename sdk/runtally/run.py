"""A run and its steps, as context managers around the agent's own work.

Recording never makes that work fail: what goes wrong in here is logged and counted. What goes wrong
in the agent's work is recorded and raised on, untouched.
"""

import logging
import time
from collections.abc import Callable, Mapping
from decimal import Decimal

import msgspec

from runtally import fields, ids, oversize, payloads, wire
from runtally.outbox import Outbox
from runtally.timed import Timed

_log = logging.getLogger("runtally")


class Step(Timed):
    """One agent, model or tool call. `step_id` is known from the beginning, for children to refer
    to.
    """

    def __init__(self, run: "Run", name: str | None, given: Mapping[str, object]) -> None:
        super().__init__()
        self.step_id = ids.new_id()
        self._run = run
        self._payload: bytes | None = None
        self._fields = fields.Fields(f"step {fields.text(name or self.step_id)}")
        self._fields.put("name", name)
        for field, value in given.items():
            self._fields.put(field, value)

    def set(  # noqa: PLR0913 - one keyword a field
        self,
        *,
        model: str | None = None,
        provider: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        cost_usd: Decimal | str | int | float | None = None,
        cost_computed_usd: Decimal | str | int | float | None = None,
        price_table: str | None = None,
        session_id: str | None = None,
        attributes: Mapping[str, object] | None = None,
        payload: object = msgspec.UNSET,
    ) -> None:
        """Record facts about the step: its own, without its children's. None leaves a field as it
        was.

        The payload is written out at once, so that what changes later does not change the record;
        the last one counts. A cost is exact as Decimal, string or int. What somebody billed is
        `cost_usd`; what was computed, for instance by `runtally.prices`, is `cost_computed_usd`
        with the name of its `price_table`, and counts where nothing was billed.
        """
        given = {
            "model": model,
            "provider": provider,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cached_tokens": cached_tokens,
            "cache_write_tokens": cache_write_tokens,
            "reasoning_tokens": reasoning_tokens,
            "cost_usd": cost_usd,
            "cost_computed_usd": cost_computed_usd,
            "price_table": price_table,
            "session_id": session_id,
            "attributes": attributes,
        }
        for field, value in given.items():
            self._fields.put(field, value)
        if payload is not msgspec.UNSET:
            self._payload = payloads.encode(payload)

    def step(
        self,
        name: str | None = None,
        *,
        phase: str | None = None,
        agent: str | None = None,
        kind: str = "agent",
        attributes: Mapping[str, object] | None = None,
    ) -> "Step":
        """A step below this one."""
        return self._run.step(
            name, phase=phase, agent=agent, kind=kind, parent=self, attributes=attributes
        )

    def _may_block(self) -> bool:
        return self._run._may_block()

    def _record_end(self) -> None:
        ended_at = self._ended_at
        self._run._record(lambda: self._event(ended_at))

    def _event(self, ended_at: int) -> wire.Event:
        self._fields.put("error", self._error)
        event = self._fields.event(
            wire.Step,
            step_id=self.step_id,
            kind="agent",
            status=self._status,
            started_at=self._started_at,
            ended_at=ended_at,
        )
        if self._payload is None:
            return event
        return msgspec.structs.replace(event, payload=msgspec.Raw(self._payload))


class Run(Timed):
    """One run of a pipeline. Entered, it records start and end; a Run that is not entered only adds
    steps to the run of that id, for instance in a second worker.
    """

    def __init__(  # noqa: PLR0913 - one keyword a field
        self,
        outbox: Outbox,
        tenant_id: str,
        pipeline: str,
        *,
        run_id: str | None,
        attributes: Mapping[str, object] | None,
        session_id: str | None,
        stale_after_s: int | None,
        buckets: int,
    ) -> None:
        super().__init__()
        self.result: object = None
        """Text as it is; anything else is JSON-encoded."""
        self._outbox = outbox
        self._pipeline = pipeline
        self._fields = fields.Fields(f"run of {fields.text(pipeline)}")
        self._fields.put("attributes", attributes)
        self._fields.put("session_id", session_id)
        self._fields.put("stale_after_s", stale_after_s)
        self.run_id = self._valid_id(run_id)
        self._head = wire.Head(1, tenant_id, self.run_id, _valid_buckets(buckets))

    def step(  # noqa: PLR0913 - one keyword a field
        self,
        name: str | None = None,
        *,
        phase: str | None = None,
        agent: str | None = None,
        kind: str = "agent",
        parent: Step | str | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> Step:
        """A step of this run. Without a phase of its own it belongs to its parent's."""
        parent_id = parent.step_id if isinstance(parent, Step) else parent
        given = {"phase": phase, "agent": agent, "kind": kind, "parent_id": parent_id}
        return Step(self, name, {**given, "attributes": attributes})

    def log(self, *lines: str) -> None:
        """Record lines of log; lines handed over together are stored together."""
        at = time.time_ns()
        self._record(
            lambda: wire.RunLog(ids.new_id(), at, [fields.text(line) for line in lines]),
        )

    def start(self) -> None:
        super().start()
        self._record(
            lambda: self._fields.event(
                wire.RunStarted, at=self._started_at, pipeline=fields.text(self._pipeline)
            ),
            at_once=True,
        )

    def _record_end(self) -> None:
        ended_at = self._ended_at
        self._record(lambda: self._end_event(ended_at), at_once=True)

    def _end_event(self, at: int) -> wire.Event:
        return wire.RunEnded(
            at,
            self._status,
            fields.result_text(self.result),
            None if self._error is None else fields.text(self._error),
        )

    def _record(self, make_event: Callable[[], wire.Event], *, at_once: bool = False) -> None:
        record(self._outbox, self._head, make_event, at_once=at_once)

    def _may_block(self) -> bool:
        return self._outbox.full

    def _valid_id(self, run_id: str | None) -> str:
        """The id itself, or one derived from it if the wire format has no place for it."""
        if run_id is None:
            return ids.new_id()
        kept = fields.run_id_of(run_id)
        if kept != run_id:
            given = fields.text(run_id)
            _log.warning("runtally: run_id %r cannot be kept; it becomes %s", given, kept)
            self._fields.put("attributes", {"runtally.run_id": given})
        return kept


def record(
    outbox: Outbox, head: wire.Head, make_event: Callable[[], wire.Event], *, at_once: bool
) -> None:
    """Hand an event to the outbox. Never raises: one that cannot be made is logged and counted."""
    try:
        event = make_event()
        if outbox.redactor is not None:
            event = outbox.redactor.event(event)
        line = oversize.line_within(event, outbox.limit_bytes)
        outbox.add(head, line, at_once=at_once)
    except Exception:  # noqa: BLE001 - whatever it is, it is not the agent's problem
        _log.exception("runtally: an event could not be recorded")
        outbox.count_lost(1, "it could not be written")


def _valid_buckets(buckets: int) -> int:
    try:
        return msgspec.convert(buckets, wire.Buckets)
    except msgspec.ValidationError:
        _log.warning("runtally: a run has 1 to 64 buckets, not %s: it gets 1", fields.text(buckets))
        return 1
