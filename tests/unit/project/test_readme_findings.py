"""README is short, and every number of its findings is one of what it was taken from."""

import json
import math
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from eval.results.own.results_page import page_tables

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
AUDIT = (ROOT / "results" / "audit" / "audit.md").read_text(encoding="utf-8").split("## Terms")[0]
_NUMBER = re.compile(r"(?<![\w@])\d[\d,.]*\d|(?<![\w@])\d")
_FINDING = re.compile(r"^\* \*\*(.+?)\.\*\* (.+?)(?=\n\* |\n\n)", re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    return page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def numbers(text: str) -> list[str]:
    """Numbers of a text without its links, as they are written but for commas between thousands."""
    return [found.replace(",", "") for found in _NUMBER.findall(re.sub(r"\]\([^)]*\)", "]", text))]


def row(table: str, *names: str) -> str:
    return next(line for line in table.splitlines() if all(f"| {name} |" in line for name in names))


def rag_on_locomo() -> str:
    """R@10 of CLAG's row of RAG on LoCoMo as printed and as measured by the question, with one decimal."""
    table = (ROOT / "results" / "tables" / "clag_table04.md").read_text(encoding="utf-8")
    printed = row(table, "LoCoMo, Qwen3-0.6B", "RAG", "printed")
    others = (ROOT / "results" / "tables" / "clag_table04_others.md").read_text(encoding="utf-8")
    measured = next(
        line for line in (table + others).splitlines() if "| RAG | measured |" in line and "by the question" in line
    )
    return " ".join(f"{float(line.split('|')[5].split()[0]):.1f}" for line in (printed, measured))


def costs() -> str:
    return "\n".join(row(page_tables()["cost"], name) for name in ("A-Mem", "CLAG", "RAG, ten turns"))


SOURCES = {
    "Printed numbers": lambda: AUDIT,
    "Judges": lambda: AUDIT,
    "The authors' code": lambda: str(len(list((ROOT / "eval" / "parity" / "released").glob("*.yaml")))),
    "Retrieval": rag_on_locomo,
    "Cost": costs,
}


def test_readme_shows_first_then_says_how_to_begin() -> None:
    """The picture, then the two commands and what they take; further down why this, and what it does not rank."""
    picture, command = README.index("](docs/question.svg)"), README.index("```")
    assert picture < command < README.index("\n## ")
    begin = README.split("```")[1]
    assert [line.split("#")[0].strip() for line in begin.strip().splitlines()] == ["make demo", "make test"]
    assert re.search(r"takes about [\d.]+ GB", README.partition("\n## ")[0])
    peers = section(README, "Why this and not another tool").split("\n", 2)[1]
    assert peers.startswith("| | memsys |") and peers.count("|") == 6  # and three others
    assert README.index("backbone=endpoint") < README.index("\n## Measure your own memory")
    assert "do not rank memories for your model" in section(README, "What was found")


def test_readme_is_a_page() -> None:
    assert len(README.split()) <= 1200
    assert len(section(README, "What was found").split()) <= 300


def test_findings_are_one_line_each_with_a_link() -> None:
    found = dict(_FINDING.findall(section(README, "What was found")))
    assert list(found) == list(SOURCES)
    assert all("](" in text and len(text.split()) < 40 for text in found.values())


@pytest.mark.parametrize("name", SOURCES)
def test_every_number_of_a_finding_is_in_its_source(name: str) -> None:
    text = dict(_FINDING.findall(section(README, "What was found")))[name]
    assert numbers(text) and set(numbers(text)) <= set(numbers(SOURCES[name]())), name


def minutes(experiment: str, memories: Sequence[str]) -> list[float]:
    """From start to end of committed runs of all of LoCoMo."""
    rows = (ROOT / "results" / "summaries" / experiment / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    runs = [json.loads(row) for row in rows]
    assert {run["summary"]["counts"]["questions"] for run in runs} == {1986}
    records = [run["record"] for run in runs if run["record"]["config"]["memory"]["name"] in memories]
    ends = [[datetime.fromisoformat(record[key]) for key in ("started", "finished")] for record in records]
    return sorted((last - first).total_seconds() / 60 for first, last in ends)


def test_the_times_are_those_of_committed_runs() -> None:
    said = section(README, "Run something else")
    evidence, rag, sage = (
        [float(number) for number in re.search(words, said).groups()]  # type: ignore[union-attr]
        for words in (
            r"takes ([\d.]+) to (\d+) minutes without a GPU",
            r"RAG takes (\d+) to (\d+) minutes",
            r"SAGE (\d+)",
        )
    )
    found = minutes("locomo_retrieval", ("rag", "bm25_turn", "hybrid_turn"))
    assert evidence == [round(found[0], 1), math.ceil(found[-1])]
    found = minutes("locomo_qwen05b_plain_all", ("rag",))
    assert rag == [math.floor(found[0]), math.ceil(found[-1])]
    assert sage == [math.ceil(minutes("locomo_qwen05b_plain_all", ("sage_small",))[0])]


def test_the_first_numbers_of_the_results_are_those_of_the_audit() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    said = section(page, "Published answers").partition("**SAGE**")[0]
    assert len(numbers(said)) > 8 and set(numbers(said)) <= set(numbers(AUDIT))
    retrieval = section(page, "Printed retrieval that does not reproduce")
    assert set(numbers(rag_on_locomo())) <= set(numbers(retrieval))
