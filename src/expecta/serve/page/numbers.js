// Write numbers for people to read, as the library does. Nothing is computed here.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const digits = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 4, useGrouping: false });

/** Four digits, or without decimals and thousands apart: as `figure` of the library. */
export function figure(value, signed = false) {
  if (value === null || value === undefined || Number.isNaN(value)) return "—";
  const size = Math.abs(value);
  let text;
  if (size >= 1e12 || (size > 0 && size < 1e-4)) text = size.toExponential(size < 1 ? 1 : 3);
  else text = (size >= 1000 ? whole : digits).format(size);
  if (value < 0) return `−${text}`;
  return signed ? `+${text}` : text;
}

/** A share in percent, with about three digits; a tiny one is no zero. */
export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "—";
  if (share < 0) return `−${percent(-share)}`;
  if (share === 0 || share === 1) return `${100 * share}%`;
  if (share < 1e-4) return "<0.01%";
  if (share > 0.9995) return ">99.9%";
  return `${(100 * share).toFixed(share >= 0.1 ? 1 : 2)}%`;
}

/** An output of a model: a probability in percent, or a number. */
export function output(value, isProbability) {
  return isProbability ? percent(value) : figure(value);
}

/** The error of a probability, which may be far below a percent. */
export function errorText(value) {
  return value === null || value === undefined || value === 0 || value >= 1e-4 ? percent(value) : figure(value);
}

/** What a contribution adds to an output. */
export function change(value, isProbability) {
  if (!isProbability) return figure(value, true);
  if (value === null || value === undefined) return "—";
  const points = 100 * Math.abs(value);
  return `${value < 0 ? "−" : "+"}${points < 0.01 && points > 0 ? "<0.01" : points.toFixed(points >= 10 ? 1 : 2)} points`;
}

/** Evidence of a cell, in words. */
export function evidenceText(evidence) {
  if (evidence === null || evidence === undefined) return "unknown";
  if (typeof evidence !== "object") return typeof evidence === "number" ? figure(evidence) : String(evidence);
  if ("in" in evidence) return evidence.in.map(String).join(" or ");
  const [low, high] = evidence.between.map((end) => (typeof end === "number" ? figure(end) : end));
  if (low === null) return `at most ${high}`;
  return high === null ? `at least ${low}` : `${low} to ${high}`;
}

/** Round numbers at which an axis between two ends has its ticks. */
export function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((by) => by * power).find((by) => by >= rough * 0.999);
  const values = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step && values.length < 50; i += 1) values.push(Number((i * step).toPrecision(12)));
  return values;
}

/** A tick's label: 12k for 12,000 where the axis goes that far. */
export function tickText(value, isProbability, largest) {
  if (isProbability) return `${Math.round(1000 * value) / 10}%`;
  const [by, unit] = largest >= 1e10 || largest < 1e4 ? [1, ""] : largest >= 1e7 ? [1e6, "M"] : [1e3, "k"];
  return value === 0 ? "0" : `${figure(value / by)}${unit}`;
}
