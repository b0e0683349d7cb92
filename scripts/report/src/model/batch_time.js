// Time per batch and where it went.

import {isNumber, mean, quantiles, sum} from "./statistics.js";
import {countedForTime} from "./setups.js";

const COLLECTIVES = ["collective_gradients", "collective_p", "collective_q", "collective_vectors"];

/** The parts as drawn, in order of execution: key, the phases summed in it, and its name for people. */
export const PARTS = [
  {key: "buffers", title: "BN buffers", phases: ["buffers"]},
  {key: "forward", title: "forward", phases: ["forward"]},
  {key: "backward", title: "backward", phases: ["backward"]},
  {key: "wait", title: "waiting for reduction", phases: ["wait"]},
  {key: "encode", title: "encode", phases: ["encode"]},
  {key: "orthogonalise", title: "orthogonalise", phases: ["orthogonalise"]},
  {key: "collectives", title: "collectives", phases: COLLECTIVES},
  {key: "decode", title: "decode", phases: ["decode"]},
  {key: "step", title: "optimiser step", phases: ["step"]},
  {key: "running_average", title: "running average", phases: ["running_average"]},
  {key: "other", title: "rest", phases: []},
];

// PyTorch DDP: what the hook's thread does, and what has passed on the worker's own thread when it is done.
// The hook is drawn so that it ends there; it may have idled in between.
const UNTIL_REDUCED = ["buffers", "forward", "backward", "wait"];
const HOOK = ["encode", "orthogonalise", "collectives", "decode"];

/** Whether reduction overlaps the backward pass, so that its parts do not add up to the batch. */
export const overlaps = (run) => run.implementation === "PyTorch DDP";

/**
 * Seconds in each part of a mean batch (means over timed batches and workers); null where nothing was timed.
 */
export function partsOf(run) {
  const phase = (name) => run.phases[name]?.mean ?? 0;
  if (!isNumber(run.phases.batch?.mean)) return null;
  const parts = Object.fromEntries(
    PARTS.map(({key, phases}) => [key, phases.map(phase).reduce((a, b) => a + b, 0)]),
  );
  if (overlaps(run)) parts.backward = Math.max(0, parts.backward - parts.wait);
  else parts.wait = 0;
  const inside = PARTS.map(({key}) => key).filter((key) => !(overlaps(run) && HOOK.includes(key)));
  const known = inside.reduce((total, key) => total + parts[key], 0);
  parts.other = Math.max(0, phase("batch") - known);
  return parts;
}

/**
 * A row for each series with a measured time.
 * @returns [{implementation, label, n, runs, counted, batchTime, parts, busy, p5, p95, segments, beside}];
 *   `segments`   add up to the batch; `beside` is the hook's busy time, which overlaps the backward pass
 *   (PyTorch DDP only)
 */
export function batchTimes(setup) {
  return setup.series.flatMap((series) => {
    const counted = countedForTime(series.runs);
    if (counted.length === 0) return [];
    const {implementation, label, runs} = series;
    const parts = meanParts(counted);
    const pooled = counted.flatMap((run) => run.batchQuantiles ?? []);
    const spread = pooled.length > 0 ? quantiles(pooled, 101) : null;
    const row = {
      implementation,
      label,
      runs,
      counted,
      n: counted.length,
      batchTime: mean(counted.map((run) => run.batchTime)),
      parts,
      p5: spread?.[5] ?? null,
      p95: spread?.[95] ?? null,
    };
    return [{...row, ...stacks(row, overlaps(counted[0]))}];
  });
}

function meanParts(runs) {
  const known = runs.map(partsOf).filter((parts) => parts !== null);
  if (known.length === 0) return null;
  return Object.fromEntries(PARTS.map(({key}) => [key, mean(known.map((parts) => parts[key]))]));
}

function stacks({implementation, label, parts, batchTime}, overlapping) {
  if (!parts)
    return {
      segments: [{implementation, label, part: "whole", x1: 0, x2: batchTime, seconds: batchTime}],
      beside: [],
      busy: null,
    };
  const hook = (key) => overlapping && HOOK.includes(key);
  const pile = (keys, start = 0) => {
    let x = start;
    return keys
      .filter((key) => parts[key] > 0)
      .map((key) => {
        const from = x;
        x += parts[key];
        return {implementation, label, part: key, x1: from, x2: x, seconds: parts[key]};
      });
  };
  const keys = PARTS.map(({key}) => key);
  const busy = overlapping ? sum(HOOK.map((key) => parts[key])) : null;
  const end = sum(UNTIL_REDUCED.map((key) => parts[key]));
  return {
    segments: pile(keys.filter((key) => !hook(key))),
    busy,
    beside: overlapping ? pile(HOOK, Math.max(0, end - busy)) : [],
  };
}
