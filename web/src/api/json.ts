/** JSON in which no digit is lost. */
import { isLosslessNumber, LosslessNumber, parse, stringify } from "lossless-json";

export type Json = null | boolean | string | number | LosslessNumber | Json[] | JsonObject;
export interface JsonObject {
  [name: string]: Json;
}

/** Sixteen digits and more may be too many for a double, and so may its exponent. */
const LONG_NUMBER = /[:[,]\s*-?(?:\d{16,}|[\d.]{17,}|[\d.]+[eE][-+]?\d{3})/;

/** An answer of the API: plain numbers, and LosslessNumber where a double would say another. */
export function parseAnswer(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  return parse(text, null, (digits) => {
    const number = Number(digits);
    const significant = digits.replace(/[eE].*|[-.]/g, "").replace(/^0+/, "").length;
    return significant < 16 || String(number) === digits ? number : new LosslessNumber(digits);
  });
}

/**
 * As parseAnswer, for an object with a long list at its end: a long number before it does not make
 * the list slow to read.
 */
export function parseWithList(text: string, list: string): unknown {
  const at = text.indexOf(`,${JSON.stringify(list)}:[`);
  try {
    const head = parseAnswer(`${text.slice(0, at)}}`) as object;
    return { ...head, ...(parseAnswer(`{${text.slice(at + 1)}`) as object) };
  } catch {
    return parseAnswer(text); // the list of that name was another, further inside
  }
}

/** What a payload says, every number as it was written. Undefined when it is no JSON. */
export function parseExactly(text: string): Json | undefined {
  try {
    return parse(text, null, (digits) => new LosslessNumber(digits)) as Json;
  } catch {
    return undefined;
  }
}

export function isObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  );
}

/** For people: indented, numbers as they were written. */
export function printed(value: Json): string {
  return stringify(value, null, 2) ?? "";
}

/** The text of a member of a JSON object, as it stands there: the last one, or undefined. */
export function rawMember(text: string, name: string): string | undefined {
  const opening = `,${JSON.stringify(name)}:`;
  const start = text.indexOf(opening);
  const raw = start < 0 ? undefined : text.slice(start + opening.length, text.lastIndexOf("}"));
  try {
    if (raw !== undefined) JSON.parse(raw);
    return raw;
  } catch {
    return undefined;
  }
}
