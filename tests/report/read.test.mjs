// Reading: stored run folders and exports, damage, versions, the same run twice.

import assert from "node:assert/strict";
import {appendFileSync, cpSync, readFileSync, renameSync, rmSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import test from "node:test";
import {fileURLToPath} from "node:url";
import {temporaryFolder} from "./helpers.mjs";
import {readRuns} from "../../scripts/report/src/read/read.js";

const STORED = fileURLToPath(new URL("fixtures/stored/runs", import.meta.url));
const EXPORTED = fileURLToPath(new URL("fixtures/stored/export", import.meta.url));

function copy(t) {
  const directory = temporaryFolder(t);
  cpSync(STORED, directory, {recursive: true});
  return {directory, file: (name) => join(directory, "ddp-rank-2-seed1", name)};
}

function edit(path, change) {
  const value = JSON.parse(readFileSync(path, "utf8"));
  change(value);
  writeFileSync(path, JSON.stringify(value));
}

test("the stored runs read as they were written", async () => {
  const runs = await readRuns([STORED]);
  assert.deepEqual(
    runs.map((run) => [run.id, run.implementation, run.label, run.seed]),
    [
      ["ddp-rank-2-seed1", "PyTorch DDP", "rank 2", 1],
      ["ddp-rank-2-seed2", "PyTorch DDP", "rank 2", 2],
      ["paper-full-precision-seed1", "Paper", "full precision", 1],
    ],
  );
  const [ddp, , paper] = runs;
  assert.deepEqual(
    ddp.tests.map(({epoch, accuracy, weights}) => [epoch, accuracy, weights]),
    STORED_ACCURACIES.map((accuracy, i) => [i + 1, accuracy, "last"]),
  );
  assert.deepEqual(
    ddp.tests.map((each) => each.bits),
    [717765888, 725662848, 733559808],
  );
  assert.equal(
    ddp.bitsPerStep,
    2632320,
    "the steady step, not the mean with two uncompressed ones",
  );
  assert.equal(paper.bitsPerStep, 357566784);
  assert.deepEqual([...new Set(paper.tests.map((each) => each.weights))], ["last", "runavg"]);
});

test("the spread over batches leaves out what was not timed and takes the mean over workers", async () => {
  const [run] = await readRuns([join(STORED, "ddp-rank-2-seed1")]);
  const lines = readFileSync(join(STORED, "ddp-rank-2-seed1/batches.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map(JSON.parse);
  const means = lines
    .filter((line) => line.timed)
    .map(({microseconds: {batch}}) => batch.reduce((a, b) => a + b) / batch.length / 1e6);
  assert.equal(means.length, lines.length - 1);
  assert.equal(run.batchQuantiles[0], Math.min(...means));
  assert.equal(run.batchQuantiles.at(-1), Math.max(...means));
});

test("a torn last line is skipped with a warning", async (t) => {
  const {directory, file} = copy(t);
  appendFileSync(file("metrics.jsonl"), '{"epoch":4,"split":"te');
  const warnings = [];
  const [run] = await readRuns([directory], (sentence) => warnings.push(sentence));
  assert.equal(run.tests.length, 3);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /metrics\.jsonl:7: the last line is cut short/);
});

test("damage in the middle is refused, with file and line", async (t) => {
  const {directory, file} = copy(t);
  appendFileSync(file("metrics.jsonl"), '{"epoch":4,"split":"te\n{"epoch":5}\n');
  await assert.rejects(readRuns([directory]), /metrics\.jsonl:7: expected one JSON object a line/);
});

test("a newer layout is refused", async (t) => {
  const {directory, file} = copy(t);
  edit(file("run.json"), (run) => (run.schema_version = 2));
  await assert.rejects(readRuns([directory]), /run\.json: schema_version 2 is newer than 1/);
});

test("an epoch that was repeated after a resumption counts once, the later line", async (t) => {
  const {directory, file} = copy(t);
  appendFileSync(
    file("metrics.jsonl"),
    `${JSON.stringify({epoch: 3, split: "test", weights: "last", accuracy: 0.5, bits: 1, time: 2})}\n`,
  );
  const [run] = await readRuns([directory]);
  assert.deepEqual(
    run.tests.map((each) => each.epoch),
    [1, 2, 3],
  );
  assert.equal(run.tests[2].accuracy, 0.5);
});

test("what a run left that died at once or was set aside is left out, with a warning", async (t) => {
  const {directory, file} = copy(t);
  renameSync(join(directory, "ddp-rank-2-seed2"), join(directory, "ddp-rank-2-seed2.failed-1"));
  writeFileSync(file("run.json"), '{"schema_version":1,"status":"running"}\n');
  writeFileSync(join(directory, "paper-full-precision-seed1", "run.json"), "");
  const warnings = [];
  await assert.rejects(
    readRuns([directory], (sentence) => warnings.push(sentence)),
    /every run there ended before/,
  );
  assert.equal(warnings.length, 3);
  assert.match(warnings.join("\n"), /failed-1: set aside by a sweep; left out\n/);
});

test("a test whose loss was not finite is no point of a curve", async (t) => {
  const {directory, file} = copy(t);
  appendFileSync(
    file("metrics.jsonl"),
    `${JSON.stringify({epoch: 4, split: "test", weights: "last", accuracy: 0.1, loss: null})}\n`,
  );
  const [run] = await readRuns([directory]);
  assert.deepEqual(
    run.tests.map((each) => each.epoch),
    [1, 2, 3],
  );
});

test("a run without curves and batches is read; a missing curve is said", async (t) => {
  const {directory, file} = copy(t);
  rmSync(file("metrics.jsonl"));
  rmSync(file("batches.jsonl"));
  const warnings = [];
  const [run] = await readRuns([directory], (sentence) => warnings.push(sentence));
  assert.deepEqual(run.tests, []);
  assert.equal(run.batchQuantiles, null);
  assert.match(warnings.join(), /metrics\.jsonl: not there/);
});

test("the same folder named twice is read once; equal names get numbers", async (t) => {
  const {directory} = copy(t);
  const runs = await readRuns([
    STORED,
    join(STORED, "ddp-rank-2-seed1"),
    join(directory, "ddp-rank-2-seed1"),
  ]);
  assert.deepEqual(
    runs.map((run) => run.id),
    ["ddp-rank-2-seed1", "ddp-rank-2-seed2", "paper-full-precision-seed1", "ddp-rank-2-seed1 (2)"],
  );
});

test("what holds no run is refused with what was expected", async (t) => {
  await assert.rejects(readRuns([temporaryFolder(t)]), /found no run; expected run\.json/);
  await assert.rejects(readRuns(["/nowhere/at/all"]), /no such file or folder/);
});

test("an export is read from its folder or one of its files", async () => {
  for (const path of [EXPORTED, join(EXPORTED, "results.json")]) {
    const runs = await readRuns([path]);
    assert.deepEqual(
      runs.map((run) => run.label),
      ["rank 2", "rank 2", "full precision"],
    );
    assert.ok(runs.every((run) => run.batchTime > 0 && run.workers === 2 && run.kind === "export"));
  }
});

test("times that cannot be told apart stand on their own", async (t) => {
  const directory = temporaryFolder(t);
  cpSync(EXPORTED, directory, {recursive: true});
  edit(join(directory, "timingResults.json"), (timings) => timings.pop() && timings.pop());
  const warnings = [];
  const runs = await readRuns([directory], (sentence) => warnings.push(sentence));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0], /1 times for 2 runs/);
  assert.equal(runs.length, 4);
  assert.equal(runs.filter((run) => run.batchTime !== null).length, 1);
});

test("results from elsewhere: no label, no scheme, no seed, rank absent for none", async (t) => {
  const directory = temporaryFolder(t);
  const entry = (jobId, epoch) => ({
    jobId,
    measurement: "last_accuracy",
    split: "test",
    implementation: "Paper",
    epoch,
    bits: 10 * epoch,
    value: 0.5,
    time: epoch,
  });
  writeFileSync(
    join(directory, "results.json"),
    JSON.stringify({
      data: [entry("a", 1), entry("b", 1), entry("b", 2)],
      jobs: {},
      configs: {
        a: {n_workers: 16},
        b: {n_workers: 16, optimizer_reducer_rank: 2, fp16_compression: false},
      },
    }),
  );
  const runs = await readRuns([directory]);
  assert.deepEqual(
    runs.map((run) => [run.label, run.tests.length, run.seed]),
    [
      ["full precision", 1, null],
      ["rank 2", 2, null],
    ],
  );
});

const STORED_ACCURACIES = JSON.parse(readFileSync(join(EXPORTED, "results.json"), "utf8"))
  .data.filter(
    (entry) =>
      entry.jobId === "ddp-rank-2-seed1" &&
      entry.split === "test" &&
      entry.measurement === "last_accuracy",
  )
  .map((entry) => entry.value);
