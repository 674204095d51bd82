// One metric drawn: by category, against cost, and the ranks under every reading.
function plotsView() {
  const body = el("div");
  const draw = () => body.replaceChildren(scoreFilters(draw, false), ...plots(draw));
  draw();
  return [el("h2", {}, "Plots"), body];
}

function plots(draw) {
  const metric = valueOf(METRIC),
    everyone = scored(filteredRuns(), metric, scoreKey()).map((row) => row.number);
  if (!everyone.length) return [el("p", { class: "note" }, "No run here was scored in this way.")];
  const board = setting("board", "Runs", boardsOf(everyone).map((name) => option(name)));
  const numbers = everyone.filter((number) => boardOf(number) === valueOf(board));
  const names = labels(numbers);
  const styles = (lens) => lens.runs.map((id) => numbers.findIndex((number) => DATA.runs[number].id === id));
  const lenses = DATA.definitions.lenses.filter(
    (lens) =>
      lens.ranked.filter(Boolean).length > 1 && styles(lens).every((index, place) => index >= 0 || !lens.ranked[place]),
  );
  const choice = board.options.length > 1 ? el("div", { class: "filters" }, menu(board, draw)) : null;
  const shown = el(
    "div",
    {},
    legend(numbers.map((number) => names.get(number))),
    el("h3", {}, `${words(metric)} by category, ${metricOf(metric).unit}`),
    categoryPanels(numbers, names, metric),
    costPlot(numbers, names, metric),
    lenses.map((lens) => [
      el("h3", {}, `Rank under each reading, ${[lens.dataset, lens.setting].filter(Boolean).join(", ")}`),
      el("p", { class: "small faint" }, lens.heading),
      rankChart(lens, styles(lens)),
    ]),
  );
  return choice ? [choice, shown] : [shown];
}

function categoryPanels(numbers, names, metric) {
  const categories = Object.entries(
    Object.assign(
      {},
      ...unique(numbers.map((number) => DATA.runs[number].dataset)).map((name) => DATA.categories[name]),
    ),
  );
  const figures = (number, key) => DATA.scores[number][metric][key];
  const all = categories.flatMap(([key]) => numbers.map((number) => figures(number, key)).filter(Boolean));
  const means = Math.max(...all.map((one) => one[0]), 1);
  const ends = Math.max(...all.map((one) => one[2] ?? one[0]), 1);
  const most = roundUp(Math.min(ends, Math.max(means, 100)));
  return [
    el(
      "div",
      { class: "panels" },
      categories.map(([key, name]) => {
        const own = numbers.filter((number) => figures(number, key));
        return own.length === 0
          ? null
          : el(
              "div",
              { class: "panel" },
              el("h4", {}, `${key} ${name}`),
              own.map((number) => {
                const found = figures(number, key);
                return el(
                  "div",
                  { class: "strip" },
                  el("span", { title: names.get(number) }, names.get(number)),
                  track(found, most, numbers.indexOf(number)),
                  el("span", {}, fixed(found[0])),
                );
              }),
            );
      }),
    ),
    el(
      "p",
      { class: "small faint" },
      `Tracks end at ${most}; lines: 95 % intervals, as far as the tracks go. ${fooledNote(numbers.map((number) => ({ number })), metric, "paper_trap")}`,
    ),
  ];
}

function costPlot(numbers, names, metric) {
  const key = scoreKey();
  const cost = numbers.some((number) => DATA.runs[number].costs.tokens)
    ? ["tokens", "tokens per question"]
    : ["context", "context tokens per question"];
  const points = numbers
    .map((number, style) => ({
      style,
      name: names.get(number),
      figures: DATA.scores[number][metric][key],
      cost: DATA.runs[number].costs[cost[0]],
    }))
    .filter((point) => point.cost !== undefined);
  if (!points.length) return null;
  return [el("h3", {}, `${words(metric)} against cost`), scatter(points, cost[1], `${words(metric)}, ${metricOf(metric).unit}`)];
}
