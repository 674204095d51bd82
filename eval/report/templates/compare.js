// Two runs side by side: what one gained and lost against the other, and the first call that differs.
const textRuns = (group) => Object.keys(group.textLabels).map(Number).filter((number) => DATA.runs[number].hasTexts);
const textName = (group, number) => group.textLabels[number];

function compareView() {
  const body = el("div");
  const draw = () => body.replaceChildren(...compareParts(draw));
  draw();
  return [el("h2", {}, "Two runs side by side"), body];
}

function pairSettings(group) {
  const options = textRuns(group).map((number) => option(DATA.runs[number].id, textName(group, number)));
  return [setting("a", "First run", options, options[0]?.value), setting("b", "Second run", options, options[1]?.value)];
}

const numberOf = (id) => DATA.runs.findIndex((run) => run.id === id);

function compareParts(draw) {
  const able = DATA.groups.map((group, index) => [group, index]).filter(([group]) => textRuns(group).length > 1);
  if (!able.length) return [el("p", { class: "note" }, "Two run directories on the same questions are needed; summaries hold no texts.")];
  const choice = setting("group", "Runs", able.map(([, index]) => GROUP.options[index]));
  const group = DATA.groups[Number(valueOf(choice))];
  const [first, second] = pairSettings(group);
  const [a, b] = [numberOf(valueOf(first)), numberOf(valueOf(second))];
  const score = setting("score", "Score", DATA.questionScores.map((name) => option(name, words(name))));
  const five = check("category 5 too", "with5", params.get("with5") === "1", draw);
  const controls = el("div", { class: "filters" }, able.length > 1 ? menu(choice, draw) : null, menu(first, draw), menu(second, draw), menu(score, draw), five);
  if (a === b) return [controls, el("p", { class: "note" }, "Choose two different runs.")];
  return [controls, ...pairParts(group, a, b, valueOf(score))];
}

function pairParts(group, a, b, metric) {
  const both = DATA.questions
    .filter((one) => one.answers[a]?.scores[metric] !== undefined && one.answers[b]?.scores[metric] !== undefined)
    .filter((one) => !isAdversarial(one.dataset, one.category) || params.get("with5") === "1")
    .map((question) => ({ question, change: question.answers[b].scores[metric] - question.answers[a].scores[metric] }));
  const gained = both.filter((one) => one.change > 1e-9).sort((one, two) => two.change - one.change);
  const lost = both.filter((one) => one.change < -1e-9).sort((one, two) => one.change - two.change);
  const total = both.reduce((sum, one) => sum + one.change, 0);
  const [from, to] = [textName(group, a), textName(group, b)];
  const beyond = both.length ? chanceOf(group, a, b, metric, both.length) : "";
  return [
    el(
      "p",
      { class: "verdict", id: "pair" },
      both.length
        ? `From ${from} to ${to}: ${signed((100 * total) / both.length)} ${words(metric)} over ${plural(both.length, "question")}; ${gained.length} gained, ${lost.length} lost, ${both.length - gained.length - lost.length} alike${beyond}.`
        : "No question has this score in both runs.",
    ),
    writingNote(group, a, b),
    el("div", { class: "pair" }, changeList(`Gained by ${to}`, gained, a, b), changeList(`Lost by ${to}`, lost, a, b)),
  ];
}

/** Interval of the difference and whether chance explains it, where the first view tested the two on these questions. */
function chanceOf(group, a, b, metric, questions) {
  const board = group.boards[metric]?.[params.get("with5") === "1" ? "paper_trap" : "exclude"] ?? group.boards[metric]?.paper_trap;
  const [first, second] = [a, b].map((number) => board?.runs.indexOf(number) ?? -1);
  if (first < 0 || second < 0 || board.questions !== questions) return "";
  if ([a, b].some((number) => group.averaged.includes(number))) return ""; // the first view has the mean of all seeds there
  const step = differenceTo(board, second, first);
  if (!step || step.low === null) return "";
  const only = board.by === "question" ? ", on the questions of one conversation" : "";
  return `; 95 % interval [${signed(step.low)}, ${signed(step.high)}]${only}: ${step.verdict}, as the first view has it`;
}

function writingNote(group, a, b) {
  const found = group.writing[`${a}-${b}`] ?? group.writing[`${b}-${a}`] ?? {};
  const swapped = group.writing[`${a}-${b}`] === undefined;
  const order = swapped ? ` (first: ${textName(group, b)})` : ` (first: ${textName(group, a)})`;
  const lines = Object.entries(found);
  return el(
    "div",
    { class: "small", id: "writing" },
    lines.length
      ? [el("p", {}, `First call of writing that differs${order}:`), el("ul", {}, lines.map(([conversation, text]) => el("li", {}, el("code", {}, conversation), ` ${text}`)))]
      : el("p", { class: "faint" }, "No call of writing differs between the two."),
  );
}

function changeList(title, entries, a, b) {
  return el(
    "section",
    {},
    el("h3", {}, `${title} (${entries.length})`),
    el(
      "ul",
      { class: "changes" },
      entries.map(({ question, change }) =>
        el(
          "li",
          {},
          el("a", { href: address("questions", { dataset: question.dataset, show: "all", q: question.id, a: DATA.runs[a].id, b: DATA.runs[b].id }) }, signed(100 * change)),
          " ",
          said(question.question || question.id),
        ),
      ),
    ),
  );
}

/** The first call about a question in which two answers differ. */
function firstCall(one, other) {
  const most = Math.max(one.calls.length, other.calls.length);
  for (let index = 0; index < most; index += 1) {
    const [mine, yours] = [one.calls[index], other.calls[index]];
    if (!mine || !yours) return `call ${index + 1}: only one run made it (${(mine ?? yours)[0]} ${(mine ?? yours)[1]})`;
    if (mine[1] !== yours[1]) return `call ${index + 1}: ${mine[0]} ${mine[1]} against ${yours[0]} ${yours[1]}`;
    if (mine[7] !== yours[7]) return `call ${index + 1}: ${mine[0]} ${mine[1]} has another request`;
  }
  return "";
}
