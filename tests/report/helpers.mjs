// What the report's tests share: a folder that goes away, runs read from fixtures, Debian's Chromium.

import {existsSync, mkdtempSync, rmSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {fileURLToPath} from "node:url";
import {makeRuns} from "./fixtures/make.mjs";
import {readRuns} from "../../scripts/report/src/read/read.js";
import {groupBySetup} from "../../scripts/report/src/model/setups.js";

export const REPORT = fileURLToPath(new URL("../../scripts/report/report", import.meta.url));
const require = createRequire(new URL("../../scripts/report/package.json", import.meta.url));

/** A fresh folder, removed when the test `t` ends. */
export function temporaryFolder(t) {
  const directory = mkdtempSync(join(tmpdir(), "powersgd-report-"));
  t.after(() => rmSync(directory, {recursive: true, force: true}));
  return directory;
}

/**
 * Makes run folders (see fixtures/make.mjs), reads them, and groups them: {directory, made, runs, setups}.
 */
export async function fixture(t, changes = {}) {
  const directory = temporaryFolder(t);
  const made = makeRuns(directory, changes);
  const runs = await readRuns([directory], (sentence) => {
    throw new Error(`unexpected warning: ${sentence}`);
  });
  return {directory, made, runs, setups: groupBySetup(runs)};
}

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Milliseconds to wait for a page on a machine that is busy with other things. */
export const PATIENCE = 180_000;

/** Headless Chromium. */
export async function startBrowser() {
  if (!existsSync(CHROMIUM))
    throw new Error(`expected ${CHROMIUM}, found none; on Debian: apt-get install chromium`);
  return require("playwright-core").chromium.launch({
    executablePath: CHROMIUM,
    args: FLAGS,
    timeout: PATIENCE,
  });
}
