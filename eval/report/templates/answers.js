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
    ...numbers.map((number) => answerCard(question, number, names.get(number))),
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
      Object.entries(answer.scores).map(([metric, value]) => chip(`${words(metric)} ${value.toFixed(2)}`)),
    ),
    Object.entries(answer.judges).map(([judge, verdicts]) => verdictLine(judge, verdicts)),
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
  );
}

const chip = (text, kind = "") => el("span", { class: `chip ${kind}` }, text);

function verdictLine(judge, verdicts) {
  const about = DATA.metrics.find((metric) => metric.name === judge);
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
