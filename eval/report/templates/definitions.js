// The definition lens: the same answers under every definition.
/** Systems that a page of paper has columns for. */
const MOST_COLUMNS_ON_PAPER = 4;

function definitionsView() {
  const { lenses, legend: texts, missing } = DATA.definitions;
  const body = el("div");
  const choice = setting(
    "lens",
    "Runs",
    lenses.map((one, index) => option(String(index), `${[one.dataset, one.setting].filter(Boolean).join(", ")}: ${plural(one.systems.length, "run")}, ${plural(one.questions, "question")}`)),
  );
  const draw = () => {
    const parts = lenses.length
      ? lensParts(lenses[Number(valueOf(choice))])
      : [el("p", { class: "note" }, "No run here has answers.")];
    if (lenses.length > 1) parts.unshift(el("div", { class: "filters" }, menu(choice, draw)));
    body.replaceChildren(...parts, ...missing.map((text) => el("p", { class: "note" }, text)));
  };
  draw();
  return [
    el("h2", {}, "The same answers, read in every published way"),
    body,
    el(
      "ul",
      { class: "small faint" },
      texts.map((text) => el("li", {}, text)),
    ),
  ];
}

function lensParts(lens) {
  const parts = [el("p", {}, lens.heading)];
  if (lens.summary) parts.push(el("p", { class: "note" }, lens.summary));
  if (lens.systems.length > 1 && lens.tallies.length)
    parts.push(
      table(
        "All readings",
        ["system", "leads", "ranks", "values"].map((name, index) => head(name, index > 0)),
        lens.tallies.map((row) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, row[0]),
            row.slice(1).map((text) => cell(text, true)),
          ),
        ),
      ),
    );
  for (const section of lens.sections) {
    const heads = [head("reading"), head("n", true), ...lens.systems.map((name) => head(name, true)), head("order")];
    parts.push(
      el("h3", {}, section.title),
      table(
        section.title,
        heads,
        section.lines.map((line) =>
          el(
            "tr",
            {},
            el("th", { scope: "row", title: line.source || null }, line.label),
            cell(String(line.n), true),
            line.standings.map((one) => standing(one, lens.systems.length > 1)),
            el("td", { class: "small faint" }, line.order),
          ),
        ),
        lens.systems.length > MOST_COLUMNS_ON_PAPER ? "lens wide" : "lens",
      ),
    );
  }
  return parts;
}

function standing(one, ranked) {
  if (one.value === null) return cell("", true);
  if (!ranked || one.rank === null) return cell(fixed(one.value), true);
  const place = `/${one.rank}${one.tied ? "=" : ""}${one.unsure ? "~" : ""}`;
  return el("td", { class: `number rank${one.rank}` }, fixed(one.value), el("span", { class: "place" }, place));
}
