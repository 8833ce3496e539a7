import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render } from "preact";
import { App } from "./App";
import { Failure, retryDelay, shouldRetry } from "./api/failure";
import { forgetKey } from "./api/key";
import "./styles/tokens.css";
import "./styles/page.css";
import "./styles/controls.css";
import "./styles/blocks.css";
import "./styles/status.css";
import "./styles/runs.css";
import "./styles/run.css";
import "./styles/calls.css";
import "./styles/call.css";

/** Whatever answers 401, the key is of no more use. */
function onError(error: unknown): void {
  if (error instanceof Failure && error.status === 401) {
    forgetKey("The API does not accept this key: it may be mistyped, revoked or expired.");
  }
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError }),
  defaultOptions: {
    queries: {
      retry: shouldRetry,
      retryDelay,
      networkMode: "always",
      staleTime: 15_000,
      gcTime: 5 * 60_000,
      // What was given up is tried again now and then, as long as somebody looks at it.
      refetchInterval: (query) =>
        query.state.error instanceof Failure && query.state.error.passing ? 30_000 : false,
    },
  },
});

const page = document.getElementById("page");
if (page) {
  render(
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>,
    page,
  );
}
