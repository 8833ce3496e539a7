"""What people ask a lake first, saved in Athena; each with what to change in it.

They are the ready questions of `runtally query` (local/questions.py) in Athena's dialect, of one
tenant and the days of late: tests hold the two to the same answers.
"""

from typing import Final, NamedTuple


class SavedQuery(NamedTuple):
    """Of one tenant, by TENANT: Athena refuses a query that names none."""

    name: str
    about: str
    text: str


SAVED: Final = (
    SavedQuery(
        "cost by model and week",
        "What each model cost, week by week",
        """\
SELECT CAST(date_trunc('week', started_at) AS date) AS week,
  coalesce(model, '(no model)') AS model,
  count(*) AS calls,
  sum(cost_usd) AS cost_usd,
  count(*) - count(cost_usd) AS cost_unknown,
  sum(input_tokens) AS input_tokens,
  sum(output_tokens) AS output_tokens
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '90' day, '%Y-%m-%d')
GROUP BY 1, 2
ORDER BY week DESC, cost_usd DESC NULLS LAST, model""",
    ),
    SavedQuery(
        "p95 by phase",
        "How long calls take, by pipeline and phase: estimates over every call",
        """\
SELECT pipeline, phase,
  count(*) AS calls,
  count_if(status = 'failed') AS failed,
  approx_percentile(duration_ms, 0.5) AS p50_ms,
  approx_percentile(duration_ms, 0.95) AS p95_ms,
  max(duration_ms) AS max_ms
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '30' day, '%Y-%m-%d')
GROUP BY 1, 2
ORDER BY p95_ms DESC, pipeline, phase""",
    ),
    SavedQuery(
        "failure clusters",
        "Errors that differ in numbers and ids alone, together, with an example of each",
        """\
SELECT
  regexp_replace(coalesce(error, '(no message)'), '[0-9a-f]{8,}|[0-9]+', '#') AS error,
  count(*) AS calls,
  count(DISTINCT run_id) AS runs,
  array_join(array_sort(array_agg(DISTINCT phase)), ', ') AS phases,
  max(started_at) AS newest,
  max_by(run_id, started_ns) AS run_id,
  max_by(step_id, started_ns) AS step_id
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '30' day, '%Y-%m-%d')
  AND status = 'failed'
GROUP BY 1
ORDER BY calls DESC, newest DESC""",
    ),
    SavedQuery(
        "dearest prompts",
        "The 20 dearest calls, and where to look at what was said in them",
        """\
SELECT cost_usd, model, phase, input_tokens, output_tokens, payload_bytes,
  tenant_id, run_id, step_id
FROM calls
WHERE tenant_id = 'TENANT' AND day >= date_format(current_date - interval '30' day, '%Y-%m-%d')
  AND cost_usd IS NOT NULL
ORDER BY cost_usd DESC, started_ns
LIMIT 20""",
    ),
)
