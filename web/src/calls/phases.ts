/** The phase of every call, by the rule that made the run's summary (functions/core/phases.py). */
import type { Call } from "../api/shapes";

export const NO_PHASE = "(no phase)";
export const OTHER_PHASES = "(other phases)";
const SUFFIX = 11;
const LONGEST_ID = 19 + 1 + SUFFIX;

// As Python has them: a word may be of any script, and the end may be before a last line break.
const WORD = "[\\p{L}\\p{N}_]";
const END = "(?=\\n?$)";
const VARYING = new RegExp(
  [
    "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    `(?<!${WORD})(?=[0-9a-fA-F]*[0-9])(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{12,}(?!${WORD})`,
    "(?<![0-9])[0-9]{6,}(?![0-9])",
    `(?<=[-_.:# /])[0-9]+${END}`,
  ].join("|"),
  "gu",
);

/** The name with `*` for each id and for a counter at its end, a model's version excepted. */
export function grouped(name: string, model = ""): string {
  const space = name.lastIndexOf(" ");
  const last = name.slice(space + 1);
  if (model && (model.startsWith(last) || last.startsWith(model))) {
    const before = space < 0 ? "" : name.slice(0, space);
    return `${before.replace(VARYING, "*")} ${last}`.trimStart();
  }
  return name.replace(VARYING, "*");
}

/** Calls by their ids, and by what alone some children know of a parent's id. */
export class Family {
  private readonly byId: Map<string, Call>;
  private readonly bySuffix = new Map<string, Call>();

  constructor(calls: readonly Call[]) {
    this.byId = new Map(calls.map((call) => [call.step_id, call]));
    for (const call of calls) {
      if (call.step_id.length === LONGEST_ID) this.bySuffix.set(call.step_id.slice(-SUFFIX), call);
    }
  }

  parentOf(call: Call): Call | undefined {
    if (!call.parent_id) return undefined;
    return this.bySuffix.get(call.parent_id) ?? this.byId.get(call.parent_id);
  }
}

interface Labels {
  phase: string;
  hint: string;
  name: string;
  model: string;
}

const NONE: Labels = { phase: "", hint: "", name: "", model: "" };

export function phasesOf(calls: readonly Call[], family: Family): Map<string, string> {
  const labels = new Map<string, Labels>();
  const phases = new Map<string, string>();
  const names = new Map<string, string>();
  const groupedOnce = (name: string, model: string) => {
    const key = `${name}\0${model}`;
    const known = names.get(key) ?? grouped(name, model);
    names.set(key, known);
    return known;
  };
  for (const call of calls) {
    for (const node of pathUp(call, family, labels).reverse()) {
      const parent = family.parentOf(node);
      labels.set(node.step_id, labelsOf(node, (parent && labels.get(parent.step_id)) ?? NONE));
    }
    const { phase, hint, name, model } = labels.get(call.step_id) ?? NONE;
    const named = name && groupedOnce(name, model);
    phases.set(call.step_id, phase || hint || named || NO_PHASE);
  }
  return phases;
}

function labelsOf(call: Call, above: Labels): Labels {
  if (!call.parent_id) return { ...NONE, phase: call.phase ?? "" };
  const own = { name: call.name || call.agent || "", model: call.model ?? "" };
  const { name, model } = above.name ? above : own;
  return {
    phase: call.phase || above.phase,
    hint: above.hint || call.phase_hint || "",
    name,
    model,
  };
}

/** The call and its ancestors, as far up as they are not known yet; a cycle ends it. */
function pathUp(call: Call, family: Family, known: ReadonlyMap<string, Labels>): Call[] {
  const path: Call[] = [];
  const seen = new Set<string>();
  let node: Call | undefined = call;
  while (node && !known.has(node.step_id) && !seen.has(node.step_id)) {
    path.push(node);
    seen.add(node.step_id);
    node = family.parentOf(node);
  }
  return path;
}
