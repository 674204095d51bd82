// Published answers under one set of definitions.
function auditView() {
  if (!DATA.audit) {
    return [el("h2", {}, "Published answers"), el("p", { class: "note" }, "No audit was written: make audit.")];
  }
  const list = (texts) =>
    el(
      "ul",
      {},
      texts.map((text) => el("li", {}, text)),
    );
  return [
    el("h2", {}, "Published answers, scored alike"),
    el("p", {}, "What others published, scored by the same definitions and held against print and people."),
    el("h3", {}, "What was found"),
    list(DATA.audit.findings),
    el("h3", {}, "Terms"),
    list(DATA.audit.terms),
    ...DATA.audit.tables.flatMap(plainTable),
  ];
}
