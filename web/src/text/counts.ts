const COUNT = new Intl.NumberFormat();
const COMPACT = new Intl.NumberFormat(undefined, { notation: "compact" });
const PERCENT = new Intl.NumberFormat(undefined, {
  style: "percent",
  signDisplay: "exceptZero",
  maximumFractionDigits: 1,
});
const BYTES = new Intl.NumberFormat(undefined, {
  style: "unit",
  unit: "byte",
  unitDisplay: "long",
});

export function count(n: number): string {
  return COUNT.format(n);
}

/** For the axes of charts alone: rounded. */
export function compact(n: number): string {
  return COMPACT.format(n);
}

export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function bytes(n: number): string {
  return BYTES.format(n);
}

/** `change` is in per cent, as the API has it. */
export function percent(change: number): string {
  return PERCENT.format(change / 100);
}
