// A site of several pages: results, a page for each system, and one for the questions of each data set.
const SITE_VIEWS = {
  index: [
    { id: "results", text: "Results", make: resultsView },
    { id: "systems", text: "Systems", make: systemsView },
    { id: "by-question", text: "Questions", make: dataView },
    { id: "submissions", text: "Submissions", make: submissionsView },
    { id: "tables", text: "Tables", make: tablesView },
  ],
  system: [{ id: "system", text: "System", make: systemView }],
  questions: [{ id: "questions", text: "Questions", make: questionsView }],
};

const siteLinks = () => (FIRST.site && FIRST.site.page !== "index" ? SITE_VIEWS.index.map((view) => el("a", { href: `${FIRST.site.root}index.html${address(view.id)}` }, view.text)) : []);
const link = (page, text) => el("a", { href: `${FIRST.site.root}${page}` }, text);

async function systemsView() {
  const columns = [
    { id: "system", title: "system", value: (row) => row.name, show: (row) => link(row.page, row.name) },
    { id: "boards", title: "comparisons", number: true, value: (row) => row.boards },
    { id: "first", title: "in the first tier", number: true, hint: "comparisons in which it is in the first tier", value: (row) => row.first },
    { id: "runs", title: "runs", number: true, value: (row) => row.runs },
    { id: "data", title: "data", value: (row) => row.data },
  ];
  return [el("h2", {}, "Systems"), dataTable("Systems", columns, await part("systems"), { key: "systems-" })];
}

async function dataView() {
  const columns = [
    { id: "data", title: "data", value: (row) => row.name, show: (row) => link(row.page, row.name) },
    { id: "questions", title: "questions", number: true, value: (row) => row.questions },
    { id: "runs", title: "runs", number: true, value: (row) => row.runs },
    { id: "licence", title: "licence of the texts", value: (row) => row.licence },
    { id: "texts", title: "shown", value: (row) => (row.texts ? "texts where a submission has them" : "ids and scores") },
  ];
  return [el("h2", {}, "Questions"), el("p", { class: "faint" }, "Each question has an address of its own; texts are shown where the licence of the data lets them be passed on."), dataTable("Questions by data set", columns, await part("data"), { key: "data-", kind: "stack" })];
}

async function submissionsView() {
  const found = await part("submissions");
  return [
    el("h2", {}, "Submissions"),
    el("p", { class: "faint" }, "Checked: computed again when this site was written. Claimed: nothing could show it."),
    found.length ? found.map((one) => submissionCard(one)) : note("No submission is here; the results are the project's own."),
  ];
}

function submissionCard(one) {
  const told = (state) => one.findings.filter((finding) => finding[0] === state).map(([, what, text]) => `${what}: ${text}`);
  const wrong = told("does not fit");
  return el(
    "section",
    { class: "card", "aria-label": one.file },
    el("h3", {}, one.page ? link(one.page, one.system) : one.file, el("span", { class: "faint" }, ` ${one.file}`)),
    el("div", { class: "chips" }, wrong.length ? chip(`${wrong.length} check${wrong.length === 1 ? "" : "s"} failed, left out`, "bad") : chip("all that can be checked fits", "good"), chip(one.texts ? "texts included" : "texts withheld", "plain"), chip(one.licence, "plain")),
    wrong.length ? [el("h5", {}, "Does not fit"), list(wrong, "small")] : null,
    folded(`Checked (${told("checked").length})`, "checked", list(told("checked"), "small")),
    folded(`Claimed (${told("claimed").length})`, "claimed", list(told("claimed"), "small")),
  );
}

/** One system: its place in each comparison, and where every number comes from. */
async function systemView() {
  const { boards, runs, submissions } = await part("system");
  const columns = [
    { id: "board", title: "comparison", value: (row) => row.title, show: (row) => link(`index.html${address("results", { group: row.group })}`, row.title) },
    { id: "name", title: "as", value: (row) => row.name },
    { id: "score", title: "score", number: true, value: (row) => row.figures[0], show: (row) => [el("b", {}, fixed(row.figures[0])), interval(row.figures.slice(1))] },
    { id: "metric", title: "of", value: (row) => heading(row.metric) },
    { id: "place", title: "place", number: true, value: (row) => row.place, show: (row) => (row.place ? `${row.place} of ${row.of}` : "") },
    { id: "tier", title: "tier", number: true, value: (row) => row.tier, show: (row) => row.tier ?? "" },
    { id: "verdict", title: "verdict", value: (row) => row.verdict, show: (row) => (row.verdict ? chip(row.verdict, { above: "good", below: "bad" }[row.verdict] ?? "plain") : "") },
    { id: "tokens", title: "tokens", hint: "prompt and reply, per question", number: true, value: (row) => row.tokens, show: (row) => amount(row.tokens ?? undefined, 0) },
    { id: "write", title: "write", hint: "tokens per turn written into the memory", number: true, value: (row) => row.write, show: (row) => amount(row.write ?? undefined, 0) },
  ];
  return [
    el("h2", {}, FIRST.site.title),
    dataTable("Comparisons", columns, boards, { kind: "stack" }),
    submissions.length ? [el("h3", {}, "Submitted"), submissions.map(submissionCard)] : null,
    el("h3", {}, plural(runs.length, "run")),
    runs.map((run) => el("details", { class: "slice", open: runs.length === 1 }, el("summary", {}, `${run.system}, ${run.dataset}, ${run.without || run.modelName}`), runCard(run))),
  ];
}

/** A question of which scores alone are known here, or the answers too where a submission has them. */
function questionScores(group, question, metric) {
  const rows = runsOf(group, question).map((number) => ({ number, name: group.textLabels[number], scores: question.runs[number][SCORES], answer: question.runs[number][ANSWER] }));
  const held = unique(rows.flatMap((row) => Object.keys(row.scores)));
  const columns = [
    { id: "system", title: "system", value: (row) => row.name, show: (row) => el("a", { href: runAddress(row.number) }, row.name) },
    ...(rows.some((row) => row.answer !== null) ? [{ id: "answer", title: "answer", value: (row) => row.answer ?? "", show: (row) => said(row.answer ?? "") }] : []),
    ...[metric, ...held.filter((name) => name !== metric)].map((name) => ({ id: name, title: heading(name), number: true, value: (row) => row.scores[name] ?? null, show: (row) => (row.scores[name] === undefined ? "" : name === metric ? scoreChip(row.scores[name]) : fixed(row.scores[name], 2)) })),
  ];
  return [
    el("h3", { class: "said question" }, question.question || question.id),
    el("p", { class: "small faint" }, `${group.categories[question.category] ?? ""}, ${question.id}, conversation ${question.conversation}`),
    question.gold.length ? el("p", {}, el("span", { class: "faint" }, "Should be "), said(question.gold.join(" | "))) : question.question ? null : el("p", { class: "small faint" }, "Only ids and scores are here: texts come with submissions, where the licence of the data lets them be passed on."),
    dataTable(question.id, columns, rows.sort((one, two) => (two.scores[metric] ?? -1) - (one.scores[metric] ?? -1)), { key: "scores-", kind: "stack", plain: true }),
  ];
}
