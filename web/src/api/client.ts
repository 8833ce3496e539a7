/** The API's read operations, typed from its OpenAPI document. Every one may throw a Failure. */
import createClient from "openapi-fetch";
import { Failure, problemIn } from "./failure";
import { parseAnswer, parseWithList, rawMember } from "./json";
import { currentKey } from "./key";
import type { paths } from "./schema";
import type { Comparison, Insights, Payload, RunDetail, RunPage, WholeResult } from "./shapes";

const client = createClient<paths>({ baseUrl: "", cache: "no-store", credentials: "omit" });
client.use({
  onRequest({ request }) {
    request.headers.set("Authorization", `Bearer ${currentKey() ?? ""}`);
    return request;
  },
});

interface Fetched {
  data?: ReadableStream<Uint8Array> | null;
  error?: unknown;
  response: Response;
}

type OnText = (piece: string) => void;

async function textOf(fetching: Promise<Fetched>, signal: AbortSignal, onText?: OnText) {
  try {
    const { data, error, response } = await fetching;
    if (!response.ok) {
      const retryAfterMs = 1000 * Number(response.headers.get("Retry-After") ?? 0);
      throw new Failure(response.status, problemIn(error), retryAfterMs || 0);
    }
    return data ? await read(data, onText) : "";
  } catch (error) {
    if (error instanceof Failure || signal.aborted) throw error;
    if (error instanceof TypeError) throw new Failure(0, null);
    throw error;
  }
}

async function read(stream: ReadableStream<Uint8Array>, onText?: OnText): Promise<string> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  const pieces: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const piece = decoder.decode(value, { stream: true });
    pieces.push(piece);
    onText?.(piece);
  }
  return pieces.join("") + decoder.decode();
}

async function answer<T>(fetching: Promise<Fetched>, signal: AbortSignal) {
  return parseAnswer(await textOf(fetching, signal)) as T;
}

export type RunFilter = NonNullable<paths["/api/v1/pipeline-runs"]["get"]["parameters"]["query"]>;
export type InsightsFilter = Omit<
  paths["/api/v1/insights"]["get"]["parameters"]["query"],
  "view" | "a" | "b"
>;

export function listRuns(query: RunFilter, signal: AbortSignal): Promise<RunPage> {
  const init = { params: { query }, parseAs: "stream", signal } as const;
  return answer(client.GET("/api/v1/pipeline-runs", init), signal);
}

/** One page of calls; the first one says all else that is known of the run. */
export async function readRun(
  run_id: string,
  cursor: string | undefined,
  signal: AbortSignal,
  onText?: OnText,
): Promise<RunDetail> {
  const params = { path: { run_id }, query: cursor ? { cursor } : {} };
  const init = { params, parseAs: "stream", signal } as const;
  const text = await textOf(client.GET("/api/v1/pipeline-runs/{run_id}", init), signal, onText);
  return parseWithList(text, "calls") as RunDetail;
}

export function readResult(run_id: string, signal: AbortSignal): Promise<WholeResult> {
  const init = { params: { path: { run_id } }, parseAs: "stream", signal } as const;
  return answer(client.GET("/api/v1/pipeline-runs/{run_id}/result", init), signal);
}

export interface ReadPayload extends Omit<Payload, "payload"> {
  /** As it was received. */
  raw?: string | undefined;
}

export async function readPayload(
  run_id: string,
  step_id: string,
  signal: AbortSignal,
): Promise<ReadPayload> {
  const init = { params: { path: { run_id, step_id } }, parseAs: "stream", signal } as const;
  const path = "/api/v1/pipeline-runs/{run_id}/calls/{step_id}/payload";
  const text = await textOf(client.GET(path, init), signal);
  const { payload: _, ...rest } = parseAnswer(text) as Payload;
  return { ...rest, raw: rawMember(text, "payload") };
}

export function readInsights(filter: InsightsFilter, signal: AbortSignal): Promise<Insights> {
  const params = { query: { view: "summary", ...filter } } as const;
  const init = { params, parseAs: "stream", signal } as const;
  return answer(client.GET("/api/v1/insights", init), signal);
}

export function compareRuns(a: string, b: string, signal: AbortSignal): Promise<Comparison> {
  const params = { query: { view: "compare", a, b } } as const;
  const init = { params, parseAs: "stream", signal } as const;
  return answer(client.GET("/api/v1/insights", init), signal);
}
