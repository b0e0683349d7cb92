// What all figures share: a panel for each implementation, beside or above each other, and the same
// typography.

import * as Plot from "@observablehq/plot";
import {FONT} from "./theme.js";

/** Below this width the panels stand above each other. */
const NARROW = 600;

/**
 * How the panels are laid out in a context {width, ...}.
 * @returns {narrow, by, facet}: `by` adds the panel to a mark's options; `facet` are scale options for
 *   Plot.plot
 */
export function layout({width}, implementations) {
  const narrow = width < NARROW;
  const channel = narrow ? "fy" : "fx";
  const scale = {
    axis: null,
    domain: implementations,
    padding: implementations.length === 1 ? 0 : narrow ? 0.16 : 0.09,
  };
  const count = narrow ? implementations.length : 1;
  return {
    narrow,
    count,
    by: (options = {}) => ({[channel]: "implementation", ...options}),
    heading: (theme) =>
      Plot.text(
        implementations.map((implementation) => ({implementation})),
        {
          [channel]: "implementation",
          text: "implementation",
          frameAnchor: "top-left",
          dy: -19,
          fontWeight: 600,
          fontSize: 14,
          fill: theme.ink,
        },
      ),
    scales: {[channel]: scale},
  };
}

/** Plot.plot with the figures' typography. */
export function draw(context, {ariaLabel, ...options}) {
  const {theme} = context;
  const svg = Plot.plot({
    document: context.document,
    width: context.width,
    marginTop: 30,
    marginRight: 18,
    ariaLabel,
    style: {
      fontFamily: FONT,
      fontSize: "12.5px",
      color: theme.ink,
      background: "none",
      overflow: "visible",
    },
    ...options,
  });
  svg.setAttribute("role", "img");
  return svg;
}

/**
 * Grid lines behind everything, at the same ticks as the scales {ticks, interval} of the axes; null for none.
 */
export function grid(theme, x, y) {
  const options = ({ticks, interval}) => ({stroke: theme.grid, strokeOpacity: 1, ticks, interval});
  return [x && Plot.gridX(options(x)), y && Plot.gridY(options(y))].filter(Boolean);
}

/** A tooltip at the nearest point, with `title` as its text; only where there is someone to point. */
export function tip(context, points, channels) {
  if (!context.interactive || points.length === 0) return [];
  const {theme} = context;
  return [
    Plot.dot(
      points,
      Plot.pointer({
        ...channels,
        title: undefined,
        r: 5,
        fill: "none",
        stroke: theme.ink,
        maxRadius: 60,
      }),
    ),
    Plot.tip(
      points,
      Plot.pointer({
        ...channels,
        maxRadius: 60,
        fontSize: 12.5,
        lineHeight: 1.3,
        lineWidth: 28,
        fill: theme.paper,
        stroke: theme.muted,
        textPadding: 9,
      }),
    ),
  ];
}

/** An arrow-free axis label. */
export const axisLabel = (text) => ({label: text, labelArrow: "none"});

/**
 * The width of a text at 12.5 px, summed from classes of letters: outside a browser nothing lays out text.
 */
export function textWidth(text) {
  const widths = [...text].map((letter) =>
    /[ijl.,:;'|()! ]/.test(letter)
      ? 3.2
      : /[frt1-]/.test(letter)
        ? 4.6
        : /[mwMW]/.test(letter)
          ? 9.5
          : /[A-Z]/.test(letter)
            ? 7.4
            : 6.2,
  );
  return widths.reduce((a, b) => a + b, 0);
}

/** The margin that row labels need at the left. */
export const labelMargin = (labels) =>
  Math.max(92, ...labels.map((label) => textWidth(label) + 18));
