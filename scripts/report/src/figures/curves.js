// The three figures of test accuracy: against epoch, its last part, against bits. Each seed thin, the mean
// thick.

import * as Plot from "@observablehq/plot";
import {axisUnit, duration, integer, percent, si} from "../model/format.js";
import {curves} from "../model/setups.js";
import {quantile} from "../model/statistics.js";
import {axisLabel, draw, grid, layout, tip} from "./panels.js";

/** The notebook's own window: from epoch 130, accuracy 0.92 to 0.95. */
const NOTEBOOK = {epochs: 300, start: 130, low: 0.92, high: 0.95, bits: 2e11, allBits: 2.574e12};

/** Test accuracy against epoch. */
export function accuracy(context) {
  const points = visible(context);
  return lines(context, points, {
    x: "epoch",
    name: "Test accuracy against epoch",
    xScale: {
      ...axisLabel("Epoch"),
      domain: [0, context.setup.epochs],
      ...wholeTicks(context.setup.epochs),
    },
    yScale: fromZero(context),
  });
}

/** The same, the last part. */
export function accuracyLate(context) {
  const points = visible(context);
  const {start, low, high} = lateWindow(context.setup);
  return lines(context, points, {
    x: "epoch",
    name: "Test accuracy against epoch, last part",
    clip: true,
    xScale: {
      ...axisLabel("Epoch"),
      domain: [start, context.setup.epochs],
      ...wholeTicks(context.setup.epochs - start),
    },
    yScale: {domain: [low, high]},
  });
}

/**
 * Test accuracy against the bits that a worker has sent for gradients; context.logarithmic chooses the scale.
 */
export function bits(context) {
  const points = visible(context);
  const {logarithmic} = context;
  const end = logarithmic
    ? Math.max(1, ...all(points).map((p) => p.bits))
    : linearEnd(context.setup);
  const {scale, unit} = axisUnit(end, "bit");
  const sent = all(points).filter((p) => p.bits > 0);
  const smallest = Math.min(end / 10, ...sent.map((p) => p.bits));
  return lines(
    context,
    mapPoints(points, (list) => list.filter((p) => p.bits > 0)),
    {
      x: logarithmic ? "bits" : (p) => p.bits / scale,
      name: "Test accuracy against bits communicated",
      clip: !logarithmic,
      xScale: logarithmic
        ? {
            ...axisLabel("Bits sent by one worker, logarithmic"),
            type: "log",
            domain: [smallest / 1.5, end * 1.5],
            ticks: powersOfTen(smallest / 1.5, end * 1.5),
            tickFormat: (d) => si(d, "bit"),
          }
        : {...axisLabel(`Bits sent by one worker, ${unit}`), domain: [0, end / scale], ticks: 5},
      yScale: fromZero(context),
    },
  );
}

function powersOfTen(low, high) {
  const first = Math.ceil(Math.log10(low));
  return Array.from({length: Math.floor(Math.log10(high)) - first + 1}, (_, i) =>
    Number(`1e${first + i}`),
  );
}

/**
 * Where the linear axis ends: as in the notebook, so that the compressed schemes fill more than a hairline.
 */
export function linearEnd(setup) {
  const {seeds} = curves(setup);
  const largest = (points) => Math.max(1, ...points.map((point) => point.bits ?? 0));
  const whole = largest(seeds);
  if (setup.epochs === NOTEBOOK.epochs && whole > NOTEBOOK.bits) return NOTEBOOK.bits;
  const compressed = seeds.filter((point) => !["full precision", "FP16"].includes(point.label));
  const wanted = Math.max(
    (whole * NOTEBOOK.bits) / NOTEBOOK.allBits,
    compressed.length > 0 ? 1.25 * largest(compressed) : whole,
  );
  return Math.min(whole * 1.02, wanted);
}

/** The last part of the epochs and the accuracies there: the notebook's window where the curves are in it. */
export function lateWindow(setup) {
  const {epochs} = setup;
  const start = epochs >= NOTEBOOK.epochs ? NOTEBOOK.start : Math.floor(epochs * 0.45);
  const {means, seeds} = curves(setup);
  const values = (means.length > 0 ? means : seeds)
    .filter((p) => p.epoch >= start)
    .map((p) => p.accuracy)
    .sort((a, b) => a - b);
  if (values.length === 0) return {start, low: 0, high: 1};
  const final = quantile(values, 0.9);
  if (epochs === NOTEBOOK.epochs && final > NOTEBOOK.low && final < NOTEBOOK.high)
    return {...NOTEBOOK, start};
  const [low, high] = [quantile(values, 0.02), values.at(-1)];
  const margin = Math.max(0.005, (high - low) * 0.08);
  return {start, low: Math.max(0, low - margin), high: Math.min(1, high + margin)};
}

function visible({setup, hidden, weights}) {
  return mapPoints(curves(setup, weights), (list) =>
    list.filter((point) => !hidden.has(point.label)),
  );
}

const mapPoints = ({seeds, means, ends}, f) => ({seeds: f(seeds), means: f(means), ends: f(ends)});
const all = ({seeds, means}) => [...seeds, ...means];

// Accuracy from 0 to the next tenth above the best run of the setup, whatever is hidden.
function fromZero({setup}) {
  const best = Math.max(0, ...curves(setup).seeds.map((point) => point.accuracy));
  return {domain: [0, Math.min(1, Math.max(0.2, Math.ceil((best + 0.02) * 10) / 10))]};
}

// A tick at whole epochs only, however few there are.
function wholeTicks(span) {
  return span <= 6 ? {interval: 1, tickFormat: "d"} : {ticks: Math.min(7, span), tickFormat: "d"};
}

function lines(context, {seeds, means, ends}, {x, name, xScale, yScale, clip = false}) {
  const {theme, look, setup} = context;
  const panels = layout(context, setup.implementations);
  const stroke = (point) => look.colour(point.label, theme);
  const at = (options) => panels.by({x, y: "accuracy", ...options});
  const span = yScale.domain[1] - yScale.domain[0];
  const single = means.length === 0;
  const inside = insideOf(xScale, yScale, x);
  const position = positionOf(xScale, x);
  return draw(context, {
    ariaLabel: `${name}; one panel an implementation: ${setup.implementations.join(", ")}`,
    height: panels.narrow ? 40 + 250 * panels.count : 350,
    marginLeft: 62,
    marginBottom: 42,
    ...panels.scales,
    x: {...xScale, labelAnchor: "center", labelOffset: 38, inset: 2},
    y: {
      ...yScale,
      ...axisLabel("Test accuracy"),
      tickFormat: span < 0.06 ? ".1%" : ".0%",
      ticks: 6,
      labelAnchor: "center",
      labelOffset: 58,
    },
    color: {type: "identity"},
    marks: [
      ...grid(theme, xScale, {ticks: 6}),
      Plot.frame({stroke: theme.grid}),
      panels.heading(theme),
      Plot.line(
        seeds,
        at({
          z: (p) => `${p.label} ${p.run}`,
          stroke,
          strokeWidth: single ? 1.8 : 1,
          strokeOpacity: 0.5,
          clip,
        }),
      ),
      Plot.line(means, at({z: "label", stroke, strokeWidth: 2.2, strokeLinejoin: "round", clip})),
      symbols(markers(means.filter(inside), setup.labels, position), at, stroke, look, theme),
      ...endMarks(ends.filter(inside), at, stroke, theme, position),
      ...tip(
        context,
        [...means.map((p) => ({...p, mean: true})), ...seeds].filter(inside),
        at({title: describe}),
      ),
    ],
  });
}

function insideOf({domain: [x1, x2]}, {domain: [y1, y2]}, x) {
  const value = typeof x === "function" ? x : (p) => p[x];
  return (p) => value(p) >= x1 && value(p) <= x2 && p.accuracy >= y1 && p.accuracy <= y2;
}

const symbols = (points, at, stroke, look, theme) =>
  Plot.dot(
    points,
    at({
      symbol: (p) => look.symbol(p.label),
      fill: stroke,
      r: 4.2,
      stroke: theme.paper,
      strokeWidth: 0.8,
    }),
  );

// Where on the x axis a point lies, 0 to 1.
function positionOf({domain: [x1, x2], type}, x) {
  const value = typeof x === "function" ? x : (p) => p[x];
  return type === "log"
    ? (p) => Math.log(value(p) / x1) / Math.log(x2 / x1)
    : (p) => (value(p) - x1) / (x2 - x1);
}

const SYMBOLS = 8; // on a line that spans the panel

// A symbol on each point of a short line; on a long one now and then, at other places for each scheme.
function markers(means, labels, position) {
  const line = (point) => `${point.implementation} ${point.label}`;
  const points = new Map();
  for (const point of means) points.set(line(point), (points.get(line(point)) ?? 0) + 1);
  const taken = new Set();
  return means.filter((point) => {
    if (points.get(line(point)) <= SYMBOLS) return true;
    const shift = labels.indexOf(point.label) / labels.length;
    const key = `${line(point)} ${Math.floor(position(point) * SYMBOLS + shift)}`;
    return !taken.has(key) && taken.add(key);
  });
}

const STATUS = {
  running: "unfinished",
  interrupted: "unfinished",
  failed: "failed",
  diverged: "diverged",
};

// Where a run that did not finish ends: a cross and its fate.
function endMarks(ends, at, stroke, theme, position) {
  const text = (p) => `${STATUS[p.status] ?? p.status}${p.seed === null ? "" : `, seed ${p.seed}`}`;
  const label = (points, textAnchor, dx) =>
    Plot.text(
      points,
      at({
        text,
        textAnchor,
        dx,
        dy: 14,
        fill: stroke,
        stroke: theme.paper,
        strokeWidth: 4,
        fontWeight: 600,
        fontSize: 12,
      }),
    );
  return [
    Plot.dot(ends, at({symbol: "times", stroke: theme.paper, strokeWidth: 5, r: 5})),
    Plot.dot(ends, at({symbol: "times", stroke, strokeWidth: 2.4, r: 5})),
    label(
      ends.filter((p) => position(p) <= 0.6),
      "start",
      5,
    ),
    label(
      ends.filter((p) => position(p) > 0.6),
      "end",
      -5,
    ),
  ];
}

function describe(p) {
  const seed = p.mean
    ? p.n === 1
      ? "single run"
      : `mean of ${p.n} runs`
    : p.seed === null
      ? p.run
      : `seed ${p.seed}`;
  return [
    `${p.implementation}, ${p.label}`,
    `${seed}, epoch ${p.epoch}`,
    `accuracy ${percent(p.accuracy)}`,
    `sent ${si(p.bits, "bit")} (${integer(p.bits)})`,
    `after ${duration(p.time)}`,
  ].join("\n");
}
