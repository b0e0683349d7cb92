// Time to accuracy: when a run's test first reached a threshold.

import {isNumber, mean} from "./statistics.js";
import {countedForAccuracy, curves, notOversubscribed, testsOf} from "./setups.js";

const NICE = [
  0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92,
  0.93, 0.94, 0.95,
];

/** Three thresholds well apart, the highest one within reach of most schemes. */
export function defaultThresholds(setup) {
  const {means} = curves(setup);
  const best = setup.series
    .map(({implementation, label}) =>
      Math.max(
        ...means
          .filter((point) => point.implementation === implementation && point.label === label)
          .map((p) => p.accuracy),
      ),
    )
    .filter(isNumber)
    .sort((a, b) => a - b);
  if (best.length === 0) return [];
  const reach = best[Math.floor(best.length * 0.25)];
  const chosen = [0, 0.03, 0.1].map((less) =>
    NICE.filter((threshold) => threshold <= reach - less + 1e-9).at(-1),
  );
  const found = [...new Set(chosen.filter(isNumber))].sort((a, b) => a - b);
  return found.length > 0 ? found : [Math.floor(reach * 100) / 100];
}

/** Reads "85, 90 92.5" (per cent) as [0.85, 0.9, 0.925]; leaves out what is no accuracy. */
export function parseThresholds(text) {
  const values = text
    .split(/[\s,;%]+/)
    .filter(Boolean)
    .map((part) => Number(part) / 100);
  return [...new Set(values.filter((value) => value > 0 && value <= 1))].sort((a, b) => a - b);
}

/**
 * A row for each series and threshold: {implementation, label, threshold, reached, of, time, epoch, bits,
 * runs}. `reached` of `of` counted runs got there; time, epoch and bits are their means, null unless all did.
 * `runs` holds every run that did, counted or not. Oversubscribed runs count only where there are no others.
 */
export function timesToAccuracy(setup, thresholds) {
  return setup.series.flatMap(({implementation, label, runs}) =>
    thresholds.flatMap((threshold) => {
      const counted = notOversubscribed(countedForAccuracy(runs));
      if (counted.length === 0) return [];
      const reachedBy = runs.flatMap((run) => {
        const hit = testsOf(run).find((test) => test.accuracy >= threshold);
        return hit
          ? [
              {
                run: run.id,
                seed: run.seed,
                oversubscribed: run.oversubscribed,
                status: run.status,
                counted: counted.includes(run),
                ...hit,
              },
            ]
          : [];
      });
      const hits = reachedBy.filter((hit) => hit.counted);
      const all = hits.length === counted.length;
      const average = (key) => (all ? mean(hits.map((hit) => hit[key])) : null);
      return [
        {
          implementation,
          label,
          threshold,
          of: counted.length,
          reached: hits.length,
          runs: reachedBy,
          time: average("time"),
          epoch: average("epoch"),
          bits: average("bits"),
        },
      ];
    }),
  );
}
