// One question with its gold, and what each system retrieved and answered.
function questionDetail(question) {
  const gold = question.gold.length ? question.gold.join(" | ") : "none: the conversation does not tell";
  const answered = (number) => question.answers[number].answer !== null;
  const numbers = Object.keys(question.answers)
      .map(Number)
      .sort((one, two) => answered(two) - answered(one) || one - two),
    names = labels(numbers);
  return [
    el("p", { class: "small faint" }, `${question.id}, category ${question.category} ${categoryName(question)}`),
    el("h3", { class: "said", style: { margin: "0 0 .4rem" } }, question.question),
    facts([
      ["gold", said(gold)],
      ["false answer", question.trap === null ? null : said(question.trap)],
      [
        "evidence",
        question.evidence.length
          ? question.evidence.map(([turn, text]) => el("div", {}, el("code", {}, turn), " ", said(DATA.texts[text])))
          : "none given",
      ],
    ]),
    ...pairedCards(question, numbers, names),
  ];
}

/** The answers; where two runs are chosen only these, side by side, with the first call that differs. */
function pairedCards(question, numbers, names) {
  const cards = (own) => own.map((number) => answerCard(question, number, names.get(number)));
  const chosen = [params.get("a"), params.get("b")].map((id) => DATA.runs.findIndex((run) => run.id === id));
  if (!chosen.every((number) => numbers.includes(number))) return cards(numbers);
  const [one, other] = chosen.map((number) => question.answers[number]);
  const differs = firstCall(one, other);
  return [
    el("p", { class: "note", id: "first-call" }, differs ? `First call about this question that differs: ${differs}.` : "Both runs made the same calls about this question."),
    el("p", { class: "small" }, el("a", { href: address("questions", { dataset: question.dataset, show: "all", q: question.id }) }, "all runs of this question")),
    el("div", { class: "pair" }, cards(chosen)),
  ];
}

const said = (text) => el("span", { class: "said", dir: "auto" }, text);

function answerCard(question, number, name) {
  const answer = question.answers[number],
    found = answer.hits.findIndex((hit) => hit[1].length);
  const evidence = !question.evidence.length
    ? null
    : found < 0
      ? chip("evidence not retrieved", "bad")
      : chip(`evidence at rank ${found + 1}`, "good");
  return el(
    "section",
    { class: "card", "aria-label": name },
    el("h4", {}, el("a", { href: address("runs", { run: DATA.runs[number].id }) }, name)),
    answer.answer === null
      ? el("p", { class: "faint" }, "retrieval only, no answer")
      : el(
          "div",
          { class: "answer" },
          answer.answer === "" ? el("span", { class: "faint" }, "(empty)") : said(answer.answer),
        ),
    answer.options?.length ? el("p", { class: "small faint" }, `options shown: ${answer.options.join(" / ")}`) : null,
    el(
      "div",
      { class: "chips" },
      evidence,
      answer.malformed ? chip("malformed reply", "bad") : null,
      Object.entries(answer.scores).map(([metric, value]) => chip(`${words(metric)} ${value.toFixed(2)}${DATA.judgeFaults[metric] ? " (judge no better than a constant)" : ""}`)),
    ),
    Object.entries(answer.judges).map(([judge, verdicts]) => verdictLine(judge, verdicts)),
    storedPart(question, answer),
    answer.hits.length
      ? el(
          "details",
          {},
          el("summary", {}, `${plural(answer.hits.length, "memory").replace("memorys", "memories")} retrieved`),
          el(
            "ol",
            { class: "memories" },
            answer.hits.map(([text, gold]) =>
              el(
                "li",
                { class: gold.length ? "gold" : null },
                gold.length ? el("code", {}, `${gold.join(", ")} `) : null,
                said(DATA.texts[text]),
              ),
            ),
          ),
        )
      : null,
    promptPart(answer),
    replyPart(answer),
    callsPart(answer),
  );
}

const folded = (title, name, ...children) => el("details", { "data-part": name }, el("summary", {}, title), children);

/** What the memory held of the turns that tell the answer. */
function storedPart(question, answer) {
  if (!answer.stored) return null;
  const held = Object.values(answer.stored).filter(([texts]) => texts.length).length;
  return folded(
    `stored: ${held} of ${plural(question.evidence.length, "evidence turn")} in the memory`,
    "stored",
    question.evidence.map(([turn]) => {
      const [texts, more] = answer.stored[turn] ?? [[], 0];
      return el(
        "div",
        { class: "stored" },
        el("code", {}, turn),
        texts.length ? texts.map((text) => el("pre", {}, DATA.texts[text])) : el("span", { class: "faint" }, " no entry of the memory names this turn"),
        more ? el("p", { class: "small faint" }, `and ${more.toLocaleString("en")} more`) : null,
      );
    }),
  );
}

function promptPart(answer) {
  if (answer.context === null || answer.context === undefined) return null;
  const text = DATA.texts[answer.context];
  return folded(
    `prompt: the context that the reader saw (${text.length.toLocaleString("en")} characters)`,
    "prompt",
    el("pre", {}, text === "" ? "(empty)" : text),
    el("p", { class: "small faint" }, "Around it stand the reader's own words, see the run's reader and its prompt checksums."),
  );
}

const replyPart = (answer) =>
  answer.raw === undefined ? null : folded("reply: as the model wrote it", "reply", el("pre", {}, answer.raw === "" ? "(empty)" : answer.raw));

function callsPart(answer) {
  if (!answer.calls.length) return null;
  const names = ["phase", "role", "attempt", "prompt", "reply", "s", "remarks", "request"];
  return folded(
    `${plural(answer.calls.length, "call")} about this question`,
    "calls",
    table(
      "Calls",
      names.map((name, index) => head(name, index > 1 && index < 6)),
      answer.calls.map((call) => el("tr", {}, call.map((value, index) => cell(String(value), index > 1 && index < 6)))),
      "stack",
    ),
  );
}

const chip = (text, kind = "") => el("span", { class: `chip ${kind}` }, text);

function verdictLine(judge, verdicts) {
  const about = DATA.metrics.find((metric) => metric.name === judge);
  const fault = DATA.judgeFaults[judge];
  if (fault)
    return el(
      "p",
      { class: "small verdicts worthless" },
      el("strong", {}, `Verdict not to be relied on: ${fault}. `),
      verdicts.map(([verdict, reason]) => [el("span", { class: "faint" }, `it said ${verdict ?? "nothing readable"}`), " ", said(reason), " "]),
    );
  return el(
    "p",
    { class: "small" },
    verdicts.map(([verdict, reason]) => [
      chip(verdict ?? "no verdict", verdict === "CORRECT" ? "good" : "bad"),
      " ",
      said(reason),
      " ",
    ]),
    el("span", { class: "faint" }, about ? about.source : judge),
  );
}
