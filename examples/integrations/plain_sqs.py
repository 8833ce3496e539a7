# /// script
# requires-python = ">=3.11"
# dependencies = ["runtally[otel]", "opentelemetry-sdk==1.45.2"]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# [tool.uv.sources]
# runtally = { path = "../../sdk", editable = true }
# ///
"""No framework, no HTTP: the spans go straight to the queue, mapped in the process."""

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from runtally.otel import SpanExporter

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(SpanExporter.from_environment()))
tracer = provider.get_tracer("research")

outages = [TimeoutError("統計局に接続できません")]


def ask(question, answer, input_tokens, cached=0):
    with tracer.start_as_current_span("chat gpt-5-mini") as span:
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-5-mini",
                "gen_ai.usage.input_tokens": input_tokens,
                "gen_ai.usage.cache_read.input_tokens": cached,
                "gen_ai.usage.output_tokens": 50,
                "gen_ai.input.messages": question,
                "gen_ai.output.messages": answer,
            }
        )
    return answer


def look_up(city):
    with tracer.start_as_current_span("look_up", attributes={"gen_ai.tool.name": "look_up"}):
        if outages:
            raise outages.pop()
        return f"{city}: 1,400万人"


with tracer.start_as_current_span("research"):
    with tracer.start_as_current_span("search", attributes={"runtally.phase": "search"}):
        ask("東京には何人住んでいますか？", "look_up(東京)", 1000)
        try:
            look_up("東京")
        except TimeoutError as error:
            ask(f"failed: {error}", "look_up(東京)", 1200, cached=512)
        found = ask(look_up("東京"), "東京: 1,400万人", 1400, cached=512)
    with tracer.start_as_current_span("write", attributes={"runtally.phase": "write"}):
        print(ask(found, "東京の人口は約1,400万人です。🗼", 1000))
