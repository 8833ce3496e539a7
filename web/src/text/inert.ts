/** Text that came from agents: what would hide or reorder it is shown instead of obeyed. */

const NAMES: Record<string, string> = {
  "\u00ad": "SHY",
  "\u061c": "ALM",
  "\u200b": "ZWSP",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u2060": "WJ",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
  "\ufeff": "BOM",
};

// Joiners are left alone: emoji and several scripts need them.
const HIDDEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/g;

export interface Piece {
  text: string;
  /** Set for a character that cannot be seen: its short name. */
  mark?: string;
}

/** The text in pieces, every invisible control a piece of its own. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index) });
    found.push({ text: match[0], mark: markOf(match[0]) });
    at = match.index + 1;
  }
  if (at < text.length || !found.length) found.push({ text: text.slice(at) });
  return found;
}

/** For places that take text alone: canvas, titles, labels. */
export function plain(text: string): string {
  return text.replace(HIDDEN, (character) => `⟨${markOf(character)}⟩`);
}

function markOf(character: string): string {
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  return NAMES[character] ?? `U+${code}`;
}

/** The first `most` characters; never half of one. */
export function clipped(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
}

/** The text in parts of at most `most` characters, at ends of lines where there are some. */
export function chunks(text: string, most: number): string[] {
  const parts: string[] = [];
  let rest = text;
  while (rest.length > most) {
    let part = clipped(rest, most);
    const line = part.lastIndexOf("\n");
    if (line > 0) part = part.slice(0, line + 1);
    parts.push(part);
    rest = rest.slice(part.length);
  }
  return [...parts, rest];
}
