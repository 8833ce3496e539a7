"""What people ask a lake first, saved in Athena; each with what to change in it."""

from typing import Final, NamedTuple


class SavedQuery(NamedTuple):
    """Of one tenant, by TENANT: Athena refuses a query that names none."""

    name: str
    about: str
    text: str


SAVED: Final = (
    SavedQuery(
        "cost by model and week",
        "What models cost, week by week",
        """\
SELECT date_trunc('week', started_at) AS week, model,
  sum(cost_usd) AS cost_usd, count(*) AS calls, count_if(cost_usd IS NULL) AS cost_unknown
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '90' day, '%Y-%m-%d')
  AND kind = 'model'
GROUP BY 1, 2 ORDER BY 1 DESC, 3 DESC NULLS LAST""",
    ),
    SavedQuery(
        "p95 by phase",
        "How long the calls of each phase of a pipeline take",
        """\
SELECT pipeline, phase, count(*) AS calls,
  approx_percentile(duration_ms, 0.5) AS p50_ms, approx_percentile(duration_ms, 0.95) AS p95_ms
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '30' day, '%Y-%m-%d')
GROUP BY 1, 2 ORDER BY p95_ms DESC""",
    ),
    SavedQuery(
        "failure clusters",
        "Which errors are the same but for their numbers",
        """\
SELECT pipeline, phase, regexp_replace(substr(error, 1, 120), '[0-9]+', '*') AS error_like,
  count(*) AS failed, count(DISTINCT run_id) AS runs, max(day) AS last_day, min(run_id) AS one_run
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '30' day, '%Y-%m-%d')
  AND status = 'failed'
GROUP BY 1, 2, 3 ORDER BY failed DESC LIMIT 50""",
    ),
    SavedQuery(
        "dearest prompts",
        "The calls that cost most, and where to look at their payloads",
        """\
SELECT cost_usd, model, name, input_tokens, output_tokens, cached_tokens, day, run_id, step_id
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '30' day, '%Y-%m-%d')
  AND cost_usd IS NOT NULL
ORDER BY cost_usd DESC LIMIT 50""",
    ),
)
