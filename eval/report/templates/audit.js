// Published answers under one set of definitions.
function auditView() {
  if (!DATA.audit) {
    return [el("h2", {}, "Published answers"), el("p", { class: "note" }, "No audit was written: make audit.")];
  }
  const list = (lines) =>
    el(
      "ul",
      {},
      lines.map(([name, text]) => el("li", {}, el("strong", {}, name), `: ${text}`)),
    );
  return [
    el("h2", {}, "Published answers, scored alike"),
    el(
      "p",
      {},
      "Authors of memory systems and others have published what their runs answered to the questions of LoCoMo and LongMemEval. Here all of these answers are scored by the same definitions and compared with what was printed and what people say.",
    ),
    el("h3", {}, "What was found"),
    list(DATA.audit.findings),
    el("h3", {}, "Terms"),
    list(DATA.audit.terms),
    ...DATA.audit.tables.map(auditTable),
  ];
}

/** A name that may go on in the next line after an underscore or a stroke. */
const breakable = (text) => text.split(/(?<=[_/])/).flatMap((part) => [part, el("wbr")]);

/** A table that can be folded; on a narrow screen, where its rows are lists, it is until it is asked for. */
function auditTable({ title, note, headings, words, rows }) {
  const body = rows.map((row) =>
    el(
      "tr",
      {},
      row.map((text, index) =>
        index ? cell(words[index] ? breakable(text) : text, !words[index]) : el("th", { scope: "row" }, breakable(text)),
      ),
    ),
  );
  const heads = headings.map((name, index) => head(name, !words[index]));
  return el(
    "details",
    { class: "audit", open: window.innerWidth >= 700 },
    el("summary", {}, el("h3", {}, title), el("span", { class: "faint" }, ` ${plural(rows.length, "row")}`)),
    note ? el("p", { class: "note" }, note) : null,
    table(title, heads, body, "stack"),
  );
}
