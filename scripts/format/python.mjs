// Formats Python files in place, or with --check lists those that differ:
//   node python.mjs [--check] FILE...

import {readFileSync, writeFileSync} from "node:fs";
import {format} from "@wasm-fmt/ruff_fmt";

const paths = process.argv.slice(2).filter((word) => word !== "--check");
const check = paths.length < process.argv.length - 2;
for (const path of paths) {
  const text = readFileSync(path, "utf8");
  const formatted = format(text, path, {line_width: 100});
  if (formatted === text) continue;
  if (check) {
    process.stderr.write(`${path}: not formatted\n`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, formatted);
  }
}
