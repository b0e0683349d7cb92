// Numbers for people. One function a quantity, used by tables, tooltips and figures alike.

import {isNumber} from "./statistics.js";

export const MISSING = "–";

const group = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

/** 0.9432 -> "94.32%". */
export const percent = (value, digits = 2) =>
  isNumber(value) ? `${(value * 100).toFixed(digits)}%` : MISSING;

/** An exact integer with separators. */
export const integer = (value) => (isNumber(value) ? group(value.toFixed(0)) : MISSING);

/**
 * Milliseconds with three or more significant digits: 0.00123 -> "1.23", 0.0123 -> "12.3", 1.234 ->
 * "1,234.0".
 */
export function milliseconds(seconds) {
  if (!isNumber(seconds)) return MISSING;
  const ms = seconds * 1e3;
  const [whole, decimals] = ms.toFixed(ms >= 10 ? 1 : ms >= 1 ? 2 : 3).split(".");
  return `${group(whole)}.${decimals}`;
}

/** A duration in its natural unit: "850 ms", "12.3 s", "4 min 10 s", "3 h 25 min". */
export function duration(seconds) {
  if (!isNumber(seconds)) return MISSING;
  if (seconds < 1) return `${milliseconds(seconds)} ms`;
  if (seconds < 100) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

/** A ratio: "72.1×". */
export function ratio(value) {
  return isNumber(value) ? `${value.toFixed(value < 10 ? 2 : 1)}×` : MISSING;
}

const PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** With an SI prefix: (2e11, "bit") -> "200 Gbit". */
export function si(value, unit, digits = 3) {
  if (!isNumber(value)) return MISSING;
  const [scale, prefix] = PREFIXES.find(([size]) => value >= size) ?? [1, ""];
  return `${Number((value / scale).toPrecision(digits))} ${prefix}${unit}`;
}

/** The scale and name of the unit that suits an axis up to `max`: {scale: 1e9, unit: "Gbit"}. */
export function axisUnit(max, unit) {
  const [scale, prefix] = PREFIXES.find(([size]) => max >= 2 * size) ?? [1, ""];
  return {scale, unit: `${prefix}${unit}`};
}

/** Any setting as text. */
export function setting(value) {
  if (value === null || value === undefined || value === "") return MISSING;
  if (Array.isArray(value)) return value.length > 0 ? value.map(setting).join(", ") : "none";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}
