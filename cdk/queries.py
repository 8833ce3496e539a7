"""Questions to the logs, in the language of CloudWatch Logs Insights.

A run's line is written again whenever its summary is renewed: the newest counts, so that late steps
count once. Tenants, runs, pipelines and phases are told apart here and never by a metric, of which
each new value would be one more to pay for.
"""

from dataclasses import dataclass
from typing import Final

_RUNS: Final = """\
filter message = "run summarized"
| stats latest(pipeline) as of_pipeline, latest(status) as ended_as, latest(calls) as all_calls,
    latest(cost_usd) as cost, latest(cost_unknown) as unknown, latest(ended_hour) as hour
    by tenant_id, run_id
"""

RUNS_BY_STATUS: Final = f"{_RUNS}| stats count(*) as runs by ended_as"
BY_HOUR: Final = f"""{_RUNS}\
| stats count(*) as runs, sum(all_calls) as calls, sum(cost) as usd by hour
| sort hour desc"""
COST_BY_PIPELINE: Final = f"""{_RUNS}\
| stats sum(cost) as usd, count(*) as runs by hour, of_pipeline
| sort hour desc, usd desc"""
UNKNOWN_COST: Final = f"""{_RUNS}\
| stats sum(unknown) as calls_of_unknown_cost, sum(all_calls) as calls by of_pipeline
| sort calls_of_unknown_cost desc"""
TENANTS: Final = f"""{_RUNS}\
| stats sum(cost) as usd, sum(all_calls) as calls, count(*) as runs by tenant_id
| sort usd desc
| limit 20"""
FAILED_PHASES: Final = """\
filter message = "phase failed"
| stats latest(failed) as failures by tenant_id, run_id, pipeline, phase
| stats sum(failures) as failed_calls, count(*) as runs by pipeline, phase
| sort failed_calls desc
| limit 20"""
MEMORY: Final = """\
filter type = "platform.report"
| stats max(record.metrics.maxMemoryUsedMB) as used_mb, max(record.metrics.memorySizeMB) as of_mb,
    max(record.metrics.durationMs) as longest_ms by @log"""


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query under a name, over the logs of these functions; of all without any."""

    name: str
    text: str
    services: tuple[str, ...] = ()


SAVED: Final = (
    SavedQuery(
        "All events of a run",
        """\
# Put the run's id here.
filter @message like "RUN_ID"
| fields @timestamp, service, coalesce(message, "batch") as what, message_id, reason, took_ms
| sort @timestamp asc
| limit 1000""",
    ),
    SavedQuery(
        "Rejected by reason",
        """\
filter message = "rejected"
| stats count(*) as events, latest(detail) as last_detail, latest(message_id) as last_message
    by reason, field, tenant_id
| sort events desc""",
    ),
    SavedQuery(
        "Slowest batches",
        """\
filter took_ms >= 0
| fields @timestamp, service, took_ms, Messages.0, Records.0, StepsStored.0, StepsCounted.0
| sort took_ms desc
| limit 50""",
    ),
    SavedQuery(
        "One tenant",
        """\
# Put the tenant's id here.
filter message = "run summarized" and tenant_id = "TENANT_ID"
| stats latest(pipeline) as of_pipeline, latest(status) as ended_as, latest(calls) as all_calls,
    latest(failed) as failures, latest(cost_usd) as cost, latest(wall_ms) as took,
    latest(p95_ms) as p95_of_calls by run_id
| sort cost desc
| limit 200""",
        ("summarize", "recount"),
    ),
)
