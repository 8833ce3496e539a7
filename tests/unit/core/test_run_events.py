"""What other programs are told about runs, and its published schema."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.core import run_events
from functions.core.keys import RunRef
from functions.core.model import End, Order, Run, RunStatus, Start, Totals
from functions.core.run_events import RunEvent
from tests.event_files import EVENTS, event

PUBLISHED = EVENTS / "schema" / "run-events-v1.json"
VALIDATOR = jsonschema.Draft202012Validator(run_events.schema())

RUN = Run(
    ref=RunRef("acme", "run-1"),
    buckets=1,
    start=Start(Order(1_796_000_000_000_000_001, "0a"), pipeline="research"),
    expires_at=1,
    end=End(Order(1_796_000_060_123_456_789, "1b2c"), RunStatus.FAILED, "ToolError: no"),
)
TOTALS = Totals(agents_total=3, failed_total=1, cost_usd_total=Decimal("0.10"), input_tokens=7)


def delivered(of_run: RunEvent) -> dict[str, Any]:
    """As EventBridge hands it to a target, as far as it is ours."""
    detail = json.loads(msgspec.json.encode(of_run))
    return {"source": "runtally", "detail-type": of_run.detail_type, "detail": detail}


def test_the_published_schema_is_the_generated_one() -> None:
    jsonschema.Draft202012Validator.check_schema(run_events.schema())
    assert PUBLISHED.read_text() == json.dumps(run_events.schema(), indent=2) + "\n", (
        "run: python -m functions.core.run_events > events/schema/run-events-v1.json"
    )


@pytest.mark.parametrize("name", ["run-ended", "run-stale"])
def test_the_examples_are_what_is_published(name: str) -> None:
    example = event(f"run-events/{name}")
    VALIDATOR.validate(example)
    made = (
        run_events.run_ended(RUN, TOTALS)
        if name == "run-ended"
        else run_events.run_stale(replace(RUN, end=None), 1_796_003_660_000_000_000, TOTALS)
    )
    assert {key: example[key] for key in delivered(made)} == delivered(made)


def test_an_open_run_has_not_ended() -> None:
    with pytest.raises(ValueError, match="has not ended"):
        run_events.run_ended(replace(RUN, end=None), TOTALS)


def test_another_end_is_told_as_another_event() -> None:
    assert RUN.end is not None
    other = replace(RUN, end=replace(RUN.end, order=Order(1, "ff")))
    ids = {run_events.run_ended(run, TOTALS).dedupe_id for run in (RUN, other, RUN)}
    assert ids == {"acme/run-1/ended-1b2c", "acme/run-1/ended-ff"}


ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True)


@given(
    tenant_id=ids,
    run_id=ids,
    pipeline=st.text(max_size=32),
    error=st.none() | st.text(max_size=64),
    times=st.tuples(*[st.integers(0, 2**63 - 1)] * 2),
    cost=st.decimals(0, 10**12, places=18),
)
def test_any_run_fits_the_schema_and_a_tenth_of_a_request(  # of 256 KB and ten entries
    *,
    tenant_id: str,
    run_id: str,
    pipeline: str,
    error: str | None,
    times: tuple[int, int],
    cost: Decimal,
) -> None:
    run = Run(
        ref=RunRef(tenant_id, run_id),
        buckets=1,
        start=Start(Order(times[0], "0a"), pipeline=pipeline),
        expires_at=1,
        end=End(Order(times[1], "1b"), RunStatus.CANCELLED, error),
    )
    totals = replace(TOTALS, cost_usd_total=cost)
    for made in (run_events.run_ended(run, totals), run_events.run_stale(run, times[1], totals)):
        told = delivered(made)
        VALIDATOR.validate(told)
        assert Decimal(told["detail"]["totals"]["cost_usd_total"]) == cost
        assert len(json.dumps(told)) < 25_000
