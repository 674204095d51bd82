// One table for all views: sorted by a click, filtered by words, its columns chosen, saved as CSV.

/**
 * A column: `id`, `title`, `value` (what is sorted and saved), `show` (a node or text, else the value), `number`, `hint`,
 * `hidden` at first, `more`: further values to save, as pairs of a title and a function.
 * Rows: any objects; rows with a `band` stand below the others under that heading. `options.key` begins the names of
 * the table's settings in the address; `options.plain`: without filter and choice of columns.
 */
function dataTable(title, columns, rows, options = {}) {
  const key = (name) => `${options.key ?? ""}${name}`;
  const chosen = () => params.get(key("columns"))?.split(",");
  const shown = () => columns.filter((one, index) => index === 0 || (chosen() ? chosen().includes(one.id) : !one.hidden));
  const region = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title });
  const draw = () => region.replaceChildren(drawn(shown(), arranged(columns, rows, key), options.kind, key, draw));
  draw();
  return [el("div", { class: "tools" }, tableTools(title, columns, rows, { key, shown, draw, plain: options.plain })), region];
}

/** Rows that the filter lets through, sorted, band after band; what has no value stands last. */
function arranged(columns, rows, key) {
  const [id, down] = (params.get(key("sort")) ?? "").split(" ");
  const column = columns.find((one) => one.id === id);
  const text = (params.get(key("filter")) ?? "").toLowerCase();
  const fits = (row) => !text || columns.some((one) => String(one.value(row) ?? "").toLowerCase().includes(text));
  const found = rows.filter(fits);
  if (!column) return found;
  const order = (one, two) => {
    const [first, second] = [column.value(one), column.value(two)];
    if (first === second) return 0;
    if (first === null || first === undefined || first === "") return 1;
    if (second === null || second === undefined || second === "") return -1;
    const size = typeof first === "number" && typeof second === "number" ? first - second : String(first).localeCompare(String(second), "en", { numeric: true });
    return down ? -size : size;
  };
  return unique(found.map((row) => row.band ?? "")).flatMap((band) => found.filter((row) => (row.band ?? "") === band).sort(order));
}

function drawn(columns, rows, kind, key, draw) {
  let band = "";
  const body = rows.flatMap((row) => {
    const before = (row.band ?? "") === band ? [] : [el("tr", { class: "group" }, el("th", { colspan: String(columns.length), scope: "colgroup" }, row.band))];
    band = row.band ?? "";
    return [...before, el("tr", { class: row.kind ?? null }, columns.map((column, index) => tableCell(column, row, index)))];
  });
  const none = el("tr", {}, el("td", { colspan: String(columns.length), class: "faint" }, "No row fits."));
  return el("table", { class: kind ?? "stack" }, el("thead", {}, el("tr", {}, columns.map((column) => tableHead(column, key, draw)))), el("tbody", {}, body.length ? body : none));
}

function tableCell(column, row, index) {
  const text = column.show ? column.show(row) : column.value(row);
  const kind = `${column.number ? "number" : ""} ${column.kind ?? ""}`.trim() || null;
  return index ? el("td", { class: kind, "data-label": column.title }, text) : el("th", { scope: "row", class: kind }, text);
}

function tableHead(column, key, draw) {
  const [id, down] = (params.get(key("sort")) ?? "").split(" ");
  const sort = () => {
    const first = column.number ? " down" : "";
    change({ [key("sort")]: `${column.id}${id === column.id ? (down ? "" : " down") : first}` });
    draw();
  };
  const state = id === column.id ? (down ? "descending" : "ascending") : null;
  return el("th", { scope: "col", class: column.number ? "number" : null, "aria-sort": state }, el("button", { type: "button", title: column.hint ?? null, on: { click: sort } }, column.title));
}

function tableTools(title, columns, rows, { key, shown, draw, plain }) {
  const narrow = (event) => {
    change({ [key("filter")]: event.target.value });
    draw();
  };
  const pick = () => {
    change({ [key("columns")]: [...picker.querySelectorAll("input:checked")].map((box) => box.value).join(",") });
    draw();
  };
  const box = (column) => el("label", { class: "check" }, el("input", { type: "checkbox", value: column.id, checked: shown().includes(column) }), column.title);
  const groups = unique(columns.slice(1).map((column) => column.group ?? ""));
  const picker = el("div", { class: "picker", on: { change: pick } }, groups.map((group) => el("fieldset", {}, group ? el("legend", {}, group) : null, columns.slice(1).filter((column) => (column.group ?? "") === group).map(box))));
  return [
    rows.length > 4 && !plain ? el("input", { type: "search", id: `filter-${key("filter")}`, placeholder: "Filter rows", "aria-label": "Filter rows", value: params.get(key("filter")) ?? "", on: { input: narrow } }) : null,
    columns.length > 4 && !plain ? el("details", { class: "menu" }, el("summary", {}, "Columns"), picker) : null,
    el("button", { type: "button", on: { click: () => save(`${title}.csv`, "text/csv", csv(shown(), arranged(columns, rows, key))) } }, "CSV"),
  ];
}

/** Columns as CSV; what a spreadsheet would take for a formula is quoted. */
function csv(columns, rows) {
  const whole = columns.flatMap((column) => [[column.title, column.value], ...(column.more ?? [])]);
  const field = (value) => {
    const text = String(value ?? "");
    const plain = typeof value !== "number" && /^[=+\-@\t]/.test(text) ? `'${text}` : text;
    return /[",\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  return [whole.map(([title]) => title), ...rows.map((row) => whole.map(([, value]) => value(row)))].map((line) => line.map(field).join(",")).join("\n") + "\n";
}
