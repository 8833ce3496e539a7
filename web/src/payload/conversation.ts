/** The messages in a payload, in order. */
import { isObject, type Json, type JsonObject } from "../api/json";
import { callOf, type Part, partsOf, resultOf, text } from "./parts";

export interface Message {
  role: string;
  name: string;
  parts: Part[];
}

export interface Conversation {
  messages: Message[];
  /** Members of the payload that are none of the messages. */
  rest: JsonObject;
}

/** Undefined when the payload is no conversation: then it is shown as the JSON that it is. */
export function conversationOf(payload: Json): Conversation | undefined {
  const list = messagesOf(payload);
  if (list) return { messages: list, rest: {} };
  if (!isObject(payload)) return undefined;
  return ofParts(payload) ?? ofMessages(payload);
}

/** `{messages: […], …}` with what came of them, or a request and its response. */
function ofMessages(payload: JsonObject): Conversation | undefined {
  const { request, response, ...outer } = payload;
  if (isObject(request) && (messagesOf(request.messages) || messagesOf(request.contents))) {
    const asked = ofMessages(request);
    const answer = response === undefined ? [] : saidBy("assistant", response);
    return asked && { messages: [...asked.messages, ...answer], rest: { ...asked.rest, ...outer } };
  }
  for (const name of ["messages", "contents", "prompt", "history"]) {
    const messages = messagesOf(payload[name]);
    if (!messages) continue;
    const { [name]: _, system, ...after } = payload;
    const before = system === undefined ? [] : saidBy("system", system);
    const { answers, rest } = answersIn(after);
    return { messages: [...before, ...messages, ...answers], rest };
  }
  const { answers, rest } = answersIn(payload);
  return answers.length && Array.isArray(payload.choices) ? { messages: answers, rest } : undefined;
}

const ANSWERS = ["answer", "completion", "response", "output", "choices"];

function answersIn(payload: JsonObject): { answers: Message[]; rest: JsonObject } {
  const rest = { ...payload };
  const answers: Message[] = [];
  for (const name of ANSWERS) {
    const value = rest[name];
    if (value === undefined || value === null) continue;
    answers.push(...saidBy("assistant", value));
    delete rest[name];
  }
  return { answers, rest };
}

/** `{instructions, input, output, tools, attributes, …}`, as OpenTelemetry's spans are kept. */
function ofParts(payload: JsonObject): Conversation | undefined {
  if (payload.input === undefined && payload.output === undefined) return undefined;
  const { instructions, input, output, ...rest } = payload;
  const told = isObject(input) ? ofMessages(input) : undefined;
  const asked = told?.messages ?? saidBy(messagesOf(output) ? "user" : "input", input);
  const answered = saidBy(messagesOf(input) || told ? "assistant" : "output", output);
  return { messages: [...saidBy("system", instructions), ...asked, ...answered], rest };
}

/** Messages as they are; anything else as one message of this role. */
function saidBy(role: string, value: Json | undefined): Message[] {
  if (value === undefined || value === null) return [];
  const messages = messagesOf(value);
  if (messages) return messages;
  if (isObject(value)) {
    if (Array.isArray(value.choices)) return value.choices.flatMap((item) => saidBy(role, item));
    const one = messageOf(value);
    if (one) return [{ ...one, role: one.role || role }];
    if (isObject(value.message)) return saidBy(role, value.message);
  }
  const parts = role === "input" || role === "output" ? plainly(value) : partsOf(value);
  return [{ role, name: "", parts }];
}

/** Arguments and results of tools are no messages: they are shown as what they are. */
function plainly(value: Json): Part[] {
  return typeof value === "string" ? [{ kind: "text", text: value }] : [{ kind: "other", value }];
}

function messagesOf(value: Json | undefined): Message[] | undefined {
  if (!Array.isArray(value) || !value.length) return undefined;
  const messages: Message[] = [];
  for (const item of value) {
    const message = isObject(item) ? messageOf(item) : undefined;
    if (!message) return undefined;
    messages.push(message);
  }
  return messages;
}

const ITEM_ROLES: Record<string, string> = {
  function_call: "assistant",
  reasoning: "assistant",
  function_call_output: "tool",
};

function messageOf(given: JsonObject): Message | undefined {
  const item = isObject(given.message) && given.role === undefined ? given.message : given;
  const asItem = ITEM_ROLES[text(item.type)];
  if (asItem) return { role: asItem, name: "", parts: partsOf(item) };
  const role = text(item.role) || (item === given ? pydanticRole(item) : "assistant");
  if (!role) return undefined;
  return { role, name: text(item.name), parts: contentOf(item, role) };
}

/** pydantic-ai: `{kind: "request", parts: [{part_kind, …}]}`. */
function pydanticRole(item: JsonObject): string {
  if (!Array.isArray(item.parts)) return "";
  return { request: "user", response: "assistant" }[text(item.kind)] ?? "";
}

function contentOf(item: JsonObject, role: string): Part[] {
  const calls = Array.isArray(item.tool_calls) ? item.tool_calls.filter(isObject).map(callOf) : [];
  const isResult = role === "tool" && typeof item.tool_call_id === "string";
  if (isResult && item.parts === undefined) return [resultOf(item)];
  const thinking = partsOf(item.reasoning_content ?? item.reasoning).map(
    (part): Part => (part.kind === "text" ? { kind: "thinking", text: part.text } : part),
  );
  const said = [item.content, item.contents, item.parts, item.refusal].flatMap(partsOf);
  return [...thinking, ...said, ...calls];
}
