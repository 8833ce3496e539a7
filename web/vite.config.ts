import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";

/** Relative addresses and no inline scripts: the page works below any path, under a strict CSP. */
export default defineConfig({
  base: "./",
  plugins: [preact({ devToolsEnabled: false })],
  build: {
    outDir: "../build/web",
    license: { fileName: "licenses.md" },
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8400" } },
  test: { include: ["src/**/*.test.ts"] },
});
