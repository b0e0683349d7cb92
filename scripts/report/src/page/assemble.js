// One file that holds everything: markup, style, program and data. It opens from disk and asks no network.

import {readFileSync} from "node:fs";
import {fileURLToPath} from "node:url";
import {build} from "esbuild";
import {customProperties, DARK, LIGHT} from "../figures/theme.js";

const here = (file) => fileURLToPath(new URL(file, import.meta.url));

/** The page of `runs` (see read/read.js) as HTML. `made` is the date to print. */
export async function assemble(runs, made) {
  const bundle = await build({
    entryPoints: [here("client.js")],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2020",
    legalComments: "none",
  });
  const parts = {
    style: `${themes()}\n${readFileSync(here("style.css"), "utf8")}`,
    data: dataText({runs: runs.map(forPage), made}),
    program: bundle.outputFiles[0].text.replace(/<(?=\/script|!--)/gi, "\\x3C"),
  };
  return readFileSync(here("template.html"), "utf8").replace(
    /\{\{(\w+)\}\}/g,
    (_, name) => parts[name],
  );
}

/** JSON that cannot end the script element it stands in, nor be read as markup. */
export function dataText(value) {
  const escapes = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
  };
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (character) => escapes[character]);
}

// Folders are this machine's affair.
function forPage({folder, ...run}) {
  return run;
}

function themes() {
  const block = (theme) =>
    Object.entries(customProperties(theme))
      .map(([key, value]) => `${key}: ${value};`)
      .join(" ");
  return `:root { ${block(LIGHT)} }\n@media screen and (prefers-color-scheme: dark) { :root { ${block(DARK)} } }`;
}
