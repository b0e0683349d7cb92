// What would it cost elsewhere: modelled time per batch against bandwidth. Dashed throughout: nothing here
// was measured.

import * as Plot from "@observablehq/plot";
import {milliseconds} from "../model/format.js";
import {BANDWIDTH, bandwidths, costInputs, modelledBatch} from "../model/cost.js";
import {axisLabel, draw, grid, layout, tip} from "./panels.js";

const POINTS = 61;
const POWERS = [0.1, 1, 10, 100];

/** Lines of the modelled batch, a dot where context.network {workers, gigabits, microseconds} lies. */
export function cost(context) {
  const {theme, look, setup, hidden, network, overlap} = context;
  const inputs = costInputs(setup).filter((input) => !hidden.has(input.label));
  const at = (gigabits) => inputs.map((input) => point(input, {...network, gigabits}, overlap));
  const lines = bandwidths(POINTS).flatMap(at);
  const chosen = at(network.gigabits);
  const implementations = setup.implementations.filter((name) =>
    costInputs(setup).some((i) => i.implementation === name),
  );
  const panels = layout(context, implementations);
  const all = lines.map((p) => p.total * 1e3);
  const [low, high] = [Math.min(...all, 1e6) / 1.3, Math.max(...all, 1e-3) * 1.1];
  const yTicks = ticks125(low, high);
  const stroke = (p) => look.colour(p.label, theme);
  const place = (options) => panels.by({x: "gigabits", y: (p) => p.total * 1e3, ...options});
  return draw(context, {
    ariaLabel: "Modelled time per batch against bandwidth",
    height: panels.narrow ? 40 + 260 * panels.count : 350,
    marginLeft: 62,
    marginBottom: 42,
    ...panels.scales,
    x: {
      ...axisLabel("Bandwidth of each worker, Gbit/s"),
      type: "log",
      domain: [BANDWIDTH.min, BANDWIDTH.max],
      labelAnchor: "center",
      labelOffset: 38,
      ticks: POWERS,
      tickFormat: String,
    },
    y: {
      ...axisLabel("Modelled time per batch, ms"),
      type: "log",
      domain: [low, high],
      ticks: yTicks,
      tickFormat: ",",
      labelAnchor: "center",
      labelOffset: 58,
    },
    color: {type: "identity"},
    marks: [
      ...grid(theme, {ticks: POWERS}, {ticks: yTicks}),
      Plot.frame({stroke: theme.grid}),
      panels.heading(theme),
      Plot.ruleX([network.gigabits], {stroke: theme.muted, strokeWidth: 1}),
      Plot.line(lines, place({z: "label", stroke, strokeWidth: 2, strokeDasharray: "7 3"})),
      Plot.dot(
        chosen,
        place({
          fill: stroke,
          symbol: (p) => look.symbol(p.label),
          r: 4.5,
          stroke: theme.paper,
          strokeWidth: 0.8,
        }),
      ),
      ...tip(context, [...lines, ...chosen], place({title: describe})),
    ],
  });
}

// 1, 2 and 5 times the powers of ten from `low` to `high`.
function ticks125(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    found.push(...[1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
  }
  return found.filter((tick) => tick >= low && tick <= high);
}

function point(input, network, overlap) {
  return {
    implementation: input.implementation,
    label: input.label,
    ...network,
    ...modelledBatch(input, network, overlap),
  };
}

function describe(p) {
  return [
    `${p.implementation}, ${p.label}`,
    `modelled at ${Number(p.gigabits.toPrecision(3))} Gbit/s, ` +
      `${Number(p.microseconds.toPrecision(3))} µs, ${p.workers} workers`,
    `compute (measured) ${milliseconds(p.compute)} ms`,
    `collectives (modelled) ${milliseconds(p.collectives)} ms`,
    `batch (modelled) ${milliseconds(p.total)} ms`,
  ].join("\n");
}
