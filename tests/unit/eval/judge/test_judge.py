"""The judge: verdicts as scores, what is not one, resume, ledger, agreement, and how good it is itself."""

import errno
import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.commands.commands import EXIT_INCOMPLETE, EXIT_INTERRUPTED
from eval.export import export_run
from eval.judge.__main__ import main, make_plan
from eval.judge.config import FORMS, JudgeConfig, JudgedUnit
from eval.judge.judging import JudgedItem, items_of
from eval.judge.people import KnownAnswer, figures_of
from eval.judge.probe import judge_accuracy, load_probe
from eval.recorded import main as import_recorded
from eval.results.frame import Skipped, read_run
from eval.runs.exports import read_export
from eval.runs.files import read_json_lines
from eval.runs.load import load_calls
from eval.runs.records import ReferenceRecord
from eval.runs.rundir import RunDirectory
from eval.runs.signing import sign_folder
from eval.scoring.score_run import score_run
from eval.scoring.verdicts.agreement import agreement, cohen_kappa, majority
from eval.scoring.verdicts.figures import (
    BY_PEOPLE,
    ON_PURPOSE,
    JudgeFigures,
    corrected_share,
    keep,
    people_text,
    stored_figures,
)
from eval.scoring.verdicts.judge_quality import probe_text
from eval.scoring.verdicts.store import AnswerVerdict, StoredVerdicts, load_judged, share
from eval.scoring.verdicts.values import CORRECT, PARTIAL, WRONG
from memsys.errors import ConfigError, DataError, ScoringError
from tests.support.fake_run import FakeRun, rewrite, stored
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer, prompt_of, stub

CONF = Path(__file__).resolve().parents[4] / "conf" / "judge"
PRESETS = sorted(path.stem for path in CONF.glob("*.yaml"))


@pytest.fixture
def server() -> Iterator[StubServer]:
    """A backbone that calls an answer right when it ends in an even digit, and replies garbage to answer 7."""
    with stub() as running:
        running.state.replies = lambda body: _reply(prompt_of(body))
        yield running


def _reply(prompt: str) -> str:
    answer = next(line for line in prompt.splitlines() if line.startswith("Answer to"))
    if answer.endswith(" 7"):
        return "it depends"
    verdict = CORRECT if answer.rstrip(".").endswith(tuple("02468")) else WRONG
    return json.dumps({"reason": "because", "verdict": verdict})


def write_run(root: Path, **changes: Any) -> Path:
    """A run of ten questions whose answers differ: ``answer 0`` to ``answer 9``."""
    path = FakeRun(conversations=("conv-26",), **changes).write(root)
    rewrite(path, "answers.jsonl", lambda n, row: row.update(question=f"question {n}", prediction=f"answer {n}"))
    return path


def arguments(server: StubServer, root: Path, *extra: str) -> list[str]:
    return [*attached(server.url), f"cache_dir={root / 'cache'}", "judge=lenient", *extra]


@pytest.mark.parametrize("name", PRESETS)
def test_presets_spell_out_every_field(name: str) -> None:
    settings = yaml.safe_load((CONF / f"{name}.yaml").read_text())
    # Judges of whole answers with one prompt need not say so.
    assert set(settings) | {"by_kind", "unit", "halves", "order", "order_role"} == {*JudgeConfig.__slots__, "_target_"}
    plan = make_plan([f"judge={name}"])
    role = plan.judge.make_role()
    assert (plan.judge.name, role.temperature, role.name) == (name, 0.0, f"judge_{name}")
    rendered = role.prompt.render({"question": "Q", "gold": "G", "answer": "A", "form": plan.judge.form})
    assert all(text in rendered for text in ("Q", "G", "A", "CORRECT", "WRONG"))
    assert list(role.schema["properties"]) == (["reason", "verdict"] if plan.judge.reasoning else ["verdict"])  # type: ignore[index]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("judge=kind", "there is no judge/kind; choose one of beam_rubric, lenient"),
        ("judge.adversarial=paper_trap", "judge.adversarial='paper_trap' is unknown; choose one of exclude, abstain"),
        ("judge.repeats=0", "judge.repeats=0 must be a number, at least 1"),
        ("judge.prompt=kind", "choose one of beam_rubric, lenient"),
        ("judge.tone=kind", "judge.tone"),
        ("verdicts_in_flight=0", "verdicts_in_flight=0 must be a whole number from 1 on"),
        ("verdicts_in_flight=2.5", "verdicts_in_flight=2.5 must be a whole number"),
        ("seed=one", "seed='one' must be a whole number"),
        ("use_cache=maybe", "use_cache='maybe' must be true or false"),
    ],
)
def test_wrong_settings_name_the_choices(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        make_plan([override])


def test_verdicts_become_a_column(tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight of ten answers are judged (two are category 5), 7 is unreadable: 4 of 7 right, not 4 of 8."""
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    run = stored(path)
    values = [row.metrics["judge_lenient_smollm2_135m_vllm"] for row in run.rows]
    assert values == [1.0, 0.0, 1.0, 0.0, None, 0.0, 1.0, None, 1.0, None]
    entry = run.summary["judges"]["judge_lenient_smollm2_135m_vllm"]
    assert (entry["scored"], entry["unscored"], entry["questions"]) == (7, 1, 8)
    assert entry["correct"] == pytest.approx(4 / 7, abs=1e-6)
    assert entry["by_category"]["3"] == {"mean": 1.0, "scored": 1, "unscored": 1}
    assert "5" not in entry["by_category"]
    assert entry["probe"]["items"] == len(load_probe())
    shown = capsys.readouterr().out
    assert "57.1" in shown
    assert "7 (1)" in shown
    assert f"{100 * entry['probe']['accuracy']:.1f}" in shown


def test_an_exported_summary_keeps_figures_and_no_reason(tmp_path: Path, server: StubServer) -> None:
    path = write_run(tmp_path / "runs")
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    exported = export_run(path, tmp_path / "summaries")
    assert [row.metrics for row in stored(exported).rows] == [row.metrics for row in stored(path).rows]
    text = (exported.parent / "runs.jsonl").read_text() + str(read_export(exported).rows)
    assert "judge_lenient_smollm2_135m_vllm" in text
    assert "because" not in text
    assert "127.0.0.1" not in text


def test_calls_are_in_the_ledger_and_cost_the_method_nothing(tmp_path: Path, server: StubServer) -> None:
    path = write_run(tmp_path)
    before = stored(path).summary
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    calls = [call for call in load_calls(path) if call.phase == "judge"]
    assert len(calls) == 8
    assert {call.role for call in calls} == {"judge_lenient"}
    assert sum(call.malformed for call in calls) == 1
    after = stored(path).summary
    assert after["cost"] == before["cost"]
    assert after["calls"]["total"] == before["calls"]["total"]
    assert after["calls"]["by_phase"]["judge"]["total"]["calls"] == 8


def test_a_judge_whose_replies_answer_nothing_is_warned_of(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ended with dashes for figures, and named no setting."""
    server.state.replies = lambda request: ""
    assert main([str(write_run(tmp_path)), *arguments(server, tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "warning: of the first 20 replies of judge.role 20 are empty: see backbone.prompt_mode" in shown


def test_a_judge_that_is_told_to_end_says_that_its_verdicts_are_kept(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The probe set is graded, and then some of the answers."""
    seventh = len(load_probe()) + 7

    def reply(request: Mapping[str, Any]) -> str:
        if server.state.count == seventh:
            os.kill(os.getpid(), signal.SIGTERM)
        return _reply(prompt_of(request))

    server.state.replies = reply
    path, one_by_one = write_run(tmp_path), ("verdicts_in_flight=1", "use_cache=false")
    assert main([str(path), *arguments(server, tmp_path, *one_by_one)]) == EXIT_INTERRUPTED
    assert "verdicts so far are kept; run the same command again to continue" in capsys.readouterr().err
    kept = list(read_json_lines(path / "judgements" / "lenient-smollm2_135m_vllm.jsonl"))
    assert len(kept) in (6, 7)  # the seventh reply may be faster than the signal
    assert main([str(path), *arguments(server, tmp_path)]) == 0


def test_a_judge_stops_at_its_budget_and_goes_on_with_a_larger_one(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path)
    given = [str(path), *arguments(server, tmp_path, "verdicts_in_flight=1")]
    assert main([*given, "budget.tokens=500"]) == EXIT_INCOMPLETE
    assert "the budget is spent" in capsys.readouterr().err
    made = server.state.count
    assert 0 < made < len(load_probe())
    assert main([*given, "budget.tokens=1000000"]) == 0
    assert server.state.count == len(load_probe()) + 8  # each once
    assert main([*given, "budget.dollars=1"]) == 2
    assert "has no price of smollm2_135m_vllm" in capsys.readouterr().err


def test_judging_again_asks_nothing(tmp_path: Path, server: StubServer) -> None:
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    asked = server.state.count
    assert asked == 8 + len(load_probe())
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert server.state.count == asked


def test_a_verdict_that_could_not_be_read_is_asked_for_again_on_demand(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stayed for ever: the run counted as judged, and the cache held the reply."""
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert "1 of the judge's replies contain no verdict" in " ".join(capsys.readouterr().out.split())
    before = {verdict.question_id: verdict.verdict for verdict in load_judged(path)[0].verdicts}
    (lost,) = [name for name, verdict in before.items() if verdict is None]
    server.state.replies = lambda _: json.dumps({"reason": "because", "verdict": CORRECT})
    asked = server.state.count
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert server.state.count == asked
    capsys.readouterr()
    assert main([str(path), *arguments(server, tmp_path), "--again"]) == 0
    assert server.state.count == asked + 1
    after = {verdict.question_id: verdict.verdict for verdict in load_judged(path)[0].verdicts}
    assert after == {**before, lost: CORRECT}
    assert "contain no verdict" not in capsys.readouterr().out


def test_a_stopped_judge_goes_on_to_the_same_verdicts(tmp_path: Path, server: StubServer) -> None:
    whole, path = write_run(tmp_path / "a"), write_run(tmp_path / "b")
    assert main([str(whole), *arguments(server, tmp_path / "a")]) == 0
    rest = ["use_cache=false", "verdicts_in_flight=1", "backbone.transport_retries=0"]
    # The probe and three answers are graded, then every request is refused.
    server.fail(*[""] * (len(load_probe()) + 3), *["400"] * 20)
    assert main([str(path), *arguments(server, tmp_path / "b", *rest)]) == 3
    verdicts = path / "judgements" / "lenient-smollm2_135m_vllm.jsonl"
    assert len(list(read_json_lines(verdicts))) == 3
    assert load_judged(path) == []
    assert all("judge_lenient_smollm2_135m_vllm" not in row.metrics for row in stored(path).rows)
    server.state.failures.clear()
    asked = server.state.count
    assert main([str(path), *arguments(server, tmp_path / "b", *rest)]) == 0
    assert server.state.count == asked + len(load_probe()) + 5
    assert verdicts.read_text().count('"crc32":"') == len(list(read_json_lines(verdicts))), "rewritten with checksums"
    assert load_judged(path)[0].verdicts == load_judged(whole)[0].verdicts


def test_another_judge_of_the_same_name_is_refused(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert main([str(path), *arguments(server, tmp_path, "judge.role.max_tokens=9")]) == 2
    assert "judge.role.max_tokens: 160 -> 9" in capsys.readouterr().err.replace("\n", " ")
    assert main([str(path), *arguments(server, tmp_path, "judge.role.max_tokens=9", "judge.name=brief")]) == 0
    assert [judged.column for judged in load_judged(path)] == [
        "judge_brief_smollm2_135m_vllm",
        "judge_lenient_smollm2_135m_vllm",
    ]


@pytest.mark.usefixtures("unsigned")
@pytest.mark.parametrize("text", ["{", "[]", '{"status": "complete", "inputs": {}, "column": "x"}'])
def test_what_made_the_verdicts_is_damaged(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """A file that lacks the judge's settings ended in a ``KeyError``."""
    path = write_run(tmp_path)
    meta = path / "judgements" / "lenient-smollm2_135m_vllm.json"
    meta.parent.mkdir()
    meta.write_text(text)
    assert main([str(path), *arguments(server, tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{meta}" in said and "delete it" in said and server.state.count == 0


def test_verdicts_of_an_unknown_judge_are_not_taken(tmp_path: Path, server: StubServer) -> None:
    """Without the file that says who gave them they counted as this judge's."""
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    before = load_judged(path)[0].verdicts
    (path / "judgements" / "lenient-smollm2_135m_vllm.json").unlink()
    verdicts = path / "judgements" / "lenient-smollm2_135m_vllm.jsonl"
    verdicts.write_text(verdicts.read_text().replace('"CORRECT"', '"WRONG"'))
    assert main([str(path), *arguments(server, tmp_path)]) == 2, "the files are not those that the manifest names"
    sign_folder(path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert load_judged(path)[0].verdicts == before


@pytest.mark.usefixtures("unsigned")
def test_lost_verdicts_are_named_and_not_made_up_by_the_rest(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of them were averaged as if they were all."""
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    verdicts = path / "judgements" / "lenient-smollm2_135m_vllm.jsonl"
    lines = verdicts.read_text().splitlines(keepends=True)
    verdicts.write_text("".join(lines[::2]))
    capsys.readouterr()
    assert main([str(path), *arguments(server, tmp_path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"holds {len(lines[::2])} of the {len(lines)} verdicts" in said and "judge again" in said


def test_more_repeats_add_to_those_there(tmp_path: Path, server: StubServer) -> None:
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    asked = server.state.count
    assert main([str(path), *arguments(server, tmp_path, "judge.repeats=3")]) == 0
    assert server.state.count == asked + 16 + 2 * len(load_probe())
    entry = stored(path).summary["judges"]["judge_lenient_smollm2_135m_vllm"]
    assert len(entry["repeats"]["accuracies"]) == 3
    assert (entry["repeats"]["std"], entry["repeats"]["changed"]) == (0.0, 0)
    seeds = {request["seed"] for request in server.state.requests if "question 0" in prompt_of(request)}
    assert len(seeds) == 3


def test_verdicts_on_answers_that_changed_are_no_scores(tmp_path: Path, server: StubServer) -> None:
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    rewrite(path, "answers.jsonl", lambda n, row: row.update(prediction="answer 1") if n == 0 else None)
    with pytest.raises(ScoringError, match=r"answers.jsonl changed since the verdicts"):
        load_judged(path)
    assert isinstance(read_run(path), Skipped)
    asked = server.state.count
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert server.state.count == asked + 1  # the probe's replies are cached, seven verdicts are of the same answers
    assert stored(path).rows[0].metrics["judge_lenient_smollm2_135m_vllm"] == 0.0


def test_answers_that_changed_leave_no_repeats_of_the_others_alone(tmp_path: Path, server: StubServer) -> None:
    """Three repeats, then an answer changes: one repeat was complete, and three were said to be."""
    path, meta = write_run(tmp_path), "judgements/lenient-smollm2_135m_vllm.json"
    assert main([str(path), *arguments(server, tmp_path, "judge.repeats=3")]) == 0
    rewrite(path, "answers.jsonl", lambda n, row: row.update(prediction="answer 1") if n == 0 else None)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert json.loads((path / meta).read_text())["repeats"] == 1
    asked = server.state.count
    assert main([str(path), *arguments(server, tmp_path, "judge.repeats=3")]) == 0
    assert json.loads((path / meta).read_text())["repeats"] == 3
    assert server.state.count == asked + 2  # of the answer that changed; the others' are in the reply cache


def test_what_cannot_be_judged_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    retrieval = FakeRun(mode="retrieval_only").write(tmp_path)
    running = FakeRun(status="interrupted", summary=False).write(tmp_path / "other")
    failed = FakeRun(memory="clag", status="incomplete", summary=False).write(tmp_path / "failed")
    record = json.loads((failed / "run.json").read_text())
    (failed / "run.json").write_text(json.dumps({**record, "problems": ["c1: the server is gone", "c2: as well"]}))
    summary = tmp_path / "summary"
    shutil.copytree(FakeRun(memory="amem").write(tmp_path / "third"), summary)
    (empty := tmp_path / "empty").mkdir()
    (summary / "answers.jsonl").unlink()
    sign_folder(summary)
    for path, message in (
        (tmp_path / "nothing", "nothing has no run.json"),
        (retrieval.parent, f"no run.json: it is not a run directory; name the runs in it one by one, e.g. {retrieval}"),
        (empty, "no run.json: it is not a run directory; name a directory that `memsys run` wrote"),
        (summary, "keeps no answers; judge the run's own directory under results/runs"),
        (running, "interrupted; only a complete run can be judged"),
        (failed, "incomplete: c1: the server is gone (and 1 more in run.json); only a complete run can be judged"),
    ):
        assert main([str(path)]) == 2
        assert message in capsys.readouterr().err.replace("\n", " ")
    assert main([str(retrieval)]) == 2
    assert "asks no reader: there are no answers to judge" in capsys.readouterr().err.replace("\n", " ")


def test_two_judges_agree_or_not(tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert main([str(path), *arguments(server, tmp_path, "judge=strict")]) == 0
    assert "Cohen's kappa" in (shown := capsys.readouterr().out)
    assert "1.00" in shown


def test_category_five_is_judged_as_an_abstention_or_not_at_all() -> None:
    config = make_plan([]).judge
    trap = ReferenceRecord("q", "c", 5, [], "the trap", [], [], [])
    assert config.gold(trap) is None
    assert make_plan(["judge.adversarial=abstain"]).judge.gold(trap) == "The conversation does not say."
    assert config.gold(ReferenceRecord("q", "c", 4, ["a", "b"], None, [], [], [])) == "a | b"
    assert config.gold(ReferenceRecord("q", "c", 4, [], None, [], [], [])) is None
    assert items_of(config, [trap], []) == []


def test_agreement_of_the_probe_with_itself_is_perfect() -> None:
    probes = load_probe()
    perfect = [AnswerVerdict(probe.item.item_id, 0, probe.grade, "", "") for probe in probes]
    found = judge_accuracy(probes, perfect)
    assert (found["accuracy"], found["false_accept"], found["false_reject"], found["unscored"]) == (1.0, 0.0, 0.0, 0)
    assert set(found["by_kind"].values()) == {1.0}


def test_a_judge_that_accepts_everything() -> None:
    probes = load_probe()
    found = judge_accuracy(probes, [AnswerVerdict(probe.item.item_id, 0, CORRECT, "", "") for probe in probes])
    right = sum(probe.grade == CORRECT for probe in probes)
    assert found["accuracy"] == pytest.approx(right / len(probes))
    assert (found["false_accept"], found["false_reject"]) == (1.0, 0.0)
    assert found["always"] == max(right, len(probes) - right) / len(probes)


def test_a_wrong_answer_of_which_a_part_is_right_is_not_called_right() -> None:
    probes = load_probe()
    said = [PARTIAL if probe.grade == WRONG else CORRECT for probe in probes]
    found = judge_accuracy(
        probes, [AnswerVerdict(probe.item.item_id, 0, word, "", "") for probe, word in zip(probes, said, strict=True)]
    )
    assert (found["accuracy"], found["false_accept"]) == (1.0, 0.0)


@pytest.mark.parametrize(("unit", "words"), [("answer", "CORRECT or WRONG"), ("rubric", "CORRECT, PARTIAL or WRONG")])
def test_a_form_names_all_verdicts_that_may_be_given(unit: JudgedUnit, words: str) -> None:
    """The form of a rubric's verdict without a reason left PARTIAL out."""
    for reasoning in (True, False):
        assert words in FORMS[unit, reasoning].read_text()


def test_unreadable_verdicts_are_in_no_share() -> None:
    probes = load_probe()[:2]
    verdicts = [
        AnswerVerdict(probes[0].item.item_id, 0, probes[0].grade, "", ""),
        AnswerVerdict("probe-01", 0, None, "?", ""),
    ]
    found = judge_accuracy(probes, verdicts)
    assert (found["accuracy"], found["verdicts"], found["unscored"]) == (1.0, 1, 1)
    nothing = judge_accuracy(probes, [AnswerVerdict("probe-00", 0, None, "?", "")])
    assert nothing["accuracy"] is None
    assert probe_text(nothing) == "probe: no readable verdict on 2 items"


def test_probe_has_all_kinds_and_both_grades() -> None:
    probes = load_probe()
    kinds = {probe.kind for probe in probes}
    assert 35 <= len(probes) <= 45
    assert {"paraphrase", "date", "wrong", "near", "vague", "hedged", "abstains", "absent", "verbose"} <= kinds
    assert 0.4 <= sum(probe.grade == CORRECT for probe in probes) / len(probes) <= 0.6
    assert len({(probe.item.question, probe.item.answer) for probe in probes}) == len(probes)


def test_only_the_two_words_are_verdicts() -> None:
    for text in ("INCORRECT", "correct", "Correct.", ""):
        with pytest.raises(ValueError, match="not a verdict"):
            AnswerVerdict("q", 0, text, "", "")


def test_shares_and_majorities() -> None:
    rows = [("a", CORRECT), ("a", WRONG), ("a", CORRECT), ("b", None), ("c", CORRECT), ("c", WRONG), ("d", WRONG)]
    verdicts = tuple(AnswerVerdict(name, number, verdict, "", "") for number, (name, verdict) in enumerate(rows))
    judged = StoredVerdicts("judge_x", {}, verdicts)
    assert judged.shares() == {"a": pytest.approx(2 / 3), "b": None, "c": 0.5, "d": 0.0}
    assert majority(judged.shares()) == {"a": CORRECT, "d": WRONG}
    assert share([None, CORRECT]) == 1.0


def test_kappa_by_hand() -> None:
    """Cohen's own kind of table: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: (0.7 - 0.5) / 0.5."""
    one = ["y"] * 25 + ["n"] * 25
    two = ["y"] * 20 + ["n"] * 5 + ["y"] * 10 + ["n"] * 15
    assert cohen_kappa(one, two) == pytest.approx(0.4)
    assert cohen_kappa(["y"], ["y"]) is None
    assert cohen_kappa([], []) is None
    assert agreement({"a": CORRECT}, {"b": WRONG}).agree is None


@settings(deadline=None)  # importing sklearn takes seconds
@given(st.lists(st.tuples(st.sampled_from("cw"), st.sampled_from("cw")), min_size=1, max_size=40))
def test_kappa_is_sklearns(pairs: list[tuple[str, str]]) -> None:
    from sklearn.metrics import cohen_kappa_score

    one, two = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    ours = cohen_kappa(one, two)
    if ours is None:  # both give the same one label: 0/0, where sklearn warns and gives NaN
        assert len({*one, *two}) == 1
    else:
        assert ours == pytest.approx(cohen_kappa_score(one, two), abs=1e-12)


def test_probe_file_with_a_wrong_grade_is_refused(tmp_path: Path) -> None:
    entry: Mapping[str, str] = {"kind": "k", "grade": "MAYBE", "question": "q", "reference": "r", "answer": "a"}
    path = tmp_path / "probe.yaml"
    path.write_text(yaml.safe_dump([entry]))
    with pytest.raises(ConfigError, match="item 0: grade is CORRECT or WRONG"):
        load_probe(path)


def _known(*right: bool) -> list[KnownAnswer]:
    return [KnownAnswer(JudgedItem(f"q{n}", "c", "Q", "G", f"answer {n}"), flag) for n, flag in enumerate(right)]


def _figures(*said: str | None) -> JudgeFigures:
    """Of a judge that says this of two right answers and of wrong ones."""
    answers = _known(True, True, *[False] * (len(said) - 2))
    verdicts = [AnswerVerdict(f"q{n}", 0, word, "", "") for n, word in enumerate(said)]
    return figures_of(make_plan(["judge=mem0"]), BY_PEOPLE, answers, verdicts)


def test_a_judge_beside_people_by_hand() -> None:
    found = _figures(CORRECT, WRONG, CORRECT, WRONG, WRONG, None)
    assert (found.answers, found.unreadable) == (5, 1)
    assert (found.right, found.called_right, found.accuracy, found.one_verdict) == (40, 40, 60, 60)
    assert found.kappa == pytest.approx((0.6 - 0.52) / 0.48)  # expected agreement .4 * .4 + .6 * .6
    assert (found.wrong_accepted, found.right_rejected) == (pytest.approx(100 / 3), 50)
    assert found.wrong_accepted_low == pytest.approx(6.15, abs=0.01)  # Wilson, 1 of 3
    # 50 % accepted, of which a third of the wrong ones and half of the right ones would be: all of them right
    assert corrected_share(0.5, found) == 1.0
    assert corrected_share(0.4, found) == pytest.approx((0.4 - 1 / 3) / (0.5 - 1 / 3))
    assert corrected_share(0.4, _figures(WRONG, WRONG, CORRECT)) is None  # accepts wrong answers alone
    silent = _figures(None, None, None)
    assert (silent.answers, silent.unreadable, silent.accuracy, silent.kappa) == (0, 3, None, None)


def test_a_judge_is_measured_and_its_figures_stand_beside_it(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "figures.csv"
    sets = {"human_labels": _known(True, False, True, True), "wrong_vague": _known(False, False)}
    monkeypatch.setattr("eval.judge.people.known_answers", lambda name, size: sets[name])
    monkeypatch.setattr("eval.scoring.verdicts.figures.FILE", file)
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    assert "not measured" in capsys.readouterr().out
    assert main(["--people", "4", *arguments(server, tmp_path)]) == 0
    people, purpose = stored_figures(file)
    assert (people.answers_of, people.accuracy, people.kappa) == (BY_PEOPLE, 75, 0.5)  # says CORRECT of 0 and 2
    assert (purpose.answers_of, purpose.wrong_accepted, purpose.kappa) == (ON_PURPOSE, 50, None)
    entry = stored(path).summary["judges"]["judge_lenient_smollm2_135m_vllm"]
    assert people_text(entry) == (
        "agrees with people on 75.0 % of 4 answers (kappa 0.50), accepts 50.0 % of 2 answers that are wrong on purpose"
    )
    assert people_text({**entry, "backbone": "another"}) == "not measured against people"
    asked = entry["identity"]["judge"]
    assert asked["reasoning"]
    other = {**entry, "identity": {**entry["identity"], "judge": {**asked, "reasoning": False}}}
    assert people_text(other) == "not measured against people"  # the form it asks for is not part of the prompt's file
    assert main(["--people", "4", *arguments(server, tmp_path), "judge.reasoning=false"]) == 2
    assert "with reasoning=False give it a name of its own" in capsys.readouterr().err.replace("\n", " ")
    assert len(stored_figures(file)) == 2
    keep([people], file)  # in place of the older figures of the same answers
    assert len(stored_figures(file)) == 2
    file.write_text(file.read_text().replace("75.0", "many"))
    with pytest.raises(DataError, match=r"figures.csv: line 2: .*many"):
        stored_figures(file)
    assert main(["--people", "4", str(path)]) == 2
    assert "--people measures the judge alone" in capsys.readouterr().err.replace("\n", " ")


def test_recorded_answers_are_judged_once_they_are_scored(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"question {n},gold {n},answer {n}\n" for n in range(4))
    (tmp_path / "theirs.csv").write_text(f"question,gold,prediction\n{rows}", encoding="utf-8")
    run = tmp_path / "theirs"
    assert import_recorded(["import", str(tmp_path / "theirs.csv"), "--as", str(run), "--dataset", "own"]) == 0
    assert main([str(run), *arguments(server, tmp_path)]) == 2
    assert server.state.count == 0
    assert f"{run} has no scores; run `memsys score {run}`" in capsys.readouterr().err.replace("\n", " ")
    score_run(run)
    assert main([str(run), *arguments(server, tmp_path)]) == 0
    assert load_judged(run)[0].shares() == {f"question {n}": float(n % 2 == 0) for n in range(4)}


def test_the_checksum_of_a_judge_has_its_system_message() -> None:
    """Figures measured with another system message stood beside a judge as its own."""
    plain, behind = make_plan(["judge=mem0"]).judge, make_plan(["judge=zep"]).judge
    assert plain.make_role().prompt.sha256 == behind.make_role().prompt.sha256 == plain.prompt_sha256
    assert behind.prompt_sha256 not in {plain.prompt_sha256, ""}


def test_the_help_names_the_judges_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in PRESETS)


def test_a_disk_without_locks_is_one_message(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    run = write_run(tmp_path)
    monkeypatch.setattr("memsys.llm.cache_claims._lock", no_locks)
    assert main([str(run), *arguments(server, tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "cannot lock files (No locks available)" in said and "ExceptionGroup" not in said


@pytest.mark.usefixtures("unsigned")
def test_a_judged_run_without_answers_is_one_message(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    from eval.score import main as score

    run = write_run(tmp_path)
    assert main([str(run), *arguments(server, tmp_path)]) == 0
    (run / "answers.jsonl").unlink()
    capsys.readouterr()
    assert score([str(run)]) == 2
    said = capsys.readouterr().err
    assert "was judged and has no answers.jsonl; restore it, or delete" in said and "Traceback" not in said


def test_what_a_killed_write_left_goes_when_a_run_is_opened(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    left = [run / ".run.json.0123abcd.tmp", run / "snapshots" / ".conv.npz.0123abcd.tmp"]
    (run / "snapshots").mkdir(exist_ok=True)
    for path in left:
        path.write_bytes(b"half")
    own = run / "notes.tmp"
    own.touch()
    RunDirectory(run).close()
    assert not any(path.exists() for path in left) and own.exists()
