// The first view: which memory to use, and whether the difference is real.
const FIVES = { exclude: "left out", paper_trap: "trap: the false answer is right", abstain: "declining is right" };
const GROUP = setting(
  "group",
  "Runs",
  DATA.groups.map((one, index) =>
    option(
      String(index),
      `${[one.dataset, one.backbone === "none" ? "retrieval only" : one.backbone, one.prompts, one.reader && `reader ${one.reader}`].filter(Boolean).join(", ")}: ${plural(one.systems.length, "system")}, ${plural(one.common, "question")}`,
    ),
  ),
);

const chosenGroup = () => DATA.groups[Number(valueOf(GROUP))];
const groupMetric = (group) =>
  setting(
    "metric",
    "Score",
    Object.keys(group.boards).map((name) => option(name, words(name))),
  );
const groupFive = (group) =>
  setting(
    "five",
    "Category 5",
    Object.keys(group.boards[valueOf(groupMetric(group))]).map((name) => option(name, FIVES[name])),
  );
const chosenBoard = (group) => group.boards[valueOf(groupMetric(group))][valueOf(groupFive(group))];
const nameIn = (group, number) => group.labels[number];

function answerView() {
  const body = el("div");
  const draw = () => body.replaceChildren(...answerParts(draw));
  draw();
  return [el("h2", {}, "Which memory, and is the difference real?"), body];
}

function answerParts(draw) {
  if (!DATA.groups.length)
    return [el("p", { class: "note" }, "No run here has ended; nothing can be compared yet."), ...unfinishedRuns()];
  const group = chosenGroup(),
    board = chosenBoard(group);
  const shown = [groupMetric(group), groupFive(group)];
  if (DATA.groups.length > 1) shown.unshift(GROUP);
  return [
    el("p", { class: board.fault ? "verdict warning" : "verdict", id: "verdict" }, `${board.sentence} (${board.setting}.)`),
    ...unfinishedRuns(),
    el(
      "details",
      { class: "settings", open: params.get("settings") === "1" },
      el("summary", { on: { click: () => change({ settings: params.get("settings") === "1" ? "" : "1" }) } }, "Runs, score, category 5"),
      el(
        "div",
        { class: "filters" },
        shown.map((one) => menu(one, draw)),
      ),
    ),
    el("p", { class: "small faint", id: "same-questions" }, sameQuestions(group, board)),
    board.fault ? el("p", { class: "note warning" }, `Not a ranking: ${board.fault}.`) : null,
    forest(group, board),
    boardTable(group, board),
    el("p", { class: "small faint" }, boardLegend(board)),
    ...judgesLeftOut(),
    ...sliceParts(group),
  ].filter(Boolean);
}

/** Judges that nobody measured are not shown: how to measure or show them. */
const judgesLeftOut = () => DATA.judgesLeftOut.map((line) => el("p", { class: "small faint left-out" }, `${line[0].toUpperCase()}${line.slice(1)}.`));

function sameQuestions(group, board) {
  const five = valueOf(groupFive(group));
  return (
    `${board.questions.toLocaleString("en")} of ${plural(group.asked, "question")}: those that all ${board.runs.length} runs shown answered and that were scored in all of them. ` +
    `Category 5 (adversarial): ${FIVES[five]}. ${plural(group.conversations, "conversation")}.`
  );
}

function boardLegend(board) {
  const unit = board.by === "question" ? "the questions of one conversation (‡), so it says nothing about others" : "conversations";
  return (
    `Brackets: 95 % cluster t interval over ${unit}; of differences, paired on the same questions, not corrected. ` +
    "above, below: confirmed by a paired randomisation test against one baseline at 5 % after Holm's correction over the tests of this table, with an interval that leaves out 0; not confirmed: neither. " +
    "exploratory: no test that was declared beforehand. differs here, equal: one conversation, which says nothing about others nor about another build of a memory. gained and lost: questions scored higher and lower than the baseline. " +
    "R@10: evidence recall by turn ids, category 5 as chosen above; tokens, calls: per question; write: tokens per turn; s: wall seconds per question as run, waiting for other questions included; " +
    `$: list price per 1,000 questions${priceDates()}, empty where none is known.`
  );
}

function priceDates() {
  const dates = [...new Set(DATA.runs.map((run) => run.prices).filter(Boolean))];
  return dates.length ? ` (prices of ${dates.join(", ")})` : "";
}

function unfinishedRuns() {
  if (!DATA.unfinished.length) return [];
  return [
    el(
      "section",
      { class: "card", id: "unfinished", "aria-label": "Runs that have not ended" },
      el("h3", { style: { margin: "0 0 .3rem" } }, `${plural(DATA.unfinished.length, "run")} not ended, in no figure below`),
      DATA.unfinished.map((run) =>
        el(
          "div",
          { class: "going" },
          el("span", {}, `${run.system}${run.backbone ? `, ${run.backbone}` : ""}`),
          el("progress", { max: String(run.asked || 1), value: String(run.answered), "aria-label": run.run_id }),
          el("span", { class: "small" }, `${run.answered} of ${run.asked || "?"} questions, ${run.status}`),
        ),
      ),
    ),
  ];
}

/** Means with intervals on one scale: ranked systems, then the references as hollow marks with a line through all. */
function forest(group, board) {
  const rows = board.runs.map((number, index) => ({
    name: nameIn(group, number),
    figures: board.figures[index],
    ranked: group.systems.includes(number),
  }));
  rows.sort((one, two) => two.ranked - one.ranked || two.figures[0] - one.figures[0]);
  const width = Math.max(280, Math.min(760, window.innerWidth - 40)),
    step = 38,
    top = 6;
  const height = top + step * rows.length + 42,
    ends = rows.flatMap((row) => row.figures);
  const room = Math.max(1, (Math.max(...ends) - Math.min(...ends)) * 0.06);
  const least = Math.min(...ends);
  const low = least < 0 ? least - room : Math.max(0, least - room), // of a figure that is not a share it may begin below 0
    high = Math.max(...ends) + room;
  const x = (value) => 8 + ((value - low) / (high - low)) * (width - 16);
  const bottom = height - 38;
  const scale = rangeTicks(low, high).map((tick) => [
    svg("line", { x1: x(tick), x2: x(tick), y1: top, y2: bottom, class: "axis" }),
    svg("text", { x: x(tick), y: bottom + 15, "text-anchor": "middle", class: "faint" }, String(+tick.toFixed(2))),
  ]);
  const marks = rows.map((row, index) => {
    const y = top + step * index + 28,
      [value, from, to] = row.figures;
    const label = `${row.name}  ${fixed(value)}${from === undefined ? "" : ` [${fixed(from)}, ${fixed(to)}]`}`;
    const longest = Math.floor((width - 16) / 6.6);
    return svg(
      "g",
      { class: row.ranked ? "c0" : "c1" },
      svg("text", { x: 8, y: y - 11, class: row.ranked ? "" : "faint" }, shortened(row.name, label, longest)),
      from === undefined ? null : svg("line", { x1: x(from), x2: x(to), y1: y, y2: y, class: "stroke" }),
      svg("circle", { cx: x(value), cy: y, r: 4.5, class: row.ranked ? "mark" : "hollow" }),
    );
  });
  const title = svg("text", { x: width / 2, y: height - 5, "text-anchor": "middle" }, `${words(valueOf(groupMetric(group)))}, percent${board.by === "question" ? " ‡" : ""}`);
  return el(
    "figure",
    {},
    svg(
      "svg",
      { class: "chart", id: "forest", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Means with intervals", style: { "max-width": `${width}px` } },
      scale,
      rows.map((row) =>
        row.ranked ? null : svg("line", { x1: x(row.figures[0]), x2: x(row.figures[0]), y1: top, y2: bottom, class: "reference c1" }),
      ),
      marks,
      title,
    ),
    el("figcaption", { class: "small faint" }, "Filled: systems. Hollow with a dashed line: references (no memory, constants, full context, gold evidence), which are not ranked."),
  );
}

/** A label that fits; the name gives way, the numbers never do. */
function shortened(name, label, longest) {
  if (label.length <= longest) return label;
  const rest = label.slice(name.length);
  return `${name.slice(0, Math.max(6, longest - rest.length - 1))}…${rest}`;
}

/** Round numbers between two ends, three to seven of them. */
function rangeTicks(low, high) {
  const power = 10 ** Math.floor(Math.log10(high - low));
  const step = [0.1, 0.2, 0.25, 0.5, 1, 2].map((factor) => factor * power).find((one) => (high - low) / one <= 6);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + 1e-9; tick += step) found.push(tick);
  return found;
}

/** One system minus another: known where one of them is the baseline. */
function differenceTo(board, index, base) {
  if (base === board.against) return board.tests[index];
  const found = index === board.against ? board.tests[base] : null;
  if (!found) return null;
  const flipped = (value) => (value === null ? null : -value);
  const verdict = { above: "below", below: "above" }[found.verdict] ?? found.verdict;
  return { ...found, value: -found.value, low: flipped(found.high), high: flipped(found.low), gained: found.lost, lost: found.gained, verdict };
}

const signed = (value) => (value >= 0 ? `+${fixed(value)}` : `−${fixed(-value)}`);

function boardTable(group, board) {
  const recall = group.boards["recall@10"]?.[valueOf(groupFive(group))];
  const metric = valueOf(groupMetric(group));
  const names = ["system", words(metric), `difference to ${nameIn(group, board.runs[board.against])}`, "verdict", "gained / lost", "R@10", "tokens", "calls", "write", "s", "$ / 1,000"];
  const texts = board.runs.map((_, index) => boardTexts(group, board, index, recall));
  const known = (column) => column < 5 || texts.some((own) => own[column]); // evidence and costs may be unknown to all
  const shown = names.map((_, column) => column).filter((column) => known(column) && (column !== 5 || metric !== "recall@10"));
  const line = (index) => boardLine(group, board, index, texts[index], shown);
  const order = board.runs.map((_, index) => index).sort((one, two) => board.figures[two][0] - board.figures[one][0]);
  const ranked = order.filter((index) => index < board.ranked),
    others = order.filter((index) => index >= board.ranked);
  const band = (text) => el("tr", { class: "group" }, el("th", { colspan: String(shown.length), scope: "colgroup" }, text));
  return table(
    "Comparison",
    shown.map((index) => head(names[index], index > 0)),
    [ranked.map(line), others.length ? [band("references, not ranked"), others.map(line)] : []],
    "stack",
  );
}

/** Texts of one system's columns; the first, its name, is a link. */
function boardTexts(group, board, index, recall) {
  const number = board.runs[index],
    costs = group.costs[number];
  const place = recall ? recall.runs.indexOf(number) : -1;
  const interval = ([, low, high]) => (low === undefined ? "" : ` [${fixed(low)},\u00a0${fixed(high)}]`);
  const step = board.tests[index];
  const change = step ? `${signed(step.value)}${step.low === null ? "" : ` [${signed(step.low)},\u00a0${signed(step.high)}]`}` : "";
  return [
    null,
    `${fixed(board.figures[index][0])}${interval(board.figures[index])}`,
    index === board.against ? "baseline" : change,
    step && !board.fault ? step.verdict : "",
    step ? `${step.gained} / ${step.lost}` : "",
    place < 0 ? "" : `${fixed(recall.figures[place][0])}${interval(recall.figures[place])}`,
    amount(costs.tokens, 0),
    amount(costs.calls, 1),
    amount(costs.write, 0),
    amount(costs.seconds, 1),
    costs.dollars === undefined ? "" : (1000 * costs.dollars).toFixed(2),
  ];
}

function boardLine(group, board, index, texts, shown) {
  const number = board.runs[index];
  const confirmed = !board.fault && ["above", "below"].includes(board.tests[index]?.verdict);
  return el(
    "tr",
    { class: confirmed ? "apart" : null },
    shown.map((column) =>
      column === 0
        ? el("th", { scope: "row" }, el("a", { href: address("runs", { run: DATA.runs[number].id }) }, nameIn(group, number)))
        : el("td", { class: "number" }, texts[column]),
    ),
  );
}

const amount = (value, digits) =>
  value === undefined ? "" : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function sliceParts(group) {
  if (!group.slices || !group.slices.kinds.length) return [];
  const { metric, five, runs, kinds } = group.slices;
  return [
    el("h3", {}, "Where the difference lies"),
    el("p", { class: "small faint" }, `${words(metric)}, percent, category 5 ${FIVES[five]}. Small slices: look at the brackets before the means.`),
    ...kinds.map((kind, place) =>
      el(
        "details",
        { class: "slice", open: place === 0 },
        el("summary", {}, `By ${kind.title}`),
        table(
          `By ${kind.title}`,
          [head("system"), ...kind.parts.map((part) => head(`${part.label} (${part.questions})`, true))],
          runs.map((number, index) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, nameIn(group, number)),
              kind.parts.map((part) => {
                const [value, low, high] = part.figures[index];
                return el("td", { class: "number" }, fixed(value), low === undefined ? "" : el("span", { class: "small faint" }, ` [${fixed(low)}, ${fixed(high)}]`));
              }),
            ),
          ),
          "stack",
        ),
      ),
    ),
    group.slices.kinds.length < 4
      ? el("p", { class: "small faint" }, "Slices by evidence and answer length need run directories with texts and memory snapshots; a summary has none.")
      : null,
  ];
}
