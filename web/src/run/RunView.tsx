import { useEffect, useMemo } from "preact/hooks";
import { CallDrawer } from "../call/CallDrawer";
import { callSet } from "../calls/rows";
import { go, hrefOf, hrefOfRun, type Route } from "../route";
import { count, counted } from "../text/counts";
import { plain } from "../text/inert";
import { Skeleton, Trouble } from "../ui/Trouble";
import { Calls } from "./Calls";
import { RunHeader } from "./RunHeader";
import { useRun } from "./useRun";

export default function RunView({ route }: { route: Route }) {
  const { head, listed, calls, loading, error, busy, retry } = useRun(route.run);
  const set = useMemo(() => callSet(calls), [calls]);
  const shown = head ?? listed;
  const name = shown?.run.pipeline;
  useEffect(() => {
    if (name) document.title = `${plain(name)} · runtally`;
  }, [name]);
  const closeCall = () => go(hrefOfRun(route), "replace");
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf(["runs"])}>Runs</a> / <span class="id">{route.run}</span>
      </p>
      {error && (
        <Trouble error={error} retry={retry} busy={busy} kept={head && "What was read is below."} />
      )}
      {!shown && <h1 class="unseen">Run</h1>}
      {shown && <RunHeader head={shown} chosen={route.phase} />}
      {loading && !error && <Loading {...loading} />}
      {!head && !error && <Skeleton rows={4} what="run" />}
      {head && <Calls route={route} head={head} set={set} />}
      {route.call && (
        <CallDrawer
          route={route}
          set={set}
          loaded={head !== undefined && loading === null}
          close={closeCall}
        />
      )}
    </>
  );
}

function Loading({ read, of }: { read: number; of: number }) {
  const said = of ? `${count(read)} of ${counted(of, "call")}` : "Reading the run…";
  return (
    <div class="progress" role="status">
      <progress value={of ? Math.min(read, of) : undefined} max={of || 1} aria-label="Calls read" />
      <span class="number">{said}</span>
    </div>
  );
}
