// What a reader can choose, and where every choice starts.

import {BANDWIDTH, LATENCY} from "../model/cost.js";
import {defaultThresholds} from "../model/time_to_accuracy.js";

/**
 * The choices before anyone has chosen, for a setup. The modelled network starts with the notebook's 16
 * workers.
 */
export function defaults(setup) {
  return {
    hidden: new Set(),
    weights: "last",
    logarithmic: false,
    thresholds: defaultThresholds(setup),
    network: {workers: 16, gigabits: BANDWIDTH.start, microseconds: LATENCY.start},
    overlap: "none",
  };
}
