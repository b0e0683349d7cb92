// The few statistics that the figures need.

export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** The mean; null of nothing. */
export const mean = (values) => (values.length > 0 ? sum(values) / values.length : null);

/** Whether a value is there and can be drawn. */
export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** The p-quantile (0..1) of ascending numbers, linear between neighbours. */
export function quantile(sorted, p) {
  const at = (sorted.length - 1) * p;
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below);
}

/** `count` evenly spaced quantiles, from the minimum to the maximum. */
export function quantiles(values, count) {
  const sorted = [...values].sort((a, b) => a - b);
  return Array.from({length: count}, (_, i) => quantile(sorted, i / (count - 1)));
}

/** The distinct values in order of appearance, compared by their JSON. */
export function distinct(values) {
  const found = new Map(values.map((value) => [JSON.stringify(value) ?? "", value]));
  return [...found.values()];
}
