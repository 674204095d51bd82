// The papers' tables: printed, measured, difference; a measured value leads to its run.
function tablesView() {
  const body = el("div");
  const draw = () => body.replaceChildren(...paperTable(draw));
  draw();
  return [el("h2", {}, "The papers' tables"), body];
}

function paperTable(draw) {
  const choice = setting(
    "table",
    "Table",
    DATA.tables.map((one) => option(one.id, one.title)),
  );
  const found = DATA.tables.find((one) => one.id === valueOf(choice));
  const anything = found.blocks.some((block) => block.rows.some((row) => row.measured));
  const only = anything && params.get("measured") !== "0";
  const blocks = found.blocks
    .map((block) => ({ ...block, rows: block.rows.filter((row) => row.measured || !only) }))
    .filter((block) => block.rows.length);
  const heads = [head("system"), head(""), ...found.columns.map((name) => head(name, true))];
  const rows = blocks.flatMap((block) => [
    el("tr", { class: "group" }, el("th", { colspan: String(heads.length), scope: "colgroup" }, block.label)),
    ...block.rows
      .flatMap((row) =>
        row.lines.flatMap((line, index) => [tableLine(row, line, index), remarkLine(line, heads.length)]),
      )
      .filter(Boolean),
  ]);
  return [
    el(
      "div",
      { class: "filters" },
      menu(choice, draw),
      anything ? check("measured systems only", "measured", only, draw) : null,
    ),
    anything ? null : el("p", { class: "note" }, "Nothing of this table was measured; the printed numbers stand."),
    found.remarks.map((text) => el("p", { class: "note" }, text)),
    table(found.title, heads, rows, "paper"),
    el(
      "ul",
      { class: "small faint" },
      found.legend.map((text) => el("li", {}, text)),
    ),
    found.faults.length
      ? el(
          "details",
          {},
          el("summary", {}, `${plural(found.faults.length, "known fault")} of the printed numbers`),
          el(
            "ul",
            { class: "small" },
            found.faults.map((text) => el("li", {}, text)),
          ),
        )
      : null,
    found.pairs ? pairedTests(found.pairs) : null,
  ]
    .flat()
    .filter(Boolean);
}

function pairedTests(pairs) {
  return [
    el("h3", {}, "Paired tests"),
    table(
      "Paired tests",
      pairs.headings.map((name, index) => head(name, index > 3)),
      pairs.rows.map((row) =>
        el(
          "tr",
          {},
          row.map((text, index) => cell(text, index > 3)),
        ),
      ),
    ),
    el(
      "ul",
      { class: "small faint" },
      pairs.legend.map((text) => el("li", {}, text)),
    ),
  ];
}

const VERDICTS = { reproduced: "good", higher: "bad", lower: "bad" };

function tableLine(row, line, index) {
  const cells = line.cells.map((text, column) => {
    const behind = line.kind === "measured" ? row.behind[column] : null;
    if (!behind)
      return el(
        "td",
        { class: `number ${line.marks[column] ?? ""} ${line.kind === "verdict" ? (VERDICTS[text] ?? "faint") : ""}` },
        text,
      );
    const title = [`${behind.metric}, ${plural(behind.questions, "question")}`, ...behind.caveats].join("; ");
    return el("td", { class: "number" }, el("a", { href: address("runs", { run: behind.runs[0] }), title }, text));
  });
  return el(
    "tr",
    { class: `${line.kind}${index === 0 ? " rowstart" : ""}` },
    el("th", { scope: "row" }, index === 0 ? row.label : ""),
    el("td", { class: "kind small faint" }, line.kind),
    cells,
  );
}

/** What a line was measured on, over the whole width: it is longer than any column. */
function remarkLine(line, width) {
  return line.remark
    ? el("tr", { class: "remark" }, el("td", { colspan: String(width) }, el("div", {}, line.remark)))
    : null;
}
