// Everything shown is a text node or an attribute set by name: what models wrote is never read as HTML.
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

/** Make an element; `props`: attributes, `on` (listeners), `style` (properties); children: nodes or text. */
function el(name, props = {}, ...children) {
  return fill(document.createElement(name), props, children);
}

function svg(name, props = {}, ...children) {
  return fill(document.createElementNS(SVG, name), props, children);
}

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (key === "style")
      for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const unique = (values) => [...new Set(values)];
const fixed = (value, digits = 1) => (value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(0(\.0+)?)$/, "$1"));
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

/** The address holds the view and its settings: #/questions?dataset=... ; back and reload keep them. */
const VIEWS = [];
let params = new URLSearchParams();

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return [VIEWS.find((view) => view.id === path) ?? VIEWS[0], new URLSearchParams(query)];
}

function address(view, settings) {
  const query = new URLSearchParams(Object.entries(settings).filter(([, value]) => value !== "" && value !== null));
  return `#/${view}${query.size ? `?${query}` : ""}`;
}

/** Change settings of the view without a new entry in the history. */
function change(settings) {
  for (const [key, value] of Object.entries(settings)) {
    if (value === "" || value === null) params.delete(key);
    else params.set(key, value);
  }
  const [view] = route();
  history.replaceState(null, "", address(view.id, Object.fromEntries(params)));
}

/** A setting of a view: its key in the address, its label, what there is to choose, and what holds without a choice. */
const setting = (key, label, options, fallback = options[0]?.value) => ({ key, label, options, fallback });
const option = (value, text = value, group = "") => ({ value, text, group });

function valueOf({ key, options, fallback }) {
  const value = params.get(key) ?? "";
  return options.some((one) => one.value === value) ? value : fallback;
}

/** The menu of a setting. */
function menu(one, draw) {
  const { key, label, options } = one,
    value = valueOf(one);
  const made = (entry) => el("option", { value: entry.value, selected: entry.value === value }, entry.text);
  const children = unique(options.map((entry) => entry.group)).map((group) => {
    const own = options.filter((entry) => entry.group === group).map(made);
    return group ? el("optgroup", { label: group }, own) : own;
  });
  const listener = (event) => {
    change({ [key]: event.target.value });
    draw();
  };
  return el("label", {}, label, el("select", { id: `filter-${key}`, on: { change: listener } }, children));
}

function check(label, key, value, onChange) {
  const listener = (event) => {
    change({ [key]: event.target.checked ? "1" : "0" });
    onChange();
  };
  return el(
    "label",
    { class: "check" },
    el("input", { type: "checkbox", id: `filter-${key}`, checked: value, on: { change: listener } }),
    label,
  );
}

/**
 * A table in a region that the keyboard can scroll; one of class `stack` is a list of its rows on a narrow screen, one of
 * class `wide` on paper.
 */
function table(caption, head, body, className = "") {
  const made = el("table", { class: className }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
  if (className === "stack" || made.classList.contains("wide")) labelCells(made);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made);
}

/** Lets every cell know the heading of its column, which a list shows next to it. */
function labelCells(made) {
  const names = [...made.tHead.rows[0].cells].map((one) => one.textContent);
  for (const row of made.tBodies[0].rows)
    if (row.cells.length === names.length) [...row.cells].forEach((one, index) => (one.dataset.label = names[index]));
}

const head = (text, number = false, more = "") =>
  el("th", { scope: "col", class: `${number ? "number" : ""} ${more}` }, text);
const cell = (text, number = false, more = "") => el("td", { class: `${number ? "number" : ""} ${more}` }, text);

function facts(pairs) {
  return el(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== "" && value !== null && value !== undefined)
      .map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]),
  );
}

/** The menu's entry of a metric: its source, its unit, and whether lower is better. */
const metricOf = (name) => DATA.metrics.find((one) => one.name === name);

/** Whether a category of a data set holds the questions without an answer; LoCoMo's is 5. */
const isAdversarial = (dataset, category) => (DATA.adversarial[dataset] ?? []).includes(String(category));

const words = (name) => name.replaceAll("_", " ");

/** Settings that several views share. */
const datasets = unique(DATA.runs.map((run) => run.dataset));
const fullest = [...datasets].sort((one, two) => answering(two) - answering(one))[0];
const DATASET = setting(
  "dataset",
  "Data set",
  [...datasets.map((name) => option(name)), option("all", "all data sets")],
  fullest ?? "all",
);
const BACKBONE = setting("backbone", "Backbone", [
  option("all", "all backbones"),
  ...unique(DATA.runs.map((run) => run.backbone)).map((name) => option(name)),
]);
const METRIC = setting(
  "metric",
  "Metric",
  DATA.metrics.map((metric) => option(metric.name, words(metric.name), metric.group)),
);
const FIVE = setting("five", "Category 5", [
  option("exclude", "left out"),
  option("paper_trap", "trap: the false answer is right"),
  option("abstain", "declining is right"),
]);
const WEIGHTS = setting("weights", "Mean", [
  option("question_mean", "all questions alike (micro)"),
  option("category_mean", "all categories alike (macro)"),
]);

/** The categories of some data sets, to choose one or all. */
function categoryOf(names) {
  const found = Object.entries(Object.assign({}, ...names.map((name) => DATA.categories[name])));
  return setting("category", "Category", [
    option("", "all"),
    ...found.map(([number, name]) => option(number, `${number} ${name}`)),
  ]);
}

function answering(dataset) {
  return DATA.runs.filter((run) => run.dataset === dataset && run.backbone !== "none").length;
}

/** What tells runs apart: their system, with the backbone and the run's hash where that is not enough. */
function labels(numbers) {
  const told = (texts, more) =>
    texts.map((text, index) =>
      texts.filter((other) => other === text).length > 1 ? `${text}, ${more(DATA.runs[numbers[index]])}` : text,
    );
  const systems = numbers.map((number) => DATA.runs[number].system);
  const named = told(
    told(systems, (run) => run.without || run.backbone),
    (run) => run.id.split("-").pop(),
  );
  return new Map(numbers.map((number, index) => [number, named[index]]));
}
