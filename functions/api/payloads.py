"""What lies in the objects: a call's payload, the event that recorded it, a run's whole result.

Every line that is read is held against the digest on its item, so that nothing else is ever shown
for it. An object that is gone or damaged is an answer, not a failure: the call itself is there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from functions.api import links, shapes
from functions.api.runs import live_run
from functions.api.showing import result_stands
from functions.core.api_ports import Lines, RunReader
from functions.core.errors import NotFound
from functions.core.items import Item
from functions.core.keys import Pointer, RunRef
from runtally import wire


@dataclass(frozen=True, slots=True)
class Sized[T: msgspec.Struct]:
    """An answer that may be too large, and what to give in its stead."""

    answer: T
    instead: Callable[[], T]


@dataclass(frozen=True, slots=True)
class ReadStored:
    reader: RunReader
    lines: Lines
    now_ns: Callable[[], int]

    def payload(self, ref: RunRef, step_id: str) -> Sized[shapes.Payload]:
        """The payload of a call, as it was sent. Raises NotFound."""
        item = self._call(ref, step_id)
        if "payload_bytes" not in item:
            none = shapes.Payload(step_id, "none")
            return Sized(none, lambda: none)
        state, line = self._line(ref, item)
        size = int(item["payload_bytes"])
        event = None if line is None else wire.decode_event(line, "event")
        payload = event.payload if isinstance(event, wire.Step) else msgspec.UNSET
        return Sized(
            shapes.Payload(step_id, state, size, payload),
            lambda: shapes.Payload(step_id, state, size, link=self._link(ref, item)),
        )

    def event(self, ref: RunRef, step_id: str) -> Sized[shapes.Event]:
        """The event of a call, byte for byte. Raises NotFound."""
        item = self._call(ref, step_id)
        state, line = self._line(ref, item)
        event = msgspec.UNSET if line is None else msgspec.Raw(line)
        return Sized(
            shapes.Event(step_id, state, event),
            lambda: shapes.Event(step_id, state, link=self._link(ref, item)),
        )

    def result(self, ref: RunRef) -> Sized[shapes.WholeResult]:
        """The whole result of a run. Raises NotFound."""
        record = self.reader.record_of(ref)
        run = live_run(record.run, self.now_ns())
        item = record.result
        if item is None or not result_stands(run, item) or "result" not in item:
            none = shapes.WholeResult("none")
            return Sized(none, lambda: none)
        size = int(item["result_bytes"])
        if "cut" not in item:
            whole = shapes.WholeResult("ok", size, item["result"])
            return Sized(whole, lambda: whole)
        state, line = self._line(ref, item)
        event = None if line is None else wire.decode_event(line, "event")
        text = event.result if isinstance(event, wire.RunEnded) else None
        return Sized(
            shapes.WholeResult(state, size, text),
            lambda: shapes.WholeResult(state, size, link=self._link(ref, item)),
        )

    def _call(self, ref: RunRef, step_id: str) -> Item:
        run = live_run(self.reader.load_run(ref), self.now_ns())
        item = self.reader.load_call(run, step_id)
        if item is None:
            raise NotFound("the run has no such call")
        return item

    def _line(self, ref: RunRef, item: Item) -> tuple[shapes.State, bytes | None]:
        try:
            line = self.lines.read_line(ref, Pointer.parse(item["pointer"]), wire.CLAIM_LIMIT_BYTES)
        except ValueError:
            return "corrupt", None
        if line is None:
            return "missing", None
        return ("ok", line) if wire.digest(line) == item["digest"] else ("corrupt", None)

    def _link(self, ref: RunRef, item: Item) -> shapes.Link:
        pointer = Pointer.parse(item["pointer"])
        url = self.lines.link_to_line(ref, pointer, links.LINK_S)
        return links.link(url, self.now_ns(), pointer.byte_range)
