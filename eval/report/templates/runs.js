// Where every number comes from.
function runsView() {
  const wanted = params.get("run");
  const cards = DATA.runs.map((run) => runCard(run, run.id === wanted));
  setTimeout(
    () => document.querySelector("section.card[data-wanted]")?.scrollIntoView({ block: "start", behavior: "instant" }),
    0,
  );
  return [
    el("h2", {}, "Runs"),
    DATA.skipped.length
      ? el(
          "details",
          {},
          el("summary", {}, `${plural(DATA.skipped.length, "run")} left out`),
          el(
            "ul",
            { class: "small" },
            DATA.skipped.map((text) => el("li", {}, text)),
          ),
        )
      : null,
    ...cards,
  ].filter(Boolean);
}

function runCard(run, wanted) {
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
  const list = (pairs) =>
    pairs.length
      ? pairs.map(([key, value]) =>
          el("div", {}, el("code", {}, `${key} = ${typeof value === "string" ? value : JSON.stringify(value)}`)),
        )
      : null;
  return el(
    "section",
    { class: "card", id: null, "data-wanted": wanted, "aria-label": run.id, style: { "scroll-margin-top": "4rem" } },
    el(
      "h4",
      {},
      run.system,
      " ",
      el("span", { class: "faint" }, `on ${run.dataset}${run.without ? `, ${run.without}` : ` with ${run.backbone}`}`),
    ),
    facts([
      ["run", code(run.id)],
      ["preset", run.preset === run.dataset ? null : run.preset],
      ["covers", `${plural(run.questions, "question")} of ${plural(run.conversations, "conversation")}`],
      ["without an answer", run.unanswered],
      ["commit", [code(run.commit), run.dirty ? " with uncommitted changes" : ""]],
      ["data sha256", code(run.dataSha256)],
      ["model", list(run.model)],
      ["reader", run.reader],
      ["seed", String(run.seed)],
      ["finished", run.finished],
      ["hardware", run.hardware],
      ["not as preset", list(run.changed)],
      [
        "cost",
        Object.entries(run.costs)
          .map(([key, value]) => `${value.toLocaleString("en")} ${costs[key]}`)
          .join("; "),
      ],
      ["judges agree", run.agreements.length ? run.agreements.map(agreementLine) : null],
      [
        "questions",
        run.hasTexts
          ? el("a", { href: address("questions", { dataset: run.dataset, order: "worst" }) }, "lowest scores first")
          : "only the scores of this run are here, no texts",
      ],
    ]),
  );
}

function agreementLine([one, two, answers, agree, kappa]) {
  const share = agree === null ? "" : `, ${(100 * agree).toFixed(1)} % alike`;
  const beyondChance = `Cohen's kappa ${kappa === null ? "undefined" : kappa.toFixed(2)}`;
  const text = `: ${plural(answers, "answer")}${share}, ${beyondChance}`;
  return el("div", {}, el("code", {}, one), " and ", el("code", {}, two), text);
}
