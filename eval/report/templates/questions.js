// Every question: what was said, what each system stored of it, retrieved, and answered.
const SHOW = setting("show", "Show", [
  option("all", "all questions"),
  option("differ", "systems differ"),
  option("missed", "evidence missed by all"),
  option("lost", "evidence found, score 0"),
  option("malformed", "malformed replies"),
  option("judges", "judges differ"),
]);
const ORDER = setting("order", "Order", [
  option("given", "as in the data set"),
  option("worst", "lowest mean score"),
  option("best", "highest mean score"),
  option("spread", "largest difference"),
]);
const questionGroup = () => groupSetting((group) => group.texts);
const NO_TEXTS = "Only summaries are here, and they hold no text. memsys report --runs results/runs shows the questions of your own runs.";
// What a run says of a question in the list: scores, rank of the evidence (0: not found), malformed, judges differ, answer.
const SCORES = 0, RANK = 1, MALFORMED = 2, JUDGES = 3, ANSWER = 4;

async function questionsView() {
  const choice = questionGroup();
  if (!choice.options.length) return [el("h2", {}, "Questions"), note(NO_TEXTS)];
  const number = valueOf(choice);
  const [group, overview] = await Promise.all([part(`group-${number}`), part(`questions-${number}`)]);
  const score = setting("metric", "Score", overview.scores.map(metricOption));
  const category = setting("category", "Category", [option("", "all"), ...Object.entries(group.categories).map(([id, name]) => option(id, name))]);
  const items = el("ul", { class: "list", role: "listbox", tabindex: "0", "aria-label": "Questions", id: "question-list" });
  const detail = el("article", { id: "question", "aria-live": "polite" });
  const count = el("p", { class: "small faint", role: "status" });
  let found = [];
  const linked = params.has("q");
  /** Scroll to the question where it stands below the list. */
  const bring = () => detail.getBoundingClientRect().top >= items.getBoundingClientRect().bottom && detail.scrollIntoView({ behavior: "instant" });
  const show = async (index, focus = false) => {
    const place = Math.max(0, Math.min(found.length - 1, index));
    if (!found.length) return detail.replaceChildren(note("No question fits."));
    for (const item of items.children) item.setAttribute("aria-selected", String(Number(item.dataset.index) === place));
    const question = found[place];
    items.setAttribute("aria-activedescendant", `question-${place}`);
    if (focus) items.children[place].scrollIntoView({ block: "nearest", behavior: "instant" });
    change({ q: question.id });
    const texts = overview.parts.length ? await part(`texts-${number}-${overview.parts.indexOf(question.conversation)}`) : null;
    const shown = () => (texts ? questionDetail(group, question, texts, valueOf(score)) : questionScores(group, question, valueOf(score)));
    if (params.get("q") === question.id) detail.replaceChildren(...shown().flat().filter(Boolean));
  };
  const current = () => Math.max(0, found.findIndex((question) => question.id === params.get("q")));
  const draw = () => {
    found = questionsFound(overview.questions, valueOf(score), valueOf(category));
    count.textContent = `${plural(found.length, "question")} of ${overview.questions.length.toLocaleString("en")}; keys: up and down or j and k, / to search`;
    items.replaceChildren(...found.map((question, index) => questionItem(group, question, index, valueOf(score), () => show(index).then(bring))));
    return show(current(), true);
  };
  const keys = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  items.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    show(current() + keys[event.key], true);
  });
  const search = (event) => {
    change({ search: event.target.value });
    draw();
  };
  const field = el("label", {}, "Search", el("input", { type: "search", id: "filter-search", value: params.get("search") ?? "", on: { input: search } }));
  await draw();
  if (linked) setTimeout(bring); // when it is in the page
  return [
    el("h2", {}, "Questions"),
    filters(menu(choice, { q: "", category: "", metric: "", a: "", b: "" }), category.options.length > 2 ? menu(category) : null, menu(SHOW), menu(ORDER), menu(score), field),
    count,
    el("div", { class: "browser" }, items, detail),
  ];
}

const scoresOf = (question, metric) => Object.values(question.runs).map((run) => run[SCORES][metric]).filter((value) => value !== undefined);
const spread = (values) => (values.length ? Math.max(...values) - Math.min(...values) : 0);

const FITS = {
  all: () => true,
  differ: (question, metric) => spread(scoresOf(question, metric)) > 0.0001,
  missed: (question) => question.evidence > 0 && !Object.values(question.runs).some((run) => run[RANK]),
  lost: (question, metric) => Object.values(question.runs).some((run) => run[RANK] && run[SCORES][metric] === 0),
  malformed: (question) => Object.values(question.runs).some((run) => run[MALFORMED]),
  judges: (question) => Object.values(question.runs).some((run) => run[JUDGES]),
};

/** What questions are sorted by, smallest first; questions without a score stand last. */
const RANKS = {
  worst: (values) => mean(values) ?? Infinity,
  best: (values) => -(mean(values) ?? -Infinity),
  spread: (values) => -spread(values),
};

function questionsFound(questions, metric, category) {
  const search = (params.get("search") ?? "").toLowerCase(),
    rank = RANKS[valueOf(ORDER)];
  const text = (question) => [question.id, question.question, ...question.gold, ...Object.values(question.runs).map((run) => run[ANSWER] ?? "")].join("\n").toLowerCase();
  const found = questions.filter((question) => (!category || String(question.category) === category) && FITS[valueOf(SHOW)](question, metric) && (!search || text(question).includes(search)));
  if (!rank) return found;
  return found.map((question) => [rank(scoresOf(question, metric)), question]).sort((one, two) => one[0] - two[0]).map((pair) => pair[1]);
}

function questionItem(group, question, index, metric, onClick) {
  const cells = runsOf(group, question).map((number) => question.runs[number][SCORES][metric]);
  return el(
    "li",
    { role: "option", id: `question-${index}`, "data-index": String(index), "aria-selected": "false", on: { click: onClick } },
    el("div", {}, question.question || question.id),
    el("div", { class: "strip", "aria-hidden": "true" }, cells.map((value) => el("i", { class: value === undefined ? "none" : null, style: { "--share": `${Math.round(100 * (value ?? 0))}%` } }))),
  );
}

/** Runs that have a question: ranked systems before references, those that answer before those that only retrieve. */
function runsOf(group, question) {
  const place = (number) => (group.texts.indexOf(number) + (question.runs[number][ANSWER] === null ? 1000 : 0));
  return Object.keys(question.runs).map(Number).sort((one, two) => place(one) - place(two));
}

function questionDetail(group, question, { texts, questions }, metric) {
  const whole = questions[question.id];
  const chosen = [params.get("a"), params.get("b")].map(Number);
  const pair = params.get("a") && params.get("b") && chosen.every((number) => question.runs[number]);
  const numbers = pair ? chosen : runsOf(group, question);
  const gold = question.gold.length ? question.gold.join(" | ") : "none: the conversation does not tell";
  return [
    el("h3", { class: "said question" }, question.question || question.id),
    el("p", { class: "small faint" }, `${group.categories[question.category] ?? ""}, ${question.id}`, " ", el("button", { type: "button", class: "quiet save", on: { click: () => savePicture(question.id) } }, "Save as picture")),
    el("dl", { class: "way" }, el("dt", {}, "Said"), el("dd", {}, question.evidence ? whole.evidence.map(([turn, text]) => el("p", {}, el("code", {}, turn), " ", said(texts[text]))) : el("span", { class: "faint" }, "no evidence given")), el("dt", {}, "Should be"), el("dd", { class: "gold" }, said(gold)), whole.trap === null ? null : [el("dt", {}, "False answer"), el("dd", {}, said(whole.trap))]),
    pair ? firstDifference(whole, numbers) : null,
    el("div", { class: "ways" }, numbers.map((number) => answerCard(group, question, whole, texts, number, metric))),
  ];
}

/** The first call about a question in which two runs differ. */
function firstDifference(whole, [a, b]) {
  const differs = firstCall(whole.answers[a].calls, whole.answers[b].calls);
  const all = () => {
    change({ a: "", b: "" });
    render();
  };
  return note([differs ? `First call about this question that differs: ${differs}. ` : "Both runs made the same calls about this question. ", el("button", { type: "button", class: "quiet", on: { click: all } }, "All runs")]);
}

function firstCall(one, other) {
  for (let index = 0; index < Math.max(one.length, other.length); index += 1) {
    const [mine, yours] = [one[index], other[index]];
    if (!mine || !yours) return `call ${index + 1}: only one run made it (${(mine ?? yours)[0]} ${(mine ?? yours)[1]})`;
    if (mine[1] !== yours[1]) return `call ${index + 1}: ${mine[0]} ${mine[1]} against ${yours[0]} ${yours[1]}`;
    if (mine[7] !== yours[7]) return `call ${index + 1}: ${mine[0]} ${mine[1]} has another request`;
  }
  return "";
}

/** One system's way to its answer, three steps side by side; everything in full is folded below. */
function answerCard(group, question, whole, texts, number, metric) {
  const run = question.runs[number],
    answer = whole.answers[number];
  const name = group.textLabels[number];
  const score = run[SCORES][metric];
  const step = (title, ...children) => el("div", { class: "step" }, el("h5", {}, title), children);
  const answered = answer.answer === null ? el("span", { class: "faint" }, "retrieval only") : answer.answer === "" ? el("span", { class: "faint" }, "(empty)") : said(answer.answer);
  return el(
    "section",
    { class: "card", "aria-label": name },
    el("h4", {}, el("a", { href: runAddress(number) }, name), score === undefined ? null : scoreChip(score, heading(metric)), answer.malformed ? chip("malformed reply", "bad") : null),
    el("div", { class: "steps" }, step("Stored", storedStep(question, answer, texts)), step("Retrieved", retrievedStep(question, answer, texts)), step("Answered", el("div", { class: "answer" }, answered))),
    Object.entries(answer.judges).map(([judge, verdicts]) => verdictLine(judge, verdicts)),
    storedPart(whole, answer, texts),
    answer.hits.length ? folded(plural(answer.hits.length, "memory retrieved", "memories retrieved"), "hits", el("ol", { class: "memories" }, answer.hits.map(([text, gold]) => el("li", { class: gold.length ? "gold" : null }, gold.length ? el("code", {}, `${gold.join(", ")} `) : null, said(texts[text]))))) : null,
    answer.context === null ? null : folded("What the model was shown", "prompt", el("pre", {}, texts[answer.context] || "(empty)"), answer.options?.length ? el("p", { class: "small faint" }, `options: ${answer.options.join(" / ")}`) : null),
    answer.raw === undefined ? null : folded("Reply as written", "reply", el("pre", {}, answer.raw || "(empty)")),
    callsPart(answer),
    folded("All scores", "scores", el("div", { class: "chips" }, Object.entries(run[SCORES]).map(([one, value]) => chip(`${heading(one)} ${value.toFixed(2)}${FIRST.judgeFaults[one] ? " (judge no better than a constant)" : ""}`)))),
  );
}

function storedStep(question, answer, texts) {
  if (!answer.stored) return el("span", { class: "faint" }, "memory not kept");
  const held = Object.values(answer.stored).filter(([own]) => own.length);
  const mark = chip(`${held.length} of ${plural(question.evidence, "turn")}`, held.length === question.evidence ? "good" : held.length ? "" : "bad");
  return [mark, held.slice(0, 1).map(([own]) => shortText(texts[own[0]]))];
}

/** Beginning of a memory without the lines that only name it; whole in a picture. */
const shortText = (text) => el("p", { class: "short" }, said(text.replace(/^(\w+_ids?|id|index|key|tokens): .*(\n|$)/gm, "")));

/** The memories in their order as squares, those of the evidence filled, and the first of them. */
function retrievedStep(question, answer, texts) {
  if (!answer.hits.length) return el("span", { class: "faint" }, "nothing retrieved");
  const first = answer.hits.findIndex((hit) => hit[1].length) + 1;
  return [
    question.evidence ? chip(first ? `evidence at rank ${first}` : "evidence not retrieved", first ? "good" : "bad") : null,
    el("div", { class: "hits", "aria-hidden": "true" }, answer.hits.slice(0, 40).map((hit) => el("i", { class: hit[1].length ? "gold" : null }))),
    shortText(texts[answer.hits[0][0]]),
  ];
}

/** What the memory held of the turns that tell the answer. */
function storedPart(whole, answer, texts) {
  if (!answer.stored || !whole.evidence.length) return null;
  return folded("Stored of these turns", "stored", whole.evidence.map(([turn]) => {
    const [own, more] = answer.stored[turn] ?? [[], 0];
    return el("div", {}, el("code", {}, turn), own.length ? own.map((text) => el("pre", {}, texts[text])) : el("span", { class: "faint" }, " no entry of the memory names this turn"), more ? el("p", { class: "small faint" }, `and ${more.toLocaleString("en")} more`) : null);
  }));
}

function callsPart(answer) {
  if (!answer.calls.length) return null;
  const names = ["phase", "role", "attempt", "prompt", "reply", "seconds", "remarks", "request"];
  const columns = names.map((title, index) => ({ id: title, title, number: index > 1 && index < 6, value: (call) => call[index] }));
  return folded(`${plural(answer.calls.length, "call")} about this question`, "calls", dataTable("Calls", columns, answer.calls, { key: "calls-" }));
}

function verdictLine(judge, verdicts) {
  const fault = FIRST.judgeFaults[judge];
  const reason = ([verdict, text]) => [fault ? el("span", { class: "faint" }, `it said ${verdict ?? "nothing readable"}`) : chip(verdict ?? "no verdict", verdict === "CORRECT" ? "good" : "bad"), " ", said(text), " "];
  return el("p", { class: fault ? "small worthless" : "small" }, fault ? el("strong", {}, `Verdict not to be relied on: ${fault}. `) : null, verdicts.map(reason), fault ? null : el("span", { class: "faint" }, metricOf(judge)?.source ?? judge));
}

/** Size of a picture's content laid out to a width, its margin included. */
function measured(content, width) {
  const frame = el("div", { class: "picture" }, content.cloneNode(true));
  Object.assign(frame.style, { position: "absolute", visibility: "hidden", height: "auto", width: `${width + 32}px` });
  document.body.append(frame);
  const size = frame.getBoundingClientRect();
  frame.remove();
  return size;
}

/** Text of a style rule for a picture, which has the colours that its viewer's system prefers. */
const ruleOf = ({ selectorText, cssText }) => (selectorText.includes("data-theme") ? `@media (prefers-color-scheme: dark) { ${cssText.replace(selectorText, ":root")} }` : cssText);

/** The question as it is shown, as one SVG with the styles that it uses. */
function savePicture(name) {
  const shown = document.getElementById("question");
  const copy = shown.cloneNode(true);
  copy.querySelectorAll("details, button").forEach((node) => node.remove());
  const { width, height } = measured(copy, shown.getBoundingClientRect().width);
  const used = [...document.styleSheets[0].cssRules].filter((rule) => rule.selectorText && (/^(:root|\*|\.picture)/.test(rule.selectorText) || copy.querySelector(rule.selectorText)));
  const outer = svg("svg", { width: Math.ceil(width), height: Math.ceil(height) });
  const frame = svg("foreignObject", { width: "100%", height: "100%" }, el("div", { class: "picture" }, el("style", {}, used.map(ruleOf).join("\n")), copy));
  outer.append(frame);
  save(`${name}.svg`, "image/svg+xml", new XMLSerializer().serializeToString(outer));
}
