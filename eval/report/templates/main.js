// Views, navigation and theme.
VIEWS.push(
  { id: "answer", text: "Answer", make: answerView },
  { id: "compare", text: "Two runs", make: compareView },
  { id: "leaderboard", text: "All scores", make: leaderboardView },
  { id: "plots", text: "Plots", make: plotsView },
  { id: "definitions", text: "Definitions", make: definitionsView },
  { id: "systems", text: "Systems", make: systemsView },
  { id: "tables", text: "Tables", make: tablesView },
  { id: "published", text: "Published answers", make: auditView },
  { id: "questions", text: "Questions", make: questionsView },
  { id: "runs", text: "Runs", make: runsView },
);

// Before the first run has ended there is nothing but its progress.
if (!DATA.runs.length) VIEWS.length = 1;

const content = document.getElementById("content");

function render() {
  const [view, settings] = route();
  params = settings;
  content.replaceChildren(...view.make());
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === view.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${view.text} - memsys report`;
}

document
  .getElementById("views")
  .append(...VIEWS.map((view) => el("a", { href: address(view.id, {}), "data-view": view.id }, view.text)));
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
window.addEventListener("hashchange", () => {
  render();
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
render();

// Print opens what is folded, so that nothing is missing on paper; a page that is being rebuilt loads itself again.
window.addEventListener("beforeprint", () => {
  for (const node of document.querySelectorAll("main details")) node.open = true;
});
const REFRESH = document.documentElement.dataset.refresh;
if (REFRESH) setTimeout(() => location.reload(), 1000 * Number(REFRESH));
