import { expect, test } from "vitest";
import { commandOf } from "../ui/StoredLink";
import { adviceOn, Failure, problemIn, retryDelay, shouldRetry } from "./failure";
import type { Problem } from "./shapes";

function failure(status: number, more: Partial<Problem> = {}): Failure {
  const problem = { type: "t", title: "T", status, detail: "d", reason: "r", ...more };
  return new Failure(status, problem);
}

test("what may pass is tried again, ever later; what cannot is not", () => {
  expect([0, 429, 500, 503].map((status) => shouldRetry(0, failure(status)))).not.toContain(false);
  expect([400, 401, 403, 404].map((status) => shouldRetry(0, failure(status)))).not.toContain(true);
  expect(shouldRetry(2, failure(503))).toBe(false);
  expect(retryDelay(0, failure(503))).toBe(1_000);
  expect(retryDelay(3, failure(503))).toBe(8_000);
  expect(retryDelay(0, new Failure(503, null, 20_000))).toBe(20_000);
});

test("a problem is told with its field and what to do", () => {
  expect(adviceOn(failure(400, { field: "from" }))).toMatchObject({
    title: "T",
    detail: "d (from)",
  });
  expect(adviceOn(failure(404)).title).toBe("Not found, or not yours");
  expect(adviceOn(failure(500, { instance: "req-1" })).detail).toContain("req-1");
  expect(adviceOn(new Failure(0, null)).title).toContain("cannot be reached");
  expect(adviceOn(new SyntaxError("x")).todo).toContain("Reload");
});

test("only problem details are taken for them", () => {
  expect(problemIn({ title: "T", status: 400 })).not.toBeNull();
  expect([problemIn("<html>"), problemIn(null), problemIn({ message: "x" })]).toEqual([
    null,
    null,
    null,
  ]);
});

test("the command for a stored object cannot be broken out of", () => {
  const link = { url: "https://x/y?a='b", expires_at: "", headers: { Range: "bytes=1-2" } };
  expect(commandOf({ ...link, content_encoding: "gzip" })).toBe(
    "curl -s -H 'Range: bytes=1-2' 'https://x/y?a=%27b' | gunzip",
  );
});
