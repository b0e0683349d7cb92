// Selects from timingResults.json and results.json as the notebook does, and says what it could not find.
// On an export: node notebook_selection.mjs DIR (exit status 1 when something is missing).

import {readFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const RANKS = [0, "FP16", 1, 2, 4];

/** The mean time per batch, as in the notebook's table: filtered by implementation, rank and n_workers. */
export function selectTimes(timings, implementation, rank, workers) {
  return timings
    .filter(
      (run) =>
        run.implementation === implementation && run.rank === rank && run.n_workers === workers,
    )
    .map((run) => run.batchTime);
}

/** The entries of a curve, each joined with its job and config by jobId, filtered by the config's keys. */
export function selectCurve({data, jobs, configs}, implementation, rank, workers) {
  return data
    .map((entry) => ({...entry, job: jobs[entry.jobId], config: configs[entry.jobId]}))
    .filter((entry) => entry.job !== undefined && entry.config !== undefined)
    .filter((entry) => entry.measurement === "last_accuracy" && entry.split === "test")
    .filter(
      (entry) => entry.implementation === implementation && entry.config.n_workers === workers,
    )
    .filter(({config}) =>
      rank === "FP16"
        ? config.fp16_compression === true
        : !config.fp16_compression && (config.optimizer_reducer_rank || 0) === rank,
    );
}

/** Every setting with its values over all configs. */
export function selectSettings({configs}) {
  const settings = {};
  for (const config of Object.values(configs)) {
    for (const [key, value] of Object.entries(config))
      (settings[key] ??= new Set()).add(JSON.stringify(value));
  }
  return settings;
}

/** Sentences about everything that the notebook would miss or misread; none where all is well. */
export function problems(timings, results) {
  const found = [];
  const {data, jobs, configs} = results;
  const workers = [...new Set(Object.values(configs).map((config) => config.n_workers))];
  const implementations = [...new Set(data.map((entry) => entry.implementation))];
  const curves = new Set();
  let times = 0;
  for (const implementation of implementations)
    for (const rank of RANKS)
      for (const n of workers) {
        for (const entry of selectCurve(results, implementation, rank, n)) {
          curves.add(entry.jobId);
          if (!(Number.isInteger(entry.epoch) && entry.epoch >= 1))
            found.push(`${entry.jobId}: epoch ${entry.epoch} is no number from 1`);
          if (!Number.isSafeInteger(entry.bits))
            found.push(`${entry.jobId}: bits ${entry.bits} is no exact integer`);
          if (!(entry.value >= 0 && entry.value <= 1))
            found.push(`${entry.jobId}: accuracy ${entry.value} is not from 0 to 1`);
          if (typeof entry.time !== "number")
            found.push(`${entry.jobId}: time ${entry.time} is no number`);
        }
        const selected = selectTimes(timings, implementation, rank, n);
        times += selected.length;
        if (!selected.every((time) => time > 0))
          found.push(`${implementation}, ${rank}: a batchTime is not above 0`);
      }
  for (const id of Object.keys(configs)) {
    if (!(id in jobs)) found.push(`${id}: in configs, not in jobs`);
    if (!("seed" in configs[id])) found.push(`${id}: no seed in its config`);
    if (!curves.has(id)) found.push(`${id}: no filter of the notebook finds its curve`);
  }
  if (times !== timings.length)
    found.push(`the notebook's filters find ${times} of ${timings.length} times`);
  return [...new Set(found)];
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const read = (file) => JSON.parse(readFileSync(join(process.argv[2], file), "utf8"));
  const found = problems(read("timingResults.json"), read("results.json"));
  for (const sentence of found) console.error(sentence);
  if (found.length === 0) console.log("the notebook's filters find every run");
  process.exitCode = found.length > 0 ? 1 : 0;
}
