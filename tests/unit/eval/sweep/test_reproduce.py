"""``memsys reproduce``: the runs of a paper, the commands that make them, and what a budget leaves out."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import reproduce
from eval.commands.commands import EXIT_DONE, EXIT_ERROR, EXIT_INCOMPLETE
from eval.config.presets import CONF, preset_names
from eval.config.prices import load_prices
from eval.reproduce import main
from eval.results.tables.spec import load_spec
from eval.sweep.cells import Composer, Sweep
from eval.sweep.costing import plan_sweep
from eval.sweep.papers import load_paper, load_papers
from eval.sweep.reproduction import PaperCell, Step, _products, compose_paper, gpu_hours, running, within_budget
from eval.sweep.verdicts import judgings
from memsys.errors import ConfigError

SMALL = ("mode=retrieval_only", "dataset=locomo_sample", "embedder=hashing", "backbone=smollm2_135m")


def test_every_sweep_and_table_of_a_paper_is_in_its_runs() -> None:
    papers = load_papers()
    settings = {each for paper in papers.values() for group in paper.groups for each in group.run}
    assert {each.removeprefix("+sweep=") for each in settings if each.startswith("+sweep=")} == set(
        preset_names(CONF / "sweep")
    )
    memories, composer = set(preset_names(CONF / "memory")), Composer()
    for name, paper in papers.items():
        for group in paper.groups:
            jobs, _ = composer.jobs(group.run)
            assert {
                each.removeprefix("memory=") for job in jobs for each in job if each.startswith("memory=")
            } <= memories
        tables = load_spec(name).tables
        assert {number for group in paper.groups for number in group.tables} <= set(tables)
        assert all(table in tables for table in paper.judged)
        backbones = preset_names(CONF / "backbone")
        assert all(name in (*backbones, "default") for name in paper.judges)
        assert {*paper.released, *paper.released.values()} <= memories


@given(st.sets(st.tuples(*(st.sampled_from(["1", "2", "3"]) for _ in range(3))), min_size=1))
def test_commands_make_just_the_jobs(values: set[tuple[str, ...]]) -> None:
    jobs = [tuple(f"{key}={value}" for key, value in zip("abc", job, strict=True)) for job in sorted(values)]
    made: list[tuple[str, ...]] = []
    for line, own in _products(jobs):
        made += own
        lists = [override.partition("=")[2].split(",") for override in line]
        assert len(own) == len(lists[0]) * len(lists[1]) * len(lists[2])
    assert sorted(made) == jobs


def test_the_authors_code_and_our_prompts_are_rows_of_their_own() -> None:
    paper = load_paper("clag")
    plain = compose_paper(paper, tables=[5], extra=SMALL[1:])
    every = compose_paper(paper, tables=[5], extra=SMALL[1:], released=True, ours=True)

    def memories(cells: Sequence[PaperCell]) -> list[str]:
        return [each.cell.valid_plan().memory.name for each in cells]

    assert memories(plain) == ["clag_cosine", "clag_kmeans", "clag"]
    # Without the authors' prompts, ours take their place, and are run once.
    ours = [] if plain[0].fell_back else memories(plain)
    assert memories(every) == [*memories(plain), "clag_code", *ours]
    assert {each.prompts for each in every[4:]} <= {"ours"}
    (step,) = running(plain)
    composed = Composer().sweep(step.arguments[2:]).cells
    assert [cell.key for cell in composed] == [each.cell.key for each in step.cells]


def test_rows_choose_memories_and_an_unknown_one_is_refused() -> None:
    paper = load_paper("clag")
    (one,) = compose_paper(paper, tables=[5], rows=["clag"], extra=SMALL)
    assert one.cell.valid_plan().memory.name == "clag"
    with pytest.raises(ConfigError, match="--rows rg: no run of clag has this memory"):
        compose_paper(paper, tables=[5], rows=["rg"], extra=SMALL)
    with pytest.raises(ConfigError, match="no run of clag fills table 8"):
        compose_paper(paper, tables=[8])


def test_a_budget_takes_the_runs_that_fit(tmp_path: Path) -> None:
    paper = load_paper("clag")
    cells = compose_paper(paper, tables=[5], extra=["dataset=locomo_sample"])
    whole = within_budget(paper, cells, "a100")
    assert whole.hours > 0 and not whole.left_out
    nothing = within_budget(paper, cells, "a100", 0.0)
    assert not nothing.cells and len(nothing.left_out) == 3
    budget = (gpu_hours(whole.costs[:1], "a100") + whole.hours) / 2  # one run fits, all three do not
    some = within_budget(paper, cells, "a100", budget)
    assert 0 < len(some.cells) < 3 and some.hours <= budget < whole.hours
    planned = plan_sweep(Sweep(tuple(each.cell for each in cells), tmp_path)).groups
    assert whole.hours == sum(group.hours or 0 for group in planned)  # as `memsys sweep plan` says


def test_dollars_have_the_second_backbones_price() -> None:
    paper = load_paper("xmemory")
    settings = ["dataset=locomo_sample", "backbone=gpt5_nano", "+experiment=xmemory_locomo_gpt5_nano"]
    (one, *_) = compose_paper(paper, tables=[1], rows=["xmemory"], extra=settings)
    plan = within_budget(paper, [one], "a100")
    (cost,) = plan.costs
    assert cost.by_second.calls > 0
    prices, rest = load_prices(), cost.to_pay - cost.by_second
    main_price, second_price = prices["gpt5_nano"], prices["gpt41_mini"]
    assert plan.dollars == pytest.approx(
        main_price.of(rest.prompt, rest.reply) + second_price.of(cost.by_second.prompt, cost.by_second.reply)
    )


def test_verdicts_are_by_the_judge_of_the_runs_backbone() -> None:
    paper = load_paper("sage")
    cells = compose_paper(paper, tables=[1], rows=["mem0_in_sage"], extra=["dataset=locomo_sample"])
    open_models, hosted = judgings(paper, cells, "a100")
    assert (open_models.backbone, hosted.backbone) == ("llama31_8b", "gpt4o_mini")
    assert len(open_models.cells) == 7 and len(hosted.cells) == 1
    assert open_models.hours > 0 == open_models.dollars
    assert hosted.dollars > 0 == hosted.hours
    assert open_models.calls.calls == 7 * hosted.calls.calls


def test_a_dry_run_prints_every_command_and_starts_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(reproduce, "_perform", lambda step: pytest.fail(step.shown))
    monkeypatch.setattr(reproduce, "fetching", lambda cells: [])
    arguments = ["clag", "--table", "1", "--rows", "rag_clag", *SMALL, f"runs_dir={tmp_path}"]
    assert main([*arguments, "--dry-run"]) == EXIT_DONE
    shown = capsys.readouterr().out
    for command in ("memsys run -m ", "memsys sweep collect ", "memsys tables --paper clag"):
        assert command in shown
    assert "1 seed: where replies are sampled, a cell has a verdict from 3 on (seed=0,1,2)" in shown
    assert "?" not in shown
    assert main(arguments) == EXIT_ERROR
    assert "add --yes" in capsys.readouterr().err


def test_what_runs_without_their_data_take_is_not_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMSYS_DATA", str(tmp_path))
    assert main(["clag", "--table", "5", "--dry-run", f"runs_dir={tmp_path}", "seed=0,1,2"]) == EXIT_DONE
    shown = capsys.readouterr().out
    assert re.search(r"all +9 +0( +\?){3}", shown)
    assert "seed=0,1,2)" not in shown


def test_runs_are_made_once_and_a_second_start_finds_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    performed: list[str] = []
    really = reproduce._perform

    def perform(step: Step) -> int:
        performed.append(step.arguments[0])
        return really(step) if step.arguments[0] == "run" else EXIT_DONE

    arguments = ["clag", "--table", "1", "--rows", "rag_clag", "--yes", *SMALL, f"runs_dir={tmp_path}"]
    monkeypatch.setattr(reproduce, "fetching", lambda cells: [])
    monkeypatch.setattr(reproduce, "_perform", lambda step: EXIT_INCOMPLETE)
    assert main(arguments) == EXIT_INCOMPLETE
    monkeypatch.setattr(reproduce, "_perform", perform)
    assert main(arguments) == EXIT_DONE
    assert performed == ["run", "sweep", "tables"]
    assert main(arguments) == EXIT_DONE
    assert performed[3:] == ["sweep", "tables"]
