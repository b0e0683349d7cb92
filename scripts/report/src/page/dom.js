// Building HTML: el("a", {href}, "text", child). Text is never parsed as markup.

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      node.setAttribute(key, value === true ? "" : value);
  }
  node.append(
    ...children.filter((child) => child !== null && child !== undefined && child !== false),
  );
  return node;
}

// A table that may be wider than the page, under its caption.
function scrolling(className, caption, inner) {
  return el(
    "div",
    {},
    el("p", {class: "title"}, caption),
    el(
      "div",
      {class: `scroll ${className}`, tabindex: 0, role: "region", "aria-label": caption},
      inner,
    ),
  );
}

/** A table of model/tables.js. */
export function table({columns, rows}, {caption, className = ""}) {
  const cell = (row, {key, numeric}, index) =>
    el(
      index === 0 ? "th" : "td",
      {class: numeric ? "numeric" : null, scope: index === 0 ? "row" : null},
      row[key] ?? "–",
    );
  return scrolling(
    className,
    caption,
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ...columns.map(({title, numeric}) =>
            el("th", {scope: "col", class: numeric ? "numeric" : null}, title),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        ...rows.map((row) => el("tr", {}, ...columns.map((column, i) => cell(row, column, i)))),
      ),
    ),
  );
}

/** Every key and its values, of model/tables.js valueTable(). */
export function valuesTable(rows, caption, total) {
  const value = ({text, runs}, alone) =>
    el(
      "li",
      {},
      el("code", {}, text),
      alone || runs.join() === text
        ? null
        : el(
            "span",
            {class: "who", title: runs.join("\n")},
            runs.length === 1 ? ` ${runs[0]}` : ` ${runs.length} of ${total} runs`,
          ),
    );
  return scrolling(
    "values",
    caption,
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el("tr", {}, el("th", {scope: "col"}, "Key"), el("th", {scope: "col"}, "Values")),
      ),
      el(
        "tbody",
        {},
        ...rows.map(({key, values}) =>
          el(
            "tr",
            {class: values.length > 1 ? "differs" : null},
            el("th", {scope: "row"}, el("code", {}, key)),
            el(
              "td",
              {},
              folded(
                values.length,
                el("ul", {}, ...values.map((each) => value(each, values.length === 1))),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

const MANY = 5;

function folded(count, list) {
  return count > MANY ? el("details", {}, el("summary", {}, `${count} values`), list) : list;
}
