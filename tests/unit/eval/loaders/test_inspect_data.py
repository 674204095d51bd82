"""The report on a data set, and the presets it reads."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from eval import loaders
from eval.config.compose import choice_settings
from eval.inspect_data import FOLDER, count_tokens, describe, main, presets, read_config, tables
from eval.loaders.locate import sample_path
from eval.loaders.meanings import COUNTS, NOTES
from eval.loaders.registry import DATASETS, find_datasets, info_of
from memsys.errors import ConfigError

SAMPLES = [name for name in presets() if name.endswith("_sample")]


@pytest.mark.parametrize("name", presets())
def test_every_preset_spells_out_every_setting_and_bears_its_own_name(name: str) -> None:
    settings = choice_settings("dataset", name)
    config = read_config(name, {})
    assert dataclasses.is_dataclass(config)
    assert set(settings) - {"_target_"} == {field.name for field in dataclasses.fields(config) if field.init}
    assert config.name == name
    assert settings["_target_"].startswith("eval.loaders.")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_data_set_has_a_sample_that_can_be_reported(name: str) -> None:
    config = read_config(name, {})
    data = config.load()
    report = describe(config, data)
    assert json.loads(json.dumps(report)) == report
    assert sum(category["questions"] for category in report["categories"]) == data.counts["questions"]
    assert sum(row["turns"] for row in report["conversations"]) == data.counts["turns"]
    assert sum(row["tokens"] for row in report["conversations"]) == report["tokens"]["per_turn"]["sum"]
    by_category = tables(report)[2]
    assert not isinstance(by_category, str) and len(by_category.rows) == len(data.category_names)


def test_every_data_set_has_a_sample() -> None:
    assert set(SAMPLES) == {*(f"{info.card or info.key}_sample" for info in DATASETS.values()), "perltqa_zh_sample"}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_count_is_explained(name: str) -> None:
    config = read_config(name, {})
    data = config.load()
    assert set(data.counts) - {"turns_per_conversation"} == set(COUNTS)
    assert set(data.notes) - {"files"} <= {*NOTES, *config.info.note_meanings}


def test_data_sets_are_found_and_say_what_their_questions_ask() -> None:
    assert {"locomo", "hotpotqa20", "bioasq20", "perltqa"} <= set(DATASETS)
    assert all(set(info.kinds) == set(info.category_names) for info in DATASETS.values())
    assert info_of("locomo_20_percent") is DATASETS["locomo"] and info_of("unheard_of") is None


def test_a_loader_module_adds_its_data_set_without_another_edit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "from eval.loaders.contract import DatasetInfo\n"
        "MINE = DatasetInfo('mine', 'Mine', '', 'CC0', '', (), {1: 'riddles'}, kinds={1: 'riddle'})\n"
    )
    monkeypatch.setattr(loaders, "__path__", [*loaders.__path__, str(tmp_path)])
    assert find_datasets()["mine"].kinds == {1: "riddle"}
    monkeypatch.delitem(sys.modules, "eval.loaders.mine")


def test_a_report_says_where_the_card_is_and_that_a_sample_is_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    assert main(["dataset=bioasq20", "sample=true"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "card: datasets/bioasq20/README.md" in shown
    assert "sample yes the project's own small sample, not the data set" in shown
    assert "4: 5, 6: 3" in shown


def test_a_file_of_ones_own_is_not_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    """It was shown with the title and the licence of the published file."""
    assert main(["dataset=locomo", f"path={sample_path('locomo')}"]) == 0
    said = capsys.readouterr().out
    assert "title: in the format of LoCoMo (locomo10); the checksum matches no known file" in said
    assert "licence: that of the file" in said and "CC BY-NC" not in said


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("It's 10:00.", 7), ("a  b", 2), ("naïve—yes", 3)])
def test_tokens(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_hand_counted_category_row() -> None:
    config = read_config("hotpotqa20_sample", {"limit_questions": 1})
    row = describe(config, config.load())["categories"][0]
    assert row == {
        "category": 4,
        "name": "multi-hop QA",
        "questions": 1,
        "question_tokens": 11.0,
        "answer_tokens": 1.0,
        "without_answer": 0,
        "evidence_ids": 4.0,
        "without_evidence": 0,
        "unresolved": 0,
        "label_problems": 0,
    }


def test_the_command_line_prints_tables_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=locomo_sample", "categories=[1, 5]"]) == 0
    shown = capsys.readouterr().out
    assert "Questions by category" in shown
    assert "multi-hop" in shown
    assert main(["dataset=locomo_sample", "dataset.limit_questions=2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["questions"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dataset=nope"], "dataset='nope' is unknown; choose one of beam_100k"),
        (["dataset=locomo", "colour=red"], "dataset locomo has no setting colour; it has"),
        (["dataset=locomo", "path=/does/not/exist.json"], "/does/not/exist.json: no such file"),
    ],
)
def test_wrong_commands_end_with_2_and_a_reason(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_command_without_data_set_shows_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for named in ("locomo_sample", "locomo_sampel"):
        with pytest.raises(SystemExit):
            main([named])
        said = " ".join(capsys.readouterr().err.split())
        assert "give dataset=NAME and settings as key=value; write dataset=locomo_sample" in said


@pytest.mark.parametrize("typed", [["--dataset", "locomo_sample"], ["--dataset=locomo_sample"]])
def test_a_setting_with_dashes_is_written_without(typed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`run` said so, and this command only that the argument is unknown."""
    with pytest.raises(SystemExit):
        main(typed)
    assert "settings have no dashes: write dataset=locomo_sample" in " ".join(capsys.readouterr().err.split())


def test_unknown_settings_are_refused_before_anything_is_read() -> None:
    with pytest.raises(ConfigError, match="has no setting labels"):
        read_config("bioasq20_sample", {"labels": "audited"})


def test_every_data_set_has_a_card_with_its_licence_and_checksums() -> None:
    for info in DATASETS.values():
        card = (Path(FOLDER).parents[1] / "datasets" / (info.card or info.key) / "README.md").read_text()
        assert info.licence.split(",")[0] in card
        for file in info.files:
            assert file.sha256 in card
            assert Path(file.name).name in card
