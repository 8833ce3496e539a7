/** Money as the API sends it: decimal strings, to the last digit. */

/** `1234.5` is `$1,234.5`; no digit is added or lost. */
export function dollars(amount: string): string {
  const [whole = "0", fraction] = amount.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? `$${grouped}` : `$${grouped}.${fraction}`;
}

/** The exact sum, without superfluous zeros at its end. */
export function sumOf(amounts: Iterable<string>): string {
  let sum = 0n;
  let scale = 0;
  for (const amount of amounts) {
    const [whole = "0", fraction = ""] = amount.split(".");
    if (fraction.length > scale) {
      sum *= 10n ** BigInt(fraction.length - scale);
      scale = fraction.length;
    }
    sum += BigInt(whole + fraction.padEnd(scale, "0"));
  }
  const digits = String(sum).padStart(scale + 1, "0");
  const whole = digits.slice(0, digits.length - scale);
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, "");
  return fraction ? `${whole}.${fraction}` : whole;
}

/** Ascending; both are decimal strings. */
export function compareMoney(a: string, b: string): number {
  return Number(a) - Number(b) || a.length - b.length;
}

/** What to say of a cost besides its amount: empty when every call's cost is known. */
export function unknownCost(calls: number): string {
  if (!calls) return "";
  return `unknown for ${calls.toLocaleString()} ${calls === 1 ? "call" : "calls"}`;
}
