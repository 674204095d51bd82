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
  if (whole && known.includes("5")) shown.push(FIVE);
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

function scored(numbers, metric, key) {
  return numbers
    .map((number) => ({ number, figures: DATA.scores[number][metric]?.[key] }))
    .filter((row) => row.figures)
    .sort((one, two) => two.figures[0] - one.figures[0]);
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
      `${plural(DATA.runs.length, "run")} on ${plural(datasets.length, "data set")}. Percent; bars and brackets: mean with its 95 % cluster t interval.`,
    ),
    body,
  ];
}

function leaderboard() {
  const metric = valueOf(METRIC),
    source = DATA.metrics.find((one) => one.name === metric);
  const key = scoreKey(),
    numbers = filteredRuns();
  const rows = scored(numbers, metric, key);
  if (!rows.length) return el("p", { class: "note" }, "No run here was scored in this way.");
  const most = roundUp(Math.max(...rows.map((row) => row.figures[2] ?? row.figures[0]), 1));
  const parts = unique(rows.map((row) => DATA.runs[row.number].dataset)).flatMap((dataset) => {
    const own = rows.filter((row) => DATA.runs[row.number].dataset === dataset);
    return [
      el("tr", { class: "group" }, el("th", { colspan: "8", scope: "colgroup" }, dataset)),
      own.map((row) => boardRow(row, own, most)),
    ];
  });
  const heads = [
    head("#", true),
    head("system"),
    head("", false, "wide"),
    head(words(metric), true),
    head("95 %", true),
    head("questions", true),
    head("context", true, "wide"),
    head("tokens", true, "wide"),
  ];
  const unscored = numbers.filter((number) => !rows.some((row) => row.number === number));
  const fault = DATA.judgeFaults[metric];
  return el(
    "div",
    {},
    fault ? el("p", { class: "note warning" }, `Not a ranking: ${fault}.`) : null,
    coverageNote(rows),
    table("Leaderboard", heads, parts, "stack"),
    el(
      "p",
      { class: "small faint" },
      `${metric}: ${source.source}. context: tokens that the reader sees; tokens: prompt and completion tokens per question. ‡ interval over the questions of one conversation.`,
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
    [value, low, high, unit] = row.figures;
  const unranked = run.reference || Boolean(DATA.judgeFaults[valueOf(METRIC)]);
  const place = unranked
    ? 0
    : 1 + own.filter((other) => !DATA.runs[other.number].reference && other.figures[0] > value).length;
  const interval = low === undefined ? "" : `[${fixed(low)}, ${fixed(high)}]${unit === "question" ? "‡" : ""}`;
  return el(
    "tr",
    {},
    cell(place ? String(place) : "", true),
    el(
      "th",
      { scope: "row" },
      el("a", { href: address("runs", { run: run.id }), class: place === 1 ? "first" : null }, run.system),
      el("div", { class: "small faint" }, [run.without || run.backbone, run.reference ? "reference, not ranked" : ""].filter(Boolean).join("; ")),
    ),
    el("td", { class: "bar wide" }, track(row.figures, most)),
    el("td", { class: place === 1 ? "number first" : "number" }, fixed(value)),
    cell(interval, true),
    cell(run.questions.toLocaleString("en"), true),
    cell(fixed(run.costs.context, 0), true, "wide"),
    cell(fixed(run.costs.tokens, 0), true, "wide"),
  );
}

/** Runs on other questions are no competitors: say so above them. */
function coverageNote(rows) {
  const uneven = unique(rows.map((row) => DATA.runs[row.number].dataset)).filter(
    (dataset) =>
      unique(
        rows.filter((row) => DATA.runs[row.number].dataset === dataset).map((row) => DATA.runs[row.number].questions),
      ).length > 1,
  );
  return uneven.length
    ? el(
        "p",
        { class: "note" },
        `On ${uneven.join(", ")} the runs answered different numbers of questions: their order says little. The definitions compare them on common questions.`,
      )
    : null;
}
