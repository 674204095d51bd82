"""Printed costs beside what our ledgers count."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.results.stored_run import StoredRun
from eval.results.tables.cost_page import cost_page
from eval.results.tables.costs import FILE, load_costs, measured_cost, printed_cost
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun, rewrite, stored

HEADS = {
    "from": 0, "system": 1, "settings": 2, "work": 4, "calls": 5, "per turn": 6, "write": 7, "read": 8, "all": 9,
    "thousands": 10, "write hours": 11, "read hours": 12, "hours": 13, "machine": 14, "remarks": 15,
}  # fmt: skip


def run_of(root: Path, memory: str, settings: Mapping[str, object] | None = None, **more: Any) -> StoredRun:
    return stored(FakeRun(memory=memory, settings=settings or {}, **more).write(root))


def lines(page: str, system: str, work: str = "categories 1 to 4") -> list[dict[str, str]]:
    """Cells by heading of the lines of a printed system or of a preset, in the table of one work."""
    table = next(part for part in page.split("\n## ") if work in part.splitlines()[0])
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return [{head: row[place] for head, place in HEADS.items()} for row in cells if row[1] == system]


def test_the_shipped_rows_are_the_readmes() -> None:
    """A-MEM: a note and an evolution for each of 5,882 turns but the first of ten conversations; 67,084 s in all."""
    registry = load_costs()
    found = {(row.system, row.backbone): row for row in registry.rows if row.work == "locomo"}
    amem = found["A-MEM", "gpt-4o-mini"]
    assert amem.calls == 2 * (registry.works["locomo"].turns or 0) - 10
    hours = {
        name: round(printed_cost(found[name, "gpt-4o-mini"], registry.works["locomo"]).hours or 0, 1)
        for name in ("A-MEM", "Mem0", "MemoryOS(pypi)", "FullText", "LightMem (512, 0.7)")
    }
    assert hours == {"A-MEM": 18.6, "Mem0": 33.4, "MemoryOS(pypi)": 10.5, "FullText": 1.9, "LightMem (512, 0.7)": 3.6}


def test_memoryos_is_set_against_the_released_evaluation(tmp_path: Path) -> None:
    """The package has another profile and no keywords; conf/memory/memoryos follows the flow of the evaluation."""
    for row in load_costs().rows:
        if row.system.startswith("MemoryOS"):
            assert row.method == ("memoryos" if row.system == "MemoryOS(eval)" else None)
            assert row.why or row.method
    page = cost_page(load_costs(), [run_of(tmp_path, "memoryos_code")])
    systems = [row.split("|")[2].strip() for row in page.splitlines() if row.startswith(("| printed", "| ours"))]
    assert systems[systems.index("memoryos_code") - 1] == "MemoryOS(eval)"
    assert "the package is another method" in lines(page, "MemoryOS(pypi)")[0]["remarks"]


def test_the_tokens_of_memeval_are_totals(tmp_path: Path) -> None:
    """3.0 million tokens of 1,986 questions, writing and reading not told apart."""
    page = cost_page(load_costs(), [])
    mem0 = lines(page, "Mem0", "all five categories")[0]
    assert (mem0["thousands"], mem0["all"], mem0["write"], mem0["read"]) == ("3,000", "1,511", "–", "–")
    assert mem0["hours"] == "–"
    assert lines(page, "PropMem", "LongMemEval")[0]["thousands"] == "23,100"
    assert lines(page, "MemU", "all five categories")[0]["remarks"] == "none of ours: not rebuilt here"


def test_a_run_stands_once_below_the_printed_rows_of_its_method(tmp_path: Path) -> None:
    """Of 20 questions over 40 turns, each has a write call of 60 tokens and an answer of 155."""
    run = run_of(tmp_path, "amem_small")
    cost = measured_cost(run)
    assert cost is not None
    assert (cost.turns, cost.calls, cost.write_tokens, cost.read_tokens) == (40, 20, 1200, 3100)
    others = [run_of(tmp_path, name) for name in ("amem_quickstart", "sage", "mem0_graph")]
    page = cost_page(load_costs(), [run, *others])
    printed, ours = lines(page, "A-MEM"), lines(page, "amem_small")
    assert len(printed) == 2
    assert len(ours) == 1  # not once for each printed row
    assert (printed[0]["calls"], printed[0]["per turn"], printed[0]["hours"]) == ("11,754", "2.00", "18.6")
    assert (ours[0]["calls"], ours[0]["per turn"], ours[0]["write"], ours[0]["read"]) == ("20", "0.50", "30", "155")
    assert "2,941" not in page  # the rate of a small form times the printed work's turns
    assert not lines(page, "amem_quickstart") + lines(page, "mem0_graph")  # other methods


def test_a_line_of_ours_says_in_what_it_differs(tmp_path: Path) -> None:
    small = {"compress": {"mode": "off"}, "stm_tokens": 256, "roles": {"extract": {"max_tokens": 192, "max_items": 5}}}
    part = {"dataset": {"limit_sessions": 5}}
    runs = [
        run_of(tmp_path, "lightmem_small", small, conversations=("conv-26",), parts=part),
        run_of(tmp_path, "lightmem", {"stm_tokens": 512}),
        run_of(tmp_path, "full_context", {"window": None}, parts={"backbone": {"context_length": 8192}}),
    ]
    page = cost_page(load_costs(), runs)
    ours = lines(page, "lightmem_small")[0]
    differs = "small form; unlike lightmem: compress.mode=off, stm_tokens=256, 2 settings of roles"
    assert ours["settings"] == differs
    assert ours["work"].startswith("locomo_clag: 1 of 10 conversations (conv-26), the first 5 sessions, 20 of 5,882")
    assert ours["work"].endswith("10 questions, adversarial ones among them")
    assert lines(page, "lightmem")[0]["settings"] == "those of lightmem"
    assert lines(page, "full_context")[0]["settings"].endswith("window of 8,192 tokens")
    assert lines(page, "LightMem (768, 0.8)")[0]["settings"].startswith("batches of 768 tokens, 0.8 of them kept")
    assert lines(page, "Mem0")[0]["settings"] == "not printed"


def test_a_window_that_a_conversation_does_not_fit_into_is_told(tmp_path: Path) -> None:
    path = FakeRun(memory="full_context", settings={"window": 4096}, summary=False).write(tmp_path)

    def cut(_: int, row: dict[str, Any]) -> None:
        row["trace"] |= {"kept_turns": 90, "turns": 419}

    rewrite(path, "retrievals.jsonl", cut)
    summarised(path)
    line = lines(cost_page(load_costs(), [stored(path)]), "full_context")[0]
    assert "window of 4,096 tokens, in which 90 of 419 turns fit" in line["settings"]


def test_hours_of_ours_are_those_of_its_calls_with_the_machine(tmp_path: Path) -> None:
    """20 write calls and 20 answers of 360 s each; replies from the cache took no time."""

    def slow(_: int, row: dict[str, Any]) -> None:
        row["seconds"] = 360.0

    def cached(number: int, row: dict[str, Any]) -> None:
        row["cache_hit"] = row["phase"] == "write" and number < 6

    shared: dict[str, Any] = {"memory": "amem", "gpus": ("H100",), "parts": {"backbone": {"max_in_flight": 8}}}
    path = FakeRun(**shared, summary=False).write(tmp_path)
    rewrite(path, "calls.jsonl", slow)
    summarised(path)
    line = lines(cost_page(load_costs(), [stored(path)]), "amem")[0]
    assert (line["write hours"], line["read hours"], line["hours"]) == ("2.0", "2.0", "4.0")
    assert line["machine"] == "H100; up to 8 calls at a time"
    rewrite(path, "calls.jsonl", cached)
    summarised(path)
    line = lines(cost_page(load_costs(), [stored(path)]), "amem")[0]
    assert (line["write hours"], line["read hours"], line["hours"]) == ("–", "2.0", "–")
    assert line["remarks"] == "no write hours: 3 of 20 replies from the cache"


def test_answers_that_were_timed_one_at_a_time_have_their_clock_and_other_servers_no_machine(tmp_path: Path) -> None:
    """Each question took 0.5 s and its number of milliseconds to retrieve, and 0.125 s to answer."""
    engine = {"engine": {"urls": ["http://node17:8000/v1"]}}
    run = run_of(tmp_path, "amem", timing="latency", parts={"backbone": engine})
    cost = measured_cost(run)
    assert cost is not None
    assert cost.read_hours == pytest.approx(20 * (0.625 + 0.0095) / 3600)
    machine = lines(cost_page(load_costs(), [run]), "amem")[0]["machine"]
    assert machine == "attached servers, machine not recorded; one question at a time"


def test_the_sample_of_the_project_is_not_the_published_data(tmp_path: Path) -> None:
    run = run_of(tmp_path, "amem", parts={"dataset": {"sample": True}})
    assert not lines(cost_page(load_costs(), [run]), "amem")


def summarised(path: Path) -> None:
    from eval.scoring.summary import summarise

    summarise(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("work: locomo,", "work: moon,", r"rows\[0\].work='moon' is not one of locomo"),
        ("method: amem,", "method: moon,", r"rows\[0\].method='moon' is not one of amem"),
        ("method: amem,", "method: null,", r"rows\[0\].why is missing"),
        ("amem: [amem,", "amem: [amen,", r"methods.amem: there is no preset 'amen'"),
        ("calls: 11754", "calls: many", r"field rows\[0\].calls: expected an integer"),
        ("    turns: 5882\n", "", "works.locomo.turns: is missing"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "costs.yaml"
    path.write_text(FILE.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=said):
        load_costs(path)
