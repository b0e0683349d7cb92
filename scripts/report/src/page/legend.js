// A figure's legend: buttons that show and hide a scheme in all figures, or plain boxes for the parts of a
// batch.

import * as Plot from "@observablehq/plot";
import {FOLLOWING} from "../figures/theme.js";
import {legendItems} from "../figures/standalone.js";
import {el} from "./dom.js";

/** The legend of `figure`; `toggle(label)` is called by a click or, on the focused button, Enter or Space. */
export function legend(figure, context, toggle) {
  const every = {...context, theme: FOLLOWING, hidden: new Set()};
  if (figure.legend === "parts") {
    const items = legendItems(figure, {...context, theme: FOLLOWING});
    return el(
      "ul",
      {class: "legend parts"},
      ...items.map(({title, colour, hatched}) =>
        el(
          "li",
          {},
          el("span", {class: hatched ? "box hatched" : "box", style: `--colour: ${colour}`}),
          title,
        ),
      ),
    );
  }
  if (figure.legend === "none") return schemes({legend: "schemes"}, every, context.hidden, toggle);
  return schemes(figure, every, context.hidden, toggle);
}

function schemes(figure, every, hidden, toggle) {
  return el(
    "div",
    {class: "legend", role: "group", "aria-label": "Show or hide schemes"},
    ...legendItems(figure, every).map(({key, title, colour, symbol}) =>
      el(
        "button",
        {
          type: "button",
          "aria-pressed": String(!hidden.has(key)),
          "data-label": key,
          onclick: () => toggle(key),
          title: hidden.has(key) ? `Show ${title}` : `Hide ${title}`,
        },
        swatch(colour, symbol, figure.name === "cost-elsewhere"),
        title,
      ),
    ),
  );
}

function swatch(stroke, symbol, dashed) {
  const svg = Plot.plot({
    width: 30,
    height: 14,
    margin: 0,
    axis: null,
    x: {domain: [0, 1]},
    y: {domain: [-1, 1]},
    style: {background: "none"},
    marks: [
      Plot.ruleY([0], {stroke, strokeWidth: 2.2, strokeDasharray: dashed ? "7 3" : null}),
      Plot.dot([0], {x: 0.5, y: 0, fill: stroke, symbol, r: 4.4, stroke: FOLLOWING.paper}),
    ],
  });
  svg.setAttribute("aria-hidden", "true");
  return svg;
}
