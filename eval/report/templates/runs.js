// Where every number comes from: one run in full, and the list of all.
async function runsView() {
  const runs = await part("runs");
  const wanted = params.get("run") ?? "";
  const run = runs.find((one, index) => String(index) === wanted || one.id === wanted);
  const alike = (one) => JSON.stringify([one.system, one.dataset, one.modelName, one.without, one.questions]);
  const counts = runs.map(alike).reduce((found, name) => found.set(name, (found.get(name) ?? 0) + 1), new Map());
  const columns = [
    { id: "system", title: "system", value: (one) => one.system, show: (one) => [
      el("a", { href: runAddress(one.number ?? one.id) }, one.system),
      counts.get(alike(one)) > 1 ? el("span", { class: "faint small" }, ` ${one.id.match(/s\d+-[^-]+$/)?.[0] ?? one.id}`) : null,
    ] },
    { id: "data", title: "data", value: (one) => one.dataset },
    { id: "model", title: "model", value: (one) => one.without || one.modelName },
    { id: "questions", title: "questions", number: true, value: (one) => one.questions, show: (one) => one.questions.toLocaleString("en") },
    { id: "seed", title: "seed", number: true, hidden: true, value: (one) => one.seed },
    { id: "finished", title: "finished", kind: "whole", value: (one) => (one.finished ?? "").slice(0, 10) },
    { id: "run", title: "run", hidden: true, value: (one) => one.id },
  ];
  return [
    el("h2", {}, "Runs"),
    run ? runCard(run) : null,
    dataTable("Runs", columns, runs, { key: "runs-" }),
    FIRST.skipped.length ? el("details", {}, el("summary", {}, `${plural(FIRST.skipped.length, "run")} left out`), list(FIRST.skipped, "small")) : null,
  ];
}

function runCard(run) {
  const costs = {
    context: "tokens of context per question",
    calls: "calls per question",
    tokens: "tokens per question",
    write: "tokens per turn written",
    malformed: "percent of replies malformed",
    cached: "percent of prompt tokens the server had computed before",
    seconds: "wall seconds per question as run, waiting for other questions included",
    dollars: `dollars per question by list prices of ${run.prices}`,
  };
  const code = (text) => el("code", {}, String(text ?? "unknown"));
  const settings = (pairs) => (pairs.length ? pairs.map(([key, value]) => el("div", {}, code(`${key} = ${typeof value === "string" ? value : JSON.stringify(value)}`))) : null);
  const facts = [
    ["run", code(run.id)],
    ["preset", run.preset === run.dataset ? null : run.preset],
    ["covers", `${plural(run.questions, "question")} of ${plural(run.conversations, "conversation")}`],
    ["without an answer", run.unanswered],
    ["commit", [code(run.commit), run.dirty ? " with uncommitted changes" : ""]],
    ["data sha256", code(run.dataSha256)],
    ["reader", run.reader],
    ["seed", String(run.seed)],
    ["finished", run.finished],
    ["hardware", run.hardware],
    ["not as preset", settings(run.changed)],
    ["cost", Object.entries(run.costs).map(([key, value]) => el("div", {}, `${value.toLocaleString("en")} ${costs[key]}`))],
    ["judges agree", run.agreements.length ? run.agreements.map(agreementLine) : null],
    ["model", folded(run.model.length ? run.backbone : "unknown", "model", settings(run.model))],
  ].filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return el(
    "section",
    { class: "card", "data-wanted": true, "aria-label": run.id },
    el("h3", {}, run.system, el("span", { class: "faint" }, ` on ${run.dataset}${run.without ? `, ${run.without}` : ` with ${run.modelName}`}`)),
    el("dl", { class: "facts" }, facts.map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)])),
    run.hasTexts ? null : el("p", { class: "small faint" }, "Only the scores of this run are here, no texts."),
  );
}

function agreementLine([one, two, answers, agree, kappa]) {
  const share = agree === null ? "" : `, ${(100 * agree).toFixed(1)} % alike`;
  return el("div", {}, el("code", {}, one), " and ", el("code", {}, two), `: ${plural(answers, "answer")}${share}, Cohen's kappa ${kappa === null ? "undefined" : kappa.toFixed(2)}`);
}
