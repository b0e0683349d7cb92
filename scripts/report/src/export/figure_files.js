// The figures as files for papers: SVG with fixed colours, and PNG drawn from it with a font that comes
// along.

import {mkdirSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {join} from "node:path";
import {Resvg} from "@resvg/resvg-js";
import {DOMParser} from "linkedom";
import {FIGURES, VARIANTS} from "../figures/figures.js";
import {standalone} from "../figures/standalone.js";
import {LIGHT} from "../figures/theme.js";
import {defaults} from "../page/state.js";

const WIDTH = 860;
const PNG_SCALE = 2.5;

const require = createRequire(import.meta.url);
const FONTS = [
  "400Regular/SourceSans3_400Regular.ttf",
  "400Regular_Italic/SourceSans3_400Regular_Italic.ttf",
  "600SemiBold/SourceSans3_600SemiBold.ttf",
].map((file) => require.resolve(`@expo-google-fonts/source-sans-3/${file}`));

/** The SVG of every figure that suits the setup: [{file, svg}]. */
export function figureTexts(setup, look, width = WIDTH) {
  const document = new DOMParser().parseFromString(
    '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "image/svg+xml",
  );
  return VARIANTS.flatMap(({file, name, options}) => {
    const figure = FIGURES.find((each) => each.name === name);
    if (!figure.suits(setup)) return [];
    const context = {...defaults(setup), setup, look, theme: LIGHT, width, document, ...options};
    return [{file, svg: fixed(standalone(figure, context).toString())}];
  });
}

// Not every reader of SVG knows CSS variables, :where() or currentColor on nested elements.
function fixed(svg) {
  return svg
    .replace(/<style>[\s\S]*?<\/style>/g, "")
    .replaceAll("var(--plot-background)", LIGHT.paper)
    .replaceAll("currentColor", LIGHT.ink);
}

/** Draws an SVG text as PNG. */
export function png(svg) {
  const font = {
    fontFiles: FONTS,
    loadSystemFonts: false,
    defaultFontFamily: "Source Sans 3",
    sansSerifFamily: "Source Sans 3",
  };
  return new Resvg(svg, {background: LIGHT.paper, fitTo: {mode: "zoom", value: PNG_SCALE}, font})
    .render()
    .asPng();
}

/**
 * Writes figures/NAME.svg and .png below `directory`; with several setups the name ends with the setup's key.
 */
export function writeFigures(setups, look, directory) {
  const folder = join(directory, "figures");
  mkdirSync(folder, {recursive: true});
  return setups.flatMap((setup) =>
    figureTexts(setup, look).flatMap(({file, svg}) => {
      const path = join(folder, setups.length > 1 ? `${file}-${setup.key}` : file);
      writeFileSync(`${path}.svg`, svg);
      writeFileSync(`${path}.png`, png(svg));
      return [`${path}.svg`, `${path}.png`];
    }),
  );
}
