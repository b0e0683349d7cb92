// A figure for a paper: one SVG with title, notes and legend above the plot, and colours fixed.

import * as Plot from "@observablehq/plot";
import {notesOf} from "../model/marks.js";
import {FONT} from "./theme.js";
import {hatching} from "./hatching.js";
import {textWidth} from "./panels.js";

const MARGIN = 14;
const LINE = 17;

/** The SVG element of `figure` in `context`, complete with heading and legend. */
export function standalone(figure, context) {
  const {document, width, theme} = context;
  const inner = {...context, width: width - 2 * MARGIN, interactive: false};
  const heading = drawHeading(figure, inner);
  const body = figure.draw(inner);
  const headingHeight = Number(heading.getAttribute("height"));
  const bodyHeight = Number(body.getAttribute("height"));
  const height = headingHeight + bodyHeight + 2 * MARGIN;
  place(heading, MARGIN, MARGIN);
  place(body, MARGIN, MARGIN + headingHeight);
  const outer = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const attributes = {
    xmlns: "http://www.w3.org/2000/svg",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    color: theme.ink,
    style: `background: ${theme.paper}`,
  };
  for (const [key, value] of Object.entries(attributes)) outer.setAttribute(key, value);
  outer.append(heading, body);
  return outer;
}

function place(svg, x, y) {
  svg.setAttribute("x", x);
  svg.setAttribute("y", y);
}

function drawHeading(figure, context) {
  const {width, theme, setup} = context;
  const notes = [setup.title, ...notesOf(setup.runs).map((note) => note.text)].filter(Boolean);
  const lines = wrap(notes.map((note) => `${note}.`).join(" "), width);
  const items = legendItems(figure, context);
  const legendTop = 24 + lines.length * LINE + 14;
  const {placed, rows} = flow(items, width);
  const height = legendTop + rows * 20 + 2;
  const hatched = hatching(theme.parts, theme.paper);
  const y = (item) => legendTop + item.row * 20;
  const lineItems = placed.filter((item) => item.kind === "line");
  const boxes = placed.filter((item) => item.kind === "box");
  return Plot.plot({
    document: context.document,
    width,
    height,
    margin: 0,
    axis: null,
    x: {type: "identity"},
    y: {type: "identity"},
    color: {type: "identity"},
    style: {fontFamily: FONT, fontSize: "12.5px", color: theme.ink, background: "none"},
    marks: [
      hatched.mark,
      Plot.text([figure.title], {x: 0, y: 12, textAnchor: "start", fontSize: 17, fontWeight: 600}),
      Plot.text(lines, {
        x: 0,
        y: (_, i) => 32 + i * LINE,
        text: (line) => line,
        textAnchor: "start",
        fill: theme.muted,
      }),
      Plot.link(lineItems, {
        x1: "x",
        x2: (d) => d.x + 26,
        y1: y,
        y2: y,
        stroke: "colour",
        strokeWidth: 2.2,
        strokeDasharray: figure.name === "cost-elsewhere" ? "7 3" : null,
      }),
      Plot.dot(lineItems, {
        x: (d) => d.x + 13,
        y,
        symbol: "symbol",
        fill: "colour",
        r: 4.4,
        stroke: theme.paper,
      }),
      ...boxes.map((item) =>
        Plot.rect([item], {
          x1: item.x,
          x2: item.x + 22,
          y1: y(item) - 6,
          y2: y(item) + 6,
          fill: item.hatched ? hatched.fill(item.key) : item.colour,
        }),
      ),
      Plot.text(placed, {
        x: (d) => d.x + (d.kind === "line" ? 32 : 28),
        y,
        text: "title",
        textAnchor: "start",
      }),
    ],
  });
}

/** A legend's entries: schemes as lines with their symbol, parts as boxes. */
export function legendItems(figure, {setup, hidden, look, theme}) {
  if (figure.legend === "schemes") {
    return setup.labels
      .filter((label) => !hidden.has(label))
      .map((label) => ({
        kind: "line",
        key: label,
        title: label,
        colour: look.colour(label, theme),
        symbol: look.symbol(label),
      }));
  }
  if (figure.legend !== "parts") return [];
  const parts = figure
    .parts({setup, hidden})
    .map((part) => ({kind: "box", colour: theme.parts[part.key], ...part}));
  const overlapping = setup.implementations.includes("PyTorch DDP");
  return overlapping
    ? [
        ...parts,
        {
          kind: "box",
          key: "collectives",
          title: "thin hatched bar: the hook's thread, beside backward",
          colour: theme.parts.collectives,
          hatched: true,
        },
      ]
    : parts;
}

function flow(items, width) {
  let x = 0;
  let row = 0;
  const placed = items.map((item) => {
    const needed = textWidth(item.title) + 50;
    if (x > 0 && x + needed > width) [x, row] = [0, row + 1];
    const at = {...item, x, row};
    x += needed;
    return at;
  });
  return {placed, rows: items.length > 0 ? row + 1 : 0};
}

function wrap(text, width) {
  const lines = [];
  let line = "";
  for (const word of text.split(" ").filter(Boolean)) {
    if (line && textWidth(`${line} ${word}`) > width) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  return line ? [...lines, line] : lines;
}
