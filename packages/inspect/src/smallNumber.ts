// A number in two bytes, for history: five bits say how often eleven bits are doubled. Exact up to 4,095, within 0.025 % up to four
// million millions, which is more than a chart can show. The largest pattern means that nothing is known.
//
//   exponent 0:   value = fraction
//   exponent e:   value = (2048 + fraction) · 2^(e − 1)

const fractionBits = 11;
const fractions = 2 ** fractionBits;
const absent = 0xffff;
const largest = absent - 1;

/** Negative numbers count as zero, too large ones as the largest. */
export function encodeSmall(value: number | undefined): number {
  if (value === undefined || Number.isNaN(value)) return absent;
  const whole = Math.max(0, Math.round(value));
  if (whole < fractions) return whole;
  let exponent = Math.floor(Math.log2(whole)) - fractionBits + 1;
  let fraction = Math.round(whole / 2 ** (exponent - 1)) - fractions;
  // Rounding up may reach the next power of two; so may the logarithm of a number just below one.
  if (fraction >= fractions) {
    exponent++;
    fraction = Math.round(whole / 2 ** (exponent - 1)) - fractions;
  }
  return Math.min(exponent * fractions + Math.max(0, fraction), largest);
}

export function decodeSmall(code: number): number | undefined {
  if (code === absent) return undefined;
  const exponent = code >>> fractionBits;
  const fraction = code & (fractions - 1);
  return exponent === 0 ? fraction : (fractions + fraction) * 2 ** (exponent - 1);
}
