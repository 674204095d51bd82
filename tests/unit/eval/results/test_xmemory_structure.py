"""xMemory's analyses against values worked by hand."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.results.analysis.theme_structure import gate, query_tokens, reassignment, structure
from eval.results.analysis.xmemory_structure import RESULT, analyse, main
from eval.runs.records import ConversationRecord, HitRecord, ReferenceRecord, RetrievalRecord
from eval.scoring.answer_coverage import (
    Retrieved,
    content_words,
    coverage,
    greedy_cover,
    hit_shares,
    hits_of,
    prefix_cover,
)
from eval.scoring.evidence_density import evidence_density
from memsys.errors import ScoringError
from memsys.llm.ledger import CallRecord

ANSWER = content_words("The seventh of May, at the Blue Lake")


def test_content_words_are_distinct_lower_case_and_no_stop_words() -> None:
    assert frozenset({"seventh", "blue", "lake"}) <= ANSWER <= {"seventh", "may", "blue", "lake"}
    assert content_words("Lake lake LAKE 2023!") == {"lake", "2023"}
    assert content_words("of the") == frozenset()


WORDS = frozenset({"blue", "lake", "seventh"})
BLOCKS = ("They swam in a lake.", "Nothing here.", "The blue lake is cold.", "It was the seventh, by the blue lake.")


def test_hits_and_their_shares_over_all_blocks() -> None:
    assert hits_of(WORDS, BLOCKS) == [1, 0, 2, 3]
    assert hit_shares([1, 0, 2, 3]) == {"1": 0.25, "2": 0.25, "multi": 0.25}
    assert hit_shares([]) == {"1": None, "2": None, "multi": None}


def test_blocks_until_the_answer_is_covered() -> None:
    assert prefix_cover(WORDS, BLOCKS) == 4
    assert prefix_cover(frozenset({"lake", "blue"}), BLOCKS) == 3
    assert prefix_cover(WORDS, BLOCKS[:3]) is None
    assert greedy_cover(WORDS, BLOCKS) == [3]
    assert greedy_cover(frozenset({"lake", "swam", "cold"}), BLOCKS) == [0, 2]
    assert greedy_cover(frozenset({"sun"}), BLOCKS) is None


def test_the_averages_of_coverage_by_hand() -> None:
    found = coverage(
        [
            Retrieved(frozenset({"lake", "blue"}), BLOCKS, (10, 20, 30, 40)),  # 3 blocks, 60 tokens
            Retrieved(frozenset({"sun"}), BLOCKS, (10, 20, 30, 40)),  # uncovered: 4 blocks, 100 tokens
            Retrieved(frozenset(), BLOCKS, (10, 20, 30, 40)),  # nothing to cover
        ]
    )
    assert found == {"questions": 2, "covered": 0.5, "blocks": 3.5, "tokens": 80.0, "blocks_covered": 3.0,
                     "tokens_covered": 60.0, "blocks_greedy": 1.0}  # fmt: skip
    assert coverage([])["blocks"] is None


def test_blocks_whose_tokens_nobody_counted_have_none() -> None:
    """A run that only retrieves has no tokenizer: its answers seemed to be covered by 0 tokens."""
    gold = ReferenceRecord("q", "c", 1, ["blue lake"], None, [], [], [])
    hits = [HitRecord("m", "the blue lake", 1.0, [])]
    counted = RetrievalRecord("q", "c", 1, hits, "the blue lake", 13, 26)
    uncounted = replace(counted, context_tokens=None)
    assert evidence_density({"q": gold}, {"q": counted})["coverage"]["tokens"] == 26.0
    found = evidence_density({"q": gold}, {"q": uncounted})["coverage"]
    assert (found["blocks"], found["tokens"], found["tokens_covered"]) == (1.0, None, None)


def test_a_context_that_is_shown_as_a_whole_has_no_blocks() -> None:
    """The whole conversation was one block of no words: 0 percent of the answers covered, by 0 tokens."""
    gold = ReferenceRecord("q", "c", 1, ["blue lake"], None, [], [], [])
    whole = RetrievalRecord("q", "c", 1, [HitRecord("", "", 0.0, ["t1"])], "the blue lake", 13, 26, ranked=False)
    found = evidence_density({"q": gold}, {"q": whole})
    assert found["coverage"] == dict.fromkeys(found["coverage"], None) | {"questions": 0}
    assert found["hits"] == {"all": {"1": None, "2": None, "multi": None}}
    assert found["answer_words"] is None


@settings(deadline=None)
@given(st.sets(st.sampled_from("abcdef"), min_size=1), st.lists(st.text("abcdef ", max_size=8), max_size=8))
def test_a_greedy_set_is_never_larger_than_the_prefix(answer: set[str], blocks: list[str]) -> None:
    words = frozenset(f"w{letter}" for letter in answer)
    spelt = [" ".join(f"w{letter}" for letter in block.replace(" ", "")) for block in blocks]
    prefix, greedy = prefix_cover(words, spelt), greedy_cover(words, spelt)
    assert (prefix is None) == (greedy is None)
    if prefix is not None and greedy is not None:
        assert len(greedy) <= min(prefix, len(words))
        held = frozenset().union(*(content_words(spelt[place]) for place in greedy))
        assert words <= held


def test_reassignment_in_three_readings() -> None:
    paths = [
        ["t0"],
        ["t0", "t2"],  # t0 was split: s1, s2 went to t2
        ["t0", "t2"],
        ["t1", "t2"],  # merged into t2
        ["t1", "t3", "t1"],  # away and back
        [],
    ]
    assert reassignment(paths) == {"by_id": 3 / 5, "by_content": 1 / 5, "ever": 4 / 5}
    relabelled = [["t0", "t9"]] * 4
    assert reassignment(relabelled) == {"by_id": 1.0, "by_content": 0.0, "ever": 1.0}
    assert reassignment([]) == {"by_id": None, "by_content": None, "ever": None}


def call(item: str, phase: str, role: str, key: str, prompt: int, reply: int, **more: Any) -> CallRecord:
    attempt = more.get("attempt", 0)
    timing = (0.1, 0.0, "stop", False, False, False, 0)
    return CallRecord("c", phase, role, key, item, attempt, prompt, reply, *timing, "h", "e")


def test_tokens_per_question_by_hand() -> None:
    calls = [
        call("q1", "retrieve", "probe", "none", 100, 20),
        call("q1", "retrieve", "probe", "e0", 200, 20),
        call("q1", "answer", "default", "q1", 500, 10),
        call("q1", "answer", "default", "q1", 500, 10),  # the warm-up's call
        call("q2", "retrieve", "keywords", "q2", 30, 5),
        call("q2", "answer", "default", "q2", 300, 10),
        call("u7", "write", "boundary", "D1:1", 900, 9),
        call("q3", "answer", "default", "q3", 1000, 0),
    ]
    assert query_tokens(calls, ["q1", "q2"]) == {
        "total": (340 + 510 + 35 + 310) / 2, "probe": 170.0, "answer": 410.0, "other": 17.5, "reader_prompt": 400.0,
        "calls": 2.5,
    }  # fmt: skip
    assert query_tokens(calls, [])["total"] is None


STATISTICS = {
    "episodes": 2,
    "facts": 3,
    "episode_messages": [4, 6],
    "theme_sizes": [2, 1],
    "theme_paths": [["t0"], ["t0"], ["t1"]],
    "theme_causes": [["new"], ["attach"], ["new"]],
    "objective": {"final": 1.5},
}


def conversation(name: str) -> ConversationRecord:
    return ConversationRecord(name, 10, 10, 1.0, [0.1], [0.1], 0.1, STATISTICS)


def test_the_structure_of_all_conversations() -> None:
    found = structure([conversation("a"), conversation("b")])
    assert (found["episodes"], found["facts"], found["themes"]) == (4, 6, 4)
    assert (found["turns_per_episode"], found["facts_per_theme"]) == (5.0, 1.5)
    assert found["theme_sizes"] == {"1": 2, "2": 2} and found["causes"] == {"attach": 2, "new": 4}
    assert found["objective"] == {"final": 1.5}


TRACE = {
    "themes": ["t0"],
    "facts": ["s0", "s1"],
    "episodes": ["e0"],
    "expanded": [],
    "fallbacks": ["probe:empty"],
    "probes": [{"episode": "e0", "gain": 0.2}, {"episode": "e1", "gain": -0.6}],
    "spans": {"gate": 0.5},
}


def retrieval(name: str, category: int, texts: list[str], trace: dict[str, Any]) -> RetrievalRecord:
    hits = [HitRecord(f"m{place}", text, 1.0, ["D1:1"]) for place, text in enumerate(texts)]
    return RetrievalRecord(name, "a", category, hits, "\n".join(texts).ljust(100, "x"), 100, 25, trace)


def test_the_gate_per_question() -> None:
    found = gate([retrieval("q1", 1, [], TRACE), retrieval("q2", 1, [], {**TRACE, "probes": [], "fallbacks": []})])
    assert (found["probes"], found["admitted"], found["expanded"], found["facts"]) == (1.0, 1.0, 0.0, 2.0)
    assert found["gain_quantiles"]["0.5"] == pytest.approx(-0.2)
    assert found["fallbacks"] == {"probe:empty": 1} and found["seconds"] == {"gate": 0.5}


def write_run(folder: Path, statistics: dict[str, Any]) -> Path:
    folder.mkdir()
    rows: dict[str, list[Any]] = {
        "references.jsonl": [
            ReferenceRecord("q1", "a", 1, ["blue lake"], None, [], [], []),
            ReferenceRecord("q2", "a", 5, [], "red sea", [], [], []),
        ],
        "retrievals.jsonl": [
            retrieval("q1", 1, ["a lake", "so blue"], TRACE),
            retrieval("q2", 5, ["a lake"], TRACE),
        ],
        "calls.jsonl": [call("q1", "answer", "default", "q1", 50, 5), call("q2", "answer", "default", "q2", 90, 5)],
        "conversations.jsonl": [replace(conversation("a"), statistics=statistics)],
    }
    for name, records in rows.items():
        lines = (json.dumps(dataclasses.asdict(record)) for record in records)
        (folder / name).write_text("".join(line + "\n" for line in lines))
    return folder


def test_a_stored_run_is_analysed_and_the_result_stored_beside_it(tmp_path: Path) -> None:
    ours, other = write_run(tmp_path / "ours", STATISTICS), write_run(tmp_path / "other", {"passages": 3})
    found = analyse(ours)
    assert found["hits"]["all"] == {"1": 1.0, "2": 0.0, "multi": 0.0} == found["hits"]["1"]
    assert found["coverage"]["blocks"] == 2.0
    assert found["coverage"]["tokens"] == pytest.approx((6 + 7) * 25 / 100)
    assert (found["tokens_scored"]["total"], found["tokens_all"]["total"]) == (55.0, 75.0)
    assert found["structure"]["themes"] == 2 and found["gate"]["questions"] == 1
    assert analyse(other)["structure"] is None and analyse(other)["coverage"] == found["coverage"]
    assert main([str(ours), str(other)]) == 0
    assert json.loads((ours / RESULT).read_text())["structure"]["facts"] == 3


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScoringError, match=r"references\.jsonl"):
        analyse(tmp_path)
    assert main([str(tmp_path)]) == 2


@pytest.mark.real_data
def test_locomos_answers_have_about_as_many_content_words_as_the_analysis_assumes(locomo_file: Path) -> None:
    from eval.loaders.locomo import read_locomo

    samples, _, _ = read_locomo(locomo_file)
    counts = [
        len(content_words(sample.references[question.question_id].answers[0]))
        for sample in samples
        for question in sample.questions
        if question.category != 5 and sample.references[question.question_id].answers
    ]
    assert len(counts) == 1540
    assert 3.3 < sum(counts) / len(counts) < 4.0
