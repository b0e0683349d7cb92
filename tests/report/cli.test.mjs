// The command: what it writes, its exit status, its messages.

import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {existsSync, readdirSync, readFileSync, statSync} from "node:fs";
import {join} from "node:path";
import test from "node:test";
import {makeExport, makeRuns} from "./fixtures/make.mjs";
import {REPORT, temporaryFolder} from "./helpers.mjs";

const report = (...words) => spawnSync(REPORT, words, {encoding: "utf8"});

test("writes the page and the figures, and names them", (t) => {
  const runs = temporaryFolder(t);
  const out = join(temporaryFolder(t), "new", "folder");
  makeRuns(runs, {seeds: 1});
  const {status, stdout, stderr} = report(runs, "--out", out);
  assert.equal(stderr, "");
  assert.equal(status, 0);
  assert.match(stdout, new RegExp(`^report: ${join(out, "report.html")}$`, "m"));
  assert.deepEqual(
    readdirSync(join(out, "figures")).sort(),
    [
      "accuracy",
      "accuracy-late",
      "batch-time",
      "bits",
      "bits-log",
      "cost-elsewhere",
      "time-to-accuracy",
    ]
      .flatMap((name) => [`${name}.png`, `${name}.svg`])
      .sort(),
  );
  const page = readFileSync(join(out, "report.html"), "utf8");
  assert.doesNotMatch(page, /(src|href)="https?:/);
  assert.ok(statSync(join(out, "report.html")).size < 1.5e6);
});

test("an export makes a report too", (t) => {
  const [runs, exported, out] = [temporaryFolder(t), temporaryFolder(t), temporaryFolder(t)];
  makeExport(exported, makeRuns(runs));
  assert.equal(report(exported, "--out", out).status, 0);
  assert.ok(existsSync(join(out, "figures", "accuracy.svg")));
});

test("wrong usage exits with 2, unreadable runs with 1, each with one clear message", (t) => {
  const empty = temporaryFolder(t);
  for (const [words, expected, message] of [
    [[], 2, /expected at least one run folder/],
    [[empty], 2, /expected --out DIR/],
    [[empty, "--ouT", "x"], 2, /Unknown option '--ouT'/],
    [[empty, "--out", empty], 1, /found no run; expected run\.json/],
    [["/nowhere", "--out", empty], 1, /no such file or folder/],
  ]) {
    const {status, stderr} = report(...words);
    assert.equal(status, expected, words.join(" "));
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /at .*\.js:/, "no stack");
  }
  assert.match(report("--help").stdout, /^Usage: report RUNS/);
});
