import preact from "@preact/preset-vite";
import type { Plugin, ProxyOptions } from "vite";
import { defineConfig } from "vitest/config";
import headers from "./headers.json" with { type: "json" };

// What is used of Node; its types would become those of the page, too.
declare const process: { env: Record<string, string | undefined>; pid: number };
interface Upstream {
  complete: boolean;
  on(event: "close", act: () => void): void;
}
interface Answer {
  headersSent: boolean;
  setHeader(name: string, value: string): void;
  writeHead(status: number, headers: Record<string, string>): { end(text: string): void };
  destroy(): void;
}
interface Proxy {
  on(event: "error", act: (error: Error, request: unknown, answer: Answer) => void): void;
  on(event: "proxyRes", act: (from: Upstream, request: unknown, answer: Answer) => void): void;
}

const DOWN = "The API does not answer. Start it with `runtally up`.\n";

/** An API that is down is told from one that fails, and one that dies amid its answer ends it. */
function watch(proxy: Proxy) {
  proxy.on("error", (_error, _request, answer) => {
    if (answer.headersSent) answer.destroy();
    else answer.writeHead(502, { "Content-Type": "text/plain" }).end(DOWN);
  });
  proxy.on("proxyRes", (from, _request, answer) => {
    from.on("close", () => from.complete || answer.destroy());
  });
}

/** The API on the page's own address, as on CloudFront; by default that of `runtally up`. */
const api: ProxyOptions = {
  target: process.env.RUNTALLY_API_URL ?? "http://127.0.0.1:8400",
  changeOrigin: true,
  configure: (proxy) => watch(proxy as unknown as Proxy),
};
const proxy = { "^/(api|v1)/": api };

/** Every answer says which process gave it, so that no other one is ended in its place. */
const signed: Plugin = {
  name: "runtally-signed",
  configurePreviewServer({ middlewares }) {
    middlewares.use((_request: unknown, answer: Answer, next: () => void) => {
      answer.setHeader("X-Runtally-Page", `${process.pid}`);
      next();
    });
  },
};

/** Relative addresses and no inline scripts: the page works below any path, under a strict CSP. */
export default defineConfig({
  base: "./",
  appType: "mpa", // addresses of the page are below `#`: any other path is a mistake, and a 404
  plugins: [preact({ devToolsEnabled: false }), signed],
  build: {
    outDir: "../build/web",
    license: { fileName: "licenses.md" },
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: { proxy, cors: false },
  preview: { proxy, cors: false, headers },
  test: { include: ["src/**/*.test.ts"] },
});
