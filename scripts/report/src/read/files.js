// Reading JSON and JSON lines with messages that name the file and the line.

import {createReadStream, existsSync, readFileSync} from "node:fs";
import {createInterface} from "node:readline";

/** The newest layout of run folders and exports that this report understands. */
export const SCHEMA_VERSION = 1;

/** An input that cannot be used as it is: the message says what to do. */
export class InputError extends Error {}

/** The file's JSON value. NaN and Infinity, which some writers leave in, are read as null. */
export function readJson(path) {
  const text = readFileSync(path, "utf8");
  try {
    return JSON.parse(text);
  } catch (error) {
    try {
      return JSON.parse(text.replace(/(?<=[:,[]\s*)(-?Infinity|NaN)(?=\s*[,\]}])/g, "null"));
    } catch {
      throw new InputError(
        `${path}: expected JSON, found something else (${error.message}); ` +
          "write the file again or leave it out",
      );
    }
  }
}

/** Refuses a layout from the future rather than misreading it. No version at all passes. */
export function checkSchema(value, path) {
  const found = value?.schema_version;
  if (found !== undefined && !(found <= SCHEMA_VERSION)) {
    throw new InputError(
      `${path}: schema_version ${found} is newer than ${SCHEMA_VERSION}, the newest one that this ` +
        "report reads; use the report that came with the program that wrote it",
    );
  }
}

/**
 * Calls `each` with every record of a JSON-lines file, in order. A missing file has no records. A last
 * line that a crash cut short is skipped with a warning; a bad line elsewhere is damage and refused.
 */
export async function eachLine(path, warn, each) {
  if (!existsSync(path)) return false;
  let torn = 0;
  let number = 0;
  const lines = createInterface({input: createReadStream(path, "utf8"), crlfDelay: Infinity});
  for await (const line of lines) {
    number += 1;
    if (line.trim() === "") continue;
    if (torn > 0) {
      throw new InputError(
        `${path}:${torn}: expected one JSON object a line, found damage in the middle of the file; ` +
          "repeat the run or remove that line",
      );
    }
    try {
      each(JSON.parse(line));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      torn = number;
    }
  }
  if (torn) warn(`${path}:${torn}: the last line is cut short and was skipped`);
  return true;
}
