// Leaderboard: one metric, one category, one way of averaging.

/** Data sets that the filters let through. */
const chosenSets = () => datasets.filter((name) => ["all", name].includes(valueOf(DATASET)));

/** Key of a run's figures: a category, or all of them in the chosen way. */
const scoreKey = () => valueOf(categoryOf(chosenSets())) || `${valueOf(FIVE)}/${valueOf(WEIGHTS)}`;

function scoreFilters(draw, withCategory = true) {
  if (!withCategory) change({ category: "" });
  const category = categoryOf(chosenSets()),
    known = category.options.map((one) => one.value);
  const whole = !valueOf(category);
  const shown = [DATASET, BACKBONE, METRIC];
  if (withCategory) shown.push(category);
  if (whole && chosenSets().some((name) => DATA.adversarial[name].length)) shown.push(FIVE);
  if (whole && known.length > 2) shown.push(WEIGHTS);
  return el(
    "div",
    { class: "filters" },
    shown.map((one) => menu(one, draw)),
  );
}

/** Numbers of the runs that the filters let through. */
function filteredRuns() {
  const sets = chosenSets(),
    backbone = valueOf(BACKBONE);
  const fits = (run) => sets.includes(run.dataset) && ["all", run.backbone].includes(backbone);
  return DATA.runs.map((_, number) => number).filter((number) => fits(DATA.runs[number]));
}

/** Figures of runs, the best first. */
function scored(numbers, metric, key) {
  const sign = metricOf(metric)?.lower ? -1 : 1;
  return numbers
    .map((number) => ({ number, figures: DATA.scores[number][metric]?.[key] }))
    .filter((row) => row.figures)
    .sort((one, two) => sign * (two.figures[0] - one.figures[0]));
}

function leaderboardView() {
  const body = el("div");
  const draw = () => body.replaceChildren(scoreFilters(draw), leaderboard());
  draw();
  return [
    el("h2", {}, "All scores of all runs"),
    el(
      "p",
      { class: "faint" },
      `${plural(DATA.runs.length, "run")} on ${plural(datasets.length, "data set")}. Bars and brackets: mean with its 95 % cluster t interval.`,
    ),
    body,
  ];
}

function leaderboard() {
  const metric = valueOf(METRIC),
    source = metricOf(metric);
  const key = scoreKey(),
    numbers = filteredRuns();
  const rows = scored(numbers, metric, key);
  if (!rows.length) return el("p", { class: "note" }, "No run here was scored in this way.");
  const most = roundUp(Math.max(...rows.map((row) => row.figures[2] ?? row.figures[0]), 1));
  const boards = boardsOf(rows.map((row) => row.number));
  const parts = boards.map((board) => {
    const own = rows.filter((row) => boardOf(row.number) === board);
    return [
      el("tr", { class: "group" }, el("th", { colspan: "8", scope: "colgroup" }, board)),
      own.map((row) => boardRow(row, own, most)),
    ];
  });
  const heads = [
    head("#", true),
    head("system"),
    head("", false, "wide"),
    head(words(metric), true),
    head("95 %", true),
    head("scored", true),
    head("context", true, "wide"),
    head("tokens", true, "wide"),
  ];
  const unscored = numbers.filter((number) => !rows.some((row) => row.number === number));
  const fault = DATA.judgeFaults[metric];
  return el(
    "div",
    {},
    fault ? el("p", { class: "note warning" }, `Not a ranking: ${fault}.`) : null,
    boards.length > 1
      ? el("p", { class: "small faint" }, "Ranked together: runs with the same backbone, reader and answer prompts on the same questions.")
      : null,
    table("Leaderboard", heads, parts, "stack"),
    el(
      "p",
      { class: "small faint" },
      `${metric}: ${source.source}; ${source.unit}${source.lower ? ", lower is better" : ""}. ${fooledNote(rows, metric, key)}scored: questions that the mean is over. context: tokens that the reader sees; tokens: prompt and completion tokens per question. ‡ interval over the questions of one conversation.`,
    ),
    ...judgesLeftOut(),
    unscored.length
      ? el(
          "p",
          { class: "small faint" },
          `Not scored in this way: ${unscored.map((number) => DATA.runs[number].id).join(", ")}.`,
        )
      : null,
  );
}

function boardRow(row, own, most) {
  const run = DATA.runs[row.number],
    [value, low, high, unit, scoredOn] = row.figures;
  const unranked = run.reference || Boolean(DATA.judgeFaults[valueOf(METRIC)]);
  const sign = metricOf(valueOf(METRIC)).lower ? -1 : 1;
  const place = unranked
    ? 0
    : 1 + own.filter((other) => !DATA.runs[other.number].reference && sign * (other.figures[0] - value) > 0).length;
  const interval = low === undefined ? "" : `[${fixed(low)}, ${fixed(high)}]${unit === "question" ? "‡" : ""}`;
  return el(
    "tr",
    {},
    cell(place ? String(place) : "", true),
    el(
      "th",
      { scope: "row" },
      el("a", { href: address("runs", { run: run.id }), class: place === 1 ? "first" : null }, run.system),
      el("div", { class: "small faint" }, [run.without, run.reference ? "reference, not ranked" : ""].filter(Boolean).join("; ")),
    ),
    el("td", { class: "bar wide" }, track(row.figures, most)),
    el("td", { class: place === 1 ? "number first" : "number" }, fixed(value)),
    cell(interval, true),
    cell((scoredOn ?? 1).toLocaleString("en"), true),
    cell(fixed(run.costs.context, 0), true, "wide"),
    cell(fixed(run.costs.tokens, 0), true, "wide"),
  );
}

/** Runs that can be ranked together: data set, backbone, prompts and questions. */
const boardOf = (number) => `${DATA.runs[number].dataset}: ${DATA.runs[number].board}`;

/** The boards of some runs, those with most runs first. */
function boardsOf(numbers) {
  const all = numbers.map(boardOf);
  const size = (board) => all.filter((one) => one === board).length;
  return unique(all).sort((one, two) => size(two) - size(one));
}

/** A word overlap counts what agrees with a false answer, where the data set has them: said where such a mean is shown. */
function fooledNote(rows, metric, key) {
  const overlap = metricOf(metric)?.group === "answers";
  const fooled = rows.some(({ number }) => {
    const { dataset } = DATA.runs[number];
    if (!DATA.falseAnswers.includes(dataset)) return false;
    const trapped = DATA.adversarial[dataset].filter((category) => DATA.scores[number][metric]?.[category]);
    return key.startsWith("paper_trap") ? trapped.length > 0 : trapped.includes(key);
  });
  return overlap && fooled ? "Category 5 is scored against the false answer: to be fooled counts as right. " : "";
}
