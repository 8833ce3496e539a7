import { expect, test } from "vitest";
import { hrefOf, hrefOfRun, routeOf } from "./route";

test.each(["a/b", "100%", "翻译 🔍", "#?&=", "\u202ehostile"])(
  "the phase %s is found again",
  (phase) => {
    expect(routeOf(hrefOf(["runs", "r:1", "phases", phase]))).toMatchObject({
      view: "run",
      run: "r:1",
      phase,
    });
  },
);

test("an address says what is to be seen", () => {
  expect(routeOf("").view).toBe("runs");
  expect(routeOf("#/runs?status=failed&pipeline=a%26b")).toMatchObject({
    view: "runs",
    query: { status: "failed", pipeline: "a&b" },
  });
  expect(routeOf("#/runs/r/calls/s")).toMatchObject({ view: "run", run: "r", call: "s" });
  expect(routeOf("#/insights?range=7d").view).toBe("insights");
  expect(routeOf("#/compare?a=x&b=y").query).toEqual({ a: "x", b: "y" });
  expect(routeOf("#/nonsense").view).toBe("unknown");
  expect(routeOf("#/runs/r/calls").view).toBe("unknown");
  expect(routeOf("#/runs/%E0%A4%A").run).toBe("%E0%A4%A");
});

test("a call is opened and closed within the same filter", () => {
  const before = routeOf("#/runs/r/phases/plan?tab=tree&status=failed");
  const opened = routeOf(hrefOfRun(before, "s1"));
  expect(opened).toMatchObject({ call: "s1", phase: "plan" });
  expect(routeOf(hrefOfRun(opened))).toEqual(before);
});
