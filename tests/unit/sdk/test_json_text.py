"""JSON mended as text: what was JSON stays token for token, what was not becomes JSON or fails."""

import json
import re
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally import json_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)
LOOSE = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
INDENTS = st.none() | st.integers(0, 3)


def strict(text: bytes) -> Any:
    """As a strict parser reads it: no NaN, and UTF-8 with whole characters only."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    value = json.loads(text.decode(), parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@given(JSON, INDENTS, st.booleans())
def test_json_is_left_as_it_is(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert json_text.mend_value(text) == text


@given(LOOSE, INDENTS)
def test_what_python_writes_becomes_strict_json(value: Any, indent: int | None) -> None:
    strict(json_text.mend_value(json.dumps(value, indent=indent).encode()))


@given(LOOSE, JSON, INDENTS)
def test_a_message_is_taken_apart_as_a_parser_would(
    payload: Any, field: Any, indent: int | None
) -> None:
    events = [{"name": "a", "payload": payload}, {"field": field, "x": {"payload": [1]}}, 5, "x"]
    envelope = {"v": 1, "events": events, "after": {"events": [1]}}
    body = json.dumps(envelope, indent=indent).encode()
    head, lines = json_text.mend_message(body)
    assert json.loads(head) == {"v": 1, "events": [], "after": {"events": [1]}}
    assert [strict(line) for line in lines[1:]] == events[1:]
    assert set(strict(lines[0])) == {"name", "payload"}
    if "payload" in lines[0].decode() and payload == payload:  # noqa: PLR0124 - not NaN
        assert len(lines) == len(events)


@given(st.binary() | st.text(alphabet='{}[]",:\\ 1aN').map(str.encode))
def test_whatever_comes_in_nothing_raises(body: bytes) -> None:
    head, lines = json_text.mend_message(body)
    assert isinstance(head, bytes)
    assert all(isinstance(line, bytes) for line in lines)


@pytest.mark.parametrize(
    "event", ['{"a":1 2}', '{"a":tr ue}', '{"payload":[1 . 5]}', '{"a":"b" "c"}', '{"a":1,}']
)
def test_what_is_no_json_does_not_become_any(event: str) -> None:
    _, (line, good) = json_text.mend_message(f'{{"events":[{event},{{"payload":NaN}}]}}'.encode())
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(line)
    assert good == b'{"payload":"NaN"}'


def depth_of(value: Any) -> int:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


@given(JSON | st.lists(st.text(alphabet='[]{}"\\')), INDENTS, st.integers(0, 6))
def test_depth_counts_brackets_that_nest_and_none_inside_strings(
    value: Any, indent: int | None, limit: int
) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert json_text.deeper_than(text, limit) == (depth_of(value) > limit)


@given(st.text('[]{}" ', max_size=60), st.integers(0, 12))
def test_depth_is_how_deep_it_gets_whatever_the_text_is(text: str, limit: int) -> None:
    depth = deepest = 0
    for token in re.findall(r'"[^"]*(?:"|\Z)|[\[\]{}]', text):
        depth += (token in "[{") - (token in "]}")
        deepest = max(deepest, depth)
    assert json_text.deeper_than(text.encode(), limit) == (deepest > limit)


@pytest.mark.parametrize(
    "shape", ['"' + r"\"" * 250_000, '"' * 499_999, '["' * 250_000, "[" * 500_000, "[]," * 150_000]
)
def test_half_a_megabyte_of_malice_takes_no_time_squared(shape: str) -> None:
    """Squared, each would take minutes of CPU; this is no benchmark."""
    before = time.process_time()
    json_text.mend_message(b'{"events":[' + shape.encode())
    json_text.mend_value(shape.encode())
    assert time.process_time() - before < 20
