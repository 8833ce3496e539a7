"""Saved OTLP requests as recordings."""

import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local import replay
from local.commands import LocalStageError
from runtally import wire
from tests import build, otlp
from tests.otlp import TRACE, as_json, as_protobuf, span, traces

OTHER = "1" * 32
MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-5-mini",
    "gen_ai.usage.input_tokens": 1_000_000,
    "gen_ai.usage.output_tokens": 0,
}
PROMPT = {
    "timeUnixNano": str(build.T0),
    "body": {"stringValue": "claude_code.user_prompt"},
    "attributes": otlp.attributes({"session.id": "s-1"}),
}


def two_runs() -> dict[str, Any]:
    return traces(span(2, 1, attributes=MODEL), span(1), span(3, traceId=OTHER))


def saved(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("request.pb", as_protobuf),
        ("001.traces.body", as_protobuf),
        ("request.pb.gz", lambda request: gzip.compress(as_protobuf(request))),
        ("request.json", as_json),
        ("request.json.gz", lambda request: gzip.compress(as_json(request))),
        ("exported.jsonl", lambda request: as_json(request) + b"\n" + as_json(request) + b"\n"),
    ],
)
def test_a_saved_request_is_the_runs_in_it(
    name: str, encode: Callable[[Any], bytes], tmp_path: Path
) -> None:
    first, other = replay.load(saved(tmp_path, name, encode(two_runs())))
    assert (first.tenant_id, first.run_id, other.run_id) == ("demo", TRACE, OTHER)
    expected = replay.expected(first)
    assert (expected.agents_total, expected.status) == (2, "succeeded")
    assert expected.input_tokens == 1_000_000
    assert (expected.cost_usd_total, expected.cost_unknown_total) == (Decimal("0.25"), 1)


@pytest.mark.parametrize(("name", "encode"), [("l.pb", as_protobuf), ("l.json", as_json)])
def test_saved_logs_are_told_from_spans(
    name: str, encode: Callable[[Any], bytes], tmp_path: Path
) -> None:
    (run,) = replay.load(saved(tmp_path, name, encode(otlp.logs(PROMPT))))
    assert (run.run_id, replay.expected(run).agents_total) == ("s-1", 1)


def test_a_run_that_is_moved_to_now_keeps_its_tree(tmp_path: Path) -> None:
    run, _ = replay.load(saved(tmp_path, "request.pb", as_protobuf(two_runs())))
    moved = replay.ending_now(run)
    (message,) = [wire.open_message(body.decode()) for body in moved.messages]
    events = [wire.decode_event(line, "") for line in message.lines]
    child, root = (event for event in events if isinstance(event, wire.Step))
    assert child.parent_id == root.step_id[-11:]
    assert int(root.step_id[:19]) == root.started_at > build.T0 + build.SECOND


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("bad.pb", b"\x0a\xff", "no opentelemetry.proto"),
        ("cut.pb.gz", gzip.compress(b"x" * 100)[:-9], "ended before"),
        ("bad.json", as_json(traces(span(1, traceId="00"))), "traceId: not a valid id"),
        ("half.json", b'{"resourceSpans": [', "not_json"),
    ],
    ids=["bad.pb", "cut.pb.gz", "bad.json", "half.json"],  # gzip writes the time into its bytes
)
def test_what_cannot_be_recorded_is_told_with_its_place(
    name: str, content: bytes, told: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, name, content)
    with pytest.raises(LocalStageError, match=told) as raised:
        replay.load(path)
    assert str(path) in str(raised.value)
