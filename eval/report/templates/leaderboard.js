// Leaderboard and plots: one metric, one category, one way of averaging.

/** Key of a run's figures: a category, or all of them in the chosen way. */
function scoreKey() {
  const category = params.get("category") ?? "";
  const five = chosen("five", FIVE.map((one) => one.value)), weights = chosen("weights", WEIGHTS.map((one) => one.value));
  return category || `${five}/${weights}`;
}

function scoreFilters(onChange, withCategory = true) {
  const dataset = chosen("dataset", [...datasets, "all"], fullest());
  const shown = datasets.filter((name) => dataset === "all" || name === dataset);
  const categories = Object.entries(Object.assign({}, ...shown.map((name) => DATA.categories[name])));
  const metrics = metricOptions();
  const metric = chosen("metric", metrics.map((one) => one.value));
  const known = categories.map(([number]) => number);
  if (!known.includes(params.get("category"))) change({ category: "" });
  const whole = !params.get("category"), five = known.includes("5");
  return el("div", { class: "filters" },
    select("Data set", "dataset", [...datasets.map((name) => option(name)), ...(datasets.length > 1 ? [option("all", "all data sets")] : [])], dataset, onChange),
    select("Backbone", "backbone", [option("all", "all backbones"), ...backbones.map((name) => option(name))], chosen("backbone", ["all", ...backbones]), onChange),
    select("Metric", "metric", metrics, metric, onChange),
    withCategory ? select("Category", "category", [option("", "all"), ...categories.map(([number, name]) => option(number, `${number} ${name}`))], params.get("category") ?? "", onChange) : null,
    whole && five ? select("Category 5", "five", FIVE, chosen("five", FIVE.map((one) => one.value)), onChange) : null,
    whole && known.length > 1 ? select("Mean", "weights", WEIGHTS, chosen("weights", WEIGHTS.map((one) => one.value)), onChange) : null);
}

/** Numbers of the runs that the filters let through, by data set. */
function filteredRuns() {
  const dataset = chosen("dataset", [...datasets, "all"], fullest()), backbone = chosen("backbone", ["all", ...backbones]);
  return DATA.runs.map((_, number) => number).filter((number) =>
    (dataset === "all" || DATA.runs[number].dataset === dataset) && (backbone === "all" || DATA.runs[number].backbone === backbone));
}

function chosenMetric() {
  return chosen("metric", DATA.metrics.map((metric) => metric.name));
}

function scored(numbers, metric, key) {
  return numbers.map((number) => ({ number, figures: DATA.scores[number][metric]?.[key] })).filter((row) => row.figures)
    .sort((one, two) => two.figures[0] - one.figures[0]);
}

function leaderboardView() {
  const body = el("div");
  const draw = () => body.replaceChildren(scoreFilters(draw), leaderboard());
  draw();
  return [el("h2", {}, "Leaderboard"), el("p", { class: "faint" }, `${plural(DATA.runs.length, "run")} on ${plural(datasets.length, "data set")}. Percent; bars and brackets: mean with its 95 % bootstrap interval.`), body];
}

function leaderboard() {
  const metric = chosenMetric(), source = DATA.metrics.find((one) => one.name === metric);
  const key = scoreKey(), numbers = filteredRuns();
  const rows = scored(numbers, metric, key);
  if (!rows.length) return el("p", { class: "note" }, "No run here was scored in this way.");
  const most = roundUp(Math.max(...rows.map((row) => row.figures[2] ?? row.figures[0]), 1));
  const parts = unique(rows.map((row) => DATA.runs[row.number].dataset)).flatMap((dataset) => {
    const own = rows.filter((row) => DATA.runs[row.number].dataset === dataset);
    return [el("tr", { class: "group" }, el("th", { colspan: "8", scope: "colgroup" }, dataset)), own.map((row) => boardRow(row, own, most))];
  });
  const heads = [head("#", true), head("system"), head("", false, "wide"), head(metric.replaceAll("_", " "), true), head("95 %", true),
    head("questions", true), head("context", true, "wide"), head("tokens", true, "wide")];
  const unscored = numbers.filter((number) => !rows.some((row) => row.number === number));
  return el("div", {}, coverageNote(rows),
    table("Leaderboard", heads, parts),
    el("p", { class: "small faint" }, `${metric}: ${source.source}. context: tokens that the reader sees; tokens: prompt and completion tokens per question. ‡ interval over the questions of one conversation.`),
    unscored.length ? el("p", { class: "small faint" }, `Not scored in this way: ${unscored.map((number) => DATA.runs[number].id).join(", ")}.`) : null);
}

function boardRow(row, own, most) {
  const run = DATA.runs[row.number], [value, low, high, unit] = row.figures;
  const place = 1 + own.filter((other) => other.figures[0] > value).length;
  const interval = low === undefined ? "" : `[${fixed(low)}, ${fixed(high)}]${unit === "question" ? "‡" : ""}`;
  return el("tr", {}, cell(String(place), true),
    el("th", { scope: "row" }, el("a", { href: address("runs", { run: run.id }), class: place === 1 ? "first" : null }, run.system),
      el("div", { class: "small faint" }, run.without || run.backbone)),
    el("td", { class: "bar wide" }, track(row.figures, most)),
    el("td", { class: place === 1 ? "number first" : "number" }, fixed(value)), cell(interval, true),
    cell(run.questions.toLocaleString("en"), true),
    cell(fixed(run.costs.context, 0), true, "wide"), cell(fixed(run.costs.tokens, 0), true, "wide"));
}

/** Runs on other questions are no competitors: say so above them. */
function coverageNote(rows) {
  const uneven = unique(rows.map((row) => DATA.runs[row.number].dataset)).filter((dataset) =>
    unique(rows.filter((row) => DATA.runs[row.number].dataset === dataset).map((row) => DATA.runs[row.number].questions)).length > 1);
  return uneven.length ? el("p", { class: "note" }, `On ${uneven.join(", ")} the runs answered different numbers of questions: their order says little. The definitions compare them on common questions.`) : null;
}

function plotsView() {
  const body = el("div");
  const draw = () => body.replaceChildren(scoreFilters(draw, false), plots());
  draw();
  return [el("h2", {}, "Plots"), body];
}

function plots() {
  const metric = chosenMetric(), numbers = scored(filteredRuns(), metric, scoreKey()).map((row) => row.number);
  if (!numbers.length) return el("p", { class: "note" }, "No run here was scored in this way.");
  const names = labels(numbers);
  const styles = (lens) => lens.runs.map((id) => numbers.findIndex((number) => DATA.runs[number].id === id));
  const lenses = DATA.definitions.lenses.filter((lens) => lens.systems.length > 1 && styles(lens).every((index) => index >= 0));
  return el("div", {}, legend(numbers.map((number) => names.get(number))),
    el("h3", {}, `${metric.replaceAll("_", " ")} by category, percent`), categoryPanels(numbers, names, metric), costPlot(numbers, names, metric),
    lenses.map((lens) => [el("h3", {}, `Rank under each reading, ${lens.dataset}`), el("p", { class: "small faint" }, lens.heading), rankChart(lens, styles(lens))]));
}

function categoryPanels(numbers, names, metric) {
  const categories = Object.entries(Object.assign({}, ...unique(numbers.map((number) => DATA.runs[number].dataset)).map((name) => DATA.categories[name])));
  const figures = (number, key) => DATA.scores[number][metric][key];
  const all = categories.flatMap(([key]) => numbers.map((number) => figures(number, key)).filter(Boolean));
  const most = roundUp(Math.max(...all.map((one) => one[2] ?? one[0]), 1));
  return [el("div", { class: "panels" }, categories.map(([key, name]) => {
    const own = numbers.filter((number) => figures(number, key));
    return own.length === 0 ? null : el("div", { class: "panel" }, el("h4", {}, `${key} ${name}`), own.map((number) => {
      const found = figures(number, key);
      return el("div", { class: "strip" }, el("span", { title: names.get(number) }, names.get(number)), track(found, most, numbers.indexOf(number)), el("span", {}, fixed(found[0])));
    }));
  })), el("p", { class: "small faint" }, `Tracks end at ${most}; lines: 95 % intervals.`)];
}

function costPlot(numbers, names, metric) {
  const key = scoreKey();
  const cost = numbers.some((number) => DATA.runs[number].costs.tokens) ? ["tokens", "tokens per question"] : ["context", "context tokens per question"];
  const points = numbers.map((number, style) => ({ style, name: names.get(number), figures: DATA.scores[number][metric][key], cost: DATA.runs[number].costs[cost[0]] }))
    .filter((point) => point.cost !== undefined);
  if (!points.length) return null;
  return [el("h3", {}, `${metric.replaceAll("_", " ")} against cost`), scatter(points, cost[1], `${metric.replaceAll("_", " ")}, percent`)];
}
