"""What other programs are told about runs, through EventBridge: `run.ended` and `run.stale`.

    python -m functions.core.run_events > events/schema/run-events-v1.json

No payload, result or attribute is in them, and little text: whoever wants more reads the run.
"""

import json
import sys
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from functions.core import caps, times
from functions.core.keys import RunRef
from functions.core.model import Run, Totals

SOURCE: Final = "runtally"
VERSION: Final = 1

Moment = Annotated[
    str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$", description="RFC 3339, UTC")
]
Count = Annotated[int, Meta(ge=0)]


class EventTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Exact sums over the calls of the run; money as a decimal string in US dollars."""

    agents_total: Count
    failed_total: Count
    cancelled_total: Count
    cost_usd_total: Annotated[str, Meta(pattern=r"^\d+(\.\d+)?$")]
    cost_unknown_total: Count
    input_tokens: Count
    output_tokens: Count
    cached_tokens: Count
    cache_write_tokens: Count
    reasoning_tokens: Count


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What both events tell. An event may come more than once, with the same `dedupe_id`."""

    detail_type: ClassVar[str]

    dedupe_id: Annotated[str, Meta(description="The same in every repetition of an event.")]
    tenant_id: str
    run_id: str
    pipeline: str
    started_at: Moment
    totals: EventTotals
    v: Literal[1] = VERSION

    @property
    def ref(self) -> RunRef:
        return RunRef(self.tenant_id, self.run_id)


class RunEndedEvent(RunEvent, frozen=True, kw_only=True):
    """A run has ended, and its summary stands. Should an end that orders before this one arrive
    later, it takes its place, and is told with another `dedupe_id`."""

    detail_type: ClassVar[str] = "run.ended"

    status: Literal["succeeded", "failed", "cancelled"]
    ended_at: Moment
    error: Annotated[str, Meta(description=f"At most {caps.ERROR} bytes of UTF-8.")] | None = None


class RunStaleEvent(RunEvent, frozen=True, kw_only=True):
    """An open run has been silent for longer than it may, since `stale_since`. It may go on, and
    be stale again later, which is told with another `dedupe_id`; its real end is told as such."""

    detail_type: ClassVar[str] = "run.stale"

    stale_since: Moment
    status: Literal["stale"] = "stale"


def run_ended(run: Run, totals: Totals) -> RunEndedEvent:
    """Raises ValueError for a run that is open."""
    if run.end is None:
        raise ValueError(f"{run.ref.run_id} has not ended")
    return RunEndedEvent(
        **_of_run(run, totals, f"ended-{run.end.order.digest}"),
        status=run.end.status.value,  # type: ignore[arg-type] # one of the three
        ended_at=times.text_of(run.end.order.at),
        error=run.end.error,
    )


def run_stale(run: Run, stale_since: int, totals: Totals) -> RunStaleEvent:
    return RunStaleEvent(
        **_of_run(run, totals, f"stale-{stale_since}"),
        stale_since=times.text_of(stale_since),
    )


def _of_run(run: Run, totals: Totals, of_run: str) -> dict[str, Any]:
    numbers = totals.as_attributes()
    numbers["cost_usd_total"] = f"{totals.cost_usd_total:f}"  # type: ignore[assignment]
    return {
        "dedupe_id": f"{run.ref.tenant_id}/{run.ref.run_id}/{of_run}",
        "tenant_id": run.ref.tenant_id,
        "run_id": run.ref.run_id,
        "pipeline": run.start.pipeline,
        "started_at": times.text_of(run.start.order.at),
        "totals": EventTotals(**numbers),  # type: ignore[arg-type] # the same fields
    }


def schema() -> dict[str, object]:
    """JSON Schema of an event as EventBridge delivers it, as far as it is ours."""
    kinds = (RunEndedEvent, RunStaleEvent)
    names = (RunEndedEvent.detail_type, RunStaleEvent.detail_type)
    details, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"runtally events of runs, version {VERSION}",
        "description": "On the account's default event bus. Fields may be added.",
        "oneOf": [
            {
                "type": "object",
                "properties": {
                    "source": {"const": SOURCE},
                    "detail-type": {"const": name},
                    "detail": detail,
                },
                "required": ["source", "detail-type", "detail"],
            }
            for name, detail in zip(names, details, strict=True)
        ],
        "$defs": definitions,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")
