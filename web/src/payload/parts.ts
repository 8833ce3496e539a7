/** What a message consists of, whatever convention wrote it. */
import { isLosslessNumber } from "lossless-json";
import { isObject, type Json, type JsonObject, parseExactly } from "../api/json";

export type Part =
  | { kind: "text" | "thinking"; text: string }
  | { kind: "call"; id: string; name: string; value: Json }
  | { kind: "result"; id: string; name: string; value: Json; failed: boolean }
  | { kind: "other"; value: Json };

/** Strings, lists of blocks and single blocks: OpenAI, Anthropic, OpenTelemetry, Gemini, Vercel. */
export function partsOf(content: Json | undefined): Part[] {
  if (content === undefined || content === null || content === "") return [];
  if (typeof content === "string") return [{ kind: "text", text: content }];
  if (Array.isArray(content)) return content.flatMap(partsOf);
  return isObject(content) ? blockOf(content) : [{ kind: "other", value: content }];
}

const THINKING = new Set(["thinking", "reasoning", "redacted_thinking"]);
const RESULTS = new Set([
  "tool_result",
  "tool-result",
  "tool_call_response",
  "function_call_output",
  "function_response",
  "tool-return",
]);
const CALLS = new Set(["tool_use", "tool_call", "tool-call", "function_call", "function"]);

function blockOf(block: JsonObject): Part[] {
  const type = text(block.type) || text(block.part_kind);
  if (isObject(block.message_content)) return partsOf(block.message_content);
  if (isObject(block.function_call)) return [callOf(block.function_call)];
  if (isObject(block.function_response)) return [resultOf(block.function_response)];
  if (RESULTS.has(type)) return [resultOf(block)];
  if (CALLS.has(type)) return [callOf(block)];
  const said = textIn(block);
  if (said === undefined) return [{ kind: "other", value: block }];
  return said ? [{ kind: THINKING.has(type) ? "thinking" : "text", text: said }] : [];
}

function textIn(block: JsonObject): string | undefined {
  for (const name of ["text", "content", "thinking", "reasoning", "refusal"]) {
    const value = block[name];
    if (typeof value === "string") return value;
    if (isObject(value) && typeof value.text === "string") return value.text;
  }
  if (Array.isArray(block.summary)) {
    return block.summary.map((item) => (isObject(item) ? text(item.text) : "")).join("\n\n");
  }
  return undefined;
}

/** A call of a tool, also as OpenAI and OpenInference nest it. */
export function callOf(given: JsonObject): Part {
  const outer = isObject(given.tool_call) ? given.tool_call : given;
  const inner = isObject(outer.function) ? outer.function : outer;
  return {
    kind: "call",
    id: idOf(outer),
    name: text(inner.name) || text(inner.toolName) || text(inner.tool_name) || "tool",
    value: opened(inner.arguments ?? inner.input ?? inner.args ?? null),
  };
}

export function resultOf(given: JsonObject): Part {
  const value = given.content ?? given.output ?? given.result ?? given.response ?? null;
  return {
    kind: "result",
    id: idOf(given),
    name: text(given.name) || text(given.toolName) || text(given.tool_name),
    value: simple(opened(value)),
    failed: given.is_error === true || given.isError === true,
  };
}

function idOf(given: JsonObject): string {
  for (const name of ["tool_call_id", "tool_use_id", "call_id", "toolCallId", "id"]) {
    if (typeof given[name] === "string") return given[name];
  }
  return "";
}

/** JSON inside a string, as arguments often come. */
function opened(value: Json): Json {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  return parseExactly(value) ?? value;
}

/** A list of nothing but texts is one text. */
function simple(value: Json): Json {
  if (!Array.isArray(value) || !value.length) return value;
  const parts = value.flatMap(partsOf);
  const texts = parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
  return texts.length === parts.length && value.every(isObject) ? texts.join("\n") : value;
}

export function text(value: Json | undefined): string {
  if (typeof value === "string") return value;
  return isLosslessNumber(value) ? value.value : "";
}
