// Everything shown is a text node or an attribute set by name: what models wrote is never read as HTML.
const FIRST = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

/** Make an element; `props`: attributes, `on` (listeners), `style` (properties); children: nodes or text. */
const el = (name, props = {}, ...children) => fill(document.createElement(name), props, children);
const svg = (name, props = {}, ...children) => fill(document.createElementNS(SVG, name), props, children);

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (key === "style") for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "" && child !== false));
  return node;
}

const unique = (values) => [...new Set(values)];
const mean = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
const words = (name) => name.replaceAll("_", " ");
const plural = (count, word, many = `${word}s`) => `${count.toLocaleString("en")} ${count === 1 ? word : many}`;
const fixed = (value, digits = 1) => (value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(0(\.0+)?)$/, "$1"));
const signed = (value) => (value >= 0 ? `+${fixed(value)}` : `−${fixed(-value)}`);
const said = (text) => el("span", { class: "said", dir: "auto" }, text);
const note = (text) => el("p", { class: "note" }, text);
const chip = (text, kind = "") => el("span", { class: `chip ${kind}` }, text);
const folded = (title, name, ...children) => el("details", { "data-part": name }, el("summary", {}, title), children);
const list = (texts, kind = "small faint") => (texts.length ? el("ul", { class: kind }, texts.map((text) => el("li", {}, text))) : null);

/** A part of the data, decoded when it is first asked for. */
const PARTS = new Map();
function part(name) {
  if (!PARTS.has(name)) PARTS.set(name, decode(document.getElementById(`part-${name}`).textContent));
  return PARTS.get(name);
}

async function decode(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** The address holds the view and its settings: #/questions?group=0 ; back and reload keep them. */
const VIEWS = [];
let params = new URLSearchParams();

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return [VIEWS.find((view) => view.id === path) ?? VIEWS[0], new URLSearchParams(query)];
}

function address(view, settings = {}) {
  const query = new URLSearchParams(Object.entries(settings).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return `#/${view}${query.size ? `?${query}` : ""}`;
}

/** The page of a run: its card here, or on a site the page of its system. */
function runAddress(number) {
  const { root, pages } = FIRST.site ?? {};
  const page = pages?.[number];
  return page ? `${root}${page}` : address("runs", { run: number });
}

/** Change settings of the view without a new entry in the history. */
function change(settings) {
  for (const [key, value] of Object.entries(settings)) {
    if (value === "" || value === null) params.delete(key);
    else params.set(key, value);
  }
  history.replaceState(null, "", address(route()[0].id, Object.fromEntries(params)));
}

/** A setting of a view: its key in the address, its label, what there is to choose, and what holds without a choice. */
const setting = (key, label, options, fallback = options[0]?.value) => ({ key, label, options, fallback });
const option = (value, text = value, group = "") => ({ value, text, group });

function valueOf({ key, options, fallback }) {
  const value = params.get(key) ?? "";
  return options.some((one) => one.value === value) ? value : fallback;
}

/** The menu of a setting; nothing where there is nothing to choose. A choice clears the settings that hang on it. */
function menu(one, clears = {}) {
  const { key, label, options } = one;
  if (options.length < 2) return null;
  const made = (entry) => el("option", { value: entry.value, selected: entry.value === valueOf(one) }, entry.text);
  const children = unique(options.map((entry) => entry.group)).map((group) => {
    const own = options.filter((entry) => entry.group === group).map(made);
    return group ? el("optgroup", { label: group }, own) : own;
  });
  const listener = (event) => {
    change({ ...clears, [key]: event.target.value });
    render();
  };
  return el("label", {}, label, el("select", { id: `filter-${key}`, on: { change: listener } }, children));
}

/** Groups of runs that can be compared, named by data, model and prompts. */
const groupTitle = ({ data, model, prompts, timed }) => [data, model || "retrieval only", prompts, timed && "timed one by one"].filter(Boolean).join(" · ");
const groupExtent = ({ questions, conversations, turns }) => `${plural(questions, "question")} about ${plural(conversations, "conversation")}${turns ? ` (${plural(turns, "turn")})` : ""}`;
const groupOptions = (fits = () => true) =>
  FIRST.groups.map((one, index) => [one, String(index)]).filter(([one]) => fits(one)).map(([one, index]) =>
    option(index, `${groupTitle(one)} · ${groupExtent(one)}, ${plural(one.systems, "system")}`, one.model ? "answers" : "retrieval only"));
const groupSetting = (fits) => setting("group", "Runs compared", groupOptions(fits));

const metricOf = (name) => FIRST.metrics.find((one) => one.name === name);
const heading = (name) => metricOf(name)?.heading ?? words(name);
const metricOption = (name) => option(name, heading(name), metricOf(name)?.group ?? "");
const filters = (...children) => el("div", { class: "filters" }, children);

/** Offer a text as a file. */
function save(name, type, text) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
