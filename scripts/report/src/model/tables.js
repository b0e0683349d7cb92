// The page's tables as data: {columns: [{key, title, numeric}], rows: [{key: text, ...}]}. Text is formatted
// here, so that tests, the page and the terminal agree on every digit.

import {batchTimes, PARTS} from "./batch_time.js";
import {curves, countedForAccuracy} from "./setups.js";
import {lastEpoch, marksOf} from "./marks.js";
import {modelledBatch} from "./cost.js";
import {distinct, isNumber, mean} from "./statistics.js";
import {duration, integer, milliseconds, MISSING, percent, ratio, setting, si} from "./format.js";

const text = (key, title) => ({key, title, numeric: false});
const number = (key, title) => ({key, title, numeric: true});
const who = [text("implementation", "Implementation"), text("label", "Scheme")];
const identify = ({implementation, label}) => ({implementation, label});

function fullPrecision(rows, {implementation}) {
  return rows.find(
    (row) => row.implementation === implementation && row.label === "full precision",
  );
}

const speedup = (rows, row, key) => {
  const base = fullPrecision(rows, row)?.[key];
  return isNumber(base) && isNumber(row[key]) ? ratio(base / row[key]) : MISSING;
};

/** One row a scheme: what the notebook concludes from. */
export function summaryTable(setup) {
  const {means} = curves(setup);
  const times = batchTimes(setup);
  const rows = setup.series.map((series) => {
    const same = (row) =>
      row.implementation === series.implementation && row.label === series.label;
    const counted = countedForAccuracy(series.runs);
    const finals = counted.map((run) => run.final.test_accuracy).filter(isNumber);
    const last = means.filter(same).at(-1);
    const bits = series.runs.map((run) => run.bitsPerStep).filter(isNumber);
    return {
      series,
      accuracy: mean(finals) ?? last?.accuracy ?? null,
      finals,
      bits: mean(bits),
      time: times.find(same)?.batchTime ?? null,
      ...identify(series),
    };
  });
  return {
    columns: [
      ...who,
      number("runs", "Runs"),
      number("accuracy", "Final test accuracy"),
      number("range", "Lowest to highest seed"),
      number("bits", "Sent by a worker each step"),
      number("less", "Less than full precision"),
      number("time", "Time per batch, ms"),
      number("speed", "Speed against full precision"),
    ],
    rows: rows.map((row) => ({
      ...identify(row),
      runs: runCount(row.series.runs, countedForAccuracy(row.series.runs)),
      accuracy: percent(row.accuracy),
      range:
        row.finals.length > 1
          ? `${percent(Math.min(...row.finals))} to ${percent(Math.max(...row.finals))}`
          : MISSING,
      bits: row.bits === null ? MISSING : si(row.bits / 8, "B"),
      less: speedup(rows, row, "bits"),
      time: milliseconds(row.time),
      speed: speedup(rows, row, "time"),
    })),
  };
}

const runCount = (runs, counted) =>
  runs.length === counted.length ? `${runs.length}` : `${counted.length} of ${runs.length}`;

/** One row a scheme: mean time per batch and of its parts, in milliseconds. */
export function batchTimeTable(setup) {
  const rows = batchTimes(setup);
  const used = PARTS.filter(({key}) => rows.some(({parts}) => parts?.[key] > 0));
  const hooks = rows.some(({busy}) => busy !== null);
  return {
    columns: [
      ...who,
      number("runs", "Runs"),
      number("batch", "Batch"),
      number("spread", "p5 to p95"),
      ...used.map(({key, title}) => number(key, capital(title))),
      ...(hooks ? [number("busy", "Hook busy in all")] : []),
    ],
    rows: rows.map((row) => ({
      ...identify(row),
      runs: runCount(row.runs, row.counted),
      batch: milliseconds(row.batchTime),
      spread: row.p5 === null ? MISSING : `${milliseconds(row.p5)} to ${milliseconds(row.p95)}`,
      ...Object.fromEntries(
        used.map(({key}) => [key, row.parts?.[key] > 0 ? milliseconds(row.parts[key]) : MISSING]),
      ),
      busy: milliseconds(row.busy),
    })),
  };
}

/** One row a scheme; for each threshold the mean time, or how many runs got there. */
export function timeToAccuracyTable(results) {
  const thresholds = distinct(results.map((row) => row.threshold));
  const rows = [];
  for (const row of results) {
    let found = rows.find(
      (each) => each.implementation === row.implementation && each.label === row.label,
    );
    if (!found) rows.push((found = identify(row)));
    const epoch = isNumber(row.epoch) ? ` (epoch ${Number(row.epoch.toFixed(1))})` : "";
    found[row.threshold] =
      row.time !== null
        ? `${duration(row.time)}${epoch}`
        : row.reached > 0
          ? `${row.reached} of ${row.of} runs`
          : "not reached";
  }
  return {
    columns: [
      ...who,
      ...thresholds.map((t) =>
        number(t, `To ${percent(t, Number.isInteger(+(t * 100).toFixed(6)) ? 0 : 1)}`),
      ),
    ],
    rows,
  };
}

/** One row a scheme for a chosen network: measured and modelled parts in columns of their own. */
export function costTable(inputs, network, overlap) {
  const rows = inputs.map((input) => ({
    ...identify(input),
    input,
    ...modelledBatch(input, network, overlap),
  }));
  return {
    columns: [
      ...who,
      number("here", "Measured batch here, ms"),
      number("compute", "Measured compute, ms"),
      number("collectives", "Modelled collectives, ms"),
      number("total", "Modelled batch, ms"),
      number("speed", "Modelled speed against full precision"),
    ],
    rows: rows.map((row) => ({
      ...identify(row),
      here: milliseconds(row.input.measured),
      compute: milliseconds(row.compute),
      collectives: milliseconds(row.collectives),
      total: milliseconds(row.total),
      speed: speedup(rows, row, "total"),
    })),
  };
}

const MARK_NAMES = {
  reduced: "reduced size",
  dataset: "other data set",
  oversubscribed: "oversubscribed",
  diverged: "diverged",
  unfinished: "unfinished",
  failed: "failed",
};

/**
 * One row a run, with the numbers of `powersgd-bench export`: batch_time, final.test_accuracy, totals.bits.
 */
export function runTable(runs) {
  const shared =
    runs.length > 1
      ? marksOf(runs[0])
          .filter(({text: mark}) =>
            runs.every((run) => marksOf(run).some((other) => other.text === mark)),
          )
          .map((mark) => mark.text)
      : [];
  const own = (run) => marksOf(run).filter((mark) => !shared.includes(mark.text));
  return {
    columns: [
      text("name", "Run"),
      ...who,
      number("seed", "Seed"),
      text("status", "Status"),
      number("epoch", "Epoch"),
      number("accuracy", "Test accuracy"),
      number("average", "With averaged weights"),
      number("bits", "Bits sent"),
      number("time", "Time per batch, ms"),
      ...(runs.some((run) => own(run).length > 0) ? [text("marks", "Marks")] : []),
    ],
    rows: runs.map((run) => ({
      name: run.id,
      ...identify(run),
      seed: setting(run.seed),
      status: run.status,
      epoch: setting(lastEpoch(run) || null),
      accuracy: percent(run.final.test_accuracy),
      average: percent(run.tests.filter((t) => t.weights === "runavg").at(-1)?.accuracy),
      bits: integer(run.totals.bits),
      time: milliseconds(run.batchTime),
      marks: own(run)
        .map((mark) => MARK_NAMES[mark.kind])
        .join(", "),
    })),
  };
}

/** {a: {b: 1}} -> {"a.b": 1}. */
export function flatten(value, prefix = "") {
  return Object.fromEntries(
    Object.entries(value ?? {}).flatMap(([key, inner]) => {
      const name = prefix + key;
      if (inner === undefined) return [];
      const nested = inner !== null && typeof inner === "object" && !Array.isArray(inner);
      return nested ? Object.entries(flatten(inner, `${name}.`)) : [[name, inner]];
    }),
  );
}

/**
 * Every key with each of its values and the runs that have it: [{key, values: [{text, runs}]}]. Keys whose
 * values differ between runs come first. `of` picks a (nested) object from a run.
 */
export function valueTable(runs, of) {
  const flat = runs.map((run) => ({run, values: flatten(of(run))}));
  const keys = distinct(flat.flatMap(({values}) => Object.keys(values)));
  const rows = keys.map((key) => {
    const values = new Map();
    for (const {run, values: own} of flat) {
      const shown = key in own ? setting(own[key]) : "not given";
      values.set(shown, [...(values.get(shown) ?? []), run.id]);
    }
    return {key, values: [...values].map(([shown, ids]) => ({text: shown, runs: ids}))};
  });
  const differs = (row) => row.values.length > 1;
  return [...rows.filter(differs), ...rows.filter((row) => !differs(row))];
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);
