"""Mistakes in code and files of one's own (program, plug-in, metric, preset): each is one message that says what."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import memsys
from eval.api.memory import AsyncMemory
from eval.api.parts import MemoryParts, choose
from eval.audit.__main__ import main as audit
from eval.commands import plugins
from eval.config.compose import compose, config_loader
from eval.config.field_types import misfits
from eval.config.overrides import check_command_line
from eval.config.targets import check_part, check_parts, check_targets
from eval.convert_data import main as convert
from eval.inspect_data import main as inspect
from eval.metrics.metric import Metric
from eval.metrics.registry import find_metric, register
from eval.proxy import main as proxy
from eval.running.composed import compose_plan
from eval.running.plan import experiment_name
from eval.running.reader import ReaderConfig
from eval.runs.load import load_json
from eval.scoring.answers import score_answer
from eval.scoring.protocols import load_protocol
from eval.sweep.__main__ import main as sweep
from eval.tables import main as tables
from memsys.errors import ConfigError, RunDirectoryError, ScoringError
from memsys.extras import installed_version
from tests.support.composing import composed
from tests.support.fake_run import FakeRun


@cache
def parts() -> MemoryParts:
    return choose("rag", None, "hashing", "sage")


def rag() -> memsys.Memory:
    return memsys.Memory(AsyncMemory(parts()))


def test_a_memory_that_is_not_open_says_so_at_once() -> None:
    """The first waited for ever, the second ended in asyncio's ``Event loop is closed``."""
    memory = rag()
    memory.add([("Ann", "A cat.")])
    with pytest.raises(ConfigError, match="the memory is not open"):
        memory.retrieve("cat")
    with memory:
        assert memory.retrieve("cat").hits
    with pytest.raises(ConfigError, match="the memory is not open"):
        memory.retrieve("cat")


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ("Ann likes cats", r"add\(\) takes a list of turns"),
        (("Ann", "A cat."), r"add\(\) takes a list of turns"),
        (memsys.Turn("1", "S1", "Ann", "A cat."), r"add\(\) takes a list of turns"),
        (None, r"add\(\) takes a list of turns"),
        ({"speaker": "Ann", "text": "A cat."}, r"add\(\) takes a list of turns"),
        ([{"role": "user", "said": "A cat."}], "all of them texts, not {'role'"),
        ([("Ann", None)], r"all of them texts, not \('Ann', None\)"),
        ([("Ann", "A cat."), ("Ben", " ")], r"turn 2 of what is added, \('Ben', ' '\), has no text"),
    ],
)
def test_what_is_no_turn_is_refused(turns: Any, message: str) -> None:
    with rag() as memory:
        with pytest.raises(ConfigError, match=message):
            memory.add(turns)
        memory.add([("Ann", "A cat.")])
        assert memory.retrieve("cat").hits[0].turn_ids == ("S1:1",)  # nothing of the refused turns is left


@pytest.mark.parametrize("query", [None, "", "  ", 5, ["cat"]])
def test_what_asks_nothing_is_refused(query: Any) -> None:
    with rag() as memory:
        memory.add([("Ann", "A cat.")])
        with pytest.raises(ConfigError, match="query must be a non-empty text"):
            memory.retrieve(query)


class Nothing:
    """No part of a memory."""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": "memory.k=5"}, r"settings='memory.k=5' must be a list of texts, such as \['memory.k=5'\]"),
        ({"settings": {"memory.k": 5}}, r"must be a list of texts, such as \['memory.k=5'\]"),
        ({"settings": [5]}, r"settings=\[5\] must be a list of texts"),
        (
            {"settings": ["dataset=locomo"]},
            "dataset=locomo changes nothing here; settings are those of memory",
        ),
        ({"settings": ["prompts=authors"]}, "prompts=authors changes nothing here"),
        ({"memory": None}, "memory=None lacks name, uses_gold, build; give the name of a preset of conf/memory"),
        ({"memory": dict}, "memory=<class 'dict'> lacks"),
        ({"embedder": None}, "embedder=None lacks name, dimension, embed"),
        ({"embedder": Nothing()}, "lacks name, dimension, embed"),
        ({"backbone": "http://host/v1"}, r"is an address; write backbone=memsys.endpoint\('http://host/v1', MODEL\)"),
        ({"backbone": Nothing()}, r"backbone=.* lacks ask"),
        ({"cache_dir": __file__}, r"cache_dir=.* is a file; name a folder"),
    ],
)
def test_what_is_no_part_of_a_memory_is_refused(changes: dict[str, Any], message: str) -> None:
    """Settings that nothing reads and parts that are none were taken, or ended in an ``AttributeError`` later."""
    with pytest.raises(ConfigError, match=message):
        memsys.open_memory(**{"memory": "rag", "backbone": None, "embedder": "hashing", **changes})


def test_a_misspelt_name_is_guessed() -> None:
    """Python guesses by ``dir()`` of the object that the error names."""
    with pytest.raises(AttributeError) as raised:
        memsys.open_memroy  # noqa: B018
    assert raised.value.name == "open_memroy" and raised.value.obj is memsys and "open_memory" in dir(memsys)


def test_the_package_says_its_version() -> None:
    assert memsys.__version__ == installed_version("memsys")


def half(prediction: str, reference: str) -> float:
    return 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "my metric"}, "'my metric': a name has no blanks and no commas"),
        ({"name": ""}, "a name has no blanks"),
        ({"references": "best"}, "references='best'; choose one of joined, max"),
        ({"needs": ("punktt",)}, r"needs=\('punktt',\) must be a tuple of some of punkt, wordnet"),
        ({"needs": "punkt"}, "needs='punkt' must be a tuple"),
        ({"function": 0.5}, r"0.5 must be a function of \(prediction, reference\)"),
        ({"function": lambda prediction: 0.5}, r"must be a function of \(prediction, reference\); too many"),
        ({"function": None, "rule": half}, r"a function of \(prediction, reference, category\)"),
    ],
)
def test_a_metric_that_cannot_work_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Metric(**{"name": "mine", "source": "me", "function": half, **changes})
    with pytest.raises(ConfigError, match="is not a metric; register a Metric"):
        register(half)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [1.5, -0.1, float("nan"), "good", None])
def test_what_is_no_score_is_refused(given: Any) -> None:
    """Each went into ``scores.jsonl``, and 7 became 700 percent."""
    metric = Metric("mine", "me", lambda prediction, reference: given)
    with pytest.raises(ScoringError, match=r"'mine' of me gave .*; its function must return a number from 0 to 1"):
        score_answer(metric, "a", ["b"], 4)


def test_scores_beyond_a_share_need_a_unit() -> None:
    def words(prediction: str, reference: str) -> float:
        return len(prediction.split())

    assert score_answer(Metric("words", "me", words, unit="words"), "a b c", ["b"], 4) == 3.0
    assert score_answer(Metric("half", "me", half, references="max"), "a", ["b", "c"], 4) == 0.5
    assert score_answer(Metric("none", "me", rule=lambda prediction, reference, category: None), "a", ["b"], 4) is None


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Write a package of this name and code, and name it in the variable."""

    def write(name: str, code: str) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv(plugins.VARIABLE, name)

    plugins.load_plugins.cache_clear()
    yield write
    plugins.load_plugins.cache_clear()
    for name in [name for name in sys.modules if name.startswith("mistaken_")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        (
            "mistaken_syntax",
            "\ndef f(:\n",
            r"SyntaxError at .*/__init__.py:2: invalid syntax.*; correct it",
        ),
        ("mistaken_raise", "\n\nraise RuntimeError('boom')", r"RuntimeError at .*__init__.py:3: boom.*; correct it"),
        ("mistaken_import", "import no_such", "No module named 'no_such'.; correct the name, or install what it needs"),
        (
            "mistaken_metric",
            "from eval.metrics.registry import register\nregister(len)",
            "plug-in mistaken_metric: .* is not a metric",
        ),
    ],
)
def test_a_plug_in_that_cannot_be_imported_is_one_message(
    plug_in: Callable[[str, str], None], name: str, code: str, message: str
) -> None:
    plug_in(name, code)
    with pytest.raises(ConfigError, match=message):
        plugins.load_plugins()


@pytest.mark.parametrize("name", [".mine", "/tmp/mine", "mine/package", "my-package.x y"])
def test_a_plug_in_is_named_as_it_is_imported(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A name with a dot in front ended in a ``TypeError``."""
    monkeypatch.setenv(plugins.VARIABLE, name)
    for use in (plugins.plugin_folders, plugins.load_plugins):
        plugins.load_plugins.cache_clear()
        with pytest.raises(ConfigError, match=r"plug-in .* is not a name of a package; write it as in `import NAME`"):
            use()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such.Config", r"memory.inner._target_=no_such.Config cannot be imported \(.*No module named"),
        ("memsys.errors.ConfigEror", r"memory.inner.*memsys.errors has no ConfigEror; did you mean ConfigError"),
        ("Config", "memory.inner._target_=Config cannot be imported"),
        (None, "memory.inner._target_=None cannot be imported"),
    ],
)
def test_a_class_that_cannot_be_imported_is_named_with_its_setting(target: str | None, message: str) -> None:
    """It ended in Hydra's traceback."""
    with pytest.raises(ConfigError, match=message):
        check_targets({"_target_": "memsys.errors.ConfigError", "inner": {"_target_": target}}, "memory")


def test_a_preset_of_another_part_is_named() -> None:
    with pytest.raises(ConfigError, match="makes no memory: it has no uses_gold"):
        check_part(type("Other", (), {"name": "x", "build": half}), "memory", {"_target_": "some.Other"})
    with pytest.raises(ConfigError, match="memory=mine: its file has no _target_"):
        check_part({"name": "mine"}, "memory", {"name": "mine"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kk": 3}, "memory.kk: RagConfig has no such setting; did you mean k?"),
        ({"k": "ten"}, "memory.k='ten' must be a whole number"),
    ],
)
def test_a_setting_that_a_class_lacks_is_named(changes: dict[str, Any], message: str) -> None:
    """Python's own message named a keyword argument of ``__init__``."""
    settings = {**composed("rag"), **changes}
    assert any(problem.startswith(message) for problem in misfits(settings, "memory"))


def test_a_setting_that_is_missing_is_named() -> None:
    settings = dict(composed("rag"))
    del settings["unit"]
    assert misfits(settings, "memory") == ["memory.unit is missing; RagConfig needs it"]


def test_a_folder_of_configuration_must_be_there(tmp_path: Path) -> None:
    """It ended in an ``AssertionError`` of Hydra's."""
    with pytest.raises(ConfigError, match=r"--config-dir .*no: there is no such folder"):
        check_command_line(["--config-dir", str(tmp_path / "no"), "memory=rag"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# Mine.\nname: [a\n", r"mine.yaml, line 3: is not YAML"),
        (b"# Mine.\nname: a\n\tk: 3\n", r"mine.yaml, line 3: is not YAML"),
        (b"# Mine.\nname: a\nk: 3\nk: 4\n", r"mine.yaml, line 4: is not YAML \(found duplicate key k\)"),
        (b"# Mine.\nname: \xfc\n", r"begins '# Mine\.' is not UTF-8; save it as UTF-8"),
        (
            b"# Mine.\n" + b"# More.\n" * 2000 + b"name: \xfc\n",
            r"mine\.yaml: the file that begins '# Mine\.' is not UTF-8",
        ),
    ],
)
def test_a_preset_that_cannot_be_read_is_named_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    """Each ended in some fifty lines of traceback."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "mine.yaml").write_bytes(content)
    (tmp_path / "memory" / "earlier.yaml").write_bytes(b"# Not read.\nname: \xfc\xfc\n")
    with pytest.raises(ConfigError, match=message):
        compose(config_loader(tmp_path), ["memory=mine"])


def test_further_folders_stand_before_the_schemas_as_in_hydra(tmp_path: Path) -> None:
    """Hydra's own faults of a preset in ``--config-dir`` were hidden by ``schema config source must be last``."""
    assert config_loader(tmp_path).repository.get_schema_source().provider == "schema"


def test_a_file_that_sets_a_part_to_a_name_is_told_to_choose_it() -> None:
    """``memory: rag`` in an experiment ended in an ``AttributeError``."""
    with pytest.raises(ConfigError, match="a file by `- override /memory: rag` under defaults"):
        check_parts({"reader": {"name": "clag"}, "memory": "rag"}, ["reader", "memory"])
    check_parts({"memory": {"name": "rag"}}, ["memory"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"mode": "retrieval_only"}, "needs `# @package _global_` in its first lines"),
        ("../outside", r"experiment='\.\./outside' must be the name of a folder under runs_dir"),
        ("/tmp/x", "must be the name of a folder under runs_dir"),
        ("a/../../b", "must be the name of a folder under runs_dir"),
        ("", "must be the name of a folder under runs_dir"),
        (None, "must be the name of a folder under runs_dir"),
    ],
)
def test_the_name_of_an_experiment_is_a_folder_of_runs(value: Any, message: str) -> None:
    """A file without its package line was taken for the name, and the default run was made in its place."""
    with pytest.raises(ConfigError, match=message):
        experiment_name(value)
    assert experiment_name("mine/of today") == "mine/of today"


@pytest.mark.parametrize("name", ["a/b", "../a", "' '"])
def test_the_name_of_a_memory_begins_that_of_a_folder(name: str) -> None:
    """A run named a/b lay where neither a sweep nor another run looked for it."""
    with pytest.raises(ConfigError, match=r"^memory\.name='.*' is a part of the name of a folder"):
        compose_plan([f"memory.name={name}", "mode=retrieval_only", "embedder=hashing"])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("backbone.name=org/model", r"backbone\.name='org/model' is a part of the name of a folder"),
        ("schedule=null", "schedule=None must be settings by name"),
        ("index=3", "index=3 must be settings by name"),
        ("serving=null", "serving=None must be settings by name"),
        ("serving.folder=null", "serving.folder=None must be the name of a folder"),
        ("serving.shared=maybe", "serving.shared='maybe' must be true or false"),
        ("serving.wait_s=long", "serving.wait_s='long' must be a number"),
        ("budget=3", "budget=3 must be settings by name"),
        ("second=3", "second=3 is not a mapping of settings"),
    ],
)
def test_a_group_of_settings_that_is_a_value_is_named(override: str, message: str) -> None:
    """Each ended in a ``TypeError``, or ran in a folder within the folder."""
    with pytest.raises(ConfigError, match=message):
        compose_plan([override, "embedder=hashing"])


def test_a_protocol_names_the_column_that_has_no_metric() -> None:
    protocol = load_protocol("clag")
    with pytest.raises(ConfigError, match=r"^protocol.columns.F1=f1_sett: metric 'f1_sett' is unknown; did you"):
        replace(protocol, columns={"F1": "f1_sett"})
    with pytest.raises(ConfigError, match=r"protocol.primary=f9: metric 'f9' is unknown; `memsys score --list` shows"):
        replace(protocol, primary="f9")
    with pytest.raises(ConfigError, match=r"protocol.columns=\{\} must name columns with their metrics"):
        replace(protocol, columns={})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("F1", "did you mean f1_set or f1_word or f1_memos?"),
        ("BLEU-1", "did you mean bleu1"),
        ("f1_set,bleu1", "names have blanks between them, no commas"),
        ("f1_sett", "did you mean f1_set"),
    ],
)
def test_a_metric_that_is_unknown_is_one_short_line(name: str, hint: str) -> None:
    """Seventy names stood in the message, and none of them was meant."""
    with pytest.raises(ConfigError) as raised:
        find_metric(name)
    assert hint in str(raised.value) and len(str(raised.value)) < 160


def test_a_misspelt_kind_of_a_reader_is_refused() -> None:
    """It was taken, and its prompt never used."""
    reader = ReaderConfig(
        name="mine", prompt_set="clag", roles={"default": {}, "dates": {}}, default="default",
        by_kind={"temporall": "dates"}, answer_format="json", adversarial_options=False, option_style="named",
        abstention="No",
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"by_kind.temporall: no question is of this kind; did you mean temporal\?"):
        reader.check("locomo", {1: ("multi-hop", "multi_hop")})
    replace(reader, by_kind={"temporal_order": "dates"}).check("mine", {1: ("multi-hop", "multi_hop")})
    both = replace(reader, by_kind={"temporal": "dates", "temporall": "dates"})
    both.check("locomo", {2: ("temporal", "temporal")})


@pytest.mark.parametrize("text", ["[]", "{", "3"])
def test_a_damaged_record_is_no_run_to_score(tmp_path: Path, text: str) -> None:
    """A list was an ``AttributeError``, and a damaged file the advice to do what had just been done."""
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ScoringError, match=r"restore it, or start the run"):
        load_json(tmp_path / "run.json")
    (tmp_path / "scores_meta.json").write_text(text)
    with pytest.raises(ScoringError, match=r"run `memsys score "):
        load_json(tmp_path / "scores_meta.json")


def test_scores_that_were_removed_are_no_empty_scores(tmp_path: Path) -> None:
    """``compare`` drew an empty figure, and ``load_run(...).scores()`` gave an empty frame."""
    run = FakeRun(questions_each=2).write(tmp_path)
    (run / "scores.jsonl").unlink()
    with pytest.raises(RunDirectoryError, match=r"scores.jsonl is missing or empty.*run `memsys score "):
        memsys.load_run(run).scores()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--table", "99"], "CLAG has no table 99 to rebuild; choose one of 1, 2"), (["--paper", "nope"], "nope")],
)
def test_tables_that_there_are_not_are_refused_before_runs_are_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """Every stored run was read first."""
    monkeypatch.setattr("eval.tables.read_runs", None)
    assert tables([*arguments, "--out", str(tmp_path)]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("setting", ["memory=clag", "memory.k=3", "+reader.x=1", "dataset=locomo"])
def test_a_proxy_has_no_memory(capsys: pytest.CaptureFixture[str], setting: str) -> None:
    """The setting was taken, and had no effect."""
    assert proxy([setting]) == 2
    assert f"{setting} changes nothing here: a proxy serves" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("command", "arguments"), [(audit, []), (sweep, ["collect", "memory=rag"])])
def test_a_file_in_place_of_the_folder_is_said_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: Callable[[list[str]], int], arguments: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert command([*arguments, "--out", str(tmp_path / "file")]) == 2
    said = capsys.readouterr().err
    assert "is a file" in said and said.count("error:") == 1


def test_two_data_sets_are_not_shown_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The last of them won without a word."""
    with pytest.raises(SystemExit) as ended:
        inspect(["dataset=locomo_sample", "dataset=realtalk_sample"])
    assert ended.value.code == 2 and "dataset= is given twice" in capsys.readouterr().err


def test_a_conversion_into_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chats.jsonl").write_text('{"messages": [{"role": "user", "content": "hi"}]}\n')
    assert convert(["openai", str(tmp_path / "chats.jsonl"), "--out", str(tmp_path / "chats.jsonl")]) == 2
    assert "is a file" in capsys.readouterr().err
