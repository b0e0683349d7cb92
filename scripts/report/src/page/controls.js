// The choices above a figure. Each changes the state and has only those figures drawn again that depend on
// it.

import {BANDWIDTH, FORMULA, LATENCY} from "../model/cost.js";
import {parseThresholds} from "../model/time_to_accuracy.js";
import {el} from "./dom.js";

/** The controls of the figure `name`, or nothing. `state()` gives the present choices. */
export function controls(name, state, change, setup) {
  const make = {
    accuracy: weights,
    bits: scale,
    "time-to-accuracy": thresholds,
    "cost-elsewhere": network,
  }[name];
  return make ? make(state, change, setup) : null;
}

function radios(legend, name, options, chosen, onchange) {
  return el(
    "fieldset",
    {class: "choice"},
    el("legend", {}, legend),
    ...options.map(([value, title]) =>
      el(
        "label",
        {},
        el("input", {
          type: "radio",
          name,
          value,
          checked: value === chosen,
          onchange: () => onchange(value),
        }),
        title,
      ),
    ),
  );
}

function weights(state, change, setup) {
  const averaged = setup.runs.some((run) => run.tests.some((test) => test.weights === "runavg"));
  if (!averaged) return null;
  return radios(
    "Weights",
    "weights",
    [
      ["last", "last"],
      ["runavg", "running average, where kept"],
    ],
    state().weights,
    (chosen) => change({weights: chosen}, ["accuracy", "accuracy-late", "bits"]),
  );
}

function scale(state, change) {
  return radios(
    "Scale of bits",
    "scale",
    [
      ["linear", "linear, as in the notebook"],
      ["log", "logarithmic"],
    ],
    state().logarithmic ? "log" : "linear",
    (chosen) => change({logarithmic: chosen === "log"}, ["bits"]),
  );
}

function thresholds(state, change) {
  const text = state()
    .thresholds.map((threshold) => Number((threshold * 100).toFixed(2)))
    .join(", ");
  const input = el("input", {
    type: "text",
    id: "thresholds",
    value: text,
    size: 18,
    inputmode: "decimal",
    oninput: () => {
      const chosen = parseThresholds(input.value);
      input.setAttribute("aria-invalid", String(chosen.length === 0));
      if (chosen.length > 0) change({thresholds: chosen}, ["time-to-accuracy"]);
    },
  });
  return el(
    "div",
    {class: "choice"},
    el("label", {for: "thresholds"}, "Test accuracies to reach, per cent"),
    input,
  );
}

function network(state, change) {
  const set = (changes) => change({network: {...state().network, ...changes}}, ["cost-elsewhere"]);
  const workers = el("input", {
    type: "number",
    id: "workers",
    min: 2,
    max: 1024,
    value: state().network.workers,
    oninput: () => {
      const value = Math.round(Number(workers.value));
      if (value >= 1 && value <= 100000) set({workers: value});
    },
  });
  return el(
    "div",
    {},
    el("p", {class: "formula"}, el("strong", {}, FORMULA.ring), el("br"), FORMULA.terms),
    el(
      "div",
      {class: "sliders"},
      slider("bandwidth", "Bandwidth", "Gbit/s", BANDWIDTH, state().network.gigabits, (gigabits) =>
        set({gigabits}),
      ),
      slider("latency", "Latency", "µs", LATENCY, state().network.microseconds, (microseconds) =>
        set({microseconds}),
      ),
      el("div", {class: "slider"}, el("label", {for: "workers"}, "Workers"), workers),
    ),
    radios(
      "PyTorch DDP: reduction behind the backward pass",
      "overlap",
      [
        ["none", "not hidden (the most it can take)"],
        ["full", "hidden as far as possible (the least)"],
      ],
      state().overlap,
      (overlap) => change({overlap}, ["cost-elsewhere"]),
    ),
  );
}

const STEPS = 400;

// A logarithmic slider in equal steps, both ends included.
function slider(id, title, unit, {min, max}, value, onchange) {
  const show = (chosen) => `${Number(chosen.toPrecision(chosen < 100 ? 2 : 3))} ${unit}`;
  const output = el("output", {for: id}, show(value));
  const input = el("input", {
    type: "range",
    id,
    min: 0,
    max: STEPS,
    value: Math.round((STEPS * Math.log(value / min)) / Math.log(max / min)),
    "aria-valuetext": show(value),
    oninput: () => {
      const chosen = Number((min * (max / min) ** (input.value / STEPS)).toPrecision(3));
      output.replaceChildren(show(chosen));
      input.setAttribute("aria-valuetext", show(chosen));
      onchange(chosen);
    },
  });
  return el("div", {class: "slider"}, el("label", {for: id}, title), input, output);
}
