"""The rules by which runs are recorded: sent, counted, recounted, expired."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, precondition, rule

from functions.core import keys
from functions.core.keys import RunRef
from functions.summarize import recount_handler
from tests import build, invariants
from tests.fakes.sqs import Sent
from tests.memory_stage import NOW_NS, RECOUNTS
from tests.simulation.histories.delivering import FAULTS, MEANWHILE, Delivering, Fault, Message
from tests.simulation.histories.told import ENDS, TENANTS, WISHES, Told, Wish

_RUNS: Final = 5
_BUCKETS: Final = st.integers(1, 3)
_UNEVENLY: Final = st.sampled_from((*TENANTS, TENANTS[0], TENANTS[0]))
"""Tenants; one of them has more than a page of runs."""
_SOME: Final = st.lists(WISHES, min_size=1, max_size=6)
_MANY: Final = [Wish("step", n, {"cost_usd": "0.1"}) for n in range(101, 211)]
"""Steps that fill a preview, with some over."""


@dataclass(eq=False)
class Lane:
    """The stream of one partition key, and how far it has been acknowledged."""

    records: list[dict[str, Any]] = field(default_factory=list)
    reached: int = 0

    @property
    def rest(self) -> list[dict[str, Any]]:
        return self.records[self.reached :]


class Recording(Delivering):
    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[RunRef, Told] = {}
        self._lanes: dict[str, Lane] = {}
        self._checked = 0

    # -- workers --------------------------------------------------------------------------------

    @initialize(target=runs, tenant_id=st.sampled_from(TENANTS), buckets=_BUCKETS, wishes=_SOME)
    def open_first_run(self, tenant_id: str, buckets: int, wishes: list[Wish]) -> Told:
        """So that there is something to read from the beginning."""
        run = self._open(tenant_id, buckets)
        self._send(run, wishes)
        self.go_on()
        return run

    @precondition(lambda self: len(self.told) < _RUNS)
    @rule(target=runs, tenant_id=_UNEVENLY, buckets=_BUCKETS, wishes=_SOME)
    def open_run(self, tenant_id: str, buckets: int, wishes: list[Wish]) -> Told:
        run = self._open(tenant_id, buckets)
        self._send(run, wishes)
        return run

    def _open(self, tenant_id: str, buckets: int) -> Told:
        """The tenants' runs have the same ids."""
        number = 1 + len([ref for ref in self.told if ref.tenant_id == tenant_id])
        begins = (self.stage.now_ns - NOW_NS) // build.SECOND + number
        run = Told(RunRef(tenant_id, f"run-{number}"), buckets, begins, self.stage.now_ns)
        self.told[run.ref] = run
        return run

    @rule(target=Delivering.messages, run=runs, wishes=_SOME, alone=st.booleans(), fault=FAULTS)
    def send(self, run: Told, wishes: list[Wish], fault: Fault | None, *, alone: bool) -> Message:
        """A message, which is delivered at once if it stands `alone` in the queue."""
        message = self._send(run, wishes)
        if alone:
            self.ingest([message], fault)
        return message

    @precondition(lambda self: not any(len(run.steps) > 50 for run in self.told.values()))
    @rule(target=Delivering.messages, run=runs)
    def send_many(self, run: Told) -> Message:
        return self._send(run, _MANY)

    def _send(self, run: Told, wishes: list[Wish]) -> Message:
        events = [run.event(wish) for wish in wishes]
        body = build.body(*events, run=run.ref, buckets=run.buckets)
        return self.queue(Message(body, lambda: run.is_acknowledged(events)))

    # -- event sources --------------------------------------------------------------------------

    @precondition(lambda self: any(lane.rest for lane in self.lanes().values()))
    @rule(data=st.data(), fault=FAULTS)
    def count(self, data: st.DataObject, fault: Fault | None) -> None:
        """A batch of the stream: of some partition keys a part each, perhaps an old one again."""
        draw, lanes = data.draw, self.lanes()
        starts: dict[str, int] = {}
        batch: list[dict[str, Any]] = []
        for name in draw(st.lists(st.sampled_from(sorted(lanes)), min_size=1, unique=True)):
            lane = lanes[name]
            starts[name] = start = lane.reached - draw(st.integers(0, lane.reached))
            left = draw(st.integers(0, len(lane.records) - start))
            batch += lane.records[start : len(lane.records) - left]
        self._count(batch, starts, fault)

    @precondition(lambda self: self._ended())
    @rule(data=st.data(), fault=FAULTS)
    def count_late_step(self, data: st.DataObject, fault: Fault | None) -> None:
        """One more step of a run that has ended, and all that is left of the run's stream."""
        run = data.draw(st.sampled_from(self._ended()))
        self.ingest([self._send(run, [run.late_step()])])
        lanes = {name: lane for name, lane in self.lanes().items() if _is_of(name, run)}
        batch = [record for lane in lanes.values() for record in lane.rest]
        self._count(batch, {name: lane.reached for name, lane in lanes.items()}, fault)

    def _count(
        self, batch: list[dict[str, Any]], starts: dict[str, int], fault: Fault | None
    ) -> None:
        """Of each partition key the records from its start on."""
        batch.sort(key=_number)
        failed = self.attempt(fault, lambda: self.stage.summarize(batch), self._go_on_beside)
        if failed is None:
            return
        lanes = self.lanes()
        done = [one for one in batch if not failed or _number(one) < int(failed[0])]
        for name, start in starts.items():
            of_lane = [one for one in done if _partition(one) == name]
            lanes[name].reached = max(lanes[name].reached, start + len(of_lane))

    @precondition(lambda self: self.stage.sqs.queues.get(RECOUNTS))
    @rule(data=st.data(), fault=FAULTS, again=st.booleans())
    def recount(self, data: st.DataObject, fault: Fault | None, *, again: bool) -> None:
        """Some of the recounts that wait, in any order; perhaps they will come again."""
        waiting = st.sampled_from(self.stage.sqs.queues[RECOUNTS])
        self._recount(data.draw(st.lists(waiting, min_size=1, unique_by=id)), fault, again=again)

    @precondition(lambda self: self.stage.sqs.queues.get(RECOUNTS))
    @rule(data=st.data(), fault=MEANWHILE, recounted=st.booleans())
    def recount_while_steps_come(
        self, data: st.DataObject, fault: Fault, *, recounted: bool
    ) -> None:
        """Another step of the very run, which is counted meanwhile, perhaps by a recount too."""
        one = data.draw(st.sampled_from(self.stage.sqs.queues[RECOUNTS]))
        request = json.loads(one.body)
        run = self.told[RunRef(request["tenant_id"], request["run_id"])]

        def meanwhile() -> None:
            self._send(run, [run.late_step()])
            self._record_and_count()
            if recounted:
                self._recount_all()

        self._recount([one], fault, meanwhile, again=False)

    def _recount(
        self,
        batch: list[Sent],
        fault: Fault | None = None,
        meanwhile: Callable[[], None] | None = None,
        *,
        again: bool,
    ) -> None:
        records = [{"messageId": one.message_id, "body": one.body} for one in batch]

        def work() -> list[str]:
            answer = recount_handler.process({"Records": records}, self.stage.recount_parts)
            return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

        failed = self.attempt(fault, work, meanwhile)
        if failed is not None and not again:
            done = {one.message_id for one in batch} - set(failed)
            queue = self.stage.sqs.queues.get(RECOUNTS, [])
            queue[:] = [one for one in queue if one.message_id not in done]

    @rule(run=runs, end=st.none() | ENDS)
    def all_goes_well(self, run: Told, end: Wish | None) -> None:
        """For a while: what must hold at rest holds then too."""
        if end:
            self._send(run, [end])
        self.go_on()
        self.check_at_rest()

    def go_on(self) -> None:
        self._record_and_count()
        self._recount_all()

    def _record_and_count(self) -> None:
        super().go_on()
        for lane in self.lanes().values():
            rest = lane.rest
            self.attempt(None, lambda: self.stage.summarize(rest))  # noqa: B023
            lane.reached += len(rest)

    def _go_on_beside(self) -> None:
        """The stream is counted by one at a time."""
        super().go_on()
        self._recount_all()

    def _recount_all(self) -> None:
        self._recount(list(self.stage.sqs.queues.get(RECOUNTS, [])), again=False)

    def lanes(self) -> dict[str, Lane]:
        for record in self.stage.new_stream_records():
            self._lanes.setdefault(_partition(record), Lane()).records.append(record)
        return self._lanes

    # -- what must hold -------------------------------------------------------------------------

    @invariant()
    def what_is_recorded_holds(self) -> None:
        if self._checked == (checked := len(self.stage.dynamodb.stream)):
            return  # nothing was written
        self._checked = checked
        for run in self.told.values():
            if not self.is_gone(run):
                run.check(self.stage)
            elif not self.expired_are_there:
                assert not self.stage.items_of(run.ref), f"{run} came back"
        if not self.expired_are_there:
            invariants.caps_hold(self.stage)

    def _ended(self) -> list[Told]:
        return [run for run in self.told.values() if run.ended and not self.is_gone(run)]

    def is_gone(self, run: Told) -> bool:
        """Past its retention, whether or not its items are still there."""
        return run.opened_at < self.expired_before

    def come_to_rest(self) -> None:
        super().come_to_rest()
        self._checked = 0
        self.what_is_recorded_holds()
        self.check_at_rest()

    def check_at_rest(self) -> None:
        for run in self.told.values():
            if not self.is_gone(run):
                invariants.counted_exactly(self.stage, run.ref, list(run.steps.values()))


def _partition(record: dict[str, Any]) -> str:
    name: str = record["dynamodb"]["Keys"]["PK"]["S"]
    return name


def _is_of(name: str, run: Told) -> bool:
    return f"{name}#".startswith(f"{keys.run_partition(run.ref)}#")


def _number(record: dict[str, Any]) -> int:
    return int(record["dynamodb"]["SequenceNumber"])
