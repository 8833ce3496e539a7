import { expect, test } from "vitest";
import { chunks, clipped, pieces, plain } from "./inert";
import { compareMoney, dollars, sumOf, unknownCost } from "./money";
import { duration, epochMs, fromField, toField } from "./times";

test("money keeps every digit and gets no other", () => {
  expect(dollars("0.000009")).toBe("$0.000009");
  expect(dollars("0")).toBe("$0");
  expect(dollars("1234567.5")).toBe("$1,234,567.5");
  expect(dollars("0.001288374308660127")).toBe("$0.001288374308660127");
  expect(dollars("999")).toBe("$999");
});

test("sums of money are exact", () => {
  expect(sumOf(["0.1", "0.2"])).toBe("0.3");
  expect(sumOf(["999999999999.999999999999999999", "0.000000000000000001"])).toBe("1000000000000");
  expect(sumOf([])).toBe("0");
  expect(sumOf(["0.000001719765432123", "1"])).toBe("1.000001719765432123");
});

test("money is compared by value", () => {
  expect(["10", "9.5", "0.000009"].sort(compareMoney)).toEqual(["0.000009", "9.5", "10"]);
});

test("unknown cost is said in calls", () => {
  expect(unknownCost(0)).toBe("");
  expect(unknownCost(1)).toBe("unknown for 1 call");
  expect(unknownCost(660)).toContain("660 calls");
});

test("nanoseconds survive as far as a double holds them", () => {
  const first = epochMs("2026-11-30T02:46:01.000000000Z");
  expect(epochMs("2026-11-30T02:46:01.123456789Z") - first).toBeCloseTo(123.456789, 3);
});

test.each([
  [0, "0 ms"],
  [0.05423, "0.0542 ms"],
  [999, "999 ms"],
  [1_240, "1.24 s"],
  [60_000, "1 min"],
  [119_700, "2 min"],
  [200_000, "3 min 20 s"],
  [3_599_900, "1 h"],
  [18_120_000, "5 h 2 min"],
  [86_400_000 * 3 + 3_600_000 * 4, "3 d 4 h"],
])("a duration of %d ms is %s", (ms, said) => {
  expect(duration(ms)).toBe(said);
});

test("a field of local time is a moment and back", () => {
  const time = fromField("2026-11-30T08:15");
  expect(toField(time)).toBe("2026-11-30T08:15");
  expect(fromField("")).toBeUndefined();
  expect(toField("nonsense")).toBe("");
});

test("what hides or reorders text is shown", () => {
  expect(plain("a\u202egnp.exe\u202c\u0000")).toBe("a⟨RLO⟩gnp.exe⟨PDF⟩⟨U+0000⟩");
  expect(pieces("x\u202ey")).toEqual([
    { text: "x" },
    { text: "\u202e", mark: "RLO" },
    { text: "y" },
  ]);
  expect(pieces("")).toEqual([{ text: "" }]);
  expect(plain("👨‍👩‍👧 \t\n é")).toBe("👨‍👩‍👧 \t\n é");
});

test("text is cut between characters alone", () => {
  expect(clipped("ab🌍", 3)).toBe("ab");
  expect(clipped("ab🌍", 4)).toBe("ab🌍");
  const text = `${"x".repeat(9)}🌍\n${"y".repeat(25)}`;
  const parts = chunks(text, 10);
  expect(parts.join("")).toBe(text);
  expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(10);
});
