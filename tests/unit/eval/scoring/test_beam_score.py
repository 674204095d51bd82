"""BEAM's score as one figure: rubrics and the order of events, ten kinds alike, and how good its judge is."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from eval.audit.page import findings
from eval.judge.__main__ import main, make_plan
from eval.judge.gold import gold_by_rubrics, measure_by_rubrics
from eval.judge.judging import JudgedItem
from eval.judge.people import KnownAnswer, figures_of, measure_judge
from eval.report.config import load_config as load_page_config
from eval.report.scores import metric_list
from eval.results.compare.formats import comparison_files
from eval.results.compare.model import make_report
from eval.results.tables.judges import without_unmeasured
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import Mean
from eval.scoring.beam import beam_scores, meaning, title
from eval.scoring.protocols import load_protocol
from eval.scoring.verdicts.figures import BY_PEOPLE, OF_GOLD, JudgeFigures, keep, stored_figures
from eval.scoring.verdicts.judge_quality import judge_quality
from eval.scoring.verdicts.store import AnswerVerdict
from memsys.errors import ConfigError
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn
from tests.support.fake_run import FakeRun, rewrite, stored
from tests.support.judge_server import judge_server
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer

BEAM = load_protocol("beam")
COLUMN = "judge_beam_rubric_smollm2_135m_vllm"
#: What the stub says of a criterion.
VERDICTS = {"whole": "CORRECT", "partly": "PARTIAL", "missing": "WRONG"}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """A backbone whose verdict is the last word of the criterion; of others it says that the answer is right."""
    with judge_server(tmp_path, monkeypatch, _reply) as running:
        yield running


def _reply(prompt: str) -> str:
    criterion = next(line for line in prompt.splitlines() if line.startswith("Criterion"))
    return json.dumps({"reason": "because", "verdict": VERDICTS.get(criterion.split()[-1], "CORRECT")})


def write_run(root: Path, categories: Sequence[int] = range(31, 41)) -> Path:
    """Two chats with a question of each kind, whose rubrics are met in full by half and in part by half.

    Words of the reference put the events of the first chat in order (0.9), and half of the second's (0.7).
    """
    run = FakeRun(
        conversations=("beam-1", "beam-2"), questions_each=len(categories), categories=tuple(categories), summary=False
    )
    path = run.write(root)
    rubric = {"rubric": ["item whole", "item partly"]}
    rewrite(path, "references.jsonl", lambda n, row: row.update(extra=rubric))
    orders = iter((0.9, 0.7))
    rewrite(
        path, "scores.jsonl", lambda n, row: row["category"] == 33 and row["metrics"].update(order_tau=next(orders))
    )
    return path


def _order(category: int, orders: Iterator[float]) -> dict[str, float]:
    return {"order_tau": next(orders)} if category == 33 else {}


def arguments(server: StubServer, root: Path, *extra: str) -> list[str]:
    return [*attached(server.url), f"cache_dir={root / 'cache'}", "judge=beam_rubric", *extra]


def test_rubrics_and_the_order_are_one_figure(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nine kinds with a rubric half met in full and half in part, 0.75 each, and event ordering 0.8."""
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    run = stored(path)
    entry = run.summary["judges"][COLUMN]["beam"]
    assert list(entry) == [f"{COLUMN}@beam"]
    found = entry[f"{COLUMN}@beam"]
    assert found["score"] == pytest.approx((9 * 0.75 + 0.8) / 10)
    assert found["kinds"]["event_ordering"] == {"mean": pytest.approx(0.8), "scored": 2, "unscored": 0}
    assert found["kinds"]["summarization"]["mean"] == pytest.approx(0.75)
    assert (len(found["kinds"]), found["missing"], found["order"], found["halves"]) == (10, [], "order_tau", "count")
    # Over the two chats, whose scores are 0.765 and 0.745: t(1) = 12.706 times a standard error of 0.01.
    assert found["interval"]["by"] == "conversation"
    assert found["interval"]["high"] - found["score"] == pytest.approx(12.706 * 0.01, abs=1e-4)
    shown = capsys.readouterr().out
    assert "BEAM score" in shown and "75.5" in shown and "event_ordering (order_tau)" in shown
    (report,) = [make_report([run], BEAM, unmeasured_judges=True)]
    assert [column.name for column in report.judges] == ["judge", "BEAM score"]
    assert report.rows[0].estimates["BEAM score"].value == pytest.approx(75.5)
    assert "mean of 10 of BEAM's 10 kinds" in comparison_files(report)["compare.md"]
    metrics = [metric["name"] for metric in metric_list([run], load_page_config()) if metric["group"] == "judges"]
    assert metrics == [COLUMN, f"{COLUMN}@beam"]
    (hidden,), _ = without_unmeasured([run])
    assert not any(name.startswith("judge_") for row in hidden.rows for name in row.metrics)


def test_halves_that_are_cut_are_no_part_of_the_score(tmp_path: Path, server: StubServer) -> None:
    """``int(0.5)`` in the authors' code: nine kinds of 0.5, and event ordering 0.8."""
    path = write_run(tmp_path)
    cut = ["judge.halves=cut", "judge.name=beam_rubric_cut"]
    assert main([str(path), *arguments(server, tmp_path, *cut)]) == 0
    column = "judge_beam_rubric_cut_smollm2_135m_vllm"
    found = stored(path).summary["judges"][column]["beam"][f"{column}@beam"]
    assert found["score"] == pytest.approx((9 * 0.5 + 0.8) / 10) and found["halves"] == "cut"


def test_kinds_without_a_score_are_named(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path, (32, 33, 39))
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    run = stored(path)
    found = run.summary["judges"][COLUMN]["beam"][f"{COLUMN}@beam"]
    assert found["score"] == pytest.approx((0.75 + 0.8 + 0.75) / 3)
    assert found["missing"][:2] == ["abstention", "information_extraction"] and len(found["missing"]) == 7
    said = "mean of 3 of BEAM's 10 kinds"
    assert said in " ".join(capsys.readouterr().out.split())
    meaning = make_report([run], BEAM, unmeasured_judges=True).judges[1].meaning
    assert said in meaning and "without a score, and so in no mean: abstention, information_extraction" in meaning


def test_other_data_and_judges_of_whole_answers_have_no_such_score(tmp_path: Path, server: StubServer) -> None:
    other = FakeRun(conversations=("conv-26",)).write(tmp_path)
    rewrite(other, "references.jsonl", lambda n, row: row.update(extra={"rubric": ["item whole"]}))
    assert main([str(other), *arguments(server, tmp_path)]) == 0
    assert "beam" not in stored(other).summary["judges"][COLUMN]
    assert not any("@beam" in name for row in stored(other).rows for name in row.metrics)


def test_an_order_aligned_by_embeddings_is_a_score_of_its_own() -> None:
    rows = [
        ScoreRow("a", "c", 33, {"order_tau": 0.5, "order_tau_semantic": 0.9, "judge_x": 0.0}),
        ScoreRow("b", "c", 34, {"judge_x": 0.5}),
        ScoreRow("c", "c", 34, {"judge_x": None}),
        ScoreRow("d", "c", 4, {"judge_x": 1.0}),  # not BEAM's
    ]
    found = beam_scores(rows, "judge_x")
    assert {metric: score.overall.value for metric, score in found.items()} == {
        "judge_x@beam": 0.5,
        "judge_x@beam_semantic": pytest.approx(0.7),
    }
    assert found["judge_x@beam"].kinds["information_extraction"] == Mean(0.5, 1, 1)
    assert [title(metric) for metric in found] == ["BEAM score", "BEAM score, order aligned by sentence embeddings"]
    assert "order_tau_semantic" in meaning("judge_x@beam_semantic")
    (one,) = beam_scores([rows[1]], "judge_x").values()  # no order was asked for
    assert one.overall.value == 0.5 and "event_ordering" in one.missing


def test_gold_answers_are_right_by_their_rubric_and_wrong_by_that_of_another_chat() -> None:
    known = gold_by_rubrics([_chat(1), _chat(2)], 10)
    assert [(one.item.item_id, one.item.gold, one.item.answer, one.right) for one in known[:4]] == [
        ("beam-1:knowledge_update:0", "a 1", "gold a 1", True),
        ("beam-1:knowledge_update:0:by_other", "a 1", "gold a 2", False),
        ("beam-1:contradiction_resolution:0", "Same in all", "gold b 1", True),
        ("beam-1:contradiction_resolution:0", "b 1", "gold b 1", True),
    ]
    # What both rubrics have tells nothing; the answer of another chat is of the same kind; preferences have no gold.
    assert (known[4].item.item_id, known[4].item.gold) == ("beam-1:contradiction_resolution:0:by_other", "b 1")
    assert len(known) == 10 and not any("preference" in one.item.item_id for one in known)
    assert len({one.item.item_id for one in gold_by_rubrics([_chat(1), _chat(2)], 2)}) == 4
    assert gold_by_rubrics([_chat(1)], 10) == []


def _chat(number: int) -> Sample:
    name = f"beam-{number}"
    parts = {
        36: ("knowledge_update", [f"a {number}"], (f"gold a {number}",)),
        32: ("contradiction_resolution", ["Same in all", f"b {number}"], (f"gold b {number}",)),
        38: ("preference_following", [f"c {number}"], ()),
    }
    questions, references = [], {}
    for category, (kind, rubric, answers) in parts.items():
        key = f"{name}:{kind}:0"
        questions.append(Question(key, name, f"question {key}", category, kind))
        references[key] = Reference(key, answers=answers, evidence=(), extra={"rubric": rubric})
    turn = Turn("0", "batch_1", "User", "Hello.", "")
    return Sample(Conversation(name, (turn,), speakers=("User", "Assistant")), tuple(questions), references)


def _known(*right: bool) -> list[KnownAnswer]:
    """Answers with two items each."""
    return [
        KnownAnswer(JudgedItem(f"q{n}", "c", "Q", f"item {place}", "A", item=place), flag)
        for n, flag in enumerate(right)
        for place in (0, 1)
    ]


def test_an_answer_is_called_right_where_more_than_half_of_its_rubric_is_met() -> None:
    plan = make_plan(["judge=beam_rubric", "judge.halves=cut"])
    said = {
        "q0": ("CORRECT", "PARTIAL"),  # 0.75: right
        "q1": ("CORRECT", "WRONG"),  # 0.5: not
        "q2": ("PARTIAL", "PARTIAL"),  # not
        "q3": (None, "CORRECT"),  # by what can be read
        "q4": (None, None),
    }
    verdicts = [AnswerVerdict(name, 0, word, "", "", n) for name, own in said.items() for n, word in enumerate(own)]
    found = figures_of(plan, OF_GOLD, _known(True, True, False, False, True), verdicts)
    assert (found.answers, found.unreadable, found.right, found.called_right) == (4, 1, 50, 50)
    assert (found.accuracy, found.wrong_accepted, found.right_rejected) == (50, 50, 50)


def test_a_judge_of_rubrics_is_measured_and_then_shown(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    run = stored(path)
    (line,) = make_report([run], BEAM).left_out
    assert "memsys judge --known 100 judge=beam_rubric backbone=smollm2_135m_vllm" in line
    rubrics = {True: "item whole", False: "item missing"}
    known = [
        KnownAnswer(JudgedItem(f"q{n}", "beam-1", f"question {n}", rubrics[n % 2 == 0], "A"), n % 2 == 0)
        for n in range(12)
    ]
    monkeypatch.setattr("eval.judge.gold.gold_by_rubrics", lambda samples, size: known[:size])
    monkeypatch.setattr("eval.loaders.beam.BeamConfig.load", lambda config: SimpleNamespace(samples=()))
    capsys.readouterr()
    assert main(["--known", "12", *arguments(server, tmp_path)]) == 0
    assert OF_GOLD in capsys.readouterr().out
    (figures,) = stored_figures(tmp_path / "figures.csv")
    assert (figures.answers_of, figures.answers, figures.accuracy, figures.one_verdict) == (OF_GOLD, 12, 100, 50)
    report = make_report([run], BEAM)
    assert (report.left_out, [column.name for column in report.judges]) == ((), ["judge", "BEAM score"])
    text = "right on 100.0 % of 12 gold answers by their own and by other questions' rubrics (always one verdict: 50.0)"
    assert text in report.judges[0].meaning and "no ranking" in report.judges[0].meaning  # its probe is all CORRECT
    assert main(["--known", "12", str(path)]) == 2
    assert "--known measures the judge alone" in " ".join(capsys.readouterr().err.split())


def test_the_audit_holds_no_agreement_on_gold_answers_for_one_with_people() -> None:
    row = {"backbone": "m", "judge": "beam_rubric", "kappa": 0.9, "answers": 200}
    assert findings({"judge_presets": [{**row, "answers_of": OF_GOLD}]}) == []
    (line,) = findings({"judge_presets": [{**row, "answers_of": BY_PEOPLE}]})
    assert "kappa with human labels 0.90" in line


def test_each_way_of_measuring_names_the_other() -> None:
    with pytest.raises(ConfigError, match="judge mem0 grades whole answers; --people measures it"):
        measure_by_rubrics(make_plan(["judge=mem0"]), 4)
    with pytest.raises(ConfigError, match="grades rubrics; the labelled answers have none, and --known measures it"):
        measure_judge(make_plan(["judge=beam_rubric"]), 4)


def test_a_judge_of_rubrics_no_better_than_a_constant_ranks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.scoring.verdicts.figures.FILE", tmp_path / "figures.csv")
    identity = {"prompt_sha256": "p", "judge": {"unit": "rubric"}}
    probe = {"items": 80, "accuracy": 0.9, "always": 0.5}
    entry = {"judge": "beam_rubric", "backbone": "m", "identity": identity, "probe": probe}
    assert judge_quality(entry).fault == f"no measurement of beam_rubric on m on {OF_GOLD}"
    shares = (50.0, 100.0, 50.0, 50.0, 0.0, 100.0, 90.0, 100.0, 0.0)
    keep([JudgeFigures("beam_rubric", "m", OF_GOLD, 200, 0, *shares, "p")], tmp_path / "figures.csv")
    found = judge_quality(entry)
    assert found.missing == ""
    assert f"is not shown to be better than a constant on 200 {OF_GOLD}" in found.fault
