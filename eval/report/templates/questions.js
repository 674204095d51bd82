// Every question: gold, evidence, and what each system retrieved and answered.
const SHOW = [
  option("answered", "answered by a reader"), option("all", "all questions"), option("differ", "systems differ"), option("missed", "evidence missed by all"),
  option("lost", "evidence found, score 0"), option("malformed", "malformed replies"), option("judges", "judges differ"),
];
const ORDER = [option("given", "as in the data set"), option("worst", "lowest mean score"), option("best", "highest mean score"), option("spread", "largest difference")];

function questionsView() {
  if (!DATA.questions.length) return [el("h2", {}, "Questions"), el("p", { class: "note" }, "Only summaries are here, and they hold no text: the questions are in the run directories.")];
  const list = el("ul", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Questions", id: "question-list" });
  const detail = el("div", { id: "question", "aria-live": "polite" });
  const controls = el("div");
  const count = el("p", { class: "small faint", role: "status" });
  let found = [];

  const show = (index, focus = false) => {
    const place = Math.max(0, Math.min(found.length - 1, index));
    for (const item of list.children) item.setAttribute("aria-selected", String(Number(item.dataset.index) === place));
    const item = list.children[place];
    if (!item) { detail.replaceChildren(el("p", { class: "note" }, "No question fits.")); list.removeAttribute("aria-activedescendant"); return; }
    list.setAttribute("aria-activedescendant", item.id);
    if (focus) item.scrollIntoView({ block: "nearest", behavior: "instant" });
    change({ q: found[place].id });
    detail.replaceChildren(...questionDetail(found[place]));
  };
  const current = () => Math.max(0, found.findIndex((question) => question.id === params.get("q")));
  const draw = () => {
    controls.replaceChildren(questionFilters(draw));
    found = questionsFound();
    count.textContent = `${plural(found.length, "question")} of ${DATA.questions.length.toLocaleString("en")}; keys: up and down or j and k, / to search`;
    list.replaceChildren(...found.map((question, index) => questionItem(question, index, () => show(index))));
    show(current(), true);
  };
  const keys = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  list.addEventListener("keydown", (event) => {
    if (event.key in keys && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); show(current() + keys[event.key], true); }
  });
  draw();
  return [el("h2", {}, "Questions"), controls, count, el("div", { class: "browser" }, list, detail)];
}

function questionSets() { return unique(DATA.questions.map((question) => question.dataset)); }

function questionMetric() {
  return [chosen("metric", DATA.questionScores), DATA.questionScores];
}

function questionFilters(draw) {
  const sets = questionSets(), dataset = chosen("dataset", sets);
  const categories = Object.entries(DATA.categories[dataset]);
  const known = categories.map(([number]) => number);
  const [metric, metrics] = questionMetric();
  let timer = 0;
  const search = (event) => { clearTimeout(timer); timer = setTimeout(() => { change({ search: event.target.value }); draw(); const again = document.getElementById("filter-search"); again.focus(); again.setSelectionRange(again.value.length, again.value.length); }, 250); };
  return el("div", { class: "filters" },
    sets.length > 1 ? select("Data set", "dataset", sets.map((name) => option(name)), dataset, draw) : null,
    select("Category", "category", [option("", "all"), ...categories.map(([number, name]) => option(number, `${number} ${name}`))], known.includes(params.get("category")) ? params.get("category") : "", draw),
    select("Show", "show", SHOW, chosen("show", SHOW.map((one) => one.value)), draw),
    select("Order", "order", ORDER, chosen("order", ORDER.map((one) => one.value)), draw),
    select("Score", "metric", metrics.map((name) => option(name, name.replaceAll("_", " "))), metric, draw),
    el("label", {}, "Search", el("input", { type: "search", id: "filter-search", value: params.get("search") ?? "", on: { input: search } })));
}

const scoresOf = (question, metric) => Object.values(question.answers).map((answer) => answer.scores[metric]).filter((value) => value !== undefined);
const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
const spread = (values) => (values.length ? Math.max(...values) - Math.min(...values) : 0);
const evidenceFound = (answer) => answer.hits.some((hit) => hit[1].length);

const FITS = {
  answered: (question) => DATA.runs.every((run) => run.backbone === "none") || Object.values(question.answers).some((answer) => answer.answer !== null),
  all: () => true,
  differ: (question, metric) => spread(scoresOf(question, metric)) > 0.0001,
  missed: (question) => question.evidence.length > 0 && !Object.values(question.answers).some(evidenceFound),
  lost: (question, metric) => Object.values(question.answers).some((answer) => evidenceFound(answer) && answer.scores[metric] === 0),
  malformed: (question) => Object.values(question.answers).some((answer) => answer.malformed),
  judges: (question) => Object.values(question.answers).some((answer) => unique(Object.values(answer.judges).flat().map((verdict) => verdict[0])).length > 1),
};

function questionsFound() {
  const [metric] = questionMetric(), dataset = chosen("dataset", questionSets());
  const category = params.get("category") ?? "", search = (params.get("search") ?? "").toLowerCase();
  const fits = FITS[chosen("show", SHOW.map((one) => one.value))];
  const known = category in DATA.categories[dataset];
  const found = DATA.questions.filter((question) => question.dataset === dataset && (!known || String(question.category) === category)
    && fits(question, metric) && (!search || questionText(question).includes(search)));
  const order = chosen("order", ORDER.map((one) => one.value));
  const rank = { worst: (question) => mean(scoresOf(question, metric)) ?? Infinity, best: (question) => -(mean(scoresOf(question, metric)) ?? -Infinity), spread: (question) => -spread(scoresOf(question, metric)) }[order];
  return rank ? found.map((question) => [rank(question), question]).sort((one, two) => one[0] - two[0]).map((pair) => pair[1]) : found;
}

function questionText(question) {
  question.text ??= [question.id, question.question, ...question.gold, question.trap ?? "", ...Object.values(question.answers).map((answer) => answer.answer ?? "")].join("\n").toLowerCase();
  return question.text;
}

function questionItem(question, index, onClick) {
  const average = mean(scoresOf(question, questionMetric()[0]));
  return el("li", { role: "option", id: `question-${index}`, "data-index": String(index), "aria-selected": "false", on: { click: onClick } },
    el("div", {}, question.question || question.id),
    el("div", { class: "small faint" }, el("span", {}, `${question.id}, ${categoryName(question)}`), el("span", {}, average === null ? "" : average.toFixed(2))));
}

const categoryName = (question) => DATA.categories[question.dataset][question.category] ?? `category ${question.category}`;

function questionDetail(question) {
  const gold = question.gold.length ? question.gold.join(" | ") : "none: the conversation does not tell";
  const answered = (number) => question.answers[number].answer !== null;
  const numbers = Object.keys(question.answers).map(Number).sort((one, two) => answered(two) - answered(one) || one - two), names = labels(numbers);
  return [
    el("p", { class: "small faint" }, `${question.id}, category ${question.category} ${categoryName(question)}`),
    el("h3", { class: "said", style: { margin: "0 0 .4rem" } }, question.question),
    facts([["gold", said(gold)], ["false answer", question.trap === null ? null : said(question.trap)],
      ["evidence", question.evidence.length ? question.evidence.map(([turn, text]) => el("div", {}, el("code", {}, turn), " ", said(DATA.texts[text]))) : "none given"]]),
    ...numbers.map((number) => answerCard(question, number, names.get(number))),
  ];
}

const said = (text) => el("span", { class: "said", dir: "auto" }, text);

function answerCard(question, number, name) {
  const answer = question.answers[number], found = answer.hits.findIndex((hit) => hit[1].length);
  const evidence = !question.evidence.length ? null : found < 0 ? chip("evidence not retrieved", "bad") : chip(`evidence at rank ${found + 1}`, "good");
  return el("section", { class: "card", "aria-label": name },
    el("h4", {}, el("a", { href: address("runs", { run: DATA.runs[number].id }) }, name)),
    answer.answer === null ? el("p", { class: "faint" }, "retrieval only, no answer") : el("div", { class: "answer" }, answer.answer === "" ? el("span", { class: "faint" }, "(empty)") : said(answer.answer)),
    answer.options?.length ? el("p", { class: "small faint" }, `options shown: ${answer.options.join(" / ")}`) : null,
    el("div", { class: "chips" }, evidence, answer.malformed ? chip("malformed reply", "bad") : null,
      Object.entries(answer.scores).map(([metric, value]) => chip(`${metric.replaceAll("_", " ")} ${value.toFixed(2)}`))),
    Object.entries(answer.judges).map(([judge, verdicts]) => verdictLine(judge, verdicts)),
    answer.hits.length ? el("details", {}, el("summary", {}, `${plural(answer.hits.length, "memory").replace("memorys", "memories")} retrieved`),
      el("ol", { class: "memories" }, answer.hits.map(([text, gold]) => el("li", { class: gold.length ? "gold" : null }, gold.length ? el("code", {}, `${gold.join(", ")} `) : null, said(DATA.texts[text]))))) : null);
}

const chip = (text, kind = "") => el("span", { class: `chip ${kind}` }, text);

function verdictLine(judge, verdicts) {
  const about = DATA.metrics.find((metric) => metric.name === judge);
  return el("p", { class: "small" }, verdicts.map(([verdict, reason]) => [chip(verdict ?? "no verdict", verdict === "CORRECT" ? "good" : "bad"), " ", said(reason), " "]),
    el("span", { class: "faint" }, about ? about.source : judge));
}
