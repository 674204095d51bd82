// The first view: which memory leads, whether the difference is real, and what it costs.
const UNANSWERABLE = { exclude: "left out", paper_trap: "giving the false answer counts", abstain: "declining counts" };
const boardSettings = (group) => {
  const metric = setting("metric", "Score", Object.keys(group.boards).map(metricOption));
  const five = setting("five", "Questions without an answer", Object.keys(group.boards[valueOf(metric)]).map((name) => option(name, UNANSWERABLE[name])));
  return [metric, five];
};
const nameIn = (group, number) => group.labels[number];

async function resultsView() {
  if (!FIRST.groups.length) return [el("h2", {}, "Results"), ...liveRuns(), note("No run has ended yet; nothing can be compared.")];
  const choice = groupSetting();
  const head = FIRST.groups[Number(valueOf(choice))],
    group = await part(`group-${valueOf(choice)}`);
  const [metric, five] = boardSettings(group);
  const board = group.boards[valueOf(metric)][valueOf(five)];
  const rows = boardRows(group, board, valueOf(metric));
  return [
    el("h2", {}, groupTitle(head)),
    el("p", { class: "faint", id: "extent" }, `${groupExtent(head)}, ${plural(head.systems, "system")}${head.reader ? `, reader ${head.reader}` : ""}`),
    el("p", { class: board.fault ? "verdict warning" : "verdict", id: "verdict" }, board.sentence.replaceAll(" %", "\u00a0%")),
    board.fault ? el("p", { class: "note warning" }, `Not a ranking: ${board.fault}.`) : null,
    ...liveRuns(),
    filters(menu(choice, { metric: "", five: "", columns: "", sort: "" }), menu(metric, { sort: "" }), menu(five)),
    dataTable(groupTitle(head), boardColumns(group, board, valueOf(metric)), rows, { kind: "stack board" }),
    el("p", { class: "small faint", id: "same-questions" }, `${board.setting}.`),
    el("details", { class: "small faint" }, el("summary", {}, "How to read this"), list(boardLegend(board, valueOf(metric)))),
    ...judgesLeftOut(),
    costChart(board, rows, valueOf(metric)),
    ...sliceParts(group),
    settingsTable(group),
  ];
}

/** Judges that nobody measured are not shown: how to measure or show them. */
const judgesLeftOut = () => FIRST.judgesLeftOut.map((line) => el("p", { class: "small faint left-out" }, `${line[0].toUpperCase()}${line.slice(1)}.`));

/** Rows of a board, the best first; references stand below and are not ranked. */
function boardRows(group, board, metric) {
  const direction = metricOf(metric)?.lower ? 1 : -1;
  const rows = board.runs.map((number, index) => ({
    number,
    name: nameIn(group, number),
    figures: board.figures[index],
    test: board.tests[index],
    baseline: index === board.against,
    tier: board.tiers[index] ?? null,
    costs: group.costs[number],
    band: group.systems.includes(number) ? "" : "references, not ranked",
  }));
  return rows.sort((one, two) => one.band.localeCompare(two.band) || direction * (one.figures[0] - two.figures[0]));
}

function boardColumns(group, board, metric) {
  const rows = board.runs.map((_, index) => board.figures[index]);
  const [low, high] = [Math.min(0, ...rows.flat()), roundUp(Math.max(...rows.flat(), 1))];
  const widest = roundUp(Math.max(...board.tests.flatMap((test) => (test ? [test.value, test.low ?? 0, test.high ?? 0].map(Math.abs) : [])), 1));
  const baseline = nameIn(group, board.runs[board.against]);
  const column = board.column === metric ? heading(metric) : board.column;
  const measured = Object.keys(group.means).filter((name) => name !== metric);
  const cost = (id, title, hint, digits, hidden) => ({
    id, title, hint, hidden, group: "cost", number: true,
    value: (row) => row.costs[id] ?? null,
    show: (row) => amount(row.costs[id], digits),
  });
  const known = (one) => one.group !== "cost" || board.runs.some((number) => group.costs[number][one.id] !== undefined);
  return [
    { id: "system", title: "system", value: (row) => row.name, show: (row) => el("a", { href: runAddress(row.number) }, row.name) },
    {
      id: "score", title: column, number: true, kind: "wide", value: (row) => row.figures[0],
      hint: metricOf(metric)?.source,
      show: (row) => [el("b", {}, fixed(row.figures[0])), interval(row.figures.slice(1)), bar(row.figures, low, high, row.band)],
      more: [["low", (row) => row.figures[1]], ["high", (row) => row.figures[2]]],
    },
    {
      id: "difference", title: `against ${baseline}`, number: true, kind: "wide", value: (row) => row.test?.value ?? null,
      hint: "difference with its 95 % interval, on the same questions",
      show: (row) => (row.baseline ? el("span", { class: "faint" }, "baseline") : row.test ? [el("b", {}, signed(row.test.value)), interval([row.test.low, row.test.high], signed), differenceBar(row.test, widest, row.band)] : ""),
      more: [["low", (row) => row.test?.low], ["high", (row) => row.test?.high], ["p after Holm", (row) => row.test?.adjusted]],
    },
    board.tiers.length ? { id: "tier", title: "tier", number: true, value: (row) => row.tier, hint: "systems that the test does not confirm to be below the best of them are one tier", show: (row) => row.tier ?? "" } : null,
    { id: "verdict", title: "verdict", value: (row) => (board.fault ? "" : (row.test?.verdict ?? "")), show: (row) => (row.test?.verdict && !board.fault ? chip(row.test.verdict, (!row.band && { above: "good", below: "bad" }[row.test.verdict]) || "plain") : "") },
    { id: "changed", title: "better / worse", hint: "questions scored higher and lower than by the baseline", number: true, hidden: true, value: (row) => row.test?.gained ?? null, show: (row) => (row.test ? `${row.test.gained} / ${row.test.lost}` : "") },
    ...[
      cost("context", "context", "tokens of memories shown to the model, per question", 0, true),
      cost("tokens", "tokens", "prompt and reply, per question", 0),
      cost("calls", "calls", "of the model, per question", 1, true),
      cost("write", "write", "tokens per turn written into the memory", 0),
      cost("seconds", "seconds", "per question as run, waiting for other questions included", 1),
      cost("dollars", "$ / 1,000", "list price of 1,000 questions", 2),
      cost("malformed", "malformed", "percent of the replies", 1, true),
      cost("cached", "cached", "percent of the prompt tokens that the server had computed before", 1, true),
    ].map((one) => (one.id === "dollars" ? { ...one, value: (row) => (row.costs.dollars === undefined ? null : 1000 * row.costs.dollars), show: (row) => amount(row.costs.dollars === undefined ? undefined : 1000 * row.costs.dollars, 2) } : one)).filter(known),
    ...measured.map((name) => ({
      id: name, title: heading(name), hint: metricOf(name)?.source, group: metricOf(name)?.group, number: true, hidden: name !== "recall@10",
      value: (row) => group.means[name][row.number] ?? null,
      show: (row) => (group.means[name][row.number] === undefined ? "" : fixed(group.means[name][row.number])),
    })),
  ].filter(Boolean);
}

const amount = (value, digits) => (value === undefined ? "" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
const interval = ([low, high], text = fixed) => (low === undefined || low === null ? null : el("span", { class: "interval" }, `[${text(low)}, ${text(high)}]`));
const roundUp = (value) => {
  const step = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * step).find((limit) => limit >= value - 1e-9);
};

/** A mean as a bar, with its interval as a line over the end of it. */
function bar([value, from, to], low, high, band) {
  const at = (number) => `${Math.max(0, Math.min(100, (100 * (number - low)) / (high - low)))}%`;
  return track(band ? "reference" : "", [["fill", { left: at(0), right: `calc(100% - ${at(value)})` }], from !== undefined && ["range", { left: at(from), right: `calc(100% - ${at(to)})` }]]);
}

/** A difference as a point with its interval around a line at zero. */
function differenceBar({ value, low, high, verdict }, widest, band) {
  const at = (number) => `${50 + Math.max(-50, Math.min(50, (50 * number) / widest))}%`;
  const kind = (!band && { above: "good", below: "bad" }[verdict]) || "";
  return track(`difference ${kind}`, [["zero", { left: "50%" }], low !== null && ["range", { left: at(low), right: `calc(100% - ${at(high)})` }], ["point", { left: at(value) }]]);
}

const track = (kind, marks) => el("span", { class: `track ${kind}`, "aria-hidden": "true" }, marks.filter(Boolean).map(([name, style]) => el("span", { class: name, style })));

function boardLegend(board, metric) {
  const source = metricOf(metric);
  const over = board.by === "question" ? "the questions of one conversation, so it says nothing about other conversations" : "conversations";
  return [
    source ? `${heading(metric)}: ${source.source}; ${source.unit}${source.lower ? ", lower is better" : ""}` : "",
    `[low, high]: 95 % interval (cluster t) over ${over}; of a difference: paired on the same questions`,
    "above, below: confirmed by a paired randomisation test against the baseline at 5 % after Holm's correction, with an interval that leaves out 0; not confirmed: neither",
    board.tiers.length ? "tier: the best system and those that the same test, against it, does not confirm to be below; then the best of the others" : "",
    "exploratory: a test that was not declared beforehand; no verdict: one conversation, which says nothing about others nor about another build of a memory",
    "references (no memory, constant answers, full context, the gold evidence) bound what a memory can do",
  ].filter(Boolean);
}

/** Runs that have not ended: how far they are, and their newest answers. */
function liveRuns() {
  return FIRST.unfinished.map((run) =>
    el(
      "section",
      { class: "card live", "aria-label": `${run.system}, ${run.status}` },
      el("h3", {}, el("span", { class: `dot ${run.status}` }), `${run.system}${run.backbone ? `, ${run.backbone}` : ""}`),
      el("progress", { max: String(run.asked || 1), value: String(run.answered), "aria-label": "questions answered" }),
      el("p", { class: "small faint" }, `${run.answered} of ${run.asked || "?"} questions, ${run.status}${run.written ? `; ${plural(run.written, "conversation")} written` : ""}${run.score === null ? "" : `; ${heading(run.metric)} so far ${fixed(run.score)}`}`),
      run.newest.length
        ? el("ol", { class: "newest" }, run.newest.map((one) => el("li", {}, el("p", { class: "small faint" }, said(one.question)), el("p", {}, said(one.answer || "(empty)"), " ", one.score === null ? null : scoreChip(one.score / 100)), el("p", { class: "small faint" }, "should be ", said(one.gold)))))
        : null,
    ),
  );
}

const scoreChip = (value, name = "") => chip(`${name}${name ? " " : ""}${value.toFixed(2)}`, value >= 0.995 ? "good" : value <= 0.005 ? "bad" : "");

/** Costs that a chart can have as its axis: name in the data, what it is, and the factor of its unit. */
const AXES = [
  ["tokens", "tokens per question", 1],
  ["write", "tokens per turn written", 1],
  ["context", "tokens of memories shown per question", 1],
  ["dollars", "list price of 1,000 questions in dollars", 1000],
];

/** Score over a cost; systems are filled, references hollow. */
function costChart(board, rows, metric) {
  const along = ([name, , factor]) => rows.filter((row) => row.costs[name] > 0).map((row) => ({ ...row, cost: factor * row.costs[name] }));
  const axes = AXES.filter((one) => unique(along(one).map((point) => point.cost)).length > 1);
  if (!axes.length) return null;
  const axis = setting("axis", "Cost", axes.map(([name, text]) => option(name, text)));
  const chosen = axes.find(([name]) => name === valueOf(axis));
  const [points, meaning] = [along(chosen), chosen[1]];
  const [width, height, left, bottom] = [Math.max(320, Math.min(760, window.innerWidth - 48)), 300, 40, 40];
  const ends = points.map((point) => Math.log10(point.cost));
  const [low, high] = [Math.min(...ends) - 0.1, Math.max(...ends) + 0.25];
  const most = roundUp(Math.max(...points.map((point) => point.figures[2] ?? point.figures[0]), 1));
  const x = (cost) => left + ((Math.log10(cost) - low) / (high - low)) * (width - left - 10);
  const y = (value) => height - bottom - (Math.max(0, value) / most) * (height - bottom - 12);
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line", { x1: left, x2: width - 10, y1: y(share * most), y2: y(share * most), class: "axis" }),
    svg("text", { x: left - 8, y: y(share * most) + 4, "text-anchor": "end", class: "faint" }, String(+(share * most).toFixed(1))),
  ]);
  const ticks = [1, 2, 5].flatMap((step) => [-4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6].map((power) => step * 10 ** power)).filter((tick) => Math.log10(tick) >= low && Math.log10(tick) <= high);
  const taken = points.map((point) => [x(point.cost) - 6, y(point.figures[0]) - 6, 12, 12]);
  const marks = points.map((point) =>
    svg(
      "g",
      { class: point.band ? "s1" : "s0" },
      point.figures[1] === undefined ? null : svg("line", { x1: x(point.cost), x2: x(point.cost), y1: y(point.figures[1]), y2: y(point.figures[2]), class: "stroke" }),
      svg("circle", { cx: x(point.cost), cy: y(point.figures[0]), r: 4.5, class: point.band ? "hollow" : "mark" }, svg("title", {}, `${point.name}: ${fixed(point.figures[0])}, ${point.cost.toLocaleString("en")} ${meaning}`)),
      placed(point.name, x(point.cost), y(point.figures[0]), width, taken),
    ),
  );
  return el(
    "figure",
    {},
    el("h3", {}, "Score and cost"),
    axes.length > 1 ? filters(menu(axis)) : null,
    svg(
      "svg",
      { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${heading(metric)} against ${meaning}`, style: { "max-width": `${width}px` } },
      grid,
      ticks.map((tick) => svg("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle", class: "faint" }, tick.toLocaleString("en", { maximumFractionDigits: 4 }))),
      svg("text", { x: width / 2, y: height - 6, "text-anchor": "middle", class: "faint" }, `${meaning} (log) · up: ${heading(metric)}, percent`),
      marks,
    ),
  );
}

/** A label beside its point where it hides nothing; none where there is no such place. */
function placed(name, x, y, width, taken) {
  const wide = 6.4 * name.length;
  const places = [[x + 9, y - 6], [x - 9 - wide, y - 6], [x - wide / 2, y - 20], [x - wide / 2, y + 9], [x + 8, y - 18], [x + 8, y + 7]];
  const free = ([left, top]) => left > 0 && left + wide < width && top > 0 && !taken.some(([l, t, w, h]) => left < l + w && l < left + wide && top < t + h && t < top + 12);
  const place = places.find(free);
  if (!place) return null;
  taken.push([...place, wide, 12]);
  return svg("text", { x: place[0], y: place[1] + 10 }, name);
}

function sliceParts(group) {
  if (!group.slices?.kinds.length) return [];
  const { metric, five, runs, kinds } = group.slices;
  const columns = (kind) => [
    { id: "system", title: "system", value: (row) => row.name },
    ...kind.parts.map((slice, index) => ({
      id: String(index), title: `${slice.label} (${slice.questions})`, number: true,
      value: (row) => slice.figures[row.index][0],
      show: (row) => sliceCell(slice.figures[row.index], Math.max(...slice.figures.map((one) => one[0]))),
    })),
  ];
  const board = group.boards[metric][five];
  const place = new Map(boardRows(group, board, metric).map((row, index) => [row.number, index]));
  const rows = runs.map((number, index) => ({ index, number, name: nameIn(group, number), band: group.systems.includes(number) ? "" : "references" }));
  rows.sort((one, two) => place.get(one.number) - place.get(two.number));
  return [
    el("h3", {}, "Where the difference lies"),
    el("p", { class: "small faint" }, `${heading(metric)}, percent${group.boards[metric] && Object.keys(group.boards[metric]).length > 1 ? `; questions without an answer ${UNANSWERABLE[five]}` : ""}. ±: half of the 95 % interval. In brackets: questions.`),
    ...kinds.map((kind, place) => el("details", { class: "slice", open: place === 0 }, el("summary", {}, `By ${kind.title}`), dataTable(`By ${kind.title}`, columns(kind), rows, { key: `slice${place}-`, kind: "stack", plain: true }))),
  ];
}

function sliceCell([value, low, high], most) {
  const share = most > 0 ? Math.round((30 * Math.max(0, value)) / most) : 0;
  return el("span", { class: "heat", style: { "--share": `${share}%` } }, fixed(value), low === undefined ? null : el("span", { class: "interval" }, ` ±${fixed((high - low) / 2)}`));
}

/** Settings that the runs do not share; what is the same in all is not shown. */
function settingsTable(group) {
  if (!group.settings.length) return null;
  const place = new Map(group.members.map((number, index) => [number, index]));
  const columns = [
    { id: "setting", title: "setting", value: ([name]) => name },
    ...group.members.filter((number) => group.settings.some(([, values]) => values[place.get(number)] !== null)).map((number) => ({ id: String(number), title: nameIn(group, number), value: ([, values]) => values[place.get(number)] ?? "" })),
  ];
  return el("details", { class: "slice" }, el("summary", {}, `Settings in which these runs differ (${group.settings.length})`), dataTable("Settings that differ", columns, group.settings, { key: "settings-", kind: "scrolled" }));
}
