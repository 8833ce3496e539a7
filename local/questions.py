"""Questions that most who keep a lake have: SQL to use as it is, or to begin with."""

from typing import Final, NamedTuple


class Question(NamedTuple):
    about: str
    sql: str


QUESTIONS: Final = {
    "cost-by-model-and-week": Question(
        "what each model cost, week by week",
        """
SELECT CAST(date_trunc('week', started_at) AS DATE) AS week,
       coalesce(model, '(no model)') AS model,
       count(*) AS calls,
       sum(cost_usd) AS cost_usd,
       count(*) - count(cost_usd) AS cost_unknown,
       sum(input_tokens) AS input_tokens,
       sum(output_tokens) AS output_tokens
FROM calls
GROUP BY ALL
ORDER BY week DESC, cost_usd DESC NULLS LAST, model""",
    ),
    "p95-by-phase": Question(
        "how long calls take, by pipeline and phase: nearest ranks over every call",
        """
SELECT pipeline, phase,
       count(*) AS calls,
       count(*) FILTER (status = 'failed') AS failed,
       quantile_disc(duration_ms, 0.5) AS p50_ms,
       quantile_disc(duration_ms, 0.95) AS p95_ms,
       max(duration_ms) AS max_ms
FROM calls
GROUP BY ALL
ORDER BY p95_ms DESC, pipeline, phase""",
    ),
    "failure-clusters": Question(
        "errors that differ in numbers and ids alone, together, with an example of each",
        """
SELECT regexp_replace(coalesce(error, '(no message)'), '[0-9a-f]{8,}|[0-9]+', '#', 'g') AS error,
       count(*) AS calls,
       count(DISTINCT (tenant_id, run_id)) AS runs,
       string_agg(DISTINCT phase, ', ' ORDER BY phase) AS phases,
       max(started_at) AS newest,
       arg_max(run_id, started_ns) AS run_id,
       arg_max(step_id, started_ns) AS step_id
FROM calls
WHERE status = 'failed'
GROUP BY 1
ORDER BY calls DESC, newest DESC""",
    ),
    "dearest-prompts": Question(
        "the 20 dearest calls; `runtally payload RUN STEP` shows what was said in one",
        """
SELECT cost_usd, model, phase, input_tokens, output_tokens, payload_bytes,
       tenant_id, run_id, step_id
FROM calls
WHERE cost_usd IS NOT NULL
ORDER BY cost_usd DESC, started_ns
LIMIT 20""",
    ),
}
