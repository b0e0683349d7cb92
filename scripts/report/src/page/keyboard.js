// Reading values without a mouse: on a focused figure the arrow keys move the pointer from point to point.

/**
 * @param figure the focusable element around `svg`
 * Left and right go along the x axis, up and down jump between panels and heights; Escape leaves.
 */
export function steerByKeyboard(figure, svg) {
  let at = null;
  figure.onkeydown = (event) => {
    const direction = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[
      event.key
    ];
    if (event.key === "Escape") leave();
    if (!direction) return;
    event.preventDefault();
    const points = places(svg);
    if (points.length === 0) return;
    at = at === null ? points[0] : next(points, at, direction);
    move("pointermove", at);
  };
  figure.onblur = leave;

  function leave() {
    if (at !== null) move("pointerleave", at);
    at = null;
  }

  function move(type, {x, y}) {
    const box = svg.getBoundingClientRect();
    svg.dispatchEvent(
      new PointerEvent(type, {
        clientX: box.left + x,
        clientY: box.top + y,
        pointerType: "mouse",
        bubbles: true,
      }),
    );
  }
}

// The points drawn as symbols, in the SVG's pixels, from left to right.
function places(svg) {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('[aria-label="dot"] :is(path, circle), [aria-label="bar"] rect')]
    .map((mark) => {
      const {left, top, width, height} = mark.getBoundingClientRect();
      return {x: left + width / 2 - box.left, y: top + height / 2 - box.top};
    })
    .sort((a, b) => a.x - b.x || a.y - b.y);
}

function next(points, at, [dx, dy]) {
  const distance = (p) =>
    dx !== 0
      ? Math.abs(p.x - at.x) + 3 * Math.abs(p.y - at.y)
      : Math.abs(p.y - at.y) + 3 * Math.abs(p.x - at.x);
  const ahead = points.filter((p) =>
    dx !== 0 ? (p.x - at.x) * dx > 0.5 : (p.y - at.y) * dy > 0.5,
  );
  return ahead.length > 0 ? ahead.reduce((a, b) => (distance(a) <= distance(b) ? a : b)) : at;
}
