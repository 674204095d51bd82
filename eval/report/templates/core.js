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
    else if (key === "style") for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const unique = (values) => [...new Set(values)];
const fixed = (value, digits = 1) => (value === null || value === undefined ? "–" : value.toFixed(digits));
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

/** A value among choices: the address's if it is one of them, else the first. */
function chosen(key, choices, fallback = choices[0]) {
  const value = params.get(key);
  return choices.includes(value) ? value : fallback;
}

function select(label, key, options, value, onChange) {
  const groups = unique(options.map((option) => option.group ?? ""));
  const made = (option) => el("option", { value: option.value, selected: option.value === value }, option.text);
  const children = groups.map((group) => {
    const own = options.filter((option) => (option.group ?? "") === group).map(made);
    return group ? el("optgroup", { label: group }, own) : own;
  });
  const listener = (event) => { change({ [key]: event.target.value }); onChange(); };
  return el("label", {}, label, el("select", { id: `filter-${key}`, on: { change: listener } }, children));
}

function check(label, key, value, onChange) {
  const listener = (event) => { change({ [key]: event.target.checked ? "1" : "0" }); onChange(); };
  return el("label", { class: "check" }, el("input", { type: "checkbox", id: `filter-${key}`, checked: value, on: { change: listener } }), label);
}

const option = (value, text = value, group = "") => ({ value, text, group });

/** A table in a region that the keyboard can scroll. */
function table(caption, head, body, className = "") {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: className }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

const head = (text, number = false, more = "") => el("th", { scope: "col", class: `${number ? "number" : ""} ${more}` }, text);
const cell = (text, number = false, more = "") => el("td", { class: `${number ? "number" : ""} ${more}` }, text);

function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));
}

/** Data set, backbone and metric: the choices that several views share. */
const datasets = unique(DATA.runs.map((run) => run.dataset));
const backbones = unique(DATA.runs.map((run) => run.backbone));
const metricOptions = () => DATA.metrics.map((metric) => option(metric.name, metric.name.replaceAll("_", " "), metric.group));
const fullest = () => datasets.map((name) => [DATA.runs.filter((run) => run.dataset === name && run.backbone !== "none").length, name])
  .sort((one, two) => two[0] - one[0])[0][1];

const FIVE = [option("paper_trap", "trap: the false answer is right"), option("abstain", "declining is right"), option("exclude", "left out")];
const WEIGHTS = [option("question_mean", "all questions alike (micro)"), option("category_mean", "all categories alike (macro)")];

/** What tells runs apart: their system, with the backbone and the run's hash where that is not enough. */
function labels(numbers) {
  const told = (texts, more) => texts.map((text, index) => (texts.filter((other) => other === text).length > 1 ? `${text}, ${more(DATA.runs[numbers[index]])}` : text));
  const systems = numbers.map((number) => DATA.runs[number].system);
  const named = told(told(systems, (run) => run.without || run.backbone), (run) => run.id.split("-").pop());
  return new Map(numbers.map((number, index) => [number, named[index]]));
}
