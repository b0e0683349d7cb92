// What the measured schemes would cost on another network: measured compute time plus a model of the
// collectives.

import {isNumber, mean} from "./statistics.js";
import {countedForTime} from "./setups.js";
import {overlaps, partsOf} from "./batch_time.js";

/** The slowest and fastest network offered, Gbit/s and microseconds; and the one shown first. */
export const BANDWIDTH = {min: 0.1, max: 400, start: 10};
export const LATENCY = {min: 1, max: 500, start: 50};

/** The model, as the page states it. */
export const FORMULA = {
  ring: "T = 2 (n − 1)/n · B/β + C · 2 (n − 1) · α",
  terms:
    "n workers; B bytes that one worker hands to gradient collectives in a step; C such collectives in a step; " +
    "β bandwidth of each worker's link in bytes a second; α latency of a message",
};

/**
 * Seconds that a step's collectives take as ring all-reduces.
 * @param bytes per worker and step  @param collectives per step  @param network {workers, gigabits,
 *   microseconds}
 */
export function ringSeconds(bytes, collectives, {workers, gigabits, microseconds}) {
  const steps = 2 * (workers - 1);
  return (
    (steps / workers) * (bytes / ((gigabits * 1e9) / 8)) + collectives * steps * microseconds * 1e-6
  );
}

/**
 * The series that the model can be applied to: {implementation, label, bytes, collectives, parts, measured,
 * ...}.
 */
export function costInputs(setup) {
  return setup.series.flatMap(({implementation, label, runs}) => {
    const counted = countedForTime(runs).filter(
      (run) => partsOf(run) && isNumber(run.bitsPerStep) && isNumber(run.collectivesPerStep),
    );
    if (counted.length === 0) return [];
    const parts = counted.map(partsOf);
    const part = (...keys) =>
      mean(parts.map((each) => keys.reduce((total, key) => total + each[key], 0)));
    return [
      {
        implementation,
        label,
        n: counted.length,
        oversubscribed: counted.some((run) => run.oversubscribed),
        overlapping: overlaps(counted[0]),
        bytes: mean(counted.map((run) => run.bitsPerStep)) / 8,
        collectives: mean(counted.map((run) => run.collectivesPerStep)),
        measured: mean(counted.map((run) => run.batchTime)),
        forward: part("forward"),
        backward: part("backward"),
        compression: part("encode", "orthogonalise", "decode"),
        step: part("step", "running_average"),
      },
    ];
  });
}

/**
 * The modelled batch: compute (measured) and collectives (modelled), seconds.
 * @param overlap PyTorch DDP only: "full" hides reduction behind the backward pass as far as that lasts;
 *   "none" adds it
 */
export function modelledBatch(input, network, overlap) {
  const collectives = ringSeconds(input.bytes, input.collectives, network);
  const compute = input.forward + input.backward + input.compression + input.step;
  if (!(input.overlapping && overlap === "full"))
    return {compute, collectives, total: compute + collectives};
  const reduction = input.compression + collectives;
  return {
    compute,
    collectives,
    total: input.forward + Math.max(input.backward, reduction) + input.step,
  };
}

/** Bandwidths (Gbit/s) evenly spaced on the logarithmic axis. */
export function bandwidths(count) {
  const ratio = Math.log(BANDWIDTH.max / BANDWIDTH.min);
  return Array.from({length: count}, (_, i) => BANDWIDTH.min * Math.exp((ratio * i) / (count - 1)));
}
