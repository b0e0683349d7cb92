// What a reader must know about a run before believing its numbers. Shown with every figure, never hidden.

import {distinct} from "./statistics.js";

/** The notebook's setup. A run that differs in one of these is of reduced (or another) size. */
const NOTEBOOK = {
  n_workers: 16,
  model: "resnet18",
  base_width: 64,
  epochs: 300,
  batch_size: 128,
  train_images: 0,
  test_images: 0,
  batches_per_epoch: 0,
};

const SHORT = {
  n_workers: (n) => `${n} ${n === 1 ? "worker" : "workers"}`,
  model: (name) => `model ${name}`,
  base_width: (width) => `base width ${width}`,
  epochs: (n) => `${n} ${n === 1 ? "epoch" : "epochs"}`,
  batch_size: (n) => `batch ${n}`,
  train_images: (n) => `${n.toLocaleString("en")} training images`,
  test_images: (n) => `${n.toLocaleString("en")} test images`,
  batches_per_epoch: (n) => `${n} batches an epoch`,
};

const DATASETS = {
  cifar10: "CIFAR‑10",
  "cifar10-jpeg": "CIFAR‑10 from JPEG copies",
  "fashion-mnist": "Fashion-MNIST",
  synthetic: "synthetic images",
};

const describe = (key, value) => SHORT[key]?.(value) ?? `${key} ${value}`;

/** The data set's name for people. */
export const datasetName = (name) => DATASETS[name] ?? name;

/** The last epoch that was tested. */
export const lastEpoch = (run) =>
  run.tests.filter((test) => test.weights === "last").at(-1)?.epoch ?? 0;

/**
 * A run's marks: [{kind, text}], kind one of "reduced", "dataset", "oversubscribed", "diverged",
 * "unfinished", "failed".
 */
export function marksOf(run) {
  const marks = [];
  const smaller = Object.keys(NOTEBOOK).filter(
    (key) => run.config[key] !== undefined && run.config[key] !== NOTEBOOK[key],
  );
  const reduced = run.reducedSize ?? smaller.length > 0;
  if (reduced) {
    const what = smaller.map((key) => describe(key, run.config[key])).join(", ");
    marks.push({kind: "reduced", text: `reduced size${what ? `: ${what}` : ""}`});
  }
  if (run.dataset && run.dataset !== "cifar10") {
    marks.push({kind: "dataset", text: `other data set: ${datasetName(run.dataset)}`});
  }
  if (run.oversubscribed)
    marks.push({kind: "oversubscribed", text: "oversubscribed: more threads than cores"});
  const mark = statusMark(run);
  if (mark) marks.push(mark);
  return marks;
}

function statusMark(run) {
  const reached = lastEpoch(run);
  const of = run.config.epochs ? ` of ${run.config.epochs}` : "";
  if (run.status === "diverged")
    return {kind: "diverged", text: `diverged in epoch ${reached + 1}${of}`};
  if (run.status === "failed") return {kind: "failed", text: `failed after epoch ${reached}${of}`};
  if (run.status !== "finished")
    return {kind: "unfinished", text: `unfinished: epoch ${reached}${of}`};
  return null;
}

/** How a single run is called in a note: "Paper, rank 2, seed 1". */
export function runTitle(run) {
  const seed = run.seed === null ? run.id : `seed ${run.seed}`;
  return `${run.implementation}, ${run.label}, ${seed}`;
}

const NAMED_RUNS = 3;

/** Sentences about a set of runs, [{kind, text}]; what does not hold for all of them names the runs. */
export function notesOf(runs) {
  const having = new Map();
  for (const run of runs) {
    for (const {kind, text} of marksOf(run)) {
      if (!having.has(text)) having.set(text, {kind, text, runs: []});
      having.get(text).runs.push(run);
    }
  }
  return [...having.values()]
    .sort((a, b) => b.runs.length - a.runs.length)
    .map(({kind, text, runs: own}) => {
      const names = own.slice(0, NAMED_RUNS).map(runTitle).join("; ");
      const more = own.length > NAMED_RUNS ? ` and ${own.length - NAMED_RUNS} more` : "";
      return {kind, text: capital(text) + (own.length === runs.length ? "" : ` (${names}${more})`)};
    });
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);
