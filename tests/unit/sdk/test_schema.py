import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtally import schema, wire

PUBLISHED = Path(__file__).parents[3] / "events" / "schema" / "message-v1.json"
VALIDATOR = jsonschema.Draft202012Validator(schema.message_schema())
ENVELOPES: list[msgspec.json.Decoder[Any]] = [
    msgspec.json.Decoder(wire.Envelope),
    msgspec.json.Decoder(wire.ClaimEnvelope),
]

STEP: dict[str, Any] = {
    "type": "step",
    "step_id": "1795984949123456789-9f3a1c02",
    "kind": "agent",
    "status": "succeeded",
    "started_at": 1,
    "ended_at": 2,
}
CLAIM: dict[str, Any] = {"key": "inbox/acme/r/x", "sha256": "0" * 64, "bytes": 1}


def message(*events: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"v": 1, "tenant_id": "acme", "run_id": "r", "events": list(events), **fields}


def step(**fields: Any) -> dict[str, Any]:
    return message({**STEP, **fields})


def wire_takes(body: dict[str, Any]) -> bool:
    text = json.dumps(body).encode()
    taken = 0
    for decoder in ENVELOPES:
        try:
            decoder.decode(text)
            taken += 1
        except msgspec.ValidationError:
            continue
    return taken == 1  # both at once is what wire.open_message refuses


def test_the_published_schema_is_the_generated_one() -> None:
    assert PUBLISHED.read_text() == json.dumps(schema.message_schema(), indent=2) + "\n", (
        "run: python -m runtally.schema > events/schema/message-v1.json"
    )


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema.message_schema())


@pytest.mark.parametrize(
    "body",
    [
        message({"type": "run.started", "at": 1, "pipeline": "p"}),
        message(
            {"type": "run.started", "at": 1, "pipeline": "p", "attributes": {"a": [1, None, "x"]}}
        ),
        step(),
        step(payload={"any": ["thing", None, 1.5]}, cost_usd="0.000000000000000001"),
        step(payload=None),
        step(attributes=None, error=None),
        step(unknown="ignored"),
        message(
            {"type": "run.log", "log_id": STEP["step_id"], "at": 1, "lines": ["a"]},
            {"type": "run.ended", "at": 2, "status": "failed", "error": "E"},
            buckets=64,
        ),
        {
            "v": 1,
            "tenant_id": "acme",
            "events": [{"type": "invocation.ended", "invocation_id": "i", "status": "succeeded"}],
        },
        {"v": 1, "tenant_id": "acme", "run_id": "r", "claim": CLAIM},
        {"v": 1, "tenant_id": "acme", "claim": CLAIM},
    ],
)
def test_what_is_valid_is_valid_in_both(body: dict[str, Any]) -> None:
    VALIDATOR.validate(body)
    assert wire_takes(body)


@pytest.mark.parametrize(
    "body",
    [
        {},
        message(),
        message({"type": "unknown"}),
        message({"at": 1, "pipeline": "p"}),
        step(v=2) | {"v": 2},
        step() | {"tenant_id": "a/b"},
        step() | {"tenant_id": "acme\n"},
        step() | {"run_id": "a#b"},
        step() | {"buckets": 0},
        step() | {"buckets": 65},
        step() | {"claim": CLAIM},
        step(step_id="1795984949123456789-9f3a1c02\n"),
        step(step_id="1795984949123456789-9f3a1c029f3a1"),
        step(kind="No"),
        step(status="running"),
        step(started_at=-1),
        step(ended_at=2**63),
        step(input_tokens=1.5),
        step(input_tokens=-1),
        step(input_tokens=True),
        step(cost_usd=1),
        step(cost_usd="-1"),
        step(cost_usd="1e3"),
        step(cost_usd="01"),
        step(cost_usd="1."),
        step(cost_usd="0.1234567890123456789"),
        step(cost_usd="1000000000000"),
        step(attributes={"a": {"b": 1}}),
        step(name=1),
        {"v": 1, "tenant_id": "acme", "run_id": "r", "claim": {**CLAIM, "bytes": 0}},
        {"v": 1, "tenant_id": "acme", "run_id": "r", "claim": {**CLAIM, "sha256": "0" * 63}},
    ],
)
def test_what_is_invalid_is_invalid_in_both(body: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(body)
    assert not wire_takes(body)


_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 70),
    st.text(max_size=3),
    st.sampled_from(["acme", "0.5", "step", "succeeded", STEP["step_id"], [STEP], [], {}, CLAIM]),
)


@given(
    st.dictionaries(st.sampled_from(sorted(message())), _values, max_size=2),
    st.dictionaries(
        st.sampled_from(sorted({*wire.Step.__struct_fields__, "type"})), _values, max_size=3
    ),
)
def test_both_agree_on_any_mixture(outer: dict[str, Any], inner: dict[str, Any]) -> None:
    body = {**step(**inner), **outer}
    assert VALIDATOR.is_valid(body) == wire_takes(body)
