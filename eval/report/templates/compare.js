// Two runs side by side: what one gained and lost against the other, and the first call that differs.
async function compareView() {
  const choice = groupSetting((group) => group.texts);
  const none = [el("h2", {}, "Two runs side by side"), note(choice.options.length ? "Two runs on the same questions are needed." : NO_TEXTS)];
  if (!choice.options.length) return none;
  const number = valueOf(choice);
  const [group, overview] = await Promise.all([part(`group-${number}`), part(`questions-${number}`)]);
  const runs = group.texts.map((one) => option(String(one), group.textLabels[one]));
  if (runs.length < 2) return [none[0], filters(menu(choice)), none[1]];
  const board = Object.values(Object.values(group.boards)[0] ?? {})[0];
  const baseline = runs.find((one) => one.value === String(board?.runs[board.against])) ?? runs[0];
  const first = setting("a", "First run", runs, baseline.value);
  const second = setting("b", "Second run", runs, runs.find((one) => one.value !== valueOf(first)).value);
  const score = setting("metric", "Score", overview.scores.map(metricOption));
  const five = setting("five", "Questions without an answer", overview.questions.some((one) => one.unanswerable) ? [option("exclude", "left out"), option("paper_trap", "compared too")] : [option("exclude")]);
  const [a, b] = [first, second].map((one) => Number(valueOf(one)));
  return [
    none[0],
    filters(menu(choice, { a: "", b: "", metric: "" }), menu(first), menu(second), menu(score), menu(five)),
    ...(a === b ? [note("Choose two different runs.")] : pairParts(group, overview.questions, [a, b], valueOf(score), valueOf(five))),
  ];
}

function pairParts(group, questions, [a, b], metric, five) {
  const both = questions
    .map((question) => ({ question, before: question.runs[a]?.[SCORES][metric], after: question.runs[b]?.[SCORES][metric] }))
    .filter(({ question, before, after }) => before !== undefined && after !== undefined && (five !== "exclude" || !question.unanswerable))
    .map((one) => ({ ...one, change: one.after - one.before }));
  const [from, to] = [group.textLabels[a], group.textLabels[b]];
  const gained = both.filter((one) => one.change > 1e-9).sort((one, two) => two.change - one.change);
  const lost = both.filter((one) => one.change < -1e-9).sort((one, two) => one.change - two.change);
  if (!both.length) return [note("No question has this score in both runs.")];
  const alike = both.length - gained.length - lost.length;
  return [
    el("p", { class: "verdict", id: "pair" }, `From ${from} to ${to}: ${signed(100 * mean(both.map((one) => one.change)))} ${heading(metric)} over ${plural(both.length, "question")}; ${gained.length} better, ${lost.length} worse, ${alike} alike${chanceOf(group, [a, b], metric, five, both.length)}.`),
    el("div", { class: "balance", "aria-hidden": "true" }, [["good", gained.length], ["same", alike], ["bad", lost.length]].map(([kind, count]) => el("span", { class: kind, style: { "flex-grow": String(count) } }))),
    differentSettings(group, a, b),
    writingNote(group, a, b),
    el("div", { class: "pair" }, changeList(`Better with ${to}`, gained, a, b), changeList(`Worse with ${to}`, lost, a, b)),
  ];
}

/** Interval of the difference and what the first view says of it, where it tested the two on these questions. */
function chanceOf(group, [a, b], metric, five, questions) {
  const board = group.boards[metric]?.[five];
  const [first, second] = [a, b].map((number) => board?.runs.indexOf(number) ?? -1);
  if (first < 0 || second < 0 || board.questions !== questions || [a, b].some((number) => group.averaged.includes(number))) return "";
  const turned = second === board.against;
  const test = turned ? board.tests[first] : first === board.against ? board.tests[second] : null;
  if (!test || test.low === null) return "";
  const [low, high] = turned ? [-test.high, -test.low] : [test.low, test.high];
  const verdict = turned ? ({ above: "below", below: "above" }[test.verdict] ?? test.verdict) : test.verdict;
  return `; 95 % interval [${signed(low)}, ${signed(high)}]${board.by === "question" ? " over the questions of one conversation, from which no verdict follows" : `, ${verdict}`}`;
}

function differentSettings(group, a, b) {
  const [one, two] = [a, b].map((number) => group.members.indexOf(number));
  const found = group.settings.filter(([, values]) => one >= 0 && two >= 0 && values[one] !== values[two] && values[one] !== null && values[two] !== null);
  return found.length ? el("p", { class: "small" }, "Settings that differ: ", found.map(([name, values]) => [el("code", {}, `${name} ${values[one]} → ${values[two]}`), " "])) : null;
}

function writingNote(group, a, b) {
  const swapped = group.writing[`${a}-${b}`] === undefined;
  const lines = Object.entries(group.writing[swapped ? `${b}-${a}` : `${a}-${b}`] ?? {});
  return lines.length
    ? el("details", { class: "small", id: "writing" }, el("summary", {}, `First call of writing that differs (first: ${group.textLabels[swapped ? b : a]})`), el("ul", {}, lines.map(([conversation, text]) => el("li", {}, el("code", {}, conversation), ` ${text}`))))
    : el("p", { class: "small faint", id: "writing" }, "No call of writing differs between the two.");
}

function changeList(title, entries, a, b) {
  const group = valueOf(groupSetting((one) => one.texts));
  const entry = ({ question, before, after }) =>
    el("li", {}, el("a", { href: address("questions", { group, q: question.id, a, b }) }, said(question.question || question.id)), el("span", { class: "small faint" }, ` ${before.toFixed(2)} → ${after.toFixed(2)}`));
  return el("section", {}, el("h3", {}, `${title} (${entries.length})`), el("ul", { class: "changes" }, entries.map(entry)));
}
