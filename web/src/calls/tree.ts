/** Nested calls as a tree, and the lines of it that are to be seen. */
import type { Row } from "./rows";

export interface Node {
  readonly row: Row;
  readonly children: Node[];
}

export interface Line {
  readonly node: Node;
  readonly level: number;
  readonly parent: number;
  readonly position: number;
  readonly siblings: number;
}

/** Roots in step order. Calls whose parents go round in a circle have none. */
export function treeOf(rows: readonly Row[]): Node[] {
  const nodes = new Map(rows.map((row) => [row.call.step_id, { row, children: [] } as Node]));
  const roots: Node[] = [];
  const placed = new Set<Node>();
  for (const node of nodes.values()) {
    const parent = node.row.parent === undefined ? undefined : nodes.get(node.row.parent);
    if (parent && parent !== node) parent.children.push(node);
    else roots.push(node);
  }
  for (const root of roots) mark(root, placed);
  if (placed.size < nodes.size) {
    for (const node of nodes.values()) {
      if (placed.has(node)) continue;
      const above = nodes.get(node.row.parent ?? "");
      above?.children.splice(above.children.indexOf(node), 1);
      roots.push(node);
      mark(node, placed);
    }
  }
  return roots;
}

function mark(root: Node, placed: Set<Node>): void {
  const open = [root];
  for (let node = open.pop(); node; node = open.pop()) {
    placed.add(node);
    for (const child of node.children) if (!placed.has(child)) open.push(child);
  }
}

/** The nodes that are wanted and all above them; undefined when all are. */
export function kept(
  all: ReadonlyMap<string, Row>,
  wanted: readonly Row[],
): ReadonlySet<string> | undefined {
  if (wanted.length === all.size) return undefined;
  const keep = new Set<string>();
  for (const row of wanted) {
    let at: Row | undefined = row;
    while (at && !keep.has(at.call.step_id)) {
      keep.add(at.call.step_id);
      at = at.parent === undefined ? undefined : all.get(at.parent);
    }
  }
  return keep;
}

/** Depth first, without what lies below a collapsed node. */
export function linesOf(
  roots: readonly Node[],
  collapsed: ReadonlySet<string>,
  keep?: ReadonlySet<string>,
): Line[] {
  const lines: Line[] = [];
  const among = (nodes: readonly Node[]) =>
    keep ? nodes.filter((node) => keep.has(node.row.call.step_id)) : nodes;
  const open: Line[] = placedLines(among(roots), 1, -1);
  for (let line = open.pop(); line; line = open.pop()) {
    lines.push(line);
    if (!collapsed.has(line.node.row.call.step_id)) {
      const below = placedLines(among(line.node.children), line.level + 1, lines.length - 1);
      for (const child of below) open.push(child);
    }
  }
  return lines;
}

/** Last first, as a stack takes them. */
function placedLines(nodes: readonly Node[], level: number, parent: number): Line[] {
  return nodes
    .map((node, at) => ({ node, level, parent, position: at + 1, siblings: nodes.length }))
    .reverse();
}
