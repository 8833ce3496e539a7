"""OpenTelemetry's own exporter against the deployed API, with policies enforced."""

import time
import urllib.request
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Status, StatusCode

from local.stage import Stage
from tests import otlp
from tests.e2e.http import DeployedApi, key_of
from tests.e2e.pipeline import Pipeline

pytestmark = pytest.mark.xdist_group("guarded stage")


@pytest.fixture(scope="module")
def api(guarded_stage: Stage) -> DeployedApi:
    return DeployedApi(guarded_stage.api_url, key_of(guarded_stage, "acme"))


def exporter(api: DeployedApi, compression: Compression, **headers: str) -> OTLPSpanExporter:
    return OTLPSpanExporter(
        endpoint=f"{api.url}/v1/traces",
        headers={"authorization": f"Bearer {api.key}", **headers},
        compression=compression,
    )


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_an_agent_with_the_ordinary_exporter_is_recorded(
    guarded_pipeline: Pipeline, api: DeployedApi, compression: Compression
) -> None:
    run_id = f"otlp-{compression.value}"
    provider = TracerProvider(resource=Resource({"service.name": "agents"}))
    provider.add_span_processor(
        BatchSpanProcessor(exporter(api, compression), max_export_batch_size=16)
    )
    tracer = provider.get_tracer("e2e")
    with tracer.start_as_current_span("research") as root:
        root.set_attributes({"runtally.run_id": run_id, "runtally.run_end": True})
        for number in range(40):
            with tracer.start_as_current_span("chat") as span:
                span.set_attributes(_model(run_id, number))
                if number == 7:
                    span.set_status(Status(StatusCode.ERROR, "overloaded 上限"))
        with tracer.start_as_current_span("read_file") as span:  # more than SQS takes
            span.set_attributes({"runtally.run_id": run_id, "gen_ai.tool.name": "read_file"})
            span.set_attribute("gen_ai.tool.call.result", "行" * 400_000)
    provider.shutdown()
    pipeline = Pipeline(guarded_pipeline.stage, run_id=run_id)
    summary = pipeline.summarised(42)
    assert (summary.totals.failed_total, summary.totals.input_tokens) == (1, 40_000)
    shown = api.get(f"/pipeline-runs/{run_id}").json
    assert (shown["run"]["status"], shown["run"]["pipeline"]) == ("succeeded", "research")
    assert shown["totals"]["cost_usd_total"] == "0.00036"
    big = next(call for call in shown["calls"] if call["kind"] == "tool")
    assert big["payload_bytes"] > 1_200_000
    assert all(call.get("parent_id", "") in shown["calls"][0]["step_id"] for call in shown["calls"])


def _model(run_id: str, number: int) -> dict[str, Any]:
    return {
        "runtally.run_id": run_id,
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.cost": 0.000009,
        "gen_ai.output.messages": f'[{{"role": "assistant", "content": "你好 {number}"}}]',
    }


def test_json_is_taken_too_and_a_wrong_key_is_not(
    guarded_pipeline: Pipeline, api: DeployedApi
) -> None:
    run_id = guarded_pipeline.ref.run_id
    started = time.time_ns() - 1_000_000_000
    made = otlp.span(
        1,
        startTimeUnixNano=str(started),
        endTimeUnixNano=str(started + 1_000),
        attributes={"runtally.run_id": run_id, "runtally.run_end": "true"},
    )
    headers = {"Authorization": f"Bearer {api.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{api.url}/v1/traces", otlp.as_json(otlp.traces(made)), headers, method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as answered:  # noqa: S310 - as above
        assert (answered.status, answered.read()) == (200, b"{}")
    assert guarded_pipeline.summarised(1).totals.agents_total == 1
    refused = exporter(api, Compression.Gzip, authorization="Bearer rt_wrong")
    assert refused.export([]) is SpanExportResult.FAILURE
