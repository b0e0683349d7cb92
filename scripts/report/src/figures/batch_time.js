// Time per batch, stacked by phase. PyTorch DDP: the hook's busy time as a hatched bar below, since it
// overlaps.

import * as Plot from "@observablehq/plot";
import {batchTimes, PARTS} from "../model/batch_time.js";
import {isNumber} from "../model/statistics.js";
import {milliseconds, percent} from "../model/format.js";
import {axisLabel, draw, grid, labelMargin, layout, tip} from "./panels.js";
import {hatching} from "./hatching.js";

const ROW = 58;
const ABOVE_DY = -ROW / 2 + 9; // within a row: single runs and the spread over batches,
const MAIN = {insetTop: 15, insetBottom: 20}; // below them the bar of the batch,
const BESIDE = {insetTop: 40, insetBottom: 10}; // and below that the hook's
const MAIN_DY = (MAIN.insetTop - MAIN.insetBottom) / 2;
const TICK = {insetTop: 4, insetBottom: MAIN.insetBottom - 2};

/** Stacked bars, a row a scheme, a panel an implementation. */
export function batchTime(context) {
  const {theme, setup} = context;
  const rows = visibleRows(context);
  const labels = setup.labels.filter((label) => rows.some((row) => row.label === label));
  const panels = layout(context, setup.implementations);
  const hatched = hatching(theme.parts, theme.paper);
  const segments = rows.flatMap((row) => row.segments);
  const beside = rows.flatMap((row) => row.beside);
  const at = (options) => panels.by({y: "label", ...options});
  const ms = (key) => (row) => row[key] * 1e3;
  const single = rows.flatMap((row) =>
    row.runs
      .filter((run) => isNumber(run.batchTime))
      .map((run) => ({
        implementation: row.implementation,
        label: row.label,
        batchTime: run.batchTime,
        counted: row.counted.includes(run),
        flag: flagOf(run, setup),
        p95: row.p95 ?? 0,
      })),
  );
  const end =
    Math.max(
      0.001,
      ...single.map((run) => run.batchTime),
      ...rows.flatMap((row) => [row.p95 ?? 0, row.busy ?? 0]),
    ) * 1e3;
  const bar = (data, fill, insets) =>
    Plot.barX(data, at({x1: ms("x1"), x2: ms("x2"), fill, insetRight: 0.6, ...insets}));
  const bars = (data, insets, isHatched) =>
    PARTS.concat({key: "whole"}).map(({key}) =>
      bar(
        data.filter((segment) => segment.part === key),
        isHatched(key) ? hatched.fill(key) : theme.parts[key],
        insets,
      ),
    );
  return draw(context, {
    ariaLabel: "Mean time per batch by phase, milliseconds",
    height: 72 + (panels.narrow ? panels.count * (labels.length * ROW + 30) : labels.length * ROW),
    marginLeft: labelMargin(labels),
    marginBottom: 42,
    marginRight: 30,
    ...panels.scales,
    x: {
      ...axisLabel("Time per batch, ms"),
      domain: [0, withRoom(end, single, panels, context.width - labelMargin(labels) - 30)],
      labelAnchor: "center",
      labelOffset: 38,
      ticks: 5,
    },
    y: {axis: null, domain: labels, padding: 0},
    color: {type: "identity"},
    marks: [
      hatched.mark,
      Plot.axisY({label: null, tickSize: 0, dy: MAIN_DY}),
      ...grid(theme, {ticks: 5}, null),
      panels.heading(theme),
      Plot.text(
        missing(rows, setup, labels),
        at({
          text: () => "no run",
          frameAnchor: "left",
          dx: 6,
          dy: MAIN_DY,
          fill: theme.muted,
          fontStyle: "italic",
        }),
      ),
      ...bars(segments, MAIN, (key) => key === "wait"),
      ...bars(beside, BESIDE, () => true),
      Plot.ruleX([0], {stroke: theme.ink}),
      Plot.tickX(rows, at({x: ms("batchTime"), stroke: theme.ink, strokeWidth: 2, ...TICK})),
      ...whiskers(
        rows.filter((row) => row.p5 !== null),
        at,
        ms,
        theme,
      ),
      Plot.text(
        rows,
        at({
          x: ms("batchTime"),
          text: (row) => milliseconds(row.batchTime),
          textAnchor: "start",
          dx: 6,
          dy: MAIN_DY,
          fontWeight: 600,
          fontVariant: "tabular-nums",
          stroke: theme.paper,
          strokeWidth: 4,
          fill: theme.ink,
        }),
      ),
      ...runMarks(single, at, ms, theme),
      ...tip(context, tipPoints(rows), at({x: "x", title: "title", dy: MAIN_DY, anchor: "bottom"})),
    ],
  });
}

// The axis' end, with room at the right for the number or, where the longest row has one, its flag.
function withRoom(end, single, {narrow}, width) {
  const panel = narrow ? width : width / 2 - 20;
  const flagged = single.some((run) => run.flag && run.batchTime * 1e3 > 0.6 * end);
  return end / (1 - Math.min(0.6, (flagged ? 145 : 56) / panel));
}

function visibleRows({setup, hidden}) {
  return batchTimes(setup).filter((row) => !hidden.has(row.label));
}

/** The parts that the figure shows, for its legend: [{key, title, hatched}]. */
export function shownParts({setup, hidden}) {
  const rows = visibleRows({setup, hidden});
  const keys = new Set(
    rows.flatMap((row) => [...row.segments, ...row.beside].map((segment) => segment.part)),
  );
  return PARTS.filter(({key}) => keys.has(key)).map(({key, title}) => ({
    key,
    title,
    hatched: key === "wait",
  }));
}

function missing(rows, setup, labels) {
  return setup.implementations.flatMap((implementation) =>
    labels
      .filter(
        (label) =>
          !rows.some((row) => row.implementation === implementation && row.label === label),
      )
      .map((label) => ({implementation, label})),
  );
}

// p5 to p95 over batches.
function whiskers(rows, at, ms, theme) {
  const style = {stroke: theme.ink, strokeWidth: 1.2};
  const cap = (key) =>
    Plot.tickX(rows, at({x: ms(key), ...style, insetTop: 5, insetBottom: ROW - 13}));
  return [
    Plot.ruleY(rows, at({x1: ms("p5"), x2: ms("p95"), dy: ABOVE_DY, ...style})),
    cap("p5"),
    cap("p95"),
  ];
}

// Each run's own mean; a cross where it does not count in the bar.
function runMarks(single, at, ms, theme) {
  const flagged = single.filter((run) => run.flag);
  return [
    Plot.dot(
      single.filter((run) => run.counted),
      at({
        x: ms("batchTime"),
        dy: ABOVE_DY,
        r: 2.6,
        fill: theme.paper,
        stroke: theme.ink,
        strokeWidth: 1.2,
      }),
    ),
    Plot.dot(
      single.filter((run) => !run.counted),
      at({
        x: ms("batchTime"),
        dy: ABOVE_DY,
        r: 3.6,
        symbol: "times",
        stroke: theme.ink,
        strokeWidth: 1.8,
      }),
    ),
    Plot.text(
      flagged,
      at({
        x: (run) => Math.max(run.batchTime, run.p95) * 1e3,
        text: "flag",
        dy: ABOVE_DY,
        dx: 9,
        textAnchor: "start",
        fontSize: 11.5,
        fontStyle: "italic",
        fill: theme.muted,
        stroke: theme.paper,
        strokeWidth: 3,
      }),
    ),
  ];
}

// What sets a run apart from the others of its setup; what holds for all of them stands above the figure.
function flagOf(run, {runs}) {
  const status =
    run.status === "finished" ? null : run.status === "diverged" ? "diverged" : "unfinished";
  const flags = [
    run.oversubscribed && !runs.every((other) => other.oversubscribed) && "oversubscribed",
    status && !runs.every((other) => other.status === run.status) && status,
  ].filter(Boolean);
  return flags.length > 0
    ? `${flags.join(", ")}${run.seed === null ? "" : `, seed ${run.seed}`}`
    : null;
}

function tipPoints(rows) {
  const titles = Object.fromEntries(PARTS.map(({key, title}) => [key, title]));
  return rows.flatMap((row) =>
    [...row.segments, ...row.beside].map((segment) => ({
      implementation: row.implementation,
      label: row.label,
      x: ((segment.x1 + segment.x2) / 2) * 1e3,
      title: [
        `${row.implementation}, ${row.label}`,
        `${titles[segment.part] ?? "batch"} ${milliseconds(segment.seconds)} ms ` +
          `(${percent(segment.seconds / row.batchTime, 1)} of batch)`,
        `batch ${milliseconds(row.batchTime)} ms, mean of ${row.n} ${row.n === 1 ? "run" : "runs"}`,
        row.p5 !== null &&
          `p5 to p95 over batches ${milliseconds(row.p5)} to ${milliseconds(row.p95)} ms`,
        row.beside.includes(segment) && "hook's thread, beside the backward pass",
      ]
        .filter(Boolean)
        .join("\n"),
    })),
  );
}
