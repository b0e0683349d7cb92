// Hatched fills: measured beside the batch, waited for, or modelled; never plain measured time in the batch.

const SVG = "http://www.w3.org/2000/svg";
let figures = 0;

/**
 * Patterns for one figure.
 * @returns {fill(key), mark}: `fill` is the paint of colours[key], hatched; `mark` goes first among the
 *   figure's marks
 */
export function hatching(colours, paper) {
  const prefix = `hatch-${(figures += 1)}`;
  const element = (document, name, attributes, ...children) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const mark = (index, scales, values, dimensions, context) => {
    const {document} = context;
    const patterns = Object.entries(colours).map(([key, colour]) =>
      element(
        document,
        "pattern",
        {
          id: `${prefix}-${key}`,
          width: 6,
          height: 6,
          patternUnits: "userSpaceOnUse",
          patternTransform: "rotate(45)",
        },
        element(document, "rect", {width: 6, height: 6, style: `fill: ${colour}; stroke: none`}),
        element(document, "rect", {width: 2.2, height: 6, style: `fill: ${paper}; stroke: none`}),
      ),
    );
    return element(document, "defs", {}, ...patterns);
  };
  return {fill: (key) => `url(#${prefix}-${key})`, mark};
}
