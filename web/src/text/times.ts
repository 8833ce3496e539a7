/** Times of the API, RFC 3339 in UTC with nanoseconds, in the viewer's zone and language. */
import { intervalToDuration, intlFormatDistance } from "date-fns";

const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
});
const HOUR = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const FINE = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });

/** Milliseconds since the epoch, with the fraction that a double can hold: a quarter of a µs. */
export function epochMs(time: string): number {
  return Date.parse(`${time.slice(0, 19)}Z`) + Number(time.slice(20, 29)) / 1e6;
}

export function dateTime(time: string): string {
  return DATE_TIME.format(epochMs(time));
}

export function clock(time: string): string {
  return CLOCK.format(epochMs(time));
}

/** `30 Nov, 14:00`, or the day alone. */
export function moment(ms: number, by: "hour" | "day"): string {
  return (by === "hour" ? HOUR : DAY).format(ms);
}

export function relative(time: string, now: number): string {
  return intlFormatDistance(epochMs(time), now);
}

/** `0.07 ms`, `2.4 s`, `3 min 20 s`, `5 h 2 min`, `3 d 4 h`: three digits or two units. */
export function duration(ms: number): string {
  if (ms < 1000) return `${FINE.format(ms)} ms`;
  if (ms < 60_000) return `${FINE.format(ms / 1000)} s`;
  const rounded = ms < 3_600_000 ? Math.round(ms / 1000) * 1000 : Math.round(ms / 60_000) * 60_000;
  const whole = Math.floor(rounded / 86_400_000);
  const parts = intervalToDuration({ start: 0, end: rounded % 86_400_000 });
  const named: [number, string][] = [
    [whole, "d"],
    [hoursOf(rounded), "h"],
    [parts.minutes ?? 0, "min"],
    [parts.seconds ?? 0, "s"],
  ];
  const first = named.findIndex(([value]) => value > 0);
  return named
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(" ");
}

function hoursOf(ms: number): number {
  return Math.floor((ms % 86_400_000) / 3_600_000);
}

/** From a `datetime-local` field, in the viewer's zone; undefined when it is empty. */
export function fromField(value: string): string | undefined {
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}

/** For a `datetime-local` field. */
export function toField(time: string | undefined): string {
  const ms = Date.parse(time ?? "");
  if (Number.isNaN(ms)) return "";
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
