// Plots: readable without colour (each system has a marker of its own), labelled with units.
const SHAPES = [
  (x, y) => svg("circle", { cx: x, cy: y, r: 5, class: "mark" }),
  (x, y) => svg("rect", { x: x - 4.5, y: y - 4.5, width: 9, height: 9, class: "mark" }),
  (x, y) => svg("path", { d: `M${x} ${y - 6}L${x + 6} ${y + 5}L${x - 6} ${y + 5}Z`, class: "mark" }),
  (x, y) => svg("path", { d: `M${x} ${y - 6}L${x + 6} ${y}L${x} ${y + 6}L${x - 6} ${y}Z`, class: "mark" }),
  (x, y) => svg("path", { d: `M${x} ${y + 6}L${x + 6} ${y - 5}L${x - 6} ${y - 5}Z`, class: "mark" }),
  (x, y) => svg("path", { d: `M${x - 2} ${y - 6}h4v4h4v4h-4v4h-4v-4h-4v-4h4Z`, class: "mark" }),
];

/** Six colours and six shapes; when they run out, shapes move on by one. */
const shape = (index, x, y) => SHAPES[(index + Math.floor(index / 6)) % SHAPES.length](x, y);
const marker = (index, x, y) => svg("g", { class: `c${index % 6}` }, shape(index, x, y));

function legend(names) {
  return el(
    "ul",
    { class: "legend" },
    names.map((name, index) =>
      el("li", {}, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, marker(index, 7, 7)), name),
    ),
  );
}

/** A value with its interval on a track from 0 to `most`. */
function track(figures, most, dot = null) {
  const share = (value) => Math.max(0, Math.min(100, (100 * value) / most));
  const at = (value) => `${share(value)}%`;
  const [value, low, high] = figures;
  const parts = dot === null ? [el("span", { class: "fill", style: { width: at(value) } })] : [];
  if (low !== undefined)
    parts.push(el("span", { class: "range", style: { left: at(low), width: `${share(high) - share(low)}%` } }));
  parts.push(
    el(
      "span",
      dot === null
        ? { class: "point", style: { left: at(value) } }
        : { class: `dot c${dot % 6}`, style: { left: at(value) } },
    ),
  );
  return el("div", { class: "track", "aria-hidden": "true" }, parts);
}

const roundUp = (value) => {
  const step = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * step).find((limit) => limit >= value);
};

/** Round numbers from 0 to `most`, three to six of them. */
function ticks(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [0.2, 0.25, 0.5, 1, 2].map((factor) => factor * power).find((one) => most / one <= 5);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => step * index);
}

/** Points with intervals over a cost; the cost's axis is logarithmic where it spans much. */
function scatter(points, xTitle, yTitle) {
  const width = Math.max(300, Math.min(680, window.innerWidth - 40)),
    height = 330,
    left = 52,
    right = 16,
    top = 12,
    bottom = 46;
  const costs = points.map((point) => point.cost);
  const logarithmic = Math.min(...costs) > 0 && Math.max(...costs) / Math.min(...costs) > 8;
  const low = logarithmic ? Math.log10(Math.min(...costs)) - 0.15 : 0;
  const high = logarithmic ? Math.log10(Math.max(...costs)) + 0.15 : roundUp(Math.max(...costs, 1));
  const most = roundUp(Math.max(...points.map((point) => point.figures[2] ?? point.figures[0]), 1));
  const x = (cost) => left + (((logarithmic ? Math.log10(cost) : cost) - low) / (high - low)) * (width - left - right);
  const y = (value) => height - bottom - (value / most) * (height - top - bottom);
  const xTicks = logarithmic ? logTicks(low, high) : ticks(high);
  const grid = [
    ...ticks(most).map((tick) => [
      svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "axis" }),
      svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end", class: "faint" }, String(+tick.toFixed(2))),
    ]),
    ...xTicks.map((tick) =>
      svg(
        "text",
        { x: x(tick), y: height - bottom + 18, "text-anchor": "middle", class: "faint" },
        tick.toLocaleString("en"),
      ),
    ),
    svg("text", { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" }, xTitle),
    svg(
      "text",
      {
        x: 14,
        y: (height - bottom) / 2,
        transform: `rotate(-90 14 ${(height - bottom) / 2})`,
        "text-anchor": "middle",
      },
      yTitle,
    ),
  ];
  const marks = points.map((point) =>
    svg(
      "g",
      {},
      svg("title", {}, `${point.name}: ${fixed(point.figures[0])} at ${point.cost.toLocaleString("en")}`),
      point.figures.length > 1
        ? svg("line", {
            x1: x(point.cost),
            x2: x(point.cost),
            y1: y(point.figures[1]),
            y2: y(point.figures[2]),
            class: `stroke c${point.style % 6}`,
          })
        : null,
      marker(point.style, x(point.cost), y(point.figures[0])),
    ),
  );
  return svg(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `${yTitle} against ${xTitle}`,
      style: { "max-width": `${width}px` },
    },
    grid,
    marks,
  );
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(low); power <= Math.ceil(high); power += 1) {
    for (const factor of [1, 2, 5]) {
      const tick = factor * 10 ** power;
      if (Math.log10(tick) >= low && Math.log10(tick) <= high) found.push(tick);
    }
  }
  return found;
}

/** Rank of each system, one column per reading; `styles`: which colour and shape each system has. References have no rank. */
function rankChart(lens, styles) {
  const systems = lens.systems.map((name, place) => ({ name, place })).filter(({ place }) => lens.ranked[place]);
  const lines = lens.sections
    .flatMap((section) => section.lines.map((line) => ({ ...line, section: section.title })))
    .filter((line, index, all) => all.findIndex((other) => other.label === line.label) === index)
    .filter((line) => systems.every(({ place }) => line.standings[place].rank !== null));
  const step = 26,
    left = 40,
    top = 14,
    gap = 30,
    below = 250;
  const width = left + step * lines.length + 40,
    height = top + gap * (systems.length - 1) + 14 + below;
  const x = (index) => left + step * index,
    y = (rank, system) => top + gap * (rank - 1) + (system - (systems.length - 1) / 2) * Math.min(3, 20 / systems.length);
  const axis = systems.map((_, index) => [
    svg("line", {
      x1: left - 10,
      x2: x(lines.length - 1) + 10,
      y1: top + gap * index,
      y2: top + gap * index,
      class: "axis",
    }),
    svg("text", { x: left - 18, y: top + gap * index + 4, "text-anchor": "end", class: "faint" }, String(index + 1)),
  ]);
  const names = lines.map((line, index) => {
    const place = [x(index) + 4, top + gap * (systems.length - 1) + 24];
    return svg(
      "text",
      {
        x: place[0],
        y: place[1],
        transform: `rotate(-62 ${place[0]} ${place[1]})`,
        "text-anchor": "end",
        "font-size": 11,
      },
      line.label.slice(0, 44),
    );
  });
  const paths = systems.map(({ name, place: system }, order) => {
    const at = lines.map((line, index) => [x(index), y(line.standings[system].rank, order)]);
    return svg(
      "g",
      { class: `c${styles[system] % 6}` },
      svg("polyline", { points: at.map((pair) => pair.join(",")).join(" "), class: "stroke", opacity: 0.35 }),
      at.map(([px, py], index) =>
        svg(
          "g",
          {},
          svg(
            "title",
            {},
            `${name}: ${fixed(lines[index].standings[system].value)}, rank ${lines[index].standings[system].rank}`,
          ),
          shape(styles[system], px, py),
        ),
      ),
    );
  });
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rank under each reading" },
    svg(
      "svg",
      {
        class: "chart",
        viewBox: `-60 0 ${width + 60} ${height}`,
        role: "img",
        "aria-label": "Rank of each system under each reading",
        style: { "min-width": `${width + 60}px` },
      },
      axis,
      names,
      paths,
    ),
  );
}
