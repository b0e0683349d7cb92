// Runs may only be compared, and seeds only averaged, within one setup: the same network, data, workers,
// schedule.

import {compareImplementations, compareLabels} from "./schemes.js";
import {distinct, isNumber, mean} from "./statistics.js";

const SETUP_KEYS = [
  "n_workers",
  "model",
  "base_width",
  "dtype",
  "dataset",
  "train_images",
  "test_images",
  "augment",
  "batch_size",
  "epochs",
  "batches_per_epoch",
  "learning_rate",
  "learning_rate_per",
  "momentum",
  "weight_decay",
  "warmup_epochs",
  "decay_epochs",
  "decay_factor",
  "device",
];

/**
 * Groups runs by setup, the largest first.
 * @returns [{key, title, runs, implementations, labels, series}]; the title names what differs between the
 *   setups
 */
export function groupBySetup(runs) {
  const groups = new Map();
  for (const run of runs) {
    const key = JSON.stringify(SETUP_KEYS.map((name) => run.config[name] ?? null));
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(run);
  }
  const lists = [...groups.values()].sort((a, b) => b.length - a.length);
  const differing = SETUP_KEYS.filter(
    (name) => distinct(lists.map(([run]) => run.config[name] ?? null)).length > 1,
  );
  return lists.map((own, index) => makeSetup(own, index, differing));
}

function makeSetup(runs, index, differing) {
  const title = differing
    .map((name) => `${name} ${JSON.stringify(runs[0].config[name] ?? "not given")}`)
    .join(", ");
  const implementations = distinct(runs.map((run) => run.implementation)).sort(
    compareImplementations,
  );
  const labels = distinct(runs.map((run) => run.label)).sort(compareLabels);
  const series = implementations.flatMap((implementation) =>
    labels.flatMap((label) => {
      const own = runs
        .filter((run) => run.implementation === implementation && run.label === label)
        .sort((a, b) => (a.seed ?? 0) - (b.seed ?? 0));
      return own.length > 0 ? [{implementation, label, runs: own}] : [];
    }),
  );
  return {
    key: `setup-${index + 1}`,
    title,
    runs,
    implementations,
    labels,
    series,
    epochs: Math.max(0, ...runs.map((run) => run.config.epochs ?? run.tests.at(-1)?.epoch ?? 0)),
    workers: runs[0].workers,
  };
}

/**
 * The runs that a mean of accuracies is taken over: finished ones; only where there is none, those still
 * going.
 */
export function countedForAccuracy(runs) {
  const tested = runs.filter((run) => run.tests.length > 0);
  const finished = tested.filter((run) => run.status === "finished");
  return finished.length > 0 ? finished : tested.filter((run) => run.status !== "diverged");
}

/**
 * The runs that a mean of times is taken over: those not oversubscribed, where there are any; finished ones
 * first.
 */
export function countedForTime(runs) {
  const timed = notOversubscribed(runs.filter((run) => isNumber(run.batchTime)));
  const finished = timed.filter((run) => run.status === "finished");
  return finished.length > 0 ? finished : timed;
}

/** Those runs that had a core for each thread; all of them where none had. */
export function notOversubscribed(runs) {
  return runs.some((run) => !run.oversubscribed) ? runs.filter((run) => !run.oversubscribed) : runs;
}

/** Which weights to show: "last", or "runavg" where a run has been tested with averaged weights. */
export function testsOf(run, weights = "last") {
  const wanted = run.tests.filter((test) => test.weights === weights);
  return wanted.length > 0 ? wanted : run.tests.filter((test) => test.weights === "last");
}

/**
 * The curves of a setup.
 * @returns {seeds, means, ends}: points {implementation, label, run, seed, epoch, accuracy, bits, time, n};
 *   a mean exists for the epochs that all counted runs have; `ends` are the last points of runs that did not
 *   finish
 */
export function curves(setup, weights = "last") {
  const seeds = [];
  const means = [];
  const ends = [];
  for (const {implementation, label, runs} of setup.series) {
    const counted = countedForAccuracy(runs);
    const byEpoch = new Map();
    for (const run of runs) {
      const points = testsOf(run, weights)
        .filter((test) => isNumber(test.accuracy))
        .map((test) => ({
          ...test,
          implementation,
          label,
          run: run.id,
          seed: run.seed,
          status: run.status,
        }));
      seeds.push(...points);
      if (run.status !== "finished" && points.length > 0) ends.push(points.at(-1));
      if (!counted.includes(run)) continue;
      for (const point of points)
        byEpoch.set(point.epoch, [...(byEpoch.get(point.epoch) ?? []), point]);
    }
    for (const [epoch, points] of [...byEpoch].sort(([a], [b]) => a - b)) {
      if (points.length < counted.length) continue;
      means.push({
        implementation,
        label,
        epoch,
        n: points.length,
        accuracy: mean(points.map((p) => p.accuracy)),
        bits: mean(points.map((p) => p.bits)),
        time: mean(points.map((p) => p.time)),
      });
    }
  }
  return {seeds, means, ends};
}
