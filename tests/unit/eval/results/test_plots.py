"""The papers' figures and our own: what is drawn, from where, and that it is the same every time."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.plots import main, sheets
from eval.results.drawing.draw import draw_sheet
from eval.results.drawing.figure_spec import Curve, Level, Panel, Sheet, exact
from eval.results.drawing.labels import label_points, spread
from eval.results.drawing.style import Point
from eval.results.figures.own import _front, groups, own_sheets, pareto_front
from eval.results.figures.papers.sage import thresholds
from eval.results.frame import read_runs
from eval.results.stored_run import StoredRun
from eval.runs.folders import SUMMARIES
from eval.scoring.protocols import load_protocol
from tests.support.fake_run import FakeRun

PAPERS = {
    "memfly_figure2", "sage_figure2", "sage_figure3", "sage_figure4",
    "xmemory_figure3", "xmemory_figure4", "xmemory_figure5",
}  # fmt: skip
SVG = "{http://www.w3.org/2000/svg}"


def words(path: Path) -> str:
    return " ".join("".join(node.itertext()).strip() for node in ElementTree.parse(path).iter(f"{SVG}text"))


def by_name(runs: Sequence[StoredRun]) -> dict[str, Sheet]:
    return {sheet.name: sheet for sheet in sheets(runs, "clag")}


def values(curve: Curve) -> list[float]:
    return [point.value for point in curve.values.values()]


def renamed(run: StoredRun, **parts: str) -> StoredRun:
    config = {**run.record["config"], **{part: {"name": name} for part, name in parts.items()}}
    return replace(run, record={**run.record, "config": config})


def test_without_runs_there_are_the_papers_figures_alone() -> None:
    assert set(by_name([])) >= PAPERS


def test_printed_figures_hold_the_printed_numbers() -> None:
    found = by_name([])
    scores, cost = found["xmemory_figure3"].panels
    assert [values(curve) for curve in scores.curves] == [
        [27.92, 31.81, 32.55, 33.23, 34.48],
        [36.42, 40.77, 40.64, 42.55, 43.98],
    ]
    assert values(cost.curves[0]) == [6613.17, 7235.56, 6320.72, 6556.58, 4711.29]
    assert values(found["xmemory_figure5"].panels[1].curves[0]) == [0.0, 17.33, 26.23, 44.91]
    assert [values(curve) for curve in found["xmemory_figure4"].panels[0].curves] == [
        [7.82, 6.67, 13.14],
        [6.53, 6.29, 12.19],
    ]
    full, construction, retrieval = found["memfly_figure2"].panels
    assert values(full.curves[0]) == [28.24, 38.39, 15.43, 42.09, 43.79]
    assert values(construction.curves[0]) == [38.62, 27.97, 36.07, 33.57, 34.79]
    assert values(retrieval.curves[0]) == [38.62, 36.79, 32.69, 34.26, 32.94]


def test_sages_figures_hold_its_thresholds() -> None:
    found = by_name([])
    quality, calls = found["sage_figure2"].panels
    assert [level.value for level in quality.levels] == [25.83, 31.15, 85.32]
    assert quality.curves[1].values[0.1] == exact(32.35)
    assert [point.value for point in calls.curves[0].values.values()] == [202, 74]
    assert [panel.title for panel in found["sage_figure4"].panels] == ["Qwen2.5-1.5B", "Qwen2.5-3B"]
    assert found["sage_figure4"].panels[0].curves[2].values[0.3] == exact(71.69)


def test_the_threshold_decays_as_its_formula_says() -> None:
    """0.275 in an empty store, then a tenth of the way to the floor with every call."""
    settings = {"tau_0": 0.25, "tau_min": 0.025, "lambda": 2.0, "alpha": 0.9}
    assert thresholds(settings, 4) == pytest.approx([0.275, 0.25, 0.2275, 0.20725])
    assert thresholds(settings, 200)[-1] == pytest.approx(0.025, abs=1e-6)


def test_a_measured_run_stands_beside_the_printed_number(tmp_path: Path) -> None:
    FakeRun(memory="memfly_no_ier", backbone="qwen3_8b", dataset="locomo", reader="amem").write(tmp_path)
    panel = by_name(read_runs([tmp_path])[0])["memfly_figure2"].panels[2]
    assert [curve.origin for curve in panel.curves] == ["printed", "measured"]
    assert list(panel.curves[1].values) == ["w/o IER"]
    point = panel.curves[1].values["w/o IER"]
    assert point.low < point.value < point.high


def test_ablations_that_were_run_are_drawn_by_category(tmp_path: Path) -> None:
    shared = {"backbone": "qwen3_8b", "dataset": "locomo", "reader": "amem"}
    for memory, share in (("memfly", 0.5), ("memfly_no_link", 0.25)):
        FakeRun(memory=memory, values=lambda _, name, share=share: share, **shared).write(tmp_path)  # type: ignore[misc, arg-type]
    *_, panel = by_name(read_runs([tmp_path])[0])["memfly_figure2"].panels[3:4]
    assert panel.title == "(a) construction, by category"
    assert {curve.label: set(values(curve)) for curve in panel.curves} == {"MEMFLY": {50.0}, "w/o Link": {25.0}}
    assert set(panel.curves[0].values) == {"Multi Hop", "Temporal", "Open Domain", "Single Hop", "Adversarial"}


def test_runs_are_grouped_by_the_questions_they_were_asked(tmp_path: Path) -> None:
    for memory in ("rag", "amem"):
        FakeRun(memory=memory).write(tmp_path)
    FakeRun(memory="clag", conversations=("conv-26",)).write(tmp_path)
    FakeRun(memory="bm25_turn", mode="retrieval_only").write(tmp_path)
    found = groups(read_runs([tmp_path])[0])
    assert sorted([run.memory for run in group.runs] for group in found) == [["amem", "rag"], ["clag"]]
    assert len({group.name for group in found}) == 2


def test_groups_of_one_size_with_other_questions_have_names_and_titles_of_their_own(tmp_path: Path) -> None:
    """Their figures lie in one folder: equal names would overwrite each other."""
    FakeRun(conversations=("conv-26",)).write(tmp_path)
    FakeRun(conversations=("conv-30",)).write(tmp_path)
    runs = read_runs([tmp_path])[0]
    alone = groups(runs[:1])[0]
    assert (alone.name, alone.title) == ("locomo_clag_smollm2_135m_10", "locomo_clag, smollm2_135m, 10 questions")
    others = replace(runs[0], rows=tuple(replace(row, question_id=f"x{row.question_id}") for row in runs[0].rows))
    assert len({group.name for group in groups(runs)}) == 2
    assert {group.title.rpartition(" of ")[2] for group in groups(runs)} == {"conv-26", "conv-30"}
    same_place = groups([runs[0], others])
    assert len({group.name for group in same_place}) == len({group.title for group in same_place}) == 2
    names = [sheet.name for group in groups(runs) for sheet in own_sheets(group, load_protocol("clag"))]
    assert len(set(names)) == len(names) > 2
    assert [group.name for group in groups(runs)] == [group.name for group in groups(runs[::-1])]


def test_backbones_of_any_name_have_figures_of_their_own(tmp_path: Path) -> None:
    """Recorded answers name their model as their authors do; two of these are one name for a file system."""
    (run,) = read_runs([FakeRun().write(tmp_path / "runs")])[0]
    named = ("gpt-4.1-mini", "gpt-4.1", "Qwen/Qwen3 32B", "Qwen_Qwen3_32B", "Ⅷ模型")
    made = [renamed(run, backbone=name) for name in named]
    assert [one.backbone for one in made] == list(named)
    found = groups(made)
    panel = Panel("p", "x", "y", "bars", (Curve("c", {"a": exact(1.0)}, 0),), ("a",))
    drawn = {draw_sheet(Sheet(group.name, (panel,)), tmp_path / "figures") for group in found}
    assert len(drawn) == len(named) and {path.parent for path in drawn} == {tmp_path / "figures"}
    assert all(path.is_file() and " " not in path.name for path in drawn)


def test_floors_are_cut_to_the_questions_of_a_group() -> None:
    found = {group.name: group for group in groups(read_runs([SUMMARIES])[0])}
    group = found["locomo_qwen25_coder_05b_vllm_spaced_199"]
    assert [floor.memory for floor in group.floors] == ["always_abstain", "always_trap", "coin_flip"]
    assert {len(floor.rows) for floor in group.floors} == {199}


def test_own_figures_show_what_was_measured(tmp_path: Path) -> None:
    for memory in ("rag", "amem"):
        FakeRun(memory=memory).write(tmp_path)
    (group,) = groups(read_runs([tmp_path])[0])
    pareto, evidence, definitions = own_sheets(group, load_protocol("clag"))
    assert [panel.x for panel in pareto.panels] == [
        "calls per question",
        "tokens per question",
        "latency per question (ms)",
    ]
    assert [curve.label for curve in evidence.panels[0].curves] == ["amem", "rag"]
    assert not pareto.panels[2].curves
    assert [list(curve.values) for curve in definitions.panels[0].curves] == [["A-Mem, mem0"]] * 2
    assert "coin_flip" not in definitions.remark  # there is no floor in this figure
    floored = replace(group, floors=(renamed(group.runs[0], memory="coin_flip"),))
    assert "coin_flip is an expected value" in own_sheets(floored, load_protocol("clag"))[2].remark
    svg = draw_sheet(pareto, tmp_path / "figures")
    text = " ".join(words(svg).split())
    assert "Left out, nothing printed or measured: F1 against latency." in text
    assert "latency per question (ms)" not in text
    assert text.count("rag") == text.count("amem") == 2  # beside its point in both panels, and in no legend


def test_answers_made_elsewhere_get_no_figure_without_a_point() -> None:
    """Recorded answers have neither costs nor retrieved turns."""
    found = groups(read_runs([SUMMARIES / "recorded"])[0])
    assert len(found) >= 2
    for group in found:
        made = own_sheets(group, load_protocol("clag"))
        assert [sheet.name.partition("_")[0] for sheet in made] == ["definitions"]


#: Seventeen systems with their calls per question and F1, as measured with Qwen2.5-Coder-0.5B on 55 questions.
CROWD = [
    ("oracle", 1, 27.8), ("full_context", 1, 19.3), ("bm25_turn", 1, 18.9), ("rag", 1, 18.8), ("gated_rag", 1, 17.0),
    ("memorybank_small", 1, 17.0), ("hybrid_turn", 1, 11.7), ("lightmem_small", 1, 11.0), ("mem0_small", 1, 7.9),
    ("no_memory", 1, 7.9), ("sage_small", 1, 7.3), ("nemori_small", 1, 6.7), ("clag_small", 2, 15.4),
    ("memoryos_small", 2, 13.6), ("readagent_small", 2, 11.2), ("memfly_small", 5.15, 16.7),
    ("xmemory_small", 4.36, 8.5),
]  # fmt: skip


def test_labels_of_systems_that_cost_the_same_do_not_touch() -> None:
    from matplotlib import pyplot as plt
    from matplotlib.text import Text

    figure, axes = plt.subplots(figsize=(4.6, 3.9))
    axes.set_xlim(0.4, 5.8)
    axes.set_ylim(0, 41)
    label_points(axes, [(f"{name} ‡", calls, score, "black") for name, calls, score in CROWD])
    figure.draw_without_rendering()
    boxes = {label.get_text(): Text.get_window_extent(label) for label in axes.texts}
    assert len(boxes) == len(CROWD)
    assert [pair for pair in combinations(boxes, 2) if boxes[pair[0]].overlaps(boxes[pair[1]])] == []
    plt.close(figure)


def test_no_front_passes_through_references_or_overlapping_intervals() -> None:
    apart = [(1.0, Point(10, 9, 11)), (2.0, Point(20, 19, 21))]
    (front,) = _front(apart)
    assert list(front.values) == [1.0, 2.0]
    assert _front([(1.0, Point(10, 5, 15)), (2.0, Point(12, 8, 16))]) == []
    summaries = [run for run in read_runs([SUMMARIES])[0] if run.backbone == "qwen25_coder_05b_vllm_spaced"]
    for group in groups(summaries):
        pareto = own_sheets(group, load_protocol("clag"))[0]
        origins = {curve.label: curve.origin for panel in pareto.panels for curve in panel.curves}
        assert all((origin == "reference") == label.startswith(("no_memory", "oracle", "full_context"))
                   for label, origin in origins.items() if origin != "computed")  # fmt: skip


@given(st.lists(st.floats(-100, 100), max_size=12), st.floats(0.1, 10))
def test_labels_are_moved_apart_and_keep_their_order(values: list[float], step: float) -> None:
    found = spread(sorted(values), step)
    assert all(high - low >= step - 1e-6 for low, high in pairwise(found))
    if all(high - low >= step for low, high in pairwise(sorted(values))):
        assert found == pytest.approx(sorted(values))


def test_a_figure_marks_what_rests_on_one_conversation(tmp_path: Path) -> None:
    mark = "‡ one conversation only: a range over its questions"
    FakeRun(conversations=("conv-26",)).write(tmp_path / "one")
    FakeRun().write(tmp_path / "two")
    for name, marked in (("one", True), ("two", False)):
        (group,) = groups(read_runs([tmp_path / name])[0])
        for sheet in own_sheets(group, load_protocol("clag")):
            text = " ".join(words(draw_sheet(sheet, tmp_path / name)).split())
            assert ("rag ‡" in text, mark in text) == (marked, marked)


def test_a_papers_figure_marks_it_too(tmp_path: Path) -> None:
    run = {"memory": "memfly_no_ier", "backbone": "qwen3_8b", "dataset": "locomo", "reader": "amem"}
    FakeRun(**run, conversations=("conv-26",)).write(tmp_path)  # type: ignore[arg-type]
    sheet = by_name(read_runs([tmp_path])[0])["memfly_figure2"]
    text = words(draw_sheet(sheet, tmp_path))
    assert "measured ‡" in text
    assert "‡ one conversation only" in text


def test_pareto_front_by_hand() -> None:
    assert pareto_front([(1, 10), (2, 9), (3, 20), (3, 15), (4, 20), (5, 21)]) == [(1, 10), (3, 20), (5, 21)]
    assert pareto_front([]) == []


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_nothing_beats_the_front_and_everything_else_is_beaten(points: list[tuple[int, int]]) -> None:
    front = pareto_front(points)
    for cost, value in points:
        beaten = any(c <= cost and v >= value and (c, v) != (cost, value) for c, v in points)
        assert ((cost, value) in front) == (not beaten)


def test_a_sheet_is_drawn_the_same_twice_and_says_what_it_shows(tmp_path: Path) -> None:
    curves = (
        Curve("printed one", {"a b": exact(1.0), "c": exact(2.0)}, 0),
        Curve("measured one", {"c": Point(2.0, 1.5, 2.5)}, 0, "measured"),
    )
    lines = (Curve("computed one", {0.0: exact(1.0), 1.0: exact(3.0)}, 1, "computed"),)
    sheet = Sheet(
        "figure",
        (
            Panel("left", "", "percent", "bars", curves, ("a b", "c")),
            Panel("right", "step", "value", "lines", lines, levels=(Level("a level", 2.0, 2),), limits=(0.0, 2.0)),
            Panel("points", "", "value", "points", curves, ("a b", "c")),
        ),
        "a remark",
    )
    first, second = (draw_sheet(sheet, tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    text = words(first)
    for word in ("printed one", "measured one", "computed one", "a level", "percent", "step", "a remark", "left"):
        assert word in text


def test_the_command_draws_and_names_an_unknown_protocol(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FakeRun().write(tmp_path / "runs")
    arguments = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "figures")]
    assert main([*arguments, "--protocol", "nope"]) == 2
    assert "nope" in capsys.readouterr().err
    assert main(arguments) == 0
    assert len(list((tmp_path / "figures").glob("*.svg"))) == len(list((tmp_path / "figures").iterdir())) == 11


def test_runs_that_cannot_be_drawn_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = FakeRun(status="incomplete").write(tmp_path / "runs")
    assert main(["--runs", str(path), "--out", str(tmp_path / "figures")]) == 2
    said = capsys.readouterr()
    assert "not complete" in " ".join(said.out.split()) and "none of the runs that --runs names" in said.err
    assert not list(tmp_path.glob("figures/*.svg"))
