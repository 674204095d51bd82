// The list of questions: search, filters, order, and the keys that move through it.
const SHOW = setting("show", "Show", [
  option("answered", "answered by a reader"),
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
const QUESTION_SET = setting(
  "dataset",
  "Data set",
  unique(DATA.questions.map((question) => question.dataset)).map((name) => option(name)),
);
const QUESTION_SCORE = setting(
  "metric",
  "Score",
  DATA.questionScores.map((name) => option(name, words(name))),
);

function questionsView() {
  if (!DATA.questions.length)
    return [
      el("h2", {}, "Questions"),
      el(
        "p",
        { class: "note" },
        "Only summaries are here, and they hold no text: the questions are in the run directories.",
      ),
    ];
  const list = el("ul", {
    class: "list",
    role: "listbox",
    tabindex: "0",
    "aria-label": "Questions",
    id: "question-list",
  });
  const detail = el("div", { id: "question", "aria-live": "polite" });
  const controls = el("div");
  const count = el("p", { class: "small faint", role: "status" });
  let found = [];

  const show = (index, focus = false) => {
    const place = Math.max(0, Math.min(found.length - 1, index));
    for (const item of list.children) item.setAttribute("aria-selected", String(Number(item.dataset.index) === place));
    const item = list.children[place];
    if (!item) {
      detail.replaceChildren(el("p", { class: "note" }, "No question fits."));
      list.removeAttribute("aria-activedescendant");
      return;
    }
    list.setAttribute("aria-activedescendant", item.id);
    if (focus) item.scrollIntoView({ block: "nearest", behavior: "instant" });
    change({ q: found[place].id });
    detail.replaceChildren(...questionDetail(found[place]));
  };
  const current = () =>
    Math.max(
      0,
      found.findIndex((question) => question.id === params.get("q")),
    );
  const draw = () => {
    controls.replaceChildren(questionFilters(draw));
    found = questionsFound();
    count.textContent = `${plural(found.length, "question")} of ${DATA.questions.length.toLocaleString("en")}; keys: up and down or j and k, / to search`;
    list.replaceChildren(...found.map((question, index) => questionItem(question, index, () => show(index))));
    show(current(), true);
  };
  const keys = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
  list.addEventListener("keydown", (event) => {
    if (event.key in keys && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      show(current() + keys[event.key], true);
    }
  });
  draw();
  return [el("h2", {}, "Questions"), controls, count, el("div", { class: "browser" }, list, detail)];
}

function questionFilters(draw) {
  let timer = 0;
  const search = (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      change({ search: event.target.value });
      draw();
      const again = document.getElementById("filter-search");
      again.focus();
      again.setSelectionRange(again.value.length, again.value.length);
    }, 250);
  };
  const shown = [categoryOf([valueOf(QUESTION_SET)]), SHOW, ORDER, QUESTION_SCORE];
  if (QUESTION_SET.options.length > 1) shown.unshift(QUESTION_SET);
  const field = el("input", {
    type: "search",
    id: "filter-search",
    value: params.get("search") ?? "",
    on: { input: search },
  });
  return el(
    "div",
    { class: "filters" },
    shown.map((one) => menu(one, draw)),
    el("label", {}, "Search", field),
  );
}

const scoresOf = (question, metric) =>
  Object.values(question.answers)
    .map((answer) => answer.scores[metric])
    .filter((value) => value !== undefined);
const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
const spread = (values) => (values.length ? Math.max(...values) - Math.min(...values) : 0);
const evidenceFound = (answer) => answer.hits.some((hit) => hit[1].length);

const FITS = {
  answered: (question) =>
    DATA.runs.every((run) => run.backbone === "none") ||
    Object.values(question.answers).some((answer) => answer.answer !== null),
  all: () => true,
  differ: (question, metric) => spread(scoresOf(question, metric)) > 0.0001,
  missed: (question) => question.evidence.length > 0 && !Object.values(question.answers).some(evidenceFound),
  lost: (question, metric) =>
    Object.values(question.answers).some((answer) => evidenceFound(answer) && answer.scores[metric] === 0),
  malformed: (question) => Object.values(question.answers).some((answer) => answer.malformed),
  judges: (question) =>
    Object.values(question.answers).some(
      (answer) =>
        unique(
          Object.values(answer.judges)
            .flat()
            .map((verdict) => verdict[0]),
        ).length > 1,
    ),
};

function questionsFound() {
  const metric = valueOf(QUESTION_SCORE),
    dataset = valueOf(QUESTION_SET),
    category = valueOf(categoryOf([dataset]));
  const search = (params.get("search") ?? "").toLowerCase(),
    fits = FITS[valueOf(SHOW)],
    rank = RANKS[valueOf(ORDER)];
  const found = DATA.questions.filter(
    (question) =>
      question.dataset === dataset &&
      (!category || String(question.category) === category) &&
      fits(question, metric) &&
      (!search || questionText(question).includes(search)),
  );
  if (!rank) return found;
  const ranked = found.map((question) => [rank(scoresOf(question, metric)), question]);
  return ranked.sort((one, two) => one[0] - two[0]).map((pair) => pair[1]);
}

/** What questions are sorted by, smallest first; questions without a score stand last. */
const RANKS = {
  worst: (values) => mean(values) ?? Infinity,
  best: (values) => -(mean(values) ?? -Infinity),
  spread: (values) => -spread(values),
};

function questionText(question) {
  question.text ??= [
    question.id,
    question.question,
    ...question.gold,
    question.trap ?? "",
    ...Object.values(question.answers).map((answer) => answer.answer ?? ""),
  ]
    .join("\n")
    .toLowerCase();
  return question.text;
}

function questionItem(question, index, onClick) {
  const average = mean(scoresOf(question, valueOf(QUESTION_SCORE)));
  return el(
    "li",
    {
      role: "option",
      id: `question-${index}`,
      "data-index": String(index),
      "aria-selected": "false",
      on: { click: onClick },
    },
    el("div", {}, question.question || question.id),
    el(
      "div",
      { class: "small faint" },
      el("span", {}, `${question.id}, ${categoryName(question)}`),
      el("span", {}, average === null ? "" : average.toFixed(2)),
    ),
  );
}

const categoryName = (question) =>
  DATA.categories[question.dataset][question.category] ?? `category ${question.category}`;
