// One run folder, as `powersgd-bench train --output DIR` writes it: run.json, metrics.jsonl, batches.jsonl.

import {existsSync, statSync} from "node:fs";
import {basename, join} from "node:path";
import {checkSchema, eachLine, InputError, readJson} from "./files.js";
import {mean, quantiles} from "../model/statistics.js";

/** Quantiles kept of each run's batch times: enough to pool seeds and read off any percentile. */
export const KEPT_QUANTILES = 101;

/** The run in `directory`, or null (and a warning) where it ended before it recorded anything. */
export async function readRunFolder(directory, warn) {
  const path = join(directory, "run.json");
  const record = statSync(path).size > 0 ? readJson(path) : {status: "running"};
  checkSchema(record, path);
  if (record.config === undefined && record.status !== undefined) {
    warn(`${directory}: ended before it recorded anything; left out`);
    return null;
  }
  for (const key of ["implementation", "config"]) {
    if (record[key] === undefined) {
      throw new InputError(
        `${path}: expected the key "${key}", found none; is this a run folder of powersgd-bench?`,
      );
    }
  }
  const tests = await readTests(join(directory, "metrics.jsonl"), record, warn);
  const batches = await readBatches(join(directory, "batches.jsonl"), warn);
  const {config} = record;
  return {
    name: record.name || config.name || basename(directory),
    folder: directory,
    kind: "run folder",
    implementation: record.implementation,
    scheme: record.scheme ?? config.scheme ?? null,
    label: record.label ?? null,
    rank: record.rank ?? null,
    seed: config.seed ?? null,
    workers: config.n_workers ?? null,
    status: record.status ?? "finished",
    message: record.message ?? "",
    reducedSize: record.reduced_size ?? null,
    oversubscribed: record.machine?.oversubscribed ?? false,
    dataset: record.dataset?.name ?? config.dataset ?? null,
    config,
    tests,
    batchTime: record.batch_time ?? null,
    batchesTimed: record.batches_timed ?? null,
    phases: record.phases ?? {},
    batchQuantiles: batches.quantiles,
    bitsPerStep: batches.bitsPerStep ?? perStep(record.totals, "bits"),
    collectivesPerStep: perStep(record.totals, "collectives"),
    bufferBytesPerStep: perStep(
      record.totals?.bytes && {steps: record.totals.steps, ...record.totals.bytes},
      "buffer",
    ),
    totals: record.totals ?? {},
    final: finite(record.final ?? {}),
    counters: record.counters ?? {},
    provenance: provenance(record),
  };
}

// As for the curves: without a finite loss the accuracy means nothing.
const finite = (final) => (final.test_loss === null ? {...final, test_accuracy: null} : final);

function perStep(totals, key) {
  return totals?.steps > 0 && totals[key] !== undefined ? totals[key] / totals.steps : null;
}

// After a resumption an epoch can be there twice; the later line is the one that training went on from. Where
// the loss is not finite (null), the accuracy that such weights happen to give means nothing: the curve ends
// before.
async function readTests(path, record, warn) {
  const found = new Map();
  const there = await eachLine(path, warn, (line) => {
    if (line.split !== "test" || line.loss === null) return;
    const {epoch, step, accuracy, loss, top5, bits, time} = line;
    const weights = line.weights ?? "last";
    found.set(`${weights} ${epoch}`, {epoch, step, accuracy, loss, top5, bits, time, weights});
  });
  if (!there && record.status !== "failed") warn(`${path}: not there, so this run has no curve`);
  return [...found.values()].sort((a, b) => a.epoch - b.epoch);
}

async function readBatches(path, warn) {
  const seconds = new Map();
  const bits = [];
  await eachLine(path, warn, (line) => {
    if (line.bits !== undefined) bits.push([line.step, line.bits]);
    const measured = line.microseconds?.batch;
    if (line.timed !== false && measured) seconds.set(line.step, mean([].concat(measured)) / 1e6);
  });
  return {
    quantiles: seconds.size > 0 ? quantiles([...seconds.values()], KEPT_QUANTILES) : null,
    bitsPerStep: steadyBits(bits),
  };
}

// The median step: PyTorch DDP's first steps go uncompressed and would distort the mean of a short run.
function steadyBits(bits) {
  const steps = new Map(bits);
  const differences = [];
  for (const [step, sent] of steps) {
    if (steps.has(step - 1)) differences.push(sent - steps.get(step - 1));
  }
  if (differences.length < 3) return null;
  return differences.sort((a, b) => a - b)[differences.length >> 1];
}

function provenance(record) {
  const {workers, ...machine} = record.machine ?? {};
  return {
    status: record.status,
    message: record.message || undefined,
    command_line: record.command_line && [].concat(record.command_line).join(" "),
    started: record.started,
    ended: record.ended,
    build: record.build,
    machine: {...machine, workers: workers && describeWorkers(workers)},
    dataset: record.dataset,
    model: record.model,
    counters: record.counters,
  };
}

function describeWorkers(workers) {
  const kinds = new Map();
  for (const {host, device, threads} of workers) {
    const kind = `${host}: ${device ?? "cpu"}, ${threads} ${threads === 1 ? "thread" : "threads"}`;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  return [...kinds].map(([kind, count]) => `${count} on ${kind} each`).join("; ");
}

/** Whether `directory` is a run folder. */
export function isRunFolder(directory) {
  return existsSync(join(directory, "run.json"));
}
