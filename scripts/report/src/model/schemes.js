// The schemes' labels and their order: full precision, FP16, rank 1, 2, 4, ..., then all others by name.

/** The run's label, e.g. "rank 2"; from its rank where the files give none. */
export function labelOf({label, rank, scheme}) {
  if (label) return label;
  if (rank === 0) return "full precision";
  if (typeof rank === "number") return `rank ${rank}`;
  return rank ?? scheme ?? "unknown";
}

/** Sorts labels as the notebook lists them. */
export function compareLabels(a, b) {
  return weight(a) - weight(b) || a.localeCompare(b, "en", {numeric: true});
}

function weight(label) {
  const fixed = ["full precision", "FP16"].indexOf(label);
  if (fixed >= 0) return fixed;
  const rank = /^rank (\d+)$/.exec(label);
  return rank ? 2 + Number(rank[1]) / 1e6 : 3;
}

/** Sorts implementations as the notebook shows them: PyTorch DDP first. */
export function compareImplementations(a, b) {
  const known = ["PyTorch DDP", "Paper"];
  const position = (name) => (known.includes(name) ? known.indexOf(name) : known.length);
  return position(a) - position(b) || a.localeCompare(b, "en");
}
