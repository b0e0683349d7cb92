// Colours and symbols. Okabe and Ito's hues, darkened or lightened until each has a contrast of 3 : 1 or more
// with its ground; the symbols tell the schemes apart without colour.

import {compareLabels} from "../model/schemes.js";

export const FONT =
  '"Source Sans 3", "Source Sans Pro", system-ui, "Segoe UI", Helvetica, Arial, sans-serif';

const FIXED = ["full precision", "FP16", "rank 1", "rank 2", "rank 4"];
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "wye", "cross"];

export const LIGHT = {
  paper: "#ffffff",
  ink: "#1b1f24",
  muted: "#56606b",
  grid: "#e2e5e9",
  series: [
    "#3a424b",
    "#b0508e",
    "#c85200",
    "#0072b2",
    "#008a64",
    "#7d6608",
    "#6a51a3",
    "#7f4f24",
    "#007c89",
  ],
  parts: {
    forward: "#7db8e0",
    backward: "#2f78b0",
    wait: "#d9722e",
    buffers: "#eab681",
    encode: "#9bd3b4",
    orthogonalise: "#4fae83",
    collectives: "#d9722e",
    decode: "#21795a",
    step: "#8a76b8",
    running_average: "#bdb0da",
    other: "#b9c0c7",
    whole: "#8794a0",
  },
};

export const DARK = {
  paper: "#14181c",
  ink: "#e8eaed",
  muted: "#a5aeb8",
  grid: "#2d343b",
  series: [
    "#e3e6ea",
    "#e79cc9",
    "#ff9147",
    "#5bb4ef",
    "#33c79c",
    "#dcc23c",
    "#b5a4ee",
    "#cf9f75",
    "#45c8d4",
  ],
  parts: {
    forward: "#9ccbec",
    backward: "#4b93c9",
    wait: "#ef8e4c",
    buffers: "#d3a06b",
    encode: "#a9dcbf",
    orthogonalise: "#5cbb90",
    collectives: "#ef8e4c",
    decode: "#349070",
    step: "#9c89c9",
    running_average: "#c8bde2",
    other: "#7d868f",
    whole: "#8794a0",
  },
};

/** The theme's colours as CSS custom properties: {"--ink": "#1b1f24", "--series-0": ...}. */
export function customProperties(theme) {
  const {series, parts, ...plain} = theme;
  return Object.fromEntries(
    [
      ...Object.entries(plain),
      ...series.map((colour, i) => [`series-${i}`, colour]),
      ...Object.entries(parts).map(([part, colour]) => [`part-${part}`, colour]),
    ].map(([k, v]) => [`--${k}`, v]),
  );
}

/** The theme that follows those properties, so that the page turns dark without drawing again. */
export const FOLLOWING = {
  paper: "var(--paper)",
  ink: "var(--ink)",
  muted: "var(--muted)",
  grid: "var(--grid)",
  series: LIGHT.series.map((_, i) => `var(--series-${i})`),
  parts: Object.fromEntries(Object.keys(LIGHT.parts).map((part) => [part, `var(--part-${part})`])),
};

/**
 * A colour and a symbol for each label, the same in every figure. The five of the notebook always look the
 * same; others follow in order.
 * @returns {colour(label, theme), symbol(label)}
 */
export function appearance(labels) {
  const order = [
    ...FIXED,
    ...[...labels].filter((label) => !FIXED.includes(label)).sort(compareLabels),
  ];
  const position = (label) => order.indexOf(label);
  return {
    colour: (label, theme) => theme.series[position(label) % theme.series.length],
    symbol: (label) => SYMBOLS[position(label) % SYMBOLS.length],
  };
}
