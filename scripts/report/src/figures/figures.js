// The figures by name. The page, the files for papers and the tests all go through this list.

import {accuracy, accuracyLate, bits, lateWindow} from "./curves.js";
import {batchTime, shownParts} from "./batch_time.js";
import {timeToAccuracy} from "./time_to_accuracy.js";
import {cost} from "./cost.js";
import {batchTimes} from "../model/batch_time.js";
import {costInputs} from "../model/cost.js";
import {curves} from "../model/setups.js";

const tested = (setup) => curves(setup).seeds.length > 0;

/**
 * `draw(context)` returns an SVG element. A context holds {setup, hidden, look, theme, width, document,
 * interactive, weights, logarithmic, thresholds, network, overlap}; `suits(setup)` says whether there is
 * anything to draw.
 */
export const FIGURES = [
  {
    name: "accuracy",
    title: "Test accuracy against epoch",
    draw: accuracy,
    suits: tested,
    legend: "schemes",
  },
  {
    name: "accuracy-late",
    title: "Test accuracy, the last part",
    draw: accuracyLate,
    suits: tested,
    legend: "schemes",
    caption: ({setup}) => `From epoch ${lateWindow(setup).start}.`,
  },
  {
    name: "bits",
    title: "Test accuracy against bits communicated",
    draw: bits,
    suits: tested,
    legend: "schemes",
  },
  {
    name: "batch-time",
    title: "Time per batch",
    draw: batchTime,
    suits: (setup) => batchTimes(setup).length > 0,
    legend: "parts",
    parts: shownParts,
  },
  {
    name: "time-to-accuracy",
    title: "Time to accuracy",
    draw: timeToAccuracy,
    suits: tested,
    legend: "none",
  },
  {
    name: "cost-elsewhere",
    title: "Modelled time per batch on another network",
    draw: cost,
    suits: (setup) => costInputs(setup).length > 0,
    legend: "schemes",
  },
];

/** Variants that become files of their own: [{file, name, options}]. */
export const VARIANTS = FIGURES.flatMap(({name}) =>
  name === "bits"
    ? [
        {file: "bits", name, options: {logarithmic: false}},
        {file: "bits-log", name, options: {logarithmic: true}},
      ]
    : [{file: name, name, options: {}}],
);
