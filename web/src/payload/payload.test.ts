import { describe, expect, test } from "vitest";
import { parseAnswer, parseExactly, parseWithList, printed, rawMember } from "../api/json";
import { conversationOf } from "./conversation";

/** Roles, and of each part its kind with what it says. */
function told(json: unknown) {
  const value = parseExactly(JSON.stringify(json));
  const found = value === undefined ? undefined : conversationOf(value);
  return found?.messages.map(
    ({ role, parts }) =>
      `${role}: ${parts
        .map((part) => {
          if ("text" in part) return `${part.kind} ${part.text}`;
          if (part.kind === "other") return `other ${printed(part.value)}`;
          const value = typeof part.value === "string" ? part.value : printed(part.value);
          return `${part.kind} ${part.name}#${part.id} ${value.replace(/\s+/g, "")}`;
        })
        .join(" | ")}`,
  );
}

describe("a conversation is found in", () => {
  test("OpenAI's messages", () => {
    const messages = [
      { role: "system", content: "be brief" },
      { role: "user", content: [{ type: "text", text: "hi" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "c1", function: { name: "look", arguments: '{"id": 9007199254740993}' } },
        ],
      },
      { role: "tool", tool_call_id: "c1", content: "found" },
    ];
    const expected = [
      "system: text be brief",
      "user: text hi",
      'assistant: call look#c1 {"id":9007199254740993}',
      "tool: result #c1 found",
    ];
    expect(told(messages)).toEqual(expected);
    expect(told({ messages, answer: "done" })).toEqual([...expected, "assistant: text done"]);
    expect(
      told({
        request: { messages },
        response: { choices: [{ message: { role: "assistant", content: "done" } }] },
      }),
    ).toEqual([...expected, "assistant: text done"]);
  });

  test("Anthropic's blocks", () => {
    expect(
      told({
        system: "judge",
        messages: [
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "hm" },
              { type: "text", text: "I look" },
              { type: "tool_use", id: "t1", name: "search", input: { q: 1 } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "t1", content: [{ type: "text", text: "none" }] },
            ],
          },
        ],
      }),
    ).toEqual([
      "system: text judge",
      'assistant: thinking hm | text I look | call search#t1 {"q":1}',
      "user: result #t1 none",
    ]);
  });

  test("OpenTelemetry's parts, as spans are kept", () => {
    expect(
      told({
        instructions: [{ type: "text", content: "be brief" }],
        input: [{ role: "user", parts: [{ type: "text", content: "hi" }] }],
        output: [
          {
            role: "assistant",
            parts: [
              { type: "reasoning", content: "hm" },
              { type: "tool_call", id: "t", name: "wave", arguments: { hand: "left" } },
            ],
          },
        ],
        attributes: { a: 1 },
      }),
    ).toEqual([
      "system: text be brief",
      "user: text hi",
      'assistant: thinking hm | call wave#t {"hand":"left"}',
    ]);
  });

  test("OpenInference's wrapped messages", () => {
    expect(
      told({
        input: [{ message: { role: "user", content: "hi" } }],
        output: [
          {
            message: {
              role: "assistant",
              tool_calls: [{ tool_call: { id: "c", function: { name: "f", arguments: "{}" } } }],
            },
          },
        ],
      }),
    ).toEqual(["user: text hi", "assistant: call f#c {}"]);
  });

  test("OpenAI's items of responses", () => {
    expect(
      told({
        input: "hi",
        output: [
          { type: "reasoning", summary: [{ text: "hm" }] },
          { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
          { type: "function_call_output", call_id: "c", output: "42" },
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "done" }] },
        ],
      }),
    ).toEqual([
      "user: text hi",
      "assistant: thinking hm",
      "assistant: call f#c {}",
      "tool: result #c 42",
      "assistant: text done",
    ]);
  });

  test("what a tool was given and gave", () => {
    expect(told({ input: { a: 1 }, output: "done" })).toEqual([
      'input: other {\n  "a": 1\n}',
      "output: text done",
    ]);
  });
});

test.each([
  [{ question: "why", answer: 42 }],
  [[1, 2]],
  ["text"],
  [[]],
  [{ messages: "none" }],
  [null],
])("%j is no conversation", (json) => {
  expect(told(json)).toBeUndefined();
});

test("nothing of a payload is lost: what is no message is told besides", () => {
  const value = parseExactly('{"messages":[{"role":"user","content":"x"}],"model":"m","n":1.10}');
  expect(printed(conversationOf(value ?? null)?.rest ?? null)).toBe(
    '{\n  "model": "m",\n  "n": 1.10\n}',
  );
});

test("numbers stay as they were written", () => {
  const text = '{"a":9007199254740993,"b":1.10,"c":1e400,"d":-0.0}';
  expect(printed(parseExactly(text) ?? null).replace(/\s/g, "")).toBe(text);
  expect(parseExactly("{nonsense")).toBeUndefined();
  const answer = parseAnswer('{"n":9007199254740993,"m":5,"f":0.25}') as Record<string, unknown>;
  expect([String(answer.n), answer.m, answer.f]).toEqual(["9007199254740993", 5, 0.25]);
});

test("a member is cut out of an answer byte for byte", () => {
  const raw = '{"x": 1.10,  "y":",\\"payload\\":"}';
  const text = `{"step_id":"s","payload_state":"ok","payload_bytes":3,"payload":${raw}}`;
  expect(rawMember(text, "payload")).toBe(raw);
  expect(rawMember('{"step_id":"s","payload_state":"none"}', "payload")).toBeUndefined();
});

test.each([
  '{"run":{"attributes":{"n":9007199254740993}},"calls":[{"a":1},{"a":2}],"next":"c"}',
  '{"run":{"attributes":{"n":9007199254740993,"calls":[1]}},"calls":[{"a":1},{"a":2}],"next":"c"}',
  '{"run":{"attributes":{"n":9007199254740993,"x":",\\"calls\\":["}},"calls":[{"a":1},{"a":2}],"next":"c"}',
])("an answer with a list is read as it is: %s", (text) => {
  const answer = parseWithList(text, "calls") as Record<string, { attributes: { n: unknown } }>;
  expect(answer.calls).toEqual([{ a: 1 }, { a: 2 }]);
  expect(answer.next).toBe("c");
  expect(String(answer.run?.attributes.n)).toBe("9007199254740993");
});
