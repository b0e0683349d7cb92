// What the page says around the figures.

import {datasetName} from "../model/marks.js";
import {lateWindow} from "../figures/curves.js";
import {distinct} from "../model/statistics.js";

const counted =
  "A thin line is one seed, a thick one the mean of finished runs; runs that did not finish end in a cross.";
const list = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

export const TEXTS = {
  lead: ({runs, labels, implementations}) => {
    const workers = distinct(runs.map((run) => run.workers).filter(Boolean));
    const sets = distinct(runs.map((run) => run.dataset).filter(Boolean)).map(datasetName);
    const on = [
      workers.length > 0 && `on ${list(workers)} workers`,
      sets.length > 0 && `with ${list(sets)}`,
    ];
    return (
      [
        `${runs.length} ${runs.length === 1 ? "run" : "runs"} of ${list(implementations)}: ${list(labels)}`,
        ...on,
      ]
        .filter(Boolean)
        .join(", ") + "."
    );
  },
  summary:
    "Means of finished runs, where there are any. Bits are what one worker hands to the collectives for gradients in a " +
    "step. Speed compares with full precision in the same implementation.",
  runs:
    "The numbers of powersgd-bench export: mean time per batch without the first, last test accuracy, exact bits. " +
    "What is marked for all " +
    "runs stands at the top of the page.",
  settings:
    "Keys whose values differ between runs come first. Point at a number of runs to see which.",
  provenance: "What was run, with what, where and when.",
  accuracy: {title: "Test accuracy against epoch", short: "Accuracy", caption: () => counted},
  "accuracy-late": {
    title: "The last part",
    short: "Last part",
    caption: ({setup}) => `Test accuracy from epoch ${lateWindow(setup).start} on, enlarged.`,
  },
  bits: {
    title: "Test accuracy against bits communicated",
    short: "Bits",
    caption: ({logarithmic}) =>
      `Bits that one worker has handed to the collectives for gradients since the start. ${
        logarithmic
          ? ""
          : "The linear axis is cut where the compressed schemes have ended, as in the notebook; the " +
            "logarithmic one shows everything."
      }`,
  },
  "batch-time": {
    title: "Time per batch",
    short: "Time per batch",
    caption: ({setup}) =>
      "From the forward pass to the optimiser step, without the first batch. The thick tick is the mean, the " +
      "whisker spans the 5th to 95th percentile over batches, a circle is one run; a crossed run is not in the mean. " +
      (setup.implementations.includes("PyTorch DDP")
        ? "PyTorch DDP reduces beside the backward pass: the thin hatched bar " +
          "is what the hook's thread was busy with, drawn to end where waiting for it ends."
        : ""),
  },
  "time-to-accuracy": {
    title: "Time to accuracy",
    short: "Time to accuracy",
    caption: () =>
      "Wall time since training began, with loading and testing, when a test first reached the accuracy. A symbol is " +
      "the mean over runs, a tick one run; a crossed run is not in the mean.",
  },
  "cost-elsewhere": {
    title: "What would it cost elsewhere? (modelled)",
    short: "Elsewhere",
    caption: ({overlap}) =>
      "Modelled, not measured: the compute measured here (forward, backward, encode, orthogonalise, decode, " +
      "step, running average) plus ring all-reduces on the network chosen below. " +
      (overlap === "full"
        ? "PyTorch DDP: forward + max(backward, reduction) + step."
        : "PyTorch DDP: as if nothing were reduced beside the backward pass.") +
      " Compute measured on oversubscribed cores is too slow here, too.",
  },
};
