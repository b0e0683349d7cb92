// The notebook's files, timingResults.json and results.json, by `powersgd-bench export` or from elsewhere.

import {existsSync} from "node:fs";
import {join} from "node:path";
import {checkSchema, InputError, readJson} from "./files.js";

/** Whether `directory` holds at least one of the notebook's files. */
export function isExport(directory) {
  return ["results.json", "timingResults.json"].some((file) => existsSync(join(directory, file)));
}

/** The runs in an export, in the form of readRunFolder; what the files do not tell is null or empty. */
export function readExport(directory, warn) {
  const resultsPath = join(directory, "results.json");
  const timingPath = join(directory, "timingResults.json");
  const results = existsSync(resultsPath)
    ? readJson(resultsPath)
    : {data: [], jobs: {}, configs: {}};
  const timings = existsSync(timingPath) ? readJson(timingPath) : [];
  checkSchema(results, resultsPath);
  if (!Array.isArray(results.data) || typeof results.configs !== "object") {
    throw new InputError(
      `${resultsPath}: expected {"data": [...], "jobs": {...}, "configs": {...}}; write it again ` +
        "with `powersgd-bench export`",
    );
  }
  if (!Array.isArray(timings))
    throw new InputError(`${timingPath}: expected an array of one object a run`);
  const runs = readResults(results, directory);
  addTimings(runs, timings, timingPath, directory, warn);
  return runs;
}

function readResults({data, jobs = {}, configs}, directory) {
  const entries = new Map(Object.keys(configs).map((id) => [id, []]));
  for (const entry of data) {
    if (!entries.has(entry.jobId)) entries.set(entry.jobId, []);
    entries.get(entry.jobId).push(entry);
  }
  return [...entries].map(([id, own]) =>
    exportedRun(id, own, jobs[id] ?? {}, configs[id] ?? {}, directory),
  );
}

function exportedRun(id, entries, job, config, directory) {
  const tests = readTests(entries);
  const last = tests.filter((test) => test.weights === "last").at(-1);
  const rank = config.fp16_compression ? "FP16" : config.optimizer_reducer_rank || 0;
  return {
    ...emptyRun(directory),
    name: id,
    implementation:
      entries[0]?.implementation ?? config.implementation ?? job.implementation ?? "unknown",
    scheme: config.scheme ?? null,
    label: config.label ?? job.label ?? null,
    rank: job.rank ?? rank,
    seed: config.seed ?? null,
    workers: config.n_workers ?? null,
    status: job.status ?? "finished",
    message: job.message ?? "",
    reducedSize: job.reduced_size ?? null,
    oversubscribed: job.machine?.oversubscribed ?? job.oversubscribed ?? false,
    dataset: job.dataset?.name ?? config.dataset ?? null,
    config,
    tests,
    batchTime: job.batch_time ?? null,
    batchesTimed: job.batches_timed ?? null,
    phases: job.phases ?? {},
    totals: job.totals ?? (last ? {bits: last.bits} : {}),
    final:
      job.final ??
      (last ? {epoch: last.epoch, test_accuracy: last.accuracy, test_loss: last.loss} : {}),
    provenance: job,
  };
}

function readTests(entries) {
  const fields = {accuracy: "accuracy", cross_entropy: "loss", top5_accuracy: "top5"};
  const found = new Map();
  for (const {measurement = "last_accuracy", split = "test", epoch, bits, time, value} of entries) {
    const [, weights, kind] = /^([a-z]+)_(.*)$/.exec(measurement) ?? [];
    if (split !== "test" || !fields[kind]) continue;
    const key = `${weights} ${epoch}`;
    if (!found.has(key)) found.set(key, {epoch, bits, time, weights});
    found.get(key)[fields[kind]] = value;
  }
  return [...found.values()].sort((a, b) => a.epoch - b.epoch);
}

// timingResults.json names no run and holds only those that are over. Where a kind of run occurs equally
// often in both files, they are matched in order; else the times stand as runs of their own, so that none is
// lost or given to the wrong run.
function addTimings(runs, timings, path, directory, warn) {
  const kind = (of) =>
    JSON.stringify([of.implementation, of.rank, of.workers ?? of.n_workers ?? null]);
  for (const wanted of new Set(timings.map(kind))) {
    const matching = runs.filter(
      (run) => kind(run) === wanted && ["finished", "diverged"].includes(run.status),
    );
    const times = timings.filter((timing) => kind(timing) === wanted);
    if (matching.length === times.length) {
      matching.forEach((run, i) => (run.batchTime ??= times[i].batchTime));
      continue;
    }
    if (matching.length > 0) {
      warn(
        `${path}: ${times.length} times for ${matching.length} runs of ${wanted}; the times are shown on their own`,
      );
    }
    times.forEach((timing, i) => runs.push(timingOnly(timing, i, directory)));
  }
}

function timingOnly(timing, index, directory) {
  return {
    ...emptyRun(directory),
    name: `${timing.implementation}, ${timing.rank}, time ${index + 1}`,
    implementation: timing.implementation,
    rank: timing.rank,
    workers: timing.n_workers ?? null,
    config: timing.n_workers === undefined ? {} : {n_workers: timing.n_workers},
    batchTime: timing.batchTime,
  };
}

function emptyRun(directory) {
  return {
    name: "",
    folder: directory,
    kind: "export",
    implementation: "",
    scheme: null,
    label: null,
    rank: null,
    seed: null,
    workers: null,
    status: "finished",
    message: "",
    reducedSize: null,
    oversubscribed: false,
    dataset: null,
    config: {},
    tests: [],
    batchTime: null,
    batchesTimed: null,
    phases: {},
    batchQuantiles: null,
    bitsPerStep: null,
    collectivesPerStep: null,
    bufferBytesPerStep: null,
    totals: {},
    final: {},
    counters: {},
    provenance: {},
  };
}
