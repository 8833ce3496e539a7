"""1,500 calls at a fan-out of 8, packed by 10: exact, every item small, and cheap."""

import itertools
from decimal import Decimal

import pytest
from boto3.dynamodb.types import TypeSerializer

from functions.core import keys
from functions.core.counts import PREVIEW_STEPS
from local import function_logs, waiting
from tests.build import SECOND, T0, ended, started, step
from tests.e2e.pipeline import Pipeline

pytestmark = pytest.mark.xdist_group("stage")

CALLS = 1_500
PHASES = 30
COST = Decimal("0.000123456789012345")


def test_1500_calls_are_exact_small_and_cost_at_most_1_15_write_units_a_step(
    pipeline: Pipeline,
) -> None:
    def write_units() -> Decimal:
        return function_logs.sum_of_metric(pipeline.stage, "WriteUnits")

    before = write_units()
    steps = [
        step(
            n,
            phase=f"phase {n * PHASES // CALLS}",
            name=f"call {n}",
            started_at=T0 + n // 8 * SECOND,
            ended_at=T0 + (n // 8 + 1) * SECOND,
            cost_usd=f"{COST:f}",
            payload={"n": n, "text": "x" * 2_000},
        )
        for n in range(CALLS)
    ]
    pipeline.send(
        pipeline.body(started()),
        *(pipeline.body(*some) for some in itertools.batched(steps, 10, strict=True)),
        pipeline.body(ended()),
    )
    result = pipeline.summarised(CALLS)
    waiting.until_quiet(pipeline.stage, write_units, within_s=60)

    assert result.totals.agents_total == CALLS
    assert Decimal(result.totals.cost_usd_total) == COST * CALLS
    assert [phase.calls for phase in result.phases.entries] == [CALLS // PHASES] * PHASES
    assert len(pipeline.item(keys.PREVIEW)[PREVIEW_STEPS]) == 100
    whole = [pipeline.item(which) for which in ("RUN", "TOTALS", "PREVIEW", "SUMMARY")]
    assert max(size_of(item) for item in whole) < 100_000
    assert max(size_of(item) for item in pipeline.steps()) < 1_024
    # Below 1 something was not measured: each step is an item of its own.
    assert 1 <= (write_units() - before) / CALLS <= Decimal("1.15")


def size_of(value: object) -> int:
    """An upper bound of what DynamoDB counts: JSON of the typed form, braces and types included."""
    return len(repr(TypeSerializer().serialize(value)).encode())
