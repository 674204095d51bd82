"""Orders of events that a judge aligns, pair by pair: what is asked, what follows, and how good the judge is at it."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from eval.judge.__main__ import main, make_plan
from eval.judge.aligner import OrderJudge
from eval.judge.gold_pairs import measure_by_pairs, pairs_of_events
from eval.results.compare.model import make_report
from eval.runs.load import load_calls
from eval.runs.records import AnswerRecord, ReferenceRecord
from eval.scoring.protocols import load_protocol
from eval.scoring.verdicts.figures import OF_GOLD, OF_PAIRS, JudgeFigures, keep, stored_figures
from eval.scoring.verdicts.orders import (
    JudgedOrders,
    OrderedAnswer,
    PairVerdict,
    judged_orders,
    ordered_answers,
    read_pairs,
)
from eval.scoring.verdicts.store import read_meta
from memsys.errors import BackboneError, ConfigError
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.scripted import ScriptedModel
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn
from tests.support.fake_run import FakeRun, rewrite, stored
from tests.support.judge_server import judge_server
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer, prompt_of

BEAM = load_protocol("beam")
COLUMN = "judge_beam_rubric_smollm2_135m_vllm"
ITEMS = ("Bed", "Traps", "Water", "Party")
JUDGE = make_plan(["judge=beam_rubric", "judge.order=model"]).judge


def answer(*lines: str, name: str = "q", items: Sequence[str] = ITEMS) -> OrderedAnswer:
    return OrderedAnswer(name, "beam-1", tuple(items), lines)


def says(line: str, item: str) -> str | dict[str, str]:
    """A model that knows an event by its first word; of a line that begins with ``mumble`` it says no verdict."""
    if line.startswith("mumble"):
        return "perhaps"
    return {"verdict": "SAME" if line.split()[0] == item.casefold().strip() else "DIFFERENT"}


def scripted() -> ScriptedModel:
    return ScriptedModel(lambda role, values, key: says(values["line"], values["item"]))


def align(
    model: LanguageModel, answers: Sequence[OrderedAnswer], done: Sequence[PairVerdict] = (), repeats: int = 1
) -> JudgedOrders:
    found = list(done)
    asyncio.run(_judge(model).align(answers, done, found.append))
    return judged_orders(answers, repeats, found)


def _judge(model: LanguageModel) -> OrderJudge:
    return OrderJudge(JUDGE, lambda _: model, "m", 4)


@pytest.mark.parametrize(
    ("lines", "tau", "f1", "asked"),
    [
        # in order: each line is the first event that is left
        (("bed of soil", "traps for slugs", "water daily", "party"), 1.0, 1.0, 4),
        # reversed: the first line is held against all four, the second against three ...
        (("party", "water", "traps", "bed"), 0.0, 1.0, 4 + 3 + 2 + 1),
        # two of four: ranks 1 2 3 4 against 1 2 5 5, tau-b = 5 / sqrt(6 * 5)
        (("bed", "traps"), (5 / 30**0.5 + 1) / 2, 2 / 3, 2),
        # one more event: 1 2 3 4 6 against 1 3 6 6 2; 6 pairs agree, 3 do not, one is tied: 3 / sqrt(10 * 9)
        (("bed", "compost", "traps"), (3 / 90**0.5 + 1) / 2, 4 / 7, 1 + 3 + 1),
        # nothing known: items are tied in one ranking, lines in the other: -8 / sqrt(14 * 9)
        (("compost", "fence"), (1 - 8 / 126**0.5) / 2, 0.0, 4 + 4),
        # an event that is taken is not asked of again, so that its second line is one more event:
        # 1 2 3 4 6 against 1 6 6 6 2; 4 pairs agree, 3 do not, 3 are tied: 1 / sqrt(10 * 7)
        (("bed", "bed again"), (1 / 70**0.5 + 1) / 2, 1 / 3, 1 + 3),
        ((), 0.0, 0.0, 0),
    ],
)
def test_an_order_by_hand(lines: Sequence[str], tau: float, f1: float, asked: int) -> None:
    model = scripted()
    found = align(model, [answer(*lines)])
    scores = found.scores["q"]
    assert scores["order_tau_model"] == pytest.approx(tau)
    assert scores["order_f1_model"] == pytest.approx(f1)
    assert scores["order_score_model"] == pytest.approx(tau * f1)
    assert len(model.calls) == len(found.verdicts) == asked
    assert {call.role for call in model.calls} <= {"judge_beam_rubric_order"}


def test_a_line_that_stands_twice_is_asked_of_once() -> None:
    """The second ``compost`` would get the verdicts of the first: four calls where the authors make eight."""
    model = scripted()
    found = align(model, [answer("compost", "compost", "bed")])
    assert len(model.calls) == 4 + 1
    assert found.scores["q"]["order_f1_model"] == pytest.approx(2 * (1 / 3) * (1 / 4) / (1 / 3 + 1 / 4))


def test_an_unreadable_verdict_is_not_the_same_and_is_counted() -> None:
    """As a reply without a "yes" is for the authors; where nothing was readable nothing is known."""
    model = scripted()
    found = align(model, [answer("bed", "mumble", "traps"), answer("mumble", name="r"), answer(name="s")])
    known = align(scripted(), [answer("bed", "compost", "traps")])
    assert found.scores["q"] == known.scores["q"]
    assert found.unreadable == 3 + 4
    assert set(found.scores["r"].values()) == {None} and set(found.scores["s"].values()) == {0.0}
    assert {one.reply for one in found.verdicts if one.verdict is None} == {"perhaps"}
    with pytest.raises(ValueError, match="'CORRECT' is not a verdict on a pair"):
        PairVerdict("q", 0, 0, 0, "CORRECT", "", "")


def test_a_stopped_judge_asks_nothing_twice() -> None:
    """The backbone fails after every number of calls; what it had said is asked of no more, and the end is the same."""
    answers = [answer("party", "compost", "bed"), answer("water", "traps", name="r")]
    whole = scripted()
    expected = align(whole, answers)
    for stop in range(len(whole.calls)):
        said: list[PairVerdict] = []
        with pytest.raises(BackboneError, match="gone"):
            asyncio.run(_judge(_Failing(stop)).align(answers, [], said.append))
        assert len(said) == stop
        rest = scripted()
        assert align(rest, answers, said) == expected
        assert len(rest.calls) == len(whole.calls) - stop


class _Failing(ScriptedModel):
    """The scripted model, of which the server is gone after some calls."""

    def __init__(self, stop: int) -> None:
        super().__init__(lambda role, values, key: says(values["line"], values["item"]))
        self._stop = stop

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        if len(self.calls) == self._stop:
            raise BackboneError("gone")
        return await super().ask(role, values, key=key)


def test_verdicts_on_other_texts_count_for_nothing_and_repeats_are_averaged() -> None:
    model = scripted()
    stale = align(scripted(), [answer("bed", "traps", "water", "party")]).verdicts
    found = align(model, [answer("Bed", "traps", items=("Bed", "Traps", "Water", "Fence"))], stale)
    # "Bed" is beside no event what "bed" was; of "traps" beside Traps the verdict is there.
    assert [one.verdict for one in found.verdicts] == [*["DIFFERENT"] * 5, "SAME"] and len(model.calls) == 5
    half = [PairVerdict("q", 0, 0, 0, "SAME", "", answer("bed", items=("Bed", "Party")).digest(0, 0))]
    other = [
        PairVerdict("q", 1, 0, place, verdict, "", answer("bed", items=("Bed", "Party")).digest(place, 0))
        for place, verdict in enumerate(("DIFFERENT", "DIFFERENT"))
    ]
    both = judged_orders([answer("bed", items=("Bed", "Party"))], 2, [*half, *other])
    assert both.scores["q"]["order_f1_model"] == pytest.approx((2 / 3 + 0) / 2)
    missing = judged_orders([answer("bed", items=("Bed", "Party"))], 1, other)
    assert missing.scores["q"]["order_tau_model"] is None


def test_lines_are_those_of_the_other_orders_and_other_questions_have_none() -> None:
    reference = ReferenceRecord("q", "beam-1", 33, ["gold"], None, [], [], [], {"ordered_items": ["Bed", "Traps"]}, "k")
    plain = ReferenceRecord("r", "beam-1", 34, ["gold"], None, [], [], [], {"rubric": ["x"]}, "k")
    row = AnswerRecord("q", "beam-1", 33, "Q", "1. bed\n\n- traps", "", False, (), 0.0, 0.0, True, 1, 1)
    (found,) = ordered_answers([reference, plain], [row])
    assert (found.items, found.lines) == (("Bed", "Traps"), ("bed", "traps"))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["judge=beam_rubric", "judge.order=people"], "judge.order='people' is unknown; choose one of words, model"),
        (["judge=beam_rubric", "judge.unit=answer", "judge.order=model"], "judge.order=model is for rubrics"),
        (["judge=beam_rubric", "judge.order=model", "judge.order_role.prompt=nowhere.txt"], "nowhere.txt"),
    ],
)
def test_wrong_settings_are_refused(overrides: Sequence[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_plan(overrides).order_identity()


def test_an_order_does_not_make_another_judge() -> None:
    plain, model = make_plan(["judge=beam_rubric"]), make_plan(["judge=beam_rubric", "judge.order=model"])
    assert plain.identity() == model.identity() and not {"order", "order_role"} & set(plain.identity()["judge"])
    assert plain.order_identity() == {} and model.order_identity()["prompt_sha256"] != model.judge.prompt_sha256


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    """A backbone to which every rubric is met, and which knows an event by its first word."""
    with judge_server(tmp_path, monkeypatch, _reply) as running:
        yield running


def _notes(prompt: str) -> list[str]:
    return [line.partition(" note: ")[2] for line in prompt.splitlines() if " note: " in line]


def _reply(prompt: str) -> str:
    if not _notes(prompt):
        return json.dumps({"reason": "because", "verdict": "CORRECT"})
    item, line = _notes(prompt)
    return json.dumps(says(line, item))


def write_run(root: Path) -> Path:
    """Two chats with a question about an order and one about a fact; the first answer has two of four events."""
    run = FakeRun(conversations=("beam-1", "beam-2"), questions_each=2, categories=(33, 34), summary=False)
    path = run.write(root)
    lines = iter(("1. bed\n2. traps", "- party\n- compost\n- bed"))

    def order(row: dict[str, object]) -> None:
        extra: dict[str, object] = {"rubric": ["item"]}
        row.update(extra=extra | ({"ordered_items": list(ITEMS)} if row["category"] == 33 else {}))

    rewrite(path, "references.jsonl", lambda n, row: order(row))
    rewrite(path, "answers.jsonl", lambda n, row: row["category"] == 33 and row.update(prediction=next(lines)))
    rewrite(path, "scores.jsonl", lambda n, row: row["category"] == 33 and row["metrics"].update(order_tau=0.5))
    return path


#: Pairs of the two answers: 1 + 1, and 4 + 3 + 1.
PAIRS = 10


def arguments(server: StubServer, root: Path, *extra: str) -> list[str]:
    return [*attached(server.url), f"cache_dir={root / 'cache'}", "judge=beam_rubric", *extra]


def pairs_asked(server: StubServer) -> int:
    return sum(bool(_notes(prompt_of(request))) for request in server.state.requests)


def test_an_order_is_a_column_and_a_variant_of_the_score(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Added to a judge that was there, it asks of pairs alone, and leaves every other column as it is."""
    path = write_run(tmp_path)
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    before, asked = stored(path), server.state.count
    assert pairs_asked(server) == 0
    model = arguments(server, tmp_path, "judge.order=model")
    assert main([str(path), *model]) == 0
    assert server.state.count == asked + PAIRS == asked + pairs_asked(server)
    run = stored(path)
    entry, old = (one.summary["judges"][COLUMN] for one in (run, before))
    assert {name: entry[name] for name in old if name != "beam"} == {key: old[key] for key in old if key != "beam"}
    assert entry["beam"][f"{COLUMN}@beam"] == old["beam"][f"{COLUMN}@beam"]
    tau = ((5 / 30**0.5 + 1) / 2, 0.5 + 0.5 * _tau_of_second())
    values = [row.metrics.get(f"{COLUMN}@order_tau_model") for row in run.rows]
    assert values == [pytest.approx(tau[0]), None, pytest.approx(tau[1]), None]
    assert entry["order"]["order_tau_model"]["mean"] == pytest.approx(sum(tau) / 2, abs=1e-6)
    assert (entry["order"]["verdicts"], entry["order"]["unreadable"]) == (PAIRS, 0)
    found = entry["beam"][f"{COLUMN}@beam_model"]
    assert (found["order"], found["score"]) == ("order_tau_model", pytest.approx((sum(tau) / 2 + 1) / 2, abs=1e-6))
    assert [set(new.metrics) - set(row.metrics) for new, row in zip(run.rows, before.rows, strict=True)][1] == {
        f"{COLUMN}@beam_model"
    }
    assert sum(call.role == "judge_beam_rubric_order" for call in load_calls(path)) == PAIRS
    shown = " ".join(capsys.readouterr().out.split())
    assert "BEAM score, order aligned by the judge's model" in shown
    assert f"verdicts on pairs: {PAIRS}, unreadable and so not the same: 0" in shown
    # Again, with it or without: nothing is asked, and nothing is lost.
    for again in (model, arguments(server, tmp_path)):
        assert main([str(path), *again]) == 0
        assert server.state.count == asked + PAIRS and stored(path).rows == run.rows


def _tau_of_second() -> float:
    """Party, compost, bed beside four: 1 2 3 4 6 against 3 6 6 1 2; 3 pairs agree, 6 do not, one is tied."""
    return (3 - 6) / 90**0.5


def test_a_stopped_order_goes_on_and_another_prompt_is_refused(
    tmp_path: Path, server: StubServer, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path)
    rest = ["judge.order=model", "use_cache=false", "verdicts_in_flight=1", "backbone.transport_retries=0"]
    assert main([str(path), *arguments(server, tmp_path)]) == 0
    probe = server.state.count - 4
    server.fail(*[""] * (probe + 6), *["400"] * 20)
    assert main([str(path), *arguments(server, tmp_path, *rest)]) == 3
    file = path / "judgements" / "beam_rubric-smollm2_135m_vllm.order.jsonl"
    assert len(read_pairs(file)) == 6
    assert not any("order_tau_model" in name for row in stored(path).rows for name in row.metrics)
    server.state.failures.clear()
    asked = server.state.count
    assert main([str(path), *arguments(server, tmp_path, *rest)]) == 0
    assert server.state.count == asked + probe + PAIRS - 6
    assert [(one.line, one.item) for one in read_pairs(file)][:2] == [(0, 0), (1, 1)] and len(read_pairs(file)) == PAIRS
    prompt = tmp_path / "same.txt"
    prompt.write_text("First note: $item Second note: $line")
    capsys.readouterr()
    other = ["judge.order=model", f"judge.order_role.prompt={prompt}"]
    assert main([str(path), *arguments(server, tmp_path, *other)]) == 2
    assert "order.prompt_sha256" in " ".join(capsys.readouterr().err.split())


def test_repeats_of_orders_that_were_of_other_answers_count_no_more(tmp_path: Path, server: StubServer) -> None:
    path, model = write_run(tmp_path), arguments(server, tmp_path, "judge.order=model")
    meta = path / "judgements" / "beam_rubric-smollm2_135m_vllm.json"

    def repeats(*given: str) -> int:
        assert main([str(path), *model, *given]) == 0
        return int(read_meta(meta)["order"]["repeats"])

    assert (repeats("judge.repeats=2"), repeats()) == (2, 2)
    rewrite(path, "answers.jsonl", lambda n, row: row["category"] == 33 and row.update(prediction="bed\nparty"))
    assert repeats() == 1
    asked = pairs_asked(server)
    assert repeats("judge.repeats=2") == 2 and pairs_asked(server) > asked


def test_orders_of_a_judge_that_was_not_measured_on_events_are_left_out(
    tmp_path: Path, server: StubServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run(tmp_path)
    model = arguments(server, tmp_path, "judge.order=model")
    assert main([str(path), *model]) == 0
    shares = (50.0, 50.0, 100.0, 50.0, 1.0, 0.0, 0.0, 6.0, 0.0)
    digest = make_plan(["judge=beam_rubric"]).judge.prompt_sha256
    figures = JudgeFigures("beam_rubric", "smollm2_135m_vllm", OF_GOLD, 60, 0, *shares, digest)
    keep([figures], tmp_path / "figures.csv")
    report = make_report([stored(path)], BEAM)
    assert [column.name for column in report.judges] == ["judge", "BEAM score"]
    (line,) = report.left_out
    assert "memsys judge --known 100 judge=beam_rubric judge.order=model backbone=smollm2_135m_vllm" in line
    monkeypatch.setattr("eval.loaders.beam.BeamConfig.load", lambda config: SimpleNamespace(samples=chats()))
    capsys.readouterr()
    assert main(["--known", "8", *model]) == 0
    assert OF_PAIRS in capsys.readouterr().out
    rubrics, pairs = stored_figures(tmp_path / "figures.csv")
    assert rubrics == figures  # what was measured before stays
    assert (pairs.answers, pairs.accuracy, pairs.one_verdict, pairs.wrong_accepted) == (16, 100, 50, 0)
    report = make_report([stored(path)], BEAM)
    assert report.left_out == () and [column.name for column in report.judges][1:] == [
        "BEAM score",
        "BEAM score, order aligned by the judge's model",
    ]
    assert f"events: right on 100.0 % of 16 {OF_PAIRS}" in report.judges[2].meaning
    keep([JudgeFigures("beam_rubric", "smollm2_135m_vllm", OF_PAIRS, 120, 0, *(50.0, 100.0, 50.0, 50.0, 0.0, 100.0),
                       90.0, 100.0, 0.0, pairs.prompt_sha256)], tmp_path / "figures.csv")  # fmt: skip
    report = make_report([stored(path)], BEAM)
    assert f"is not shown to be better than a constant on 120 {OF_PAIRS}" in report.judges[2].meaning
    assert OF_PAIRS not in report.judges[1].meaning


def chats() -> list[Sample]:
    """Two chats with an order each, of which one event is the same in both."""
    found = []
    for number, names in ((1, ("a", "b", "tests ", "c")), (2, ("tests", "d", "e", "f"))):
        key, name = f"beam-{number}:event_ordering:0", f"beam-{number}"
        extra = {"ordered_items": list(names)}
        question = Question(key, name, "In which order?", 33, "event_ordering")
        turn = Turn("0", "batch_1", "User", "Hello.", "")
        chat = Conversation(name, (turn,), speakers=("User", "Assistant"))
        found.append(Sample(chat, (question,), {key: Reference(key, answers=("gold",), evidence=(), extra=extra)}))
    return found


def test_an_event_is_the_same_beside_itself_and_another_beside_one_of_another_chat() -> None:
    known = pairs_of_events(chats(), 20)
    said = [(one.item.gold, one.item.answer, one.right) for one in known]
    assert said[:4] == [("a", "a", True), ("a", "tests", False), ("b", "b", True), ("b", "tests", False)]
    assert said[4:6] == [("tests ", "tests ", True), ("tests ", "d", False)]  # not beside its own name
    assert len(known) == 16 and len({one.item.item_id for one in known}) == 16
    smaller = pairs_of_events(chats(), 3)
    assert len(smaller) == 6 and all(one in known for one in smaller)
    with pytest.raises(ConfigError, match=r"judge beam_rubric aligns no order; judge\.order=model lets it"):
        measure_by_pairs(make_plan(["judge=beam_rubric"]), 4)
