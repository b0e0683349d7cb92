// The command: scripts/report/report RUNS... --out DIR

import {mkdirSync, writeFileSync} from "node:fs";
import {join} from "node:path";
import {parseArgs} from "node:util";
import {writeFigures} from "./export/figure_files.js";
import {appearance} from "./figures/theme.js";
import {groupBySetup} from "./model/setups.js";
import {notesOf} from "./model/marks.js";
import {assemble} from "./page/assemble.js";
import {InputError} from "./read/files.js";
import {readRuns} from "./read/read.js";

const USAGE = `Usage: report RUNS... --out DIR

Writes DIR/report.html, one page that needs no network, and DIR/figures/*.svg and *.png.

  RUNS     run folders, folders that hold run folders, or folders with results.json and timingResults.json
  --out    where to write; made if it is not there
  --help   this text
`;

class UsageError extends Error {}

/** Runs the command; returns its exit status: 0 written, 1 the runs cannot be read, 2 wrong usage. */
export async function main(argv) {
  try {
    const {out, help, paths} = parse(argv);
    if (help) {
      process.stdout.write(USAGE);
      return 0;
    }
    await writeReport(paths, out);
    return 0;
  } catch (error) {
    const known =
      error instanceof InputError || error instanceof UsageError || typeof error.code === "string";
    process.stderr.write(`report: ${known ? error.message : error.stack}\n`);
    if (error instanceof UsageError) process.stderr.write(`\n${USAGE}`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function parse(argv) {
  let parsed;
  try {
    parsed = parseArgs({
      args: argv,
      allowPositionals: true,
      options: {out: {type: "string"}, help: {type: "boolean", short: "h"}},
    });
  } catch (error) {
    throw new UsageError(error.message);
  }
  const {
    values: {out, help},
    positionals: paths,
  } = parsed;
  if (!help && paths.length === 0)
    throw new UsageError("expected at least one run folder or export, found none");
  if (!help && !out) throw new UsageError("expected --out DIR, found none");
  return {out, help, paths};
}

async function writeReport(paths, out) {
  const runs = await readRuns(paths, (sentence) =>
    process.stderr.write(`report: warning: ${sentence}\n`),
  );
  const setups = groupBySetup(runs);
  const look = appearance(new Set(runs.map((run) => run.label)));
  mkdirSync(out, {recursive: true});
  const page = join(out, "report.html");
  writeFileSync(page, await assemble(runs, new Date().toISOString().slice(0, 10)));
  const files = writeFigures(setups, look, out);
  for (const setup of setups) {
    for (const {text} of notesOf(setup.runs))
      process.stdout.write(`note: ${setup.title ? `${setup.title}: ` : ""}${text}\n`);
  }
  process.stdout.write(
    `${files.length} files of figures: ${join(out, "figures")}\nreport: ${page}\n`,
  );
}

process.exitCode = await main(process.argv.slice(2));
