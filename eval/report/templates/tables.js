// The tables behind the first view: printed and measured, other definitions, costs, memories, published answers.
async function tablesView() {
  const choice = setting("table", "Table", FIRST.tables.map((one, index) => option(String(index), one.title, one.kind)));
  if (!choice.options.length) return [el("h2", {}, "Tables"), note("No run here has anything to show.")];
  const page = await part(`table-${valueOf(choice)}`);
  const clears = Object.fromEntries([...params.keys()].filter((key) => key !== "table").map((key) => [key, ""]));
  return [
    el("h2", {}, FIRST.tables[Number(valueOf(choice))].kind),
    filters(menu(choice, clears)),
    page.note ? note(page.note) : null,
    ...page.tables.flatMap((table, index) => [el("h3", {}, table.title), textTable(table, `t${index}-`), list(table.notes)]),
    page.tables.length ? el("details", { class: "small faint" }, el("summary", {}, "How to read this"), list(page.legend)) : list(page.legend, "findings"),
  ];
}

const VERDICTS = { reproduced: "good", "not reproduced": "bad", higher: "bad", lower: "bad" };
const textOf = (cell) => (Array.isArray(cell) ? cell[0] : (cell ?? ""));
const numberIn = (text) => (/^[-−+]?[\d,]*\.?\d+/.test(text) ? parseFloat(text.replaceAll(",", "").replace("−", "-")) : text);

/** Characters of a cell that holds figures; a column with longer ones is of words, which are wrapped. */
const LONGEST_NUMBER = 40;

/** A table of texts; a text over the whole width is a heading of the rows below it, or a remark on the row above. */
function textTable({ title, headings, left, rows }, key) {
  const whole = rows.filter(Array.isArray).length < rows.length;
  const wordy = (index) => rows.some((row) => Array.isArray(row) && textOf(row[index]).length > LONGEST_NUMBER);
  const numeric = headings.map((_, index) => index >= left && !wordy(index));
  const columns = headings.map((name, index) => ({
    id: String(index), title: name, number: numeric[index],
    value: (row) => (numeric[index] ? numberIn(textOf(row.cells[index])) : textOf(row.cells[index])),
    show: (row) => textCell(row.cells[index]),
  }));
  if (!whole) return dataTable(title, columns, rows.map((cells) => ({ cells, kind: cells[1] })), { key, kind: "scrolled" });
  let band = "";
  const shown = rows.flatMap((cells, index) => {
    if (Array.isArray(cells)) return [{ cells, kind: cells[1], band }];
    const before = rows[index - 1];
    if (Array.isArray(before) && Array.isArray(rows[index + 1]) && rows[index + 1][0] === "") return [{ cells: ["", "", cells], kind: "remark", band }];
    band = cells;
    return [];
  });
  return dataTable(title, columns, shown, { key, kind: "scrolled" });
}

function textCell(cell) {
  if (Array.isArray(cell)) return el("a", { href: runAddress(cell[1]) }, cell[0]);
  return VERDICTS[cell] ? el("span", { class: VERDICTS[cell] }, cell) : (cell ?? "");
}
