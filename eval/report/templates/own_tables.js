// All systems, calls by role, memory quality and the methods' own counts: tables of texts.
const OWN_KINDS = {
  systems: "All systems",
  roles: "Calls by role",
  quality: "Memory quality",
  method: "What the runs say about the method",
};

function systemsView() {
  const body = el("div");
  const choice = setting(
    "own",
    "Show",
    DATA.ownTables.map((one, index) => option(String(index), one.title, OWN_KINDS[one.kind])),
    String(fullestGroup()),
  );
  const draw = () => body.replaceChildren(...ownParts(choice, draw));
  draw();
  return [el("h2", {}, "Systems: score, evidence, calls and tokens"), body];
}

// Shown first: the group with the most answers. Others may only retrieve, or ask few questions.
function fullestGroup() {
  const answers = DATA.ownTables.map((one) => one.answers ?? 0);
  return Math.max(0, answers.indexOf(Math.max(...answers)));
}

function ownParts(choice, draw) {
  if (!DATA.ownTables.length) {
    const none = "There are only constant answers or runs that time questions, which are not shown here.";
    return [el("p", { class: "note" }, none)];
  }
  const found = DATA.ownTables[Number(valueOf(choice))];
  return [
    el("div", { class: "filters" }, menu(choice, draw)),
    ...found.tables.flatMap(plainTable),
    el(
      "ul",
      { class: "small faint" },
      found.legend.map((text) => el("li", {}, text)),
    ),
  ];
}

function plainTable({ title, headings, rows, left, notes }) {
  const cells = (row) => row.slice(1).map((text, index) => cell(text, index + 1 >= left));
  return [
    el("h3", {}, title),
    table(
      title,
      headings.map((name, index) => head(name, index >= left)),
      rows.map((row) => el("tr", {}, el("th", { scope: "row" }, row[0]), cells(row))),
      "stack",
    ),
    ...notes.map((text) => el("p", { class: "note" }, text)),
  ];
}
