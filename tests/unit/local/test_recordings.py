"""Reading recordings, their independent sums, and moving them in time."""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from functions.core.model import StepRow, Totals
from local import recordings
from runtally import wire

AT = 1_767_225_600_000_000_000


def body(*events: wire.Event, run_id: str = "r1", tenant_id: str = "demo") -> bytes:
    head = wire.Head(v=1, tenant_id=tenant_id, run_id=run_id)
    return wire.seal(head, [wire.encode_event(event) for event in events])


def step(
    index: int = 0,
    cost_usd: str | None = None,
    status: wire.Status = "succeeded",
    tokens: int | None = None,
    *,
    parent_id: str | None = None,
    payload: str = "null",
) -> wire.Step:
    at = AT + index
    return wire.Step(
        step_id=f"{at}-0000000a",
        kind="model",
        status=status,
        started_at=at,
        ended_at=at + 7,
        cost_usd=cost_usd,
        input_tokens=tokens,
        output_tokens=tokens,
        cached_tokens=tokens,
        parent_id=parent_id,
        payload=Raw(payload.encode()),
    )


START = wire.RunStarted(at=AT, pipeline="p")
LOG = wire.RunLog(log_id=f"{AT + 5}-0000000b", at=AT + 5, lines=["行"])
END = wire.RunEnded(at=AT + 100, status="succeeded", result="done")


def write(path: Path, *bodies: bytes) -> Path:
    text = b"".join(line + b"\n" for line in bodies)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_load_groups_bodies_by_run_and_keeps_their_bytes(name: str, tmp_path: Path) -> None:
    first, second, third = body(START), body(START, run_id="r2"), body(END)
    (one, two) = recordings.load(write(tmp_path / name, first, second, third))
    assert one == recordings.Recording("demo", "r1", (first, third))
    assert two == recordings.Recording("demo", "r2", (second,))


def test_load_reads_gzip_members_that_were_appended(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(body(START) + b"\n") + gzip.compress(body(END) + b"\n"))
    (run,) = recordings.load(path)
    assert run.messages == (body(START), body(END))


def test_load_says_which_line_is_no_message(tmp_path: Path) -> None:
    path = write(tmp_path / "cut.jsonl", body(START), body(END)[:-9])
    with pytest.raises(recordings.InvalidRecording, match=r"cut\.jsonl, line 2"):
        recordings.load(path)
    shortened = write(tmp_path / "cut.jsonl.gz", body(START))
    shortened.write_bytes(shortened.read_bytes()[:-12])
    with pytest.raises(recordings.InvalidRecording, match=r"cut\.jsonl\.gz"):
        recordings.load(shortened)
    invocation = wire.InvocationEnded(invocation_id="i", status="succeeded")
    no_run = wire.seal(wire.Head(v=1, tenant_id="demo"), [wire.encode_event(invocation)])
    with pytest.raises(recordings.InvalidRecording, match="no run"):
        recordings.load(write(tmp_path / "other.jsonl", no_run))


def test_totals_count_a_step_once_and_take_the_earliest_end() -> None:
    late = wire.RunEnded(at=AT + 200, status="failed")
    failed = step(1, "0.000000000000000001", "failed", 3)
    messages = [
        body(START, step(0, "999999999999.999999999999999999", tokens=5), failed),
        body(late),
        body(failed, step(2, status="cancelled", payload="9" * 5_000)),
        body(END),
    ]
    assert recordings.expected_totals(messages) == recordings.ExpectedTotals(
        run_id="r1",
        status="succeeded",
        agents_total=3,
        failed_total=1,
        cancelled_total=1,
        cost_usd_total=Decimal(1_000_000_000_000),
        cost_unknown_total=1,
        input_tokens=8,
        output_tokens=8,
        cached_tokens=8,
    )


def test_a_run_without_end_has_no_status() -> None:
    assert recordings.expected_totals([body(START)]).status is None


COSTS = st.decimals(0, 10**12 - 1, places=18).map(lambda cost: f"{cost:f}")


@given(
    st.lists(
        st.tuples(
            st.none() | COSTS,
            st.sampled_from(["succeeded", "failed", "cancelled"]),
            st.none() | st.integers(0, 10**12),
        )
    )
)
def test_both_ways_of_adding_up_agree(
    drawn: list[tuple[str | None, wire.Status, int | None]],
) -> None:
    steps = [step(i, cost, status, tokens) for i, (cost, status, tokens) in enumerate(drawn)]
    rows = [
        StepRow(
            step_id=s.step_id,
            kind=s.kind,
            status=s.status,
            started_at=s.started_at,
            ended_at=s.ended_at,
            cost=None if s.cost_usd is None else Decimal(s.cost_usd),
            input_tokens=s.input_tokens or 0,
            output_tokens=s.output_tokens or 0,
            cached_tokens=s.cached_tokens or 0,
        )
        for s in steps
    ]
    counted = Totals.of(rows).as_attributes()
    expected = recordings.expected_totals([body(START), *(body(s) for s in steps)])
    for name in expected.__slots__[2:]:
        assert getattr(expected, name) == counted[name], name


PAYLOAD = '{"a":1e5,"é":"\\u00e9","n":9007199254740993}'


def test_retime_moves_every_time_and_nothing_else() -> None:
    child = step(3, "0.10", parent_id=step(0).step_id, payload=PAYLOAD)
    messages = [body(START), body(step(0), LOG, child), body(END)]
    now = AT + 86_400_000_000_000
    moved = recordings.retime(messages, now)
    offset = now - END.at
    texts = b"\n".join(messages).decode()
    for ns in {AT, AT + 3, AT + 5, AT + 7, AT + 10, AT + 100}:
        texts = texts.replace(str(ns), str(ns + offset))
    assert b"\n".join(moved).decode() == texts
    assert recordings.retime(messages, now) == moved
    assert recordings.retime(moved, END.at) == messages


def test_readdress_changes_the_head_alone() -> None:
    messages = [body(START, LOG), body(step(payload=PAYLOAD), END)]
    moved = recordings.readdress(messages, tenant_id="acme", run_id="r2")
    assert moved == [
        body(START, LOG, tenant_id="acme", run_id="r2"),
        body(step(payload=PAYLOAD), END, tenant_id="acme", run_id="r2"),
    ]
    assert recordings.readdress(messages) == messages
    assert json.loads(moved[0])["tenant_id"] == "acme"
