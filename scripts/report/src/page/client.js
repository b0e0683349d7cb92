// The page in the browser: draws everything from the data that stands in it, and again after each choice.

import {appearance, FOLLOWING, LIGHT} from "../figures/theme.js";
import {FIGURES} from "../figures/figures.js";
import {standalone} from "../figures/standalone.js";
import {groupBySetup} from "../model/setups.js";
import {notesOf} from "../model/marks.js";
import {
  batchTimeTable,
  costTable,
  runTable,
  summaryTable,
  timeToAccuracyTable,
  valueTable,
} from "../model/tables.js";
import {costInputs} from "../model/cost.js";
import {timesToAccuracy} from "../model/time_to_accuracy.js";
import {controls} from "./controls.js";
import {defaults} from "./state.js";
import {el, table, valuesTable} from "./dom.js";
import {legend} from "./legend.js";
import {steerByKeyboard} from "./keyboard.js";
import {TEXTS} from "./texts.js";

const {runs, made} = JSON.parse(document.getElementById("data").textContent);
const setups = groupBySetup(runs);
const look = appearance(new Set(runs.map((run) => run.label)));
let setup = setups[0];
let state = defaults(setup);
const drawers = new Map();

function change(changes, only) {
  state = {...state, ...changes};
  for (const [name, drawAgain] of drawers) if (!only || only.includes(name)) drawAgain();
}

function toggle(label) {
  const hidden = new Set(state.hidden);
  if (!hidden.delete(label)) hidden.add(label);
  const focused = document.activeElement?.closest("section")?.id;
  change({hidden});
  document.querySelector(`#${focused} [data-label="${CSS.escape(label)}"]`)?.focus();
}

const context = (width) => ({...state, setup, look, theme: FOLLOWING, width, interactive: true});

function figureSection(figure) {
  const legendPlace = el("div", {class: "legend-place"});
  const place = el("figure", {
    class: "plot",
    tabindex: 0,
    "aria-label": `${figure.title}. Arrow keys move from point to point.`,
  });
  const caption = el("p", {class: "caption"});
  const below = el("div", {class: "below"});
  const section = el(
    "section",
    {id: figure.name, class: figure.name === "cost-elsewhere" ? "modelled" : null},
    el("div", {class: "heading"}, el("h2", {}, TEXTS[figure.name].title), saveButton(figure)),
    caption,
    controls(figure.name, () => state, change, setup),
    legendPlace,
    place,
    below,
  );
  drawers.set(figure.name, () => {
    const width = Math.max(300, Math.floor(place.clientWidth || 300));
    const now = context(width);
    const focused = document.activeElement === place;
    const svg = figure.draw(now);
    place.replaceChildren(svg);
    if (focused) place.focus();
    steerByKeyboard(place, svg);
    caption.replaceChildren(TEXTS[figure.name].caption(now));
    legendPlace.replaceChildren(legend(figure, now, toggle));
    below.replaceChildren(...(BELOW[figure.name]?.() ?? []));
  });
  return section;
}

const BELOW = {
  "batch-time": () => [
    table(batchTimeTable(setup), {caption: "Mean time per batch and of its parts, ms"}),
  ],
  "time-to-accuracy": () => [
    table(timeToAccuracyTable(timesToAccuracy(setup, state.thresholds)), {
      caption: "Time since training began until the test accuracy was first reached (mean of runs)",
    }),
  ],
  "cost-elsewhere": () => [
    table(costTable(costInputs(setup), state.network, state.overlap), {
      caption:
        `Modelled for ${state.network.workers} workers at ${Number(state.network.gigabits.toPrecision(3))} Gbit/s and ` +
        `${Number(state.network.microseconds.toPrecision(3))} µs; nothing in the columns "modelled" was measured`,
    }),
  ],
};

// The figure as it stands, as a file for a paper.
function saveButton(figure) {
  const save = () => {
    const svg = standalone(figure, {...context(860), theme: LIGHT, document});
    const url = URL.createObjectURL(
      new Blob([new XMLSerializer().serializeToString(svg)], {type: "image/svg+xml"}),
    );
    el("a", {href: url, download: `${figure.name}.svg`}).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  return el(
    "button",
    {type: "button", class: "save", onclick: save, "aria-label": `Save ${figure.title} as SVG`},
    "Save SVG",
  );
}

const marksList = () =>
  el(
    "ul",
    {class: "marks"},
    ...notesOf(setup.runs).map(({kind, text}) => el("li", {class: kind}, text)),
  );

function tablesSections() {
  const own = setup.runs;
  return [
    el(
      "section",
      {id: "runs"},
      el("h2", {}, "Runs"),
      el("p", {class: "caption"}, TEXTS.runs),
      table(runTable(own), {caption: "Each run"}),
    ),
    el(
      "section",
      {id: "settings"},
      el("h2", {}, "Settings"),
      el("p", {class: "caption"}, TEXTS.settings),
      valuesTable(
        valueTable(own, (run) => run.config),
        "Every key of the configurations, with all its values",
        own.length,
      ),
    ),
    el(
      "section",
      {id: "provenance"},
      el("h2", {}, "Provenance"),
      el("p", {class: "caption"}, TEXTS.provenance),
      valuesTable(
        valueTable(own, (run) => run.provenance),
        "Machines, versions and commands",
        own.length,
      ),
    ),
  ];
}

function setupChoice() {
  if (setups.length < 2) return null;
  const choose = (event) => {
    setup = setups[Number(event.target.value)];
    state = defaults(setup);
    build();
  };
  return el(
    "label",
    {class: "setup"},
    "Setup ",
    el(
      "select",
      {id: "setup", onchange: choose},
      ...setups.map((each, i) =>
        el(
          "option",
          {value: i, selected: each === setup},
          `${each.title} (${each.runs.length} ${each.runs.length === 1 ? "run" : "runs"})`,
        ),
      ),
    ),
    el("span", {class: "caption"}, " Runs of different setups are not compared or averaged."),
  );
}

function build() {
  drawers.clear();
  const shown = FIGURES.filter((figure) => figure.suits(setup));
  const absent = FIGURES.filter((figure) => !figure.suits(setup)).map((figure) => figure.title);
  const nav = [
    ["summary", "Results"],
    ...shown.map(({name}) => [name, TEXTS[name].short]),
    ["runs", "Runs"],
    ["settings", "Settings"],
    ["provenance", "Provenance"],
  ];
  document
    .getElementById("report")
    .replaceChildren(
      el(
        "header",
        {},
        el("h1", {}, "PowerSGD benchmark"),
        el("p", {class: "lead"}, TEXTS.lead(setup)),
        setupChoice(),
        marksList(),
        el(
          "nav",
          {"aria-label": "Sections"},
          ...nav.map(([id, title]) => el("a", {href: `#${id}`}, title)),
        ),
      ),
      el(
        "section",
        {id: "summary"},
        el("h2", {}, "Results"),
        el("p", {class: "caption"}, TEXTS.summary),
        table(summaryTable(setup), {caption: "One row a scheme"}),
      ),
      ...shown.map(figureSection),
      ...(absent.length > 0
        ? [el("p", {class: "absent"}, `Not shown for want of data: ${absent.join("; ")}.`)]
        : []),
      ...tablesSections(),
      el("footer", {}, `Made ${made} from ${runs.length} ${runs.length === 1 ? "run" : "runs"}.`),
    );
  change({});
}

build();
let lastWidth = document.documentElement.clientWidth;
const redraw = () => change({});
addEventListener("resize", () => {
  if (document.documentElement.clientWidth === lastWidth) return;
  lastWidth = document.documentElement.clientWidth;
  redraw();
});
addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => (details.open = true));
  redraw();
});
addEventListener("afterprint", redraw);
