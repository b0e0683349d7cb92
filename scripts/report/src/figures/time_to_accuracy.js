// Time to accuracy: along a scheme's row, when each threshold was first reached.

import * as Plot from "@observablehq/plot";
import {duration, percent, si} from "../model/format.js";
import {timesToAccuracy} from "../model/time_to_accuracy.js";
import {axisLabel, draw, grid, labelMargin, layout, tip} from "./panels.js";

const UNITS = [
  [7200, 3600, "hours"],
  [180, 60, "minutes"],
  [0, 1, "seconds"],
];

/** Dots at the mean time of each threshold in context.thresholds, a thin stroke at each seed's. */
export function timeToAccuracy(context) {
  const {theme, look, setup, thresholds, hidden} = context;
  const rows = timesToAccuracy(setup, thresholds).filter((row) => !hidden.has(row.label));
  const labels = setup.labels.filter((label) => !hidden.has(label));
  const reached = rows.filter((row) => row.time !== null);
  const seeds = rows.flatMap((row) =>
    row.runs.map((run) => ({...row, ...run, implementation: row.implementation, label: row.label})),
  );
  const end = Math.max(1, ...seeds.map((seed) => seed.time));
  const [, unit, unitName] = UNITS.find(([from]) => end >= from);
  const panels = layout(context, setup.implementations);
  const colour = (row) => look.colour(row.label, theme);
  const at = (options) => panels.by({y: "label", x: (row) => row.time / unit, ...options});
  return draw(context, {
    ariaLabel: "Time until the test accuracy first reached each threshold",
    height: 76 + (panels.narrow ? panels.count * (labels.length * 46 + 30) : labels.length * 46),
    marginLeft: labelMargin(labels),
    marginBottom: 42,
    marginRight: 26,
    ...panels.scales,
    x: {
      ...axisLabel(`Time since training began, ${unitName}`),
      domain: [0, (end / unit) * 1.08],
      labelAnchor: "center",
      labelOffset: 38,
      ticks: 5,
    },
    y: {label: null, domain: labels, tickSize: 0, padding: 0},
    color: {type: "identity"},
    marks: [
      ...grid(theme, {ticks: 5}, null),
      Plot.ruleX([0], {stroke: theme.ink}),
      panels.heading(theme),
      Plot.ruleY(
        spans(reached, setup),
        panels.by({
          y: "label",
          x1: 0,
          x2: (row) => row.time / unit,
          stroke: colour,
          strokeWidth: 1.5,
          strokeOpacity: 0.55,
        }),
      ),
      Plot.tickX(
        seeds.filter((seed) => seed.counted),
        at({stroke: colour, strokeWidth: 1.4, insetTop: 13, insetBottom: 13}),
      ),
      Plot.dot(
        seeds.filter((seed) => !seed.counted),
        at({stroke: colour, symbol: "times", r: 3, strokeWidth: 1.6}),
      ),
      Plot.dot(
        reached,
        at({fill: colour, symbol: (row) => look.symbol(row.label), r: 5, stroke: theme.paper}),
      ),
      Plot.text(
        merged(reached, end),
        at({
          text: "text",
          dy: -15,
          fontSize: 11.5,
          fill: theme.ink,
          stroke: theme.paper,
          strokeWidth: 3,
        }),
      ),
      ...[0, 13].map((dy) =>
        Plot.text(
          rowNotes(rows, setup, labels).filter((row) => row.dy === dy),
          panels.by({
            y: "label",
            frameAnchor: "left",
            dx: 6,
            dy,
            text: "text",
            fill: theme.muted,
            fontStyle: "italic",
            fontSize: 11.5,
          }),
        ),
      ),
      ...tip(
        context,
        reached.map((row) => ({...row, title: describe(row)})),
        at({title: "title"}),
      ),
    ],
  });
}

// Thresholds that are reached at nearly the same time share one label.
function merged(reached, end) {
  const labels = [];
  for (const row of [...reached].sort((a, b) => a.time - b.time)) {
    const near = labels.find(
      (label) =>
        label.implementation === row.implementation &&
        label.label === row.label &&
        row.time - label.time < end * 0.09,
    );
    if (near)
      Object.assign(near, {
        text: `${near.text}, ${short(row.threshold)}`,
        time: (near.time + row.time) / 2,
      });
    else labels.push({...row, text: short(row.threshold)});
  }
  return labels;
}

const lastOf = (seeds) => [...new Map(seeds.map((seed) => [seed.run, seed])).values()];

function fate({oversubscribed, status, seed}) {
  const what = [
    oversubscribed && "oversubscribed",
    status === "diverged" ? "diverged" : status !== "finished" && "unfinished",
  ];
  return `× ${seed === null ? "" : `seed ${seed} `}${what.filter(Boolean).join(", ")}`;
}

const short = (threshold) =>
  percent(threshold, Number.isInteger(+(threshold * 100).toFixed(6)) ? 0 : 1);

// One line a row, up to its last threshold.
function spans(reached, {series}) {
  return series.flatMap(({implementation, label}) => {
    const own = reached.filter(
      (row) => row.implementation === implementation && row.label === label,
    );
    return own.length > 0 ? [own.reduce((a, b) => (a.time > b.time ? a : b))] : [];
  });
}

// What a row does not show: thresholds not reached, and why runs drawn as crosses do not count.
function rowNotes(rows, {implementations, series}, labels) {
  return implementations.flatMap((implementation) =>
    labels.flatMap((label) => {
      if (!series.some((each) => each.implementation === implementation && each.label === label)) {
        return [{implementation, label, text: "no run", dy: 0}];
      }
      const open = rows.filter(
        (row) => row.implementation === implementation && row.label === label && row.time === null,
      );
      const none = open.filter((row) => row.reached === 0).map((row) => short(row.threshold));
      const some = open
        .filter((row) => row.reached > 0)
        .map((row) => `${short(row.threshold)} reached in ${row.reached} of ${row.of} runs`);
      const crosses = lastOf(
        rows
          .filter((row) => row.implementation === implementation && row.label === label)
          .flatMap((row) => row.runs.filter((run) => !run.counted)),
      ).map(fate);
      const text = [...some, none.length > 0 && `${none.join(", ")} not reached`, ...crosses]
        .filter(Boolean)
        .join("; ");
      return text ? [{implementation, label, text, dy: 13}] : [];
    }),
  );
}

function describe(row) {
  return [
    `${row.implementation}, ${row.label}`,
    `${percent(row.threshold)} after ${duration(row.time)}`,
    `epoch ${Number(row.epoch.toFixed(1))}, sent ${si(row.bits, "bit")}`,
    row.of === 1
      ? "single run"
      : `mean of ${row.of} runs: ${row.runs
          .filter((run) => run.counted)
          .map((run) => duration(run.time))
          .join(", ")}`,
    row.runs.some((run) => run.counted && run.oversubscribed) && "oversubscribed",
  ]
    .filter(Boolean)
    .join("\n");
}
