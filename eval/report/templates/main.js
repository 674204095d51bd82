// Views, navigation and theme.
const REPORT_VIEWS = [
  { id: "results", text: "Results", make: resultsView },
  { id: "questions", text: "Questions", make: questionsView },
  { id: "compare", text: "Two runs", make: compareView },
  { id: "tables", text: "Tables", make: tablesView },
  { id: "runs", text: "Runs", make: runsView },
];
VIEWS.push(...(FIRST.site ? SITE_VIEWS[FIRST.site.page] : REPORT_VIEWS));
const TITLE = FIRST.site ? "memsys results" : "memsys report";

// Before the first run has ended there is nothing but its progress.
if (!FIRST.runs && !FIRST.site) VIEWS.length = 1;

const content = document.getElementById("content");
let latest = 0;

/** Draw the view of the address; a field that has the focus keeps it. */
async function render() {
  const [view, settings] = route();
  params = settings;
  const own = (latest += 1);
  const made = await view.make();
  if (own !== latest) return;
  const focused = document.activeElement?.id;
  content.replaceChildren(...made.flat(Infinity).filter(Boolean));
  if (focused && content.querySelector(`[id="${focused}"]`)) document.getElementById(focused).focus({ preventScroll: true });
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === view.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${FIRST.site?.title || view.text} - ${TITLE}`;
}

const views = document.getElementById("views");
views.append(...siteLinks(), ...VIEWS.map((view) => el("a", { href: address(view.id), "data-view": view.id }, FIRST.site?.title || view.text)));
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  content.focus();
});
document.addEventListener("keydown", (event) => {
  const search = document.getElementById("filter-search");
  if (event.key === "/" && search && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    search.focus();
  }
});
document.addEventListener("click", (event) => {
  for (const node of document.querySelectorAll("details.menu[open]")) if (!node.contains(event.target)) node.open = false;
});
window.addEventListener("hashchange", async () => {
  await render();
  window.scrollTo(0, 0);
});

const THEMES = ["auto", "light", "dark"],
  prefersDark = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";
function paint() {
  document.documentElement.dataset.theme = theme === "auto" ? (prefersDark.matches ? "dark" : "light") : theme;
  document.getElementById("theme").textContent = `theme: ${theme}`;
}
document.getElementById("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  paint();
});
prefersDark.addEventListener("change", paint);
paint();
document.addEventListener("DOMContentLoaded", render); // the packed parts stand behind this script

// Print opens what is folded, so that nothing is missing on paper; a page that is being rebuilt loads itself again.
window.addEventListener("beforeprint", () => {
  for (const node of document.querySelectorAll("main details:not(.menu)")) node.open = true;
});
if (FIRST.refresh) setTimeout(() => location.reload(), 1000 * FIRST.refresh);
