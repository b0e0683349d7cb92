// The figures' data: what is averaged, what is marked, what is modelled.

import assert from "node:assert/strict";
import test from "node:test";
import {EXPERIMENTS} from "./fixtures/make.mjs";
import {fixture} from "./helpers.mjs";
import {batchTimes, partsOf} from "../../scripts/report/src/model/batch_time.js";
import {costInputs, modelledBatch, ringSeconds} from "../../scripts/report/src/model/cost.js";
import {marksOf, notesOf} from "../../scripts/report/src/model/marks.js";
import {compareLabels} from "../../scripts/report/src/model/schemes.js";
import {countedForTime, curves, groupBySetup} from "../../scripts/report/src/model/setups.js";
import {
  batchTimeTable,
  runTable,
  summaryTable,
  valueTable,
} from "../../scripts/report/src/model/tables.js";
import {parseThresholds, timesToAccuracy} from "../../scripts/report/src/model/time_to_accuracy.js";
import {integer, milliseconds, percent, si} from "../../scripts/report/src/model/format.js";
import {linearEnd, lateWindow} from "../../scripts/report/src/figures/curves.js";

const close = (a, b, what) =>
  assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(b)), `${what ?? ""} ${a} against ${b}`);
const row = (rows, implementation, label) =>
  rows.find((each) => each.implementation === implementation && each.label === label);

test("the grid becomes nine series in the notebook's order", async (t) => {
  const {setups} = await fixture(t);
  assert.equal(setups.length, 1);
  assert.deepEqual(
    setups[0].series.map(({implementation, label}) => ({implementation, label})),
    EXPERIMENTS,
  );
  assert.deepEqual(["top-k", "rank 16", "rank 2", "FP16", "full precision"].sort(compareLabels), [
    "full precision",
    "FP16",
    "rank 2",
    "rank 16",
    "top-k",
  ]);
});

test("a mean is over finished seeds; a diverged or unfinished run is drawn, marked and not averaged", async (t) => {
  const {
    made,
    setups: [setup],
  } = await fixture(t);
  const {seeds, means, ends} = curves(setup);
  const at = (list, implementation, label, epoch) =>
    list.filter(
      (p) => p.implementation === implementation && p.label === label && p.epoch === epoch,
    );
  const accuracy = (name, epoch) =>
    made
      .find(({run}) => run.name === name)
      .metrics.find(
        (line) => line.split === "test" && line.weights === "last" && line.epoch === epoch,
      ).accuracy;
  close(
    at(means, "Paper", "rank 2", 5)[0].accuracy,
    (accuracy("paper-rank-2-seed1", 5) + accuracy("paper-rank-2-seed2", 5)) / 2,
  );
  close(
    at(means, "Paper", "rank 1", 5)[0].accuracy,
    accuracy("paper-rank-1-seed1", 5),
    "diverged seed left out",
  );
  assert.equal(at(seeds, "Paper", "rank 1", 5).length, 2, "but still there as a line");
  assert.equal(
    at(means, "PyTorch DDP", "rank 4", 12)[0].n,
    1,
    "the mean goes on where a seed is unfinished",
  );
  assert.deepEqual(
    ends.map((p) => [p.run, p.status, p.epoch]),
    [
      ["ddp-rank-4-seed2", "interrupted", 8],
      ["paper-rank-1-seed2", "diverged", 5],
    ],
  );
});

test("marks: reduced size, other data, oversubscribed, diverged, unfinished", async (t) => {
  const {runs} = await fixture(t, {width: 16, workers: 4, dataset: "synthetic"});
  const kinds = (name) => marksOf(runs.find((run) => run.name === name)).map((mark) => mark.kind);
  assert.deepEqual(kinds("ddp-fp16-seed1"), ["reduced", "dataset"]);
  assert.deepEqual(kinds("paper-rank-4-seed2"), ["reduced", "dataset", "oversubscribed"]);
  assert.deepEqual(kinds("paper-rank-1-seed2"), ["reduced", "dataset", "diverged"]);
  assert.deepEqual(kinds("ddp-rank-4-seed2"), ["reduced", "dataset", "unfinished"]);
  const notes = notesOf(runs).map((note) => note.text);
  assert.equal(notes[0], "Reduced size: 4 workers, base width 16, 12 epochs, 5 batches an epoch");
  assert.ok(notes.includes("Unfinished: epoch 8 of 12 (PyTorch DDP, rank 4, seed 2)"));
});

test("the notebook's setup has no marks", async (t) => {
  const {runs} = await fixture(t, {
    epochs: 300,
    batches: 24,
    recorded: 1,
    seeds: 1,
    odd: false,
    experiments: EXPERIMENTS.slice(-1),
  });
  assert.deepEqual(notesOf(runs), []);
  const [setup] = groupBySetup(runs);
  const {start, low, high} = lateWindow(setup);
  assert.deepEqual([start, low, high], [130, 0.92, 0.95]);
});

test("runs of different setups are never averaged together", async (t) => {
  const first = await fixture(t, {seeds: 1, odd: false});
  const second = await fixture(t, {
    seeds: 1,
    odd: false,
    workers: 4,
    experiments: EXPERIMENTS.slice(0, 2),
  });
  const setups = groupBySetup([...first.runs, ...second.runs]);
  assert.deepEqual(
    setups.map((setup) => [setup.title, setup.runs.length]),
    [
      ["n_workers 16", 9],
      ["n_workers 4", 2],
    ],
  );
});

test("Paper: the parts add up to the batch; PyTorch DDP: the hook's time stands beside it", async (t) => {
  const {
    setups: [setup],
    runs,
  } = await fixture(t, {odd: false});
  const rows = batchTimes(setup);
  for (const each of rows) {
    close(each.segments.at(-1).x2, each.batchTime, `${each.implementation} ${each.label}`);
    assert.ok(each.p5 < each.batchTime && each.batchTime < each.p95);
    assert.equal(each.beside.length > 0, each.implementation === "PyTorch DDP");
  }
  const run = runs.find((each) => each.name === "ddp-full-precision-seed1");
  const parts = partsOf(run);
  close(parts.backward + parts.wait, run.phases.backward.mean);
  const ddp = row(rows, "PyTorch DDP", "rank 2");
  close(
    ddp.busy,
    ddp.parts.encode + ddp.parts.orthogonalise + ddp.parts.collectives + ddp.parts.decode,
  );
  close(
    ddp.beside.at(-1).x2,
    ddp.parts.buffers + ddp.parts.forward + ddp.parts.backward + ddp.parts.wait,
    "ends where waiting ends",
  );
});

test("an oversubscribed run is left out of the mean time unless all are", async (t) => {
  const {
    setups: [setup],
  } = await fixture(t);
  const {runs} = row(setup.series, "Paper", "rank 4");
  assert.deepEqual(
    countedForTime(runs).map((run) => run.name),
    ["paper-rank-4-seed1"],
  );
  assert.equal(countedForTime(runs.filter((run) => run.oversubscribed)).length, 1);
});

test("time to accuracy is the first test that reaches it; missing where not all runs do", async (t) => {
  const {
    made,
    setups: [setup],
  } = await fixture(t, {odd: false});
  const first = (name, threshold) =>
    made
      .find(({run}) => run.name === name)
      .metrics.find(
        (line) => line.split === "test" && line.weights === "last" && line.accuracy >= threshold,
      ).time;
  const rows = timesToAccuracy(setup, [0.8, 0.99]);
  const [reached, never] = rows.filter(
    (each) => each.implementation === "Paper" && each.label === "rank 2",
  );
  close(reached.time, (first("paper-rank-2-seed1", 0.8) + first("paper-rank-2-seed2", 0.8)) / 2);
  assert.deepEqual([never.time, never.reached, never.of], [null, 0, 2]);
  assert.deepEqual(parseThresholds("90; 85 92,5 x 0 101"), [0.05, 0.85, 0.9, 0.92]);
});

test("the ring model, by hand", () => {
  // 16 workers, 44,695,848 bytes at 10 Gbit/s: 2 * 15/16 * 44695848 / 1.25e9; one collective of 30 messages
  // of 50 µs.
  close(
    ringSeconds(44695848, 1, {workers: 16, gigabits: 10, microseconds: 50}),
    (1.875 * 44695848) / 1.25e9 + 30 * 50e-6,
  );
  assert.equal(ringSeconds(1e6, 3, {workers: 1, gigabits: 10, microseconds: 50}), 0);
});

test("the modelled batch: compute is what was measured; overlap hides at most the backward pass", async (t) => {
  const {
    setups: [setup],
  } = await fixture(t, {odd: false});
  const network = {workers: 16, gigabits: 10, microseconds: 50};
  const inputs = costInputs(setup);
  assert.equal(inputs.length, 9);
  const paper = row(inputs, "Paper", "rank 2");
  assert.deepEqual([paper.bytes, paper.collectives], [329040, 3]);
  const {parts} = row(batchTimes(setup), "Paper", "rank 2");
  const compute =
    parts.forward +
    parts.backward +
    parts.encode +
    parts.orthogonalise +
    parts.decode +
    parts.step +
    parts.running_average;
  close(modelledBatch(paper, network, "full").compute, compute);
  close(
    modelledBatch(paper, network, "full").total,
    modelledBatch(paper, network, "none").total,
    "Paper never overlaps",
  );
  const ddp = row(inputs, "PyTorch DDP", "full precision");
  const none = modelledBatch(ddp, network, "none");
  const full = modelledBatch(ddp, network, "full");
  assert.ok(full.total < none.total && full.total >= ddp.forward + ddp.backward + ddp.step);
  const slow = {...network, gigabits: 0.1};
  close(
    modelledBatch(ddp, slow, "full").total,
    ddp.forward + ddp.compression + modelledBatch(ddp, slow, "full").collectives + ddp.step,
  );
});

test("bits: as in the notebook's table, exact, and the linear axis ends at 2e11 for its runs", async (t) => {
  const {
    setups: [setup],
    runs,
    made,
  } = await fixture(t, {odd: false});
  const summary = summaryTable(setup).rows;
  assert.deepEqual(
    summary.filter((each) => each.implementation === "Paper").map((each) => [each.bits, each.less]),
    [
      ["44.7 MB", "1.00×"],
      ["184 kB", "243.3×"],
      ["329 kB", "135.8×"],
      ["620 kB", "72.1×"],
    ],
  );
  for (const [i, each] of runTable(runs).rows.entries()) {
    const {run} = made.find(({run: {name}}) => name === runs[i].name);
    assert.equal(each.bits, run.totals.bits.toLocaleString("en"));
    assert.equal(each.accuracy, `${(run.final.test_accuracy * 100).toFixed(2)}%`);
    assert.equal(each.time, (run.batch_time * 1e3).toFixed(1));
  }
  const whole = {
    epochs: 300,
    series: [
      {
        implementation: "Paper",
        label: "full precision",
        runs: [
          {
            id: "a",
            status: "finished",
            tests: [{epoch: 300, accuracy: 0.9, bits: 2574480844800, time: 1, weights: "last"}],
          },
        ],
      },
    ],
  };
  assert.equal(linearEnd(whole), 2e11);
});

test("tables list every part and every key", async (t) => {
  const {
    setups: [setup],
    runs,
  } = await fixture(t);
  const titles = batchTimeTable(setup).columns.map((column) => column.title);
  for (const title of [
    "Forward",
    "Backward",
    "Encode",
    "Orthogonalise",
    "Collectives",
    "Decode",
    "Optimiser step",
    "p5 to p95",
  ]) {
    assert.ok(titles.includes(title), title);
  }
  const settings = valueTable(runs, (run) => run.config);
  const keys = new Set(settings.map(({key}) => key));
  for (const key of Object.keys(runs[0].config).filter((each) => each !== "scheme_options"))
    assert.ok(keys.has(key), key);
  assert.ok(keys.has("scheme_options.rank"));
  const rank = settings.find(({key}) => key === "scheme_options.rank").values;
  assert.deepEqual(
    rank.map(({text, runs: ids}) => [text, ids.length]),
    [
      ["not given", 6],
      ["1", 4],
      ["2", 4],
      ["4", 4],
    ],
  );
});

test("numbers for people", () => {
  assert.equal(percent(0.94324), "94.32%");
  assert.equal(percent(null), "–");
  assert.equal(integer(2574480844800), "2,574,480,844,800");
  assert.deepEqual([0.0002156, 0.0123, 0.2156, 1.2346].map(milliseconds), [
    "0.216",
    "12.3",
    "215.6",
    "1,234.6",
  ]);
  assert.deepEqual(
    [999, 1469920, 2e11].map((bits) => si(bits, "bit")),
    ["999 bit", "1.47 Mbit", "200 Gbit"],
  );
});
