"""The tables of docs/results.md and docs/results_earlier.md say what ``memsys compare`` says of committed summaries."""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from eval.compare.formats import render_csv
from eval.compare.model import make_report
from eval.funnel.stages import evidence_funnels, reach_of
from eval.loaders.kinds import ADVERSARIAL
from eval.scoring.inference import MetricScores
from eval.scoring.paired import ALPHA, PairedComparison, compare_paired, holm
from eval.scoring.protocols import load_protocol
from eval.tables.stored import Skipped, StoredRun, read_run

ROOT = Path(__file__).resolve().parents[2]
SUMMARIES = ROOT / "results" / "summaries"
DOCUMENTS = (ROOT / "docs" / "results.md", ROOT / "docs" / "results_earlier.md")

#: Preset of each system, as the tables name it.
PRESETS = {
    "the gold evidence": "oracle",
    "BM25, ten turns": "bm25_turn",
    "dense and BM25 fused": "hybrid_turn",
    "RAG, ten turns": "rag",
    "RAG behind SAGE's gate": "gated_rag",
    "the whole conversation": "full_context",
    "the five sessions as a whole": "full_context",
    "a-mem 0.2.6, the package": "package_amem",
    "BM25": "bm25_turn",
    "dense + BM25": "hybrid_turn",
    "RAG": "rag",
    "no memory": "no_memory",
    "A-Mem": "amem_small",
    "CLAG": "clag_small",
    "GAM": "gam_small",
    "LightMem": "lightmem_small",
    "Mem0": "mem0_small",
    "Mem0g": "mem0_graph_small",
    "MemFly": "memfly_small",
    "MemGPT": "memgpt_small",
    "MemoryBank": "memorybank_small",
    "MemoryOS": "memoryos_small",
    "Nemori": "nemori_small",
    "ReadAgent": "readagent_small",
    "SAGE": "sage_small",
    "xMemory": "xmemory_small",
}

#: Columns of a table -> columns of ``compare.csv``. A cell has a number for each, or none where the runs have none; a
#: share of all or nothing stands without its interval.
COLUMNS = {
    "F1 (95 %)": ("F1", "F1 low", "F1 high"),
    "F1 answerable": ("F1 answerable",),
    "F1 against RAG (95 %, p after Holm)": (
        "F1 difference",
        "F1 difference low",
        "F1 difference high",
        "F1 p (Holm)",
    ),
    "F1 answerable against RAG": (
        "F1 answerable difference",
        "F1 answerable difference low",
        "F1 answerable difference high",
        "F1 answerable p (Holm)",
    ),
    "R@10 by turn ids": ("R@10 (turn ids)",),
    "R@10 by turn ids (95 %)": ("R@10 (turn ids)", "R@10 (turn ids) low", "R@10 (turn ids) high"),
    "tokens of the context": ("context",),
    "calls per question": ("calls",),
    "tokens per question": ("tokens",),
    "tokens per turn written": ("write",),
}

#: Ends of intervals beyond what a share can be are written as that.
MOST = {"R@10 by turn ids (95 %)": 100.0}


@dataclass(frozen=True)
class Documented:
    """A table of the pages.

    Attributes:
        header: how its first line begins.
        folder: of its runs, below ``results/summaries``.
        chosen: preset -> end of its run's name, where the folder has several runs with our prompts and seed 0.
        backbone: of its runs.
    """

    header: str
    folder: str
    chosen: Mapping[str, str] = field(default_factory=dict)
    backbone: str = "qwen25_coder_05b_vllm"


_FIRST = "| system | F1 (95 %) | F1 answerable | F1 against RAG (95 %, p after Holm) | "
TABLES = [
    Documented(_FIRST + "F1 answerable against RAG | R@10 by turn ids (95 %) |", "locomo_qwen05b_all"),
    Documented(_FIRST + "R@10 by turn ids (95 %) | in context", "locomo_qwen05b"),
    Documented(
        _FIRST + "R@10 by turn ids | in context",
        "locomo_qwen05b_part",
        {
            "oracle": "67fa9217",
            "rag": "6a8fcfc0",
            "amem_small": "cf502149",
            "clag_small": "24e11cf6",
            "lightmem_small": "2cd47ed2",
            "mem0_small": "004ab9c9",
            "memgpt_small": "1350fe03",
            "memorybank_small": "fbb6a56b",
            "memoryos_small": "0de6d903",
            "nemori_small": "89a301aa",
            "readagent_small": "a66d98cd",
            "sage_small": "19477648",
            "xmemory_small": "7d4cd5f8",
        },
    ),
    Documented(
        _FIRST + "F1 answerable against RAG | R@10 by turn ids | tokens",
        "locomo_qwen05b_part_plain",
        {
            "mem0_small": "fb707f1a",
            "mem0_graph_small": "4d0bda6b",
            "memgpt_small": "e03bfa81",
            "memorybank_small": "d7d116a3",
            "memoryos_small": "fc216513",
            "sage_small": "6f5326be",
            "xmemory_small": "1c9dd8ba",
        },
    ),
    Documented(
        _FIRST + "F1 answerable against RAG | R@10 by turn ids | F1",
        "locomo_qwen05b_plain",
        {"memorybank_small": "6e710fec"},
    ),
    Documented("| system | F1 (95 %) | F1, 0.5B |", "locomo_qwen15b", backbone="qwen25_coder_15b_vllm"),
]
#: Ends of the names of the larger model's runs on a GPU; some presets have runs of one conversation and of all ten.
TEN_15B = {"oracle": "bf4c079a", "bm25_turn": "e2029bbf", "hybrid_turn": "621d1ed3", "rag": "b6cd3ef7",
           "gated_rag": "bd2266f2", "no_memory": "c30d85fd"}  # fmt: skip
ONE_15B = {"oracle": "f1015418", "bm25_turn": "cda555f7", "hybrid_turn": "5c27e9de", "rag": "0eadb504",
           "gated_rag": "65771c70", "no_memory": "acca23de"}  # fmt: skip
GPU = [
    Documented("| system, 0.5B | F1 (95 %) |", "locomo_qwen05b_plain_all", backbone="qwen25_coder_05b_gpu"),
    Documented("| system, 1.5B | F1 (95 %) |", "locomo_qwen15b_plain", TEN_15B, "qwen25_coder_15b_gpu"),
    Documented("| system, 1.5B, conv-26 | F1 (95 %) |", "locomo_qwen15b_plain", ONE_15B, "qwen25_coder_15b_gpu"),
]
#: The rows of today with a blank after the colons and commas of JSON replies.
SPACED = Documented(
    _FIRST + "F1 answerable against RAG | R@10 by turn ids | calls",
    "locomo_qwen05b_plain",
    backbone="qwen25_coder_05b_vllm_spaced",
)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table(header: str, *documents: Path) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the one table that begins so; of the pages of results where none is named."""
    lines = [line for path in documents or DOCUMENTS for line in path.read_text(encoding="utf-8").splitlines()]
    (start,) = [number for number, line in enumerate(lines) if line.startswith(header)]
    rows: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    return cells(lines[start]), rows


@cache
def stored(folder: str) -> Mapping[str, StoredRun]:
    read = {path.name: read_run(path) for path in sorted((SUMMARIES / folder).iterdir()) if path.is_dir()}
    return {name: run for name, run in read.items() if not isinstance(run, Skipped)}


def run_of(preset: str, documented: Documented, wording: str = "ours") -> StoredRun:
    wanted = documented.chosen.get(preset, "")
    (run,) = [
        run
        for name, run in stored(documented.folder).items()
        if name.startswith(f"{preset}-{documented.backbone}-s0-") and name.endswith(wanted)
        if wanted or (run.record["config"].get("prompts") or {}).get("source", "ours") == wording
    ]
    return run


def measured(documented: Documented, names: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Row of ``compare.csv`` for each system of a table."""
    runs = {name: run_of(PRESETS[name], documented) for name in names}
    report = make_report([*runs.values()], load_protocol("clag"), "rag")
    rows = {row["run"]: row for row in csv.DictReader(io.StringIO(render_csv(report)))}
    return {name: rows[run.run_id] for name, run in runs.items()}


def agrees(number: str, value: float) -> bool:
    """Whether a printed number is the value, rounded; ``compare.csv`` has four decimals itself."""
    if number.startswith("<"):
        return value < float(number[1:])
    digits = number.replace(",", "")
    unit = 10.0 ** -len(digits.partition(".")[2])
    return abs(float(digits) - value) <= unit / 2 + 1e-4


def numbers(cell: str) -> list[str]:
    return re.findall(r"<?[-+]?\d[\d,]*(?:\.\d+)?(?<!,)", cell.replace("‡", ""))


def wrong(row: Mapping[str, str], heading: str, cell: str) -> Iterator[str]:
    printed, wanted = numbers(cell), [row[name] for name in COLUMNS[heading]]
    whole = len(printed) == len(wanted) or (printed in (["100"], ["0"]) and heading in MOST)
    if not whole and (printed or any(wanted)):
        yield f"{heading}: {cell or 'an empty cell'}, the runs say {wanted}"
    for number, value in zip(printed, wanted, strict=False):
        if not agrees(number, min(float(value or 0), MOST.get(heading, math.inf))):
            yield f"{heading}: {cell}, the runs say {value or 'nothing'}"


@pytest.mark.parametrize("documented", [*TABLES, SPACED, *GPU], ids=lambda one: f"{one.folder}-{one.backbone}")
def test_a_table_of_results_says_what_the_runs_say(documented: Documented) -> None:
    headings, rows = table(documented.header)
    found = measured(documented, [row[0] for row in rows])
    problems = [
        f"{row[0]}, {problem}"
        for row in rows
        for heading, cell in zip(headings, row, strict=True)
        if heading in COLUMNS
        for problem in wrong(found[row[0]], heading, cell)
    ]
    assert not problems, "\n".join(problems)
    assert sum(heading in COLUMNS for heading in headings) >= 5


def documented_in(folder: str) -> Documented:
    (found,) = [each for each in TABLES if each.folder == folder]
    return found


def f1_by_question(run: StoredRun) -> Mapping[str, float]:
    return {row.question_id: 100 * (row.metrics["f1_set"] or 0.0) for row in run.rows}


def compared(one: StoredRun, other: StoredRun, questions: Iterable[str]) -> PairedComparison:
    """F1 of one run minus the other's, on some questions of the one conversation that both were asked."""
    first, second = f1_by_question(one), f1_by_question(other)
    return compare_paired(MetricScores.of([(first[name] - second[name], "conv-26", 0) for name in questions]))


@pytest.mark.parametrize("documented", [documented_in("locomo_qwen05b_plain"), *GPU[:2]], ids=lambda one: one.header)
def test_f1_by_what_is_in_the_context_is_what_the_runs_say(documented: Documented) -> None:
    headings, rows = table(documented.header)
    there, none = headings.index("F1, all of it there"), headings.index("F1, none of it there")
    checked = 0
    for row in rows:
        reached = evidence_funnels(run_of(PRESETS[row[0]], documented))[0].reached
        absent = [reached[reach] for reach in ("stored", "not stored", "not in context") if reach in reached]
        parts = {there: [reached["whole"]] if "whole" in reached else [], none: absent}
        for place, found in parts.items():
            count = sum(each.questions for each in found)
            if count:
                mean = sum(each.questions * (each.score or 0.0) for each in found) / count
                printed = numbers(row[place])
                assert agrees(printed[0], mean) and agrees(printed[1], count), (row[0], row[place], mean, count)
                checked += 1
            else:
                assert row[place] == "–", row[0]
    assert checked >= 2 * len(rows) - 3


def test_what_the_larger_models_table_compares_with_is_what_the_runs_say() -> None:
    headings, rows = table(GPU[2].header)
    smaller = Documented("", "locomo_qwen05b_plain", backbone="qwen25_coder_05b_gpu")
    columns = ((headings.index("F1, 0.5B on the same GPU"), False), (headings.index("F1 answerable, 0.5B"), True))
    for row in rows:
        run = run_of(PRESETS[row[0]], smaller)
        for place, answerable in columns:
            found = [f1_by_question(run)[e.question_id] for e in run.rows if not (answerable and e.kind == ADVERSARIAL)]
            assert agrees(row[place], sum(found) / len(found)), (row[0], headings[place])


def test_what_the_table_of_today_compares_with_is_what_the_runs_say() -> None:
    """Columns that ``memsys compare`` does not have: the rows of before."""
    today, before = documented_in("locomo_qwen05b_plain"), documented_in("locomo_qwen05b")
    headings, rows = table(today.header)
    was = headings.index("F1 answerable, former presets")
    checked = 0
    for row in rows:
        run = run_of(PRESETS[row[0]], today)
        if numbers(row[was]):
            earlier = run_of(PRESETS[row[0]], before)
            answerable = [each.question_id for each in run.rows if each.kind != ADVERSARIAL]
            mean = sum(f1_by_question(earlier)[name] for name in answerable) / len(answerable)
            found_again = compared(run, earlier, answerable)
            difference, p_value = numbers(row[was + 1])
            assert agrees(row[was], mean) and agrees(difference, found_again.difference), row[0]
            assert found_again.p_value is not None and agrees(p_value, found_again.p_value), row[0]
            checked += 1
    assert checked >= 18


def test_f1_where_both_contexts_hold_all_of_the_evidence_is_what_the_runs_say() -> None:
    documented = documented_in("locomo_qwen05b_plain")
    rag = run_of("rag", documented)
    _, rows = table("| system | questions | F1 | RAG |")
    assert len(rows) == 12
    found = {}
    for name, count, own, others, *_ in rows:
        run = run_of(PRESETS[name], documented)
        whole = [{row.question_id for row in each.rows if reach_of(row) == "whole"} for each in (run, rag)]
        both = sorted(whole[0] & whole[1])
        means = [sum(f1_by_question(each)[question] for question in both) / len(both) for each in (run, rag)]
        assert len(both) == int(count) and agrees(own, means[0]) and agrees(others, means[1]), (name, both, means)
        found[name] = compared(run, rag, both)
    corrected = holm([one.p_value or 1.0 for one in found.values()])
    for (name, *_, difference, p_value, after), p_after in zip(rows, corrected, strict=True):
        one = found[name]
        assert one.interval is not None and one.p_value is not None
        assert all(map(agrees, numbers(difference), (one.difference, one.interval.low, one.interval.high))), name
        assert agrees(p_value, one.p_value) and agrees(after, p_after), name


def test_what_a_blank_changes_is_what_the_runs_say() -> None:
    without = documented_in("locomo_qwen05b_plain")
    blank, gpu = (replace(without, chosen={}, backbone=f"qwen25_coder_05b_{kind}") for kind in ("vllm_spaced", "gpu"))
    headings, rows = table("| system | F1, no blank | F1, a blank |")
    assert len(rows) >= 18
    for row in rows:
        before, after = run_of(PRESETS[row[0]], without), run_of(PRESETS[row[0]], blank)
        answerable = [each.question_id for each in before.rows if each.kind != ADVERSARIAL]
        fooled = [each.question_id for each in before.rows if each.kind == ADVERSARIAL]
        groups = (([*answerable, *fooled], 1), (answerable, 4), (fooled, 7))
        for questions, place in groups:
            for run, cell in ((before, row[place]), (after, row[place + 1])):
                mean = sum(f1_by_question(run)[name] for name in questions) / len(questions)
                assert agrees(cell, mean), (row[0], headings[place], cell, mean)
        for questions, place in groups[:2]:
            found = compared(after, before, questions)
            assert found.interval is not None and found.p_value is not None
            values = (found.difference, found.interval.low, found.interval.high, found.p_value)
            printed = numbers(row[place + 2])
            assert all(map(agrees, printed, values)), (row[0], printed, values)
        if numbers(row[9]):
            other = f1_by_question(run_of(PRESETS[row[0]], gpu))
            means = [sum(other[name] for name in questions) / len(questions) for questions, _ in groups[:2]]
            assert all(map(agrees, numbers(row[9]), means)), (row[0], row[9], means)


@pytest.mark.parametrize(
    ("first", "runs", "systems"),
    [
        ("system", Documented("", "locomo_qwen05b_part_plain", backbone=SPACED.backbone), 9),
        ("system, all of conv-26", SPACED, 12),
        ("system, conv-26, H100", Documented("", "locomo_qwen05b_plain", backbone="qwen25_coder_05b_gpu"), 11),
        ("system, conv-26, 1.5B", GPU[2], 6),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_the_authors_wording_changes_is_what_the_runs_say(first: str, runs: Documented, systems: int) -> None:
    headings, rows = table(f"| {first} | F1, our wording | F1, the authors' |")
    assert len(rows) == systems
    for row in rows:
        ours, theirs = run_of(PRESETS[row[0]], runs), run_of(PRESETS[row[0]], replace(runs, chosen={}), "authors")
        answerable = [each.question_id for each in ours.rows if each.kind != ADVERSARIAL]
        for questions, place in ((list(f1_by_question(ours)), 1), (answerable, 4)):
            means = [sum(f1_by_question(run)[name] for name in questions) / len(questions) for run in (ours, theirs)]
            found = compared(theirs, ours, questions)
            assert found.interval is not None and found.p_value is not None
            values = (*means, found.difference, found.interval.low, found.interval.high, found.p_value)
            printed = [number for cell in row[place : place + 3] for number in numbers(cell)]
            assert len(printed) == 6 and all(map(agrees, printed, values)), (row[0], headings[place], printed, values)
        assert headings[7:9] == ["R@10, our wording", "the authors'"]
        for cell, run in zip(row[7:9], (ours, theirs), strict=True):
            (found_row,) = csv.DictReader(io.StringIO(render_csv(make_report([run], load_protocol("clag")))))
            share = found_row["R@10 (turn ids)"]
            assert agrees(cell, float(share)) if share else cell == "–", (row[0], cell, share)


@pytest.mark.parametrize(
    ("heading", "documented", "column", "systems"),
    [
        ("F1", SPACED, "F1", 20),
        ("F1 answerable", SPACED, "F1 answerable", 20),
        ("R@10", SPACED, "R@10 (turn ids)", 18),
        ("tokens per question", SPACED, "tokens", 20),
        ("F1 without the blank", documented_in("locomo_qwen05b_plain"), "F1", 19),
        ("F1 answerable without it", documented_in("locomo_qwen05b_plain"), "F1 answerable", 19),
    ],
)
def test_the_readme_says_what_the_runs_say(heading: str, documented: Documented, column: str, systems: int) -> None:
    headings, rows = table("| system | F1 | against RAG | F1 answerable |", ROOT / "README.md")
    printed = {row[0]: numbers(row[headings.index(heading)]) for row in rows}
    found = measured(documented, [name for name, found_numbers in printed.items() if found_numbers])
    assert len(found) == systems
    problems = {name: (printed[name], row[column]) for name, row in found.items()
                if not agrees(printed[name][0], float(row[column] or 0))}  # fmt: skip
    assert not problems


def test_the_readme_says_what_the_runs_of_all_ten_conversations_say() -> None:
    headings, rows = table("| system, ten conversations |", ROOT / "README.md")
    for documented, size in ((GPU[0], "0.5B"), (GPU[1], "1.5B")):
        place, answerable = headings.index(f"F1, {size}"), headings.index(f"F1 answerable, {size}")
        run = [row for row in rows if numbers(row[place])]
        found = measured(documented, [row[0] for row in run])
        assert len(run) == {"0.5B": 8, "1.5B": 6}[size]
        for row in run:
            values = found[row[0]]
            assert agrees(row[place], float(values["F1"])), row
            assert agrees(row[answerable], float(values["F1 answerable"])), row
            assert not numbers(row[-1]) or agrees(row[-1], float(values["R@10 (turn ids)"])), row
            difference = float(values["F1 difference"] or 0)
            told_apart = bool(values["F1 p (Holm)"]) and float(values["F1 p (Holm)"]) < ALPHA
            assert row[place + 1] == (("above" if difference > 0 else "below") if told_apart else ""), row


@pytest.mark.parametrize(
    ("number", "value", "right"),
    [("25.1", 25.1499, True), ("25.1", 25.16, False), ("<0.001", 0.0009, True), ("<0.001", 0.002, False),
     ("1,254", 1254.4, True), ("-3.2", -3.24, True), ("+3.2", -3.2, False)],
)  # fmt: skip
def test_rounding_is_allowed_and_nothing_else(number: str, value: float, right: bool) -> None:
    assert agrees(number, value) is right


def test_numbers_of_a_cell() -> None:
    assert numbers("+14.1 [8.7, 19.6], 0.002") == ["+14.1", "8.7", "19.6", "0.002"]
    assert numbers("1,254") == ["1,254"] and numbers("–") == [] and numbers("39.3 [33.6, 44.9]‡")[0] == "39.3"
