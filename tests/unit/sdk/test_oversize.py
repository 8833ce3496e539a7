import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally import oversize, wire
from runtally.cuts import Cut

HEAD = wire.Head(1, "a" * 64, "b" * 128, 64)
LIMIT = wire.SQS_LIMIT_BYTES


def step(**fields: object) -> wire.Step:
    required = {"step_id": "1795984949123456789-9f3a1c02", "kind": "agent", "status": "failed"}
    return wire.Step(**{**required, "started_at": 1, "ended_at": 2, **fields})  # type: ignore[arg-type]


def fitted(event: wire.Event, limit: int = LIMIT) -> wire.Event:
    line = oversize.line_within(event, limit)
    assert len(Cut(HEAD, [line]).seal().body) <= limit
    return wire.decode_event(line, "")


def test_an_event_that_fits_is_not_touched() -> None:
    payload = msgspec.Raw(b'"' + b"x" * (LIMIT - 2_000) + b'"')
    assert fitted(step(payload=payload)) == step(payload=payload)


def test_any_size_is_kept_where_there_is_no_limit() -> None:
    event = step(payload=msgspec.Raw(b'"' + b"x" * LIMIT + b'"'))
    assert oversize.line_within(event, None) == wire.encode_event(event)


def test_a_payload_that_does_not_fit_gives_way_to_its_size() -> None:
    event = fitted(step(error="E: no", payload=msgspec.Raw(b'"' + b"x" * LIMIT + b'"')))
    assert isinstance(event, wire.Step)
    assert event.error == "E: no"
    assert event.attributes == {"runtally.dropped": ["payload"]}
    assert isinstance(event.payload, msgspec.Raw)
    assert json.loads(bytes(event.payload)) == {
        "runtally.omitted": {"bytes": LIMIT + 2, "limit_bytes": LIMIT}
    }


def test_an_error_text_that_does_not_fit_is_cut_and_says_so() -> None:
    event = fitted(step(error="x" * 3 * LIMIT, payload=msgspec.Raw(b"1"), model="m"))
    assert isinstance(event, wire.Step)
    assert event.error is not None
    assert event.error.endswith(f"… ({3 * LIMIT} characters)")
    assert event.model == "m"


@pytest.mark.parametrize("character", ["x", "日", "\uffff", "\x01"])
def test_a_result_in_any_script_fits(character: str) -> None:
    event = fitted(wire.RunEnded(1, "succeeded", character * LIMIT))
    assert isinstance(event, wire.RunEnded)
    assert event.result is not None
    assert len(event.result) > LIMIT // 20


def test_of_too_many_lines_the_first_are_kept() -> None:
    event = fitted(wire.RunLog("1795984949123456789-9f3a1c02", 1, ["x" * 99] * 20_000))
    assert isinstance(event, wire.RunLog)
    assert event.lines[0] == "x" * 99
    assert event.lines[-1] == f"… ({20_000 - (len(event.lines) - 1)} lines more)"


def test_attributes_that_do_not_fit_are_dropped_and_named() -> None:
    event = fitted(wire.RunStarted(1, "p", {"a": "x" * LIMIT}))
    assert isinstance(event, wire.RunStarted)
    assert event.attributes == {"runtally.dropped": ["attributes"]}


_long = st.builds(lambda text, times: text * times, st.text(max_size=5), st.integers(0, 4_000))


@given(_long, _long, _long, st.lists(_long, max_size=3), st.integers(8_000, 20_000))
def test_any_event_fits_any_limit(
    error: str, name: str, value: str, lines: list[str], limit: int
) -> None:
    payload = msgspec.Raw(msgspec.json.encode(value))
    fitted(step(error=error, name=name, attributes={"a": value}, payload=payload), limit)
    fitted(wire.RunLog("1795984949123456789-9f3a1c02", 1, lines), limit)
    fitted(wire.RunEnded(1, "failed", value, error), limit)
