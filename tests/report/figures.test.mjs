// The figures without a browser: what is drawn, with little data too; the files for papers; the colours.

import assert from "node:assert/strict";
import test from "node:test";
import {createRequire} from "node:module";
import {EXPERIMENTS} from "./fixtures/make.mjs";
import {fixture} from "./helpers.mjs";
import {figureTexts, png} from "../../scripts/report/src/export/figure_files.js";
import {appearance, DARK, LIGHT} from "../../scripts/report/src/figures/theme.js";
import {VARIANTS} from "../../scripts/report/src/figures/figures.js";
import {dataText} from "../../scripts/report/src/page/assemble.js";

const require = createRequire(new URL("../../scripts/report/package.json", import.meta.url));
const {rgb} = await import(require.resolve("d3-color"));
const look = (runs) => appearance(new Set(runs.map((run) => run.label)));
const texts = (setup, runs) =>
  Object.fromEntries(figureTexts(setup, look(runs)).map(({file, svg}) => [file, svg]));

test("every figure becomes an SVG that says what is in it, with marks and units", async (t) => {
  const {
    setups: [setup],
    runs,
  } = await fixture(t);
  const svgs = texts(setup, runs);
  assert.deepEqual(
    Object.keys(svgs),
    VARIANTS.map(({file}) => file),
  );
  for (const [file, svg] of Object.entries(svgs)) {
    assert.match(svg, /xmlns="http:\/\/www\.w3\.org\/2000\/svg"/, file);
    assert.doesNotMatch(svg, /var\(|currentColor|NaN|undefined|Infinity/, file);
    assert.match(svg, /Diverged in epoch 6 of 12/, file);
    for (const implementation of setup.implementations)
      assert.ok(svg.includes(implementation), `${file}: ${implementation}`);
  }
  for (const label of setup.labels) assert.ok(svgs.accuracy.includes(`>${label}<`), label);
  assert.match(svgs.accuracy, /diverged, seed 2/);
  assert.match(svgs["batch-time"], /Time per batch, ms/);
  assert.match(svgs["batch-time"], /oversubscribed, seed 2/);
  assert.match(svgs["cost-elsewhere"], /Modelled time per batch/);
  assert.match(svgs.bits, /Bits sent by one worker, [GMT]bit/);
  assert.match(svgs["bits-log"], /logarithmic/);
});

test("a curve goes through its points", async (t) => {
  const {
    setups: [setup],
    runs,
  } = await fixture(t, {odd: false, seeds: 1, experiments: EXPERIMENTS.slice(-1)});
  const path = /aria-label="line"[^>]*>.*?d="([^"]+)"/s.exec(texts(setup, runs).accuracy)[1];
  const points = path
    .slice(1)
    .split("L")
    .map((pair) => pair.split(",").map(Number));
  const accuracies = runs[0].tests
    .filter((each) => each.weights === "last")
    .map((each) => each.accuracy);
  assert.equal(points.length, accuracies.length);
  const scale = (points[1][1] - points[0][1]) / (accuracies[1] - accuracies[0]);
  points.forEach(([, y], i) =>
    assert.ok(Math.abs(y - points[0][1] - scale * (accuracies[i] - accuracies[0])) < 0.01),
  );
});

test("a PNG is drawn, at paper resolution", async (t) => {
  const {
    setups: [setup],
    runs,
  } = await fixture(t, {seeds: 1});
  const image = png(texts(setup, runs).accuracy);
  assert.equal(image.subarray(1, 4).toString(), "PNG");
  assert.equal(image.readUInt32BE(16), 2150);
});

for (const [what, changes] of Object.entries({
  "one run": {seeds: 1, odd: false, experiments: EXPERIMENTS.slice(2, 3)},
  "one implementation": {experiments: EXPERIMENTS.slice(5)},
  "one epoch": {epochs: 1, batches: 3, odd: false},
  "missing schemes": {seeds: 1, experiments: [EXPERIMENTS[1], EXPERIMENTS[6]]},
  "an unknown scheme": {
    seeds: 1,
    odd: false,
    experiments: [{implementation: "Paper", label: "rank 32"}],
  },
})) {
  test(`nothing breaks with ${what}`, async (t) => {
    const {
      setups: [setup],
      runs,
    } = await fixture(t, changes);
    for (const [file, svg] of Object.entries(texts(setup, runs))) {
      assert.doesNotMatch(svg, /NaN|undefined|Infinity/, `${what}: ${file}`);
      assert.ok(png(svg).length > 1000, `${what}: ${file}`);
    }
  });
}

test("only runs that broke before a test: no curves, no error", async (t) => {
  const {
    runs,
    setups: [setup],
  } = await fixture(t, {seeds: 1});
  for (const run of runs)
    Object.assign(run, {
      tests: [],
      batchTime: null,
      phases: {},
      batchQuantiles: null,
      status: "failed",
      final: {},
    });
  assert.deepEqual(texts(setup, runs), {});
});

test("colours: a contrast of 3 : 1 with both grounds, and apart for colour-blind readers", () => {
  for (const theme of [LIGHT, DARK]) {
    for (const colour of theme.series)
      assert.ok(contrast(colour, theme.paper) >= 3, `${colour} on ${theme.paper}`);
    assert.ok(contrast(theme.muted, theme.paper) >= 4.5);
    const notebook = theme.series.slice(0, 5);
    for (const seen of Object.values(DEFICIENCIES)) {
      for (let i = 0; i < 5; i += 1)
        for (let j = 0; j < i; j += 1) {
          const distance = difference(seen(notebook[i]), seen(notebook[j]));
          assert.ok(distance > 35, `${notebook[i]} and ${notebook[j]}: ${distance}`);
        }
    }
  }
});

test("a scheme looks the same whatever else there is; symbols differ", () => {
  const few = appearance(["rank 4"]);
  const many = appearance(["rank 4", "rank 32", "top-k", "sign", "full precision"]);
  assert.equal(few.colour("rank 4", LIGHT), many.colour("rank 4", LIGHT));
  const labels = ["full precision", "FP16", "rank 1", "rank 2", "rank 4", "rank 32", "sign"];
  assert.equal(new Set(labels.map(many.symbol)).size, labels.length);
});

test("data cannot end the script that it stands in", () => {
  const text = dataText({name: "</script><!-- \u2028 &"});
  assert.doesNotMatch(text, /[<>&\u2028]/);
  assert.deepEqual(JSON.parse(text), {name: "</script><!-- \u2028 &"});
});

function luminance(colour) {
  const {r, g, b} = rgb(colour);
  const [red, green, blue] = [r, g, b].map((v) =>
    v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a, b) {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

// Machado, Oliveira and Fernandes (2009), severity 1.
const matrix = (rows) => (colour) => {
  const {r, g, b} = rgb(colour);
  return rows.map(([x, y, z]) => x * r + y * g + z * b);
};
const DEFICIENCIES = {
  none: matrix([
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ]),
  protanopia: matrix([
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ]),
  deuteranopia: matrix([
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ]),
};
const difference = (a, b) => Math.hypot(...a.map((value, i) => value - b[i]));
