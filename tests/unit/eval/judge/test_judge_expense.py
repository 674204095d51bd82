"""What judging at a hosted model costs is said, and asked, before its first call."""

import io
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval.commands.commands import EXIT_DONE, EXIT_ERROR
from eval.judge.__main__ import main, make_plan
from eval.judge.aligner import unaligned
from eval.judge.expense import expense, of_items, of_orders, of_probe, of_run
from eval.judge.judging import JudgedItem
from eval.judge.people import KnownAnswer, measure_on
from eval.judge.probe import load_probe
from eval.running.servers import findings_folder
from eval.scoring.verdicts.orders import OrderedAnswer, PairVerdict
from eval.scoring.verdicts.values import DIFFERENT, SAME
from memsys.errors import ConfigError
from memsys.llm.findings import Findings, FindingsStore
from tests.support.fake_run import FakeRun, rewrite
from tests.support.stub_server import prompt_of, stub

HOSTED = ("judge=strict", "backbone=gpt4o_mini")
#: One verdict of the judge ``strict`` may have so many tokens.
REPLY = 160
PROBES = len(load_probe())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())


def test_a_verdict_costs_its_prompt_and_the_longest_reply(tmp_path: Path) -> None:
    """A system message of 3 characters and a prompt of 9 are 3 tokens; the judge has two repeats."""
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("$gold $answer")
    plan = make_plan([*HOSTED, f"judge.role.prompt={prompt}", "judge.role.system=not", "judge.repeats=2"])
    item = JudgedItem("q", "c", "Where?", "Rome", "Oslo")
    found = expense(plan, of_items(plan.judge, [item]))
    assert (found.totals.calls, found.totals.prompt, found.totals.reply) == (2, 2 * 3, 2 * REPLY)
    said, _, dollars = found.text().rpartition(": ")
    assert said == "gpt4o_mini: up to 2 calls with 6 prompt tokens and up to 320 reply tokens"
    assert dollars == "under $0.01 (list prices of 2026-03)"
    later = make_plan([*HOSTED, "backbone/engine=openai_batch"])
    (whole, half) = (expense(one, list(of_probe(later)) * 100).text() for one in (plan, later))
    assert f"up to {100 * PROBES:,} calls" in whole and whole.endswith("(list prices of 2026-03)")
    assert half.endswith("(list prices of 2026-03, in batches)")
    dollars, halved = (float(text.partition("$")[2].partition(" ")[0]) for text in (whole, half))
    assert dollars > 0.3 and halved == pytest.approx(dollars / 2, abs=0.01)


def test_a_model_that_thinks_may_write_more(tmp_path: Path) -> None:
    plan = make_plan([*HOSTED, "backbone.thinking_tokens=1000"])
    assert expense(plan, of_probe(plan)).totals.reply == PROBES * (REPLY + 1000)
    plan = make_plan([*HOSTED, f"cache_dir={tmp_path}", "backbone.context_length=8192"])
    found = Findings(asked=datetime.now(UTC).isoformat(), thoughts="hidden")
    FindingsStore(findings_folder(tmp_path)).put(*plan.backbone.engine.served(), found)  # type: ignore[attr-defined]
    assert expense(plan, of_probe(plan)).totals.reply == PROBES * (REPLY + 8192 // 4)


def test_an_order_takes_at_most_every_line_with_every_free_event() -> None:
    """Two events and three lines, of which two are equal: 4 pairs; the first being the same leaves one more."""
    answer = OrderedAnswer("q", "c", ("bed", "traps"), ("bed", "a party", "a party"))
    assert [pair[1:] for pair in unaligned([answer], 1, [])] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    said = [PairVerdict("q", 0, 0, 0, SAME, "", answer.digest(0, 0))]
    assert [pair[1:] for pair in unaligned([answer], 1, said)] == [(1, 1)]
    assert len(list(unaligned([answer], 2, said))) == 1 + 4
    said.append(PairVerdict("q", 0, 1, 1, DIFFERENT, "", answer.digest(1, 1)))
    assert list(unaligned([answer], 1, said)) == []
    plan = make_plan(["judge=beam_rubric", "judge.order=model", "backbone=gpt4o_mini"])
    found = expense(plan, of_orders(plan.judge, [answer]))
    assert (found.totals.calls, found.totals.reply) == (4, 4 * 16)


def test_a_judge_asks_first_and_a_no_pays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight of the ten answers are graded; the probe set is, too."""
    path = FakeRun(conversations=("conv-26",)).write(tmp_path)
    monkeypatch.setattr("eval.judge.work.judge_backbone", lambda *_: pytest.fail("the model was opened"))
    for arguments, calls in (([], PROBES), ([str(path)], PROBES + 8)):
        at_a_terminal(monkeypatch, "\n")
        assert main([*arguments, *HOSTED]) == EXIT_ERROR
        assert f"gpt4o_mini: up to {calls} calls with " in capsys.readouterr().out
    at_a_terminal(monkeypatch, "no\n")
    known = [KnownAnswer(JudgedItem("q", "c", "Where?", "Rome", "Oslo"), right=False)]
    with pytest.raises(ConfigError, match="not started"):
        measure_on(make_plan(HOSTED), {"some": known, "others": known})
    assert "gpt4o_mini: up to 2 calls with " in capsys.readouterr().out


def test_a_local_judge_says_and_asks_nothing_and_what_is_stored_is_not_paid_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = FakeRun(conversations=("conv-26",)).write(tmp_path)
    rewrite(path, "answers.jsonl", lambda n, row: row.update(prediction=f"answer number {n}"))
    monkeypatch.setenv("OPENAI_API_KEY", "stub")
    at_a_terminal(monkeypatch, "\n")
    with stub() as server:
        server.state.replies = lambda body: (
            "no verdict" if "answer number 3" in prompt_of(body) else '{"reason": "", "verdict": "CORRECT"}'
        )
        local = [*HOSTED, f"backbone.engine.base_urls=[{server.url}]", f"cache_dir={tmp_path / 'cache'}"]
        assert main([str(path), *local]) == EXIT_DONE
    assert "up to" not in capsys.readouterr().out
    plan = make_plan([*HOSTED, "judge.repeats=3"])
    assert len(list(of_run(plan, path, again=False))) == 2 * 8
    assert len(list(of_run(plan, path, again=True))) == 2 * 8 + 1
