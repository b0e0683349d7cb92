// The notebook's own selections find every run in an export, and notice what is wrong with a bad one.

import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {join} from "node:path";
import test from "node:test";
import {EXPERIMENTS, makeExport} from "./fixtures/make.mjs";
import {fixture, temporaryFolder} from "./helpers.mjs";
import {problems, selectCurve, selectSettings, selectTimes} from "./notebook_selection.mjs";
import {readRuns} from "../../scripts/report/src/read/read.js";

async function exported(t) {
  const {made} = await fixture(t, {odd: false});
  const directory = temporaryFolder(t);
  makeExport(directory, made);
  const read = (file) => JSON.parse(readFileSync(join(directory, file), "utf8"));
  return {made, directory, timings: read("timingResults.json"), results: read("results.json")};
}

test("the notebook's filters find every run, epoch and time", async (t) => {
  const {timings, results} = await exported(t);
  assert.deepEqual(problems(timings, results), []);
  for (const {implementation, label} of EXPERIMENTS) {
    const rank =
      label === "full precision" ? 0 : label === "FP16" ? "FP16" : Number(label.slice(5));
    assert.equal(
      selectTimes(timings, implementation, rank, 16).length,
      2,
      `${implementation} ${label}`,
    );
    const curve = selectCurve(results, implementation, rank, 16);
    assert.equal(curve.length, 2 * 12, `${implementation} ${label}`);
    assert.deepEqual([...new Set(curve.map((entry) => entry.config.seed))], [1, 2]);
  }
  assert.deepEqual([...selectSettings(results).n_workers], ["16"]);
});

test("a missing job, a wrong rank and inexact bits are noticed", async (t) => {
  const {timings, results} = await exported(t);
  const id = "paper-rank-2-seed1";
  delete results.jobs[id];
  timings[0].rank = "fp16";
  results.data.find(
    (entry) =>
      entry.jobId === "ddp-rank-1-seed1" &&
      entry.measurement === "last_accuracy" &&
      entry.split === "test",
  ).bits += 0.5;
  const found = problems(timings, results).join("\n");
  assert.match(found, /paper-rank-2-seed1: in configs, not in jobs/);
  assert.match(found, /paper-rank-2-seed1: no filter/);
  assert.match(found, /ddp-rank-1-seed1: bits .* no exact integer/);
  assert.match(found, /17 of 18 times/);
});

test("the report reads the same accuracies, bits and times from an export as from run folders", async (t) => {
  const {made, directory} = await exported(t);
  const runs = await readRuns([directory]);
  assert.equal(runs.length, made.length);
  for (const {run, metrics} of made) {
    const read = runs.find((each) => each.name === run.name);
    assert.equal(read.label, run.label);
    assert.equal(read.batchTime, run.batch_time);
    assert.equal(read.final.test_accuracy, run.final.test_accuracy);
    assert.equal(read.totals.bits, run.totals.bits);
    const lines = metrics.filter((line) => line.split === "test" && line.weights === "last");
    assert.deepEqual(
      read.tests
        .filter((each) => each.weights === "last")
        .map(({epoch, accuracy, bits, time}) => [epoch, accuracy, bits, time]),
      lines.map(({epoch, accuracy, bits, time}) => [epoch, accuracy, bits, time]),
    );
  }
});
