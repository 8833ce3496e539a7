# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "openai==2.54.0",
#     "opentelemetry-sdk==1.45.2",
#     "opentelemetry-exporter-otlp-proto-http==1.45.2",
#     "opentelemetry-processor-baggage==0.66b1",
# ]
# [tool.uv]
# exclude-newer = "2026-11-29T00:00:00Z"
# ///
"""No framework: spans of one's own, sent by OpenTelemetry's exporter.

The run's id and the phase are baggage, which a processor copies onto every span below.
"""

import json
import uuid

from openai import OpenAI
from opentelemetry import baggage, context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.processor.baggage import BaggageSpanProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BaggageSpanProcessor(lambda key: key.startswith("runtally.")))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("research")

outages = [TimeoutError("統計局に接続できません")]


def carry(key, value):
    """On every span that begins from here on."""
    context.attach(baggage.set_baggage(key, value))


def ask(messages, **more):
    with tracer.start_as_current_span("chat gpt-5-mini") as span:
        said = OpenAI().chat.completions.create(model="gpt-5-mini", messages=messages, **more)
        message = said.choices[0].message.to_dict()
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.response.model": said.model,
                "gen_ai.usage.input_tokens": said.usage.prompt_tokens,
                "gen_ai.usage.cache_read.input_tokens": (
                    said.usage.prompt_tokens_details.cached_tokens
                ),
                "gen_ai.usage.output_tokens": said.usage.completion_tokens,
                "gen_ai.input.messages": json.dumps(messages),
                "gen_ai.output.messages": json.dumps([message]),
            }
        )
        return message


def look_up(city):
    with tracer.start_as_current_span("look_up", attributes={"gen_ai.tool.name": "look_up"}):
        if outages:
            raise outages.pop()
        return f"{city}: 1,400万人"


carry("runtally.run_id", f"research-{uuid.uuid4()}")
with tracer.start_as_current_span("research", attributes={"runtally.run_end": True}) as root:
    carry("runtally.phase", "search")
    messages = [{"role": "user", "content": "東京には何人住んでいますか？"}]
    tools = [{"type": "function", "function": {"name": "look_up"}}]
    while messages[-1]["role"] != "assistant":
        message = ask(messages, tools=tools)
        messages.append(message)
        for call in message.get("tool_calls", []):
            try:
                result = look_up(json.loads(call["function"]["arguments"])["city"])
            except TimeoutError as error:
                result = f"failed: {error}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    carry("runtally.phase", "write")
    written = ask([{"role": "user", "content": message["content"]}])
    root.set_attribute("gen_ai.output.messages", json.dumps([written]))
print(written["content"])
