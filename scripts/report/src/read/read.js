// From the paths on the command line to a list of runs.

import {existsSync, readdirSync, realpathSync, statSync} from "node:fs";
import {basename, dirname, join} from "node:path";
import {InputError} from "./files.js";
import {isExport, readExport} from "./exported.js";
import {isRunFolder, readRunFolder} from "./run_folder.js";
import {labelOf} from "../model/schemes.js";

const DEEPEST = 4;

/**
 * Reads run folders, folders of run folders, and exports.
 * @param paths each a run folder, a folder with run folders somewhere below it, an export's folder or file
 * @param warn called with a sentence for everything that was passed over
 * @returns the runs, each once, with distinct `id`s
 */
export async function readRuns(paths, warn = () => {}) {
  const runs = [];
  const seen = new Set();
  for (const path of paths) {
    for (const source of sources(path, warn)) {
      const key = realpathSync(source.directory);
      if (seen.has(key)) continue;
      seen.add(key);
      if (source.kind === "export") runs.push(...readExport(source.directory, warn));
      else
        runs.push(...[await readRunFolder(source.directory, warn)].filter((run) => run !== null));
    }
  }
  if (runs.length === 0)
    throw new InputError(`${paths.join(", ")}: every run there ended before it recorded anything`);
  return withIds(runs);
}

function sources(path, warn) {
  if (!existsSync(path))
    throw new InputError(`${path}: no such file or folder; expected a run folder or an export`);
  if (statSync(path).isFile()) {
    if (["results.json", "timingResults.json"].includes(basename(path))) {
      return [{kind: "export", directory: dirname(path)}];
    }
    if (basename(path) === "run.json") return [{kind: "run folder", directory: dirname(path)}];
    throw new InputError(
      `${path}: expected run.json, results.json, timingResults.json or a folder with them`,
    );
  }
  const folders = runFolders(path, 0, warn);
  if (folders.length > 0) return folders.map((directory) => ({kind: "run folder", directory}));
  if (isExport(path)) return [{kind: "export", directory: path}];
  throw new InputError(
    `${path}: found no run; expected run.json (a run folder), folders that hold one, or results.json ` +
      "and timingResults.json (an export)",
  );
}

// scripts/sweep.py keeps what a dead run left as NAME.failed-1, and its run.json still has the name NAME.
const SET_ASIDE = /\.failed-\d+$/;

function runFolders(directory, depth, warn) {
  if (isRunFolder(directory)) {
    if (depth === 0 || !SET_ASIDE.test(directory)) return [directory];
    warn(`${directory}: set aside by a sweep; left out`);
    return [];
  }
  if (depth === DEEPEST) return [];
  return readdirSync(directory, {withFileTypes: true})
    .filter(
      (entry) =>
        entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules",
    )
    .sort((a, b) => a.name.localeCompare(b.name, "en", {numeric: true}))
    .flatMap((entry) => runFolders(join(directory, entry.name), depth + 1, warn));
}

function withIds(runs) {
  const used = new Map();
  return runs.map((run) => {
    const count = (used.get(run.name) ?? 0) + 1;
    used.set(run.name, count);
    return {...run, id: count === 1 ? run.name : `${run.name} (${count})`, label: labelOf(run)};
  });
}
