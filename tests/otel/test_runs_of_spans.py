"""Which run a span belongs to, when runs begin and end, and which spans are none of any."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from runtally import wire
from runtally.fields import run_id_of
from runtally.otel.spans import Scope, Span
from runtally.otel.steps import Mapped, events_of_span
from runtally.wire import Rejected
from tests import build
from tests.otel.figures import recorded
from tests.otel.making import AGENT, MODEL, TRACE, child, span, step_of


def kinds_of(mapped: Mapped) -> list[str]:
    return [type(event).__name__ for event in mapped.events]


class TestRuns:
    def test_a_trace_is_a_run(self) -> None:
        mapped = events_of_span(span({"session.id": "s-1"}))
        assert mapped.run_id == TRACE
        assert kinds_of(mapped) == ["RunStarted", "Step", "RunEnded"]
        started = mapped.events[0]
        assert isinstance(started, wire.RunStarted)
        assert (started.at, started.session_id) == (build.T0, "s-1")
        assert started.attributes == {"service.name": "agents"}
        assert kinds_of(events_of_span(child(1))) == ["Step"]

    @pytest.mark.parametrize("place", ["span", "resource", "both"])
    def test_a_run_id_that_is_told_joins_traces(self, place: str) -> None:
        given = {"runtally.run_id": "run-0001"}
        other = {"runtally.run_id": "of the process"} if place == "both" else given
        scope = Scope(resource=other if place != "span" else {})
        root = span(given if place != "resource" else {}, scope=scope)
        mapped = events_of_span(root)
        assert mapped.run_id == "run-0001"
        # Which of its traces is the last, only `runtally.run_end` tells.
        assert kinds_of(mapped) == ["RunStarted", "Step"]
        started = mapped.events[0]
        assert isinstance(started, wire.RunStarted)
        assert started.attributes == {"otel.trace_id": TRACE}

    @pytest.mark.parametrize("refused", ["two words", "a/b", "跑", "x" * 1000, "\ud800"])
    def test_a_run_id_that_has_no_place_is_hashed_and_kept(self, refused: str) -> None:
        mapped = events_of_span(span({"runtally.run_id": refused}))
        assert mapped.run_id == run_id_of(refused) != refused
        assert len(mapped.run_id) == 32
        assert run_id_of(mapped.run_id) == mapped.run_id
        assert events_of_span(child(1, {"runtally.run_id": refused})).run_id == mapped.run_id
        started = mapped.events[0]
        assert isinstance(started, wire.RunStarted)
        assert started.attributes is not None
        assert started.attributes["runtally.run_id"] == refused.replace("\ud800", "\ufffd")

    @pytest.mark.parametrize(
        ("end", "ends"), [(True, True), ("true", True), ("True", True), (False, False), ("", False)]
    )
    def test_the_end_of_a_run_of_several_traces_is_told(self, end: Any, ends: bool) -> None:
        run = {"runtally.run_id": "run-0001", "runtally.run_end": end}
        for given in (span(run), child(1, run)):
            mapped = events_of_span(given)
            assert mapped.ends_run is ends
            assert isinstance(mapped.events[-1], wire.RunEnded) is ends

    def test_a_parent_elsewhere_makes_no_root(self) -> None:
        """A service that was called: neither start nor end of the run are its own."""
        mapped = events_of_span(child(1, AGENT, parent_span_id="00f067aa0ba902b7", kind=2))
        assert (mapped.run_id, kinds_of(mapped)) == (TRACE, ["Step"])

    @pytest.mark.parametrize(
        ("output", "result"),
        [
            ("直しました ✅", "直しました ✅"),
            ('[{"role": "assistant", "content": "done"}]', "done"),
            (
                '[{"role": "user"}, {"parts": [{"type": "text", "text": "a"}, {"content": "b"}]}]',
                "a\nb",
            ),
            ('{"plan": "x",  "n": 9007199254740993}', '{"plan":"x","n":9007199254740993}'),
            ("[unclosed", "[unclosed"),
        ],
    )
    def test_what_a_run_came_to_is_its_roots_output(self, output: str, result: str) -> None:
        ended = events_of_span(span({"gen_ai.output.messages": output})).events[-1]
        assert isinstance(ended, wire.RunEnded)
        assert ended.result == result


class TestIdsAndTimes:
    @pytest.mark.parametrize(
        ("more", "field"),
        [
            ({"trace_id": "0" * 32}, "traceId"),
            ({"trace_id": ""}, "traceId"),
            ({"trace_id": TRACE.upper()}, "traceId"),
            ({"span_id": "0" * 16}, "spanId"),
            ({"span_id": "b7ad6b71"}, "spanId"),
            ({"started_at": 0}, "startTimeUnixNano"),
            ({"started_at": -1}, "startTimeUnixNano"),
            ({"started_at": 2**63}, "startTimeUnixNano"),
            ({"ended_at": 2**63}, "endTimeUnixNano"),
            ({"ended_at": -1}, "endTimeUnixNano"),
        ],
    )
    def test_rejected(self, more: dict[str, Any], field: str) -> None:
        with pytest.raises(Rejected) as rejected:
            events_of_span(span(**more))
        assert (rejected.value.reason, rejected.value.field) == ("invalid_field", field)

    @pytest.mark.parametrize(
        ("started_at", "ended_at", "recorded_end"),
        [
            (build.T0, build.T0 - 1, build.T0 - 1),
            (build.T0, 0, build.T0),
            (1, 2**63 - 1, 2**63 - 1),
            (2**63 - 1, 2**63 - 1, 2**63 - 1),
        ],
        ids=["end-before-start", "no-end", "longest", "latest"],
    )
    def test_accepted(self, started_at: int, ended_at: int, recorded_end: int) -> None:
        step = step_of(span(started_at=started_at, ended_at=ended_at))
        assert (step.started_at, step.ended_at) == (started_at, recorded_end)

    def test_a_step_knows_its_parent_by_what_both_spans_tell(self) -> None:
        root, below = step_of(span()), step_of(child(1))
        assert below.parent_id is not None
        assert root.step_id.endswith("-" + below.parent_id)
        assert root.parent_id is None

    def test_ids_are_of_the_span_alone_and_differ_between_traces(self) -> None:
        elsewhere = replace(span(), trace_id="4bf92f3577b34da6a3ce929d0e0e4736")
        assert step_of(span()).step_id == step_of(replace(span(), name="y")).step_id
        assert step_of(elsewhere).step_id != step_of(span()).step_id


class TestPhases:
    def tree(self) -> Iterator[Span]:
        """A root, two nodes, and in the second an agent with nodes of its own."""
        yield span({"gen_ai.workflow.name": "fix"}, name="fix")
        yield child(2, {"graph.node.name": "plan"})
        yield child(3, MODEL, parent_span_id=f"{2:016x}", name="chat")
        yield child(4, {"graph.node.name": "implement"})
        yield child(5, AGENT | {"gen_ai.agent.name": "coder"}, parent_span_id=f"{4:016x}")
        yield child(6, {"graph.node.name": "tools"}, parent_span_id=f"{5:016x}")
        yield child(7, {"gen_ai.tool.name": "run"}, parent_span_id=f"{6:016x}")

    def test_the_outermost_node_below_the_root_however_the_spans_arrive(self) -> None:
        spans = list(self.tree())
        expected = ["(no phase)", "plan", "plan", *["implement"] * 4]
        for order in (spans, spans[::-1], spans[3:] + spans[:3]):
            (run,) = recorded(order).values()
            phases = sorted(run.phases.items())  # step ids begin with the start
            assert [phase for _, phase in phases] == expected
