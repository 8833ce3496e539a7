import { expect, test } from "vitest";
import cases from "../../../events/phases.json" with { type: "json" };
import type { Call } from "../api/shapes";
import { filtered } from "./filter";
import { blocksIn, lanesOf } from "./lanes";
import { callSet, largest } from "./rows";
import { kept, linesOf, treeOf } from "./tree";

let made = 0;

function call(id: string, more: Partial<Call> & { at?: number; ms?: number } = {}): Call {
  const { at = made++, ms = 1, ...given } = more;
  const time = (value: number) => new Date(value).toISOString().replace("Z", "000000Z");
  return {
    step_id: id,
    kind: "model",
    status: "succeeded",
    started_at: time(at),
    ended_at: time(at + ms),
    duration_ms: ms,
    ...given,
  };
}

test.each(cases)("$rule", ({ steps }) => {
  const found = callSet(steps.map(({ step_id, expected: _, ...given }) => call(step_id, given)));
  expect(found.rows.map((row) => [row.call.step_id, row.phase])).toEqual(
    steps.map((step) => [step.step_id, step.expected]),
  );
});

test("the tree holds every call once, circles too", () => {
  const set = callSet([
    call("a"),
    call("b", { parent_id: "a" }),
    call("x", { parent_id: "z" }),
    call("y", { parent_id: "x" }),
    call("z", { parent_id: "y" }),
    call("self", { parent_id: "self" }),
  ]);
  const lines = linesOf(treeOf(set.rows), new Set());
  expect(lines.map((line) => line.node.row.call.step_id).sort()).toEqual(
    ["a", "b", "self", "x", "y", "z"].sort(),
  );
  expect(lines.find((line) => line.node.row.call.step_id === "b")).toMatchObject({
    level: 2,
    parent: 0,
    position: 1,
    siblings: 1,
  });
});

test("a collapsed node hides what is below it; a filter keeps what is above", () => {
  const set = callSet([
    call("a"),
    call("b", { parent_id: "a" }),
    call("c", { parent_id: "b", status: "failed" }),
    call("d"),
  ]);
  const roots = treeOf(set.rows);
  const ids = (collapsed: string[], keep?: ReadonlySet<string>) =>
    linesOf(roots, new Set(collapsed), keep).map((line) => line.node.row.call.step_id);
  expect(ids(["b"])).toEqual(["a", "b", "d"]);
  const failed = set.rows.filter((row) => row.call.status === "failed");
  expect(ids([], kept(set.byId, failed))).toEqual(["a", "b", "c"]);
  expect(kept(set.byId, set.rows)).toBeUndefined();
});

test("a chain as long as a run is no matter of recursion", () => {
  const calls = Array.from({ length: 20_000 }, (_, n) =>
    call(`s${n}`, n ? { parent_id: `s${n - 1}` } : {}),
  );
  const set = callSet(calls);
  expect(linesOf(treeOf(set.rows), new Set())).toHaveLength(20_000);
});

test("calls at the same time lie in lanes of their own, by phase", () => {
  const set = callSet([
    call("a", { at: 0, ms: 10, phase: "p" }),
    call("b", { at: 5, ms: 10, phase: "p" }),
    call("c", { at: 10, ms: 5, phase: "p" }),
    call("d", { at: 20, ms: 5, phase: "q" }),
  ]);
  const lanes = lanesOf(set.rows);
  expect(lanes.bands).toEqual([
    { phase: "p", calls: 3, first: 0, lanes: 2 },
    { phase: "q", calls: 1, first: 3, lanes: 1 },
  ]);
  const ids = lanes.byLane.map((bars) => bars.map((bar) => bar.row.call.step_id));
  expect(ids).toEqual([[], ["a", "c"], ["b"], [], ["d"]]);
});

test("blocks count every call in the window once, and tell the worst of them", () => {
  const calls = Array.from({ length: 1_000 }, (_, n) =>
    call(`s${n}`, { at: n * 2, ms: 1, phase: "p", status: n === 500 ? "failed" : "succeeded" }),
  );
  const lanes = lanesOf(callSet(calls).rows);
  const whole = { from: 0, to: 2_000, firstLane: 0, lastLane: 9 };
  const few = blocksIn(lanes, { ...whole, pixels: 50 });
  expect(few.length).toBeLessThan(60);
  expect(few.reduce((sum, block) => sum + block.calls, 0)).toBe(1_000);
  expect(few.filter((block) => block.status === "failed")).toHaveLength(1);
  expect(blocksIn(lanes, { ...whole, pixels: 100_000 })).toHaveLength(1_000);
  const part = blocksIn(lanes, { ...whole, from: 100, to: 200, pixels: 10_000 });
  expect(part.map((block) => block.start)).toEqual(
    Array.from({ length: 51 }, (_, n) => 100 + n * 2),
  );
  expect(blocksIn(lanes, { ...whole, pixels: 50, firstLane: 5 })).toEqual([]);
});

test("filters hold together, and other phases are those without an entry", () => {
  const { rows } = callSet([
    call("a", { phase: "p", name: "Search" }),
    call("b", { phase: "q", error: "TimeoutError" }),
    call("c", { phase: "r", status: "failed", kind: "tool" }),
  ]);
  const named = new Set(["p", "(other phases)"]);
  const ids = (more: object) =>
    filtered(rows, { text: "", status: "", kind: "", phase: "", ...more }, named).map(
      (row) => row.call.step_id,
    );
  expect(ids({})).toEqual(["a", "b", "c"]);
  expect(ids({ text: "sEARch" })).toEqual(["a"]);
  expect(ids({ text: "timeout" })).toEqual(["b"]);
  expect(ids({ phase: "(other phases)" })).toEqual(["b", "c"]);
  expect(ids({ phase: "(other phases)", status: "failed", kind: "tool" })).toEqual(["c"]);
  expect(ids({ phase: "p", kind: "tool" })).toEqual([]);
});

test("the largest come first, and those without a figure not at all", () => {
  const { rows } = callSet([3, 0, 9, 5, 9].map((ms, n) => call(`s${n}`, { ms })));
  const top = largest(rows, 3, (row) => row.call.duration_ms);
  expect(top.map((row) => row.call.step_id)).toEqual(["s2", "s4", "s3"]);
});
