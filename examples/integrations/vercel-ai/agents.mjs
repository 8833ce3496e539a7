// Vercel AI SDK: two calls of generateText, in a span of one's own.

import { createOpenAI } from "@ai-sdk/openai";
import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

const provider = new NodeTracerProvider({
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
provider.register();

const telemetry = (functionId, phase) => ({
  isEnabled: true,
  functionId,
  metadata: { phase },
});
const model = createOpenAI().chat("gpt-5-mini");
const outages = [new Error("統計局に接続できません")];

const look_up = tool({
  description: "How many people live in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    if (outages.length) throw outages.pop();
    return `${city}: 1,400万人`;
  },
});

await trace.getTracer("research").startActiveSpan("research", async (span) => {
  try {
    const found = await generateText({
      model,
      tools: { look_up },
      stopWhen: stepCountIs(5),
      prompt: "東京には何人住んでいますか？",
      experimental_telemetry: telemetry("researcher", "search"),
    });
    const answer = await generateText({
      model,
      system: "Write one sentence.",
      prompt: found.text,
      experimental_telemetry: telemetry("writer", "write"),
    });
    console.log(answer.text);
  } finally {
    span.end();
  }
});
await provider.shutdown();
