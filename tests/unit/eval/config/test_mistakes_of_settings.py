"""Settings of a run, a memory, a backbone or a data set that cannot work, or have no effect: one message each."""

from pathlib import Path
from typing import Any

import pytest

from baselines.packages.config import CallCounts
from eval.config.compose import compose, config_loader
from eval.config.overrides import check_command_line, check_effect, explained, report_repeated
from eval.config.targets import check_part
from eval.loaders.custom import CustomConfig
from eval.loaders.locomo import LocomoConfig
from eval.parity.run import ParityRun
from eval.running.composed import compose_plan
from eval.scoring.config import ScoringConfig
from memsys.assets.paths import models_dir
from memsys.embedding.bert import BertTokenizer
from memsys.errors import AssetError, ConfigError, DataError
from memsys.index.settings import IndexSettings
from memsys.llm.prompt import Prompt
from memsys.llm.roles import make_role
from memsys.llm.sampling import SAMPLING_FIELDS
from tests.support.backbones import backbone_config
from tests.support.composing import composed, memory_config

#: A sampler that is left at its defaults.
NOTHING = dict.fromkeys(SAMPLING_FIELDS)
QUICK = ("mode=retrieval_only", "embedder=hashing")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("embedder.noise=2", "embedder.noise=2 must be a number from 0 to 1"),
        ("embedder.noise=-1", "embedder.noise=-1 must be a number from 0 to 1"),
        ("seed=-1", "seed=-1 must be a whole number from 0 to 9223372036854775807"),
        ("seed=9223372036854775808", "seed=9223372036854775808 must be a whole number from 0 to 9223372036854775807"),
        ("index=hnsw", "index='hnsw' must be settings by name; write each by its own, as in index.kind=hnsw"),
        ("budget=5", "budget=5 must be settings by name; write each by its own, as in budget.tokens=100000"),
        ("schedule=fast", "schedule='fast' must be settings by name; write each by its own, as in schedule.warmup=0"),
        ("serving=local", "serving='local' must be settings by name; write each by its own, as in serving.shared=true"),
        ("serving.shared=yes", "serving.shared='yes' must be true or false"),
        ("serving.wait_s=-1", "serving.wait_s=-1 must be a number, at least 0"),
        ("serving.idle_s=soon", "serving.idle_s='soon' must be a number, at least 0"),
        ("runs_dir=", "runs_dir='' names no folder; write . for the current one"),
        ("cache_dir=", "cache_dir='' names no folder; write . for the current one"),
        ("dataset.name=", "dataset.name='' is what tables and records call it; give it a name"),
        ("embedder.name=", "embedder.name='' is what tables and records call it; give it a name"),
        ("memory.name=", "memory.name='' is a part of the name of a folder; give it one that is not blank"),
        (
            "scoring.metrics=[]",
            "scoring.metrics=[] scores no answer; name metrics or groups, e.g. scoring.metrics=[lexical]",
        ),
        ("scoring.bertscore_layers=0", "scoring.bertscore_layers=0 must be a number, at least 1"),
        (
            "dataset.conversations=[]",
            "dataset.conversations=[] keeps nothing; name what to keep, or write null for all",
        ),
        ("dataset.categories=[]", "dataset.categories=[] keeps nothing; name what to keep, or write null for all"),
        ("memory.bm25.b=2", "memory.bm25.b=2 must be a number from 0 to 1"),
        ("second_roles=router", "second_roles=router must be a list, e.g. second_roles=[router]"),
        ("second_roles=[3]", "second_roles=[3] must be a list of names of roles"),
        ("reader.abstention=", "reader.abstention='' must say how a question is declined"),
    ],
)  # fmt: skip
def test_a_run_refuses_a_setting(setting: str, message: str) -> None:
    """Each was taken without a word, or ended in a traceback of Python's."""
    with pytest.raises(ConfigError) as raised:
        compose_plan([*QUICK, setting])
    assert str(raised.value) == message


@pytest.mark.parametrize("key", ["serving.folder", "cache_dir"])
@pytest.mark.parametrize("below", ["", "/a/b"])
def test_a_file_in_place_of_a_working_folder_is_named(tmp_path: Path, key: str, below: str) -> None:
    """``serve`` ended in a ``NotADirectoryError``, and a run without replies said nothing."""
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match=rf"^{key}={file}{below}(: {file})? is a file; name a folder$"):
        compose_plan([*QUICK, f"{key}={file}{below}"])


def test_a_second_backbone_that_is_no_choice_is_told_how() -> None:
    """It ended in a ``ValueError`` of OmegaConf's."""
    expected = r"^second=smollm2_135m is not a choice; write \+backbone@second=smollm2_135m$"
    with pytest.raises(ConfigError, match=expected):
        compose_plan(["second=smollm2_135m", "second_roles=[router]", "memory=clag"])


@pytest.mark.parametrize(
    ("key", "value", "bounds"),
    [
        ("top_p", 2, "above 0 and at most 1"),
        ("top_p", 0, "above 0 and at most 1"),
        ("min_p", -1, "from 0 to 1"),
        ("repetition_penalty", 0, "above 0 and at most 2"),
        ("repetition_penalty", 3, "above 0 and at most 2"),
        ("presence_penalty", 5, "from -2 to 2"),
        ("frequency_penalty", -2.5, "from -2 to 2"),
    ],
)
def test_numbers_beyond_what_a_sampler_takes_are_named(key: str, value: float, bounds: str) -> None:
    """They were sent, and refused by the server once for each question, or bent by it without a word."""
    with pytest.raises(ConfigError) as raised:
        backbone_config(sampling={**NOTHING, key: value})
    assert str(raised.value) == f"backbone.sampling.{key}={value} must be a number {bounds}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampling": {**NOTHING, "top_k": -3}}, "top_k=-3 must be at least 1, or 0 for all tokens"),
        ({"temperature": 7}, "backbone.temperature=7 must be a number from 0 to 2"),
        ({"name": "a/b"}, "a part of the name of a folder; give it one that has neither / nor a backslash"),
        ({"name": " "}, "backbone.name=' ' is a part of the name of a folder; give it one that is not blank"),
        ({"thinking": "off"}, "leave backbone.thinking at none for a model without a switch"),
        ({"thinking_switch": {"x": 1}}, "set it to off or on, or the switch to {}"),
    ],
)  # fmt: skip
def test_a_backbone_refuses_what_cannot_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        backbone_config(**changes)
    assert str(raised.value).endswith(message)


def test_what_samplers_take_passes() -> None:
    sampling = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 2, "presence_penalty": -2}
    backbone_config(sampling={**sampling, "frequency_penalty": None}, temperature=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 9}, "roles.ask.temperature=9 must be a number from 0 to 2"),
        (
            {"top_p": 0.5},
            "roles.ask.top_p: a role has no such setting; top_p is the backbone's: backbone.sampling.top_p",
        ),
        ({"temprature": 0.5}, "roles.ask.temprature: a role has no such setting; there are temperature"),
        ({"correction": {"text": "No.", "temperature_step": 1, "max_temperature": 3}},
         "roles.ask.correction.max_temperature=3 must be a number from 0 to 2"),
    ],
)  # fmt: skip
def test_a_role_refuses_what_cannot_work(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    """The second and third named an argument of ``RoleSettings.__init__``."""
    (tmp_path / "ask.txt").write_text("$question")
    with pytest.raises(ConfigError) as raised:
        make_role("ask", {"temperature": 0.0, "max_tokens": 8, **settings}, tmp_path, None)
    assert str(raised.value).startswith(message)


def test_a_role_names_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^roles\.ask\.max_tokens is missing; every role needs it$"):
        make_role("ask", {"temperature": 0.0}, tmp_path, None)
    with pytest.raises(ConfigError, match=r"^roles\.ask=5 must be settings by name$"):
        make_role("ask", 5, tmp_path, None)  # type: ignore[arg-type]


def test_a_host_that_is_none_is_one_short_message() -> None:
    """A hundred names stood in it."""
    with pytest.raises(ConfigError) as raised:
        check_command_line([*QUICK, "memory=gated", "memory@memory.host=raag"])
    assert str(raised.value).startswith("memory@memory.host=raag: there is no memory/raag; did you mean rag")
    assert len(str(raised.value)) < 220


def test_a_prompt_that_is_no_text_is_named(tmp_path: Path) -> None:
    """The message was ``memory: [Errno 21] Is a directory``."""
    with pytest.raises(ConfigError, match=r"^prompt file .* cannot be read \(Is a directory\); name a text file"):
        Prompt.load(tmp_path)
    (tmp_path / "prompt.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"^prompt file .*prompt\.txt is not UTF-8; name a text file"):
        Prompt.load(tmp_path / "prompt.txt")


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        ("gated+rag", {"tau_noop": 5, "calibration": None}, "memory.tau_noop=5 must be at most 1"),
        ("sage", {"tau_min": 5}, "memory.tau_min=5 must be a number from 0 to 1"),
        ("sage_code", {"tau_0": 2.5}, "memory.tau_0=2.5 must be a number from 0 to 2"),
        ("rag", {"fusion": {"dense_weight": 0, "bm25_weight": 0}}, "rank nothing; raise one"),
        ("memfly", {"candidates": {"min_cosine": 3}}, "memory.candidates.min_cosine=3 must be at most 1"),
        ("lightmem", {"segment": {"layers": ["last"]}}, "memory.segment.layers=['last'] must be numbers of layers"),
    ],
)
def test_a_memory_refuses_what_has_no_effect(preset: str, changes: dict[str, Any], message: str) -> None:
    """Each was taken: a threshold that no score reaches, weights that rank nothing, layers that are none."""
    before = composed(preset)
    merged = {key: {**before[key], **value} if isinstance(value, dict) else value for key, value in changes.items()}
    with pytest.raises(ConfigError) as raised:
        memory_config(preset, **merged)
    assert message in str(raised.value)


def test_counts_of_calls_are_none_below_0() -> None:
    with pytest.raises(ConfigError, match=r"memory\.calls\.per_write=-1 must be a number, at least 0"):
        CallCounts(-1, 0, 0, 0)


def test_more_probes_than_cells_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"index\.probes=300 must be at most index\.lists=256"):
        IndexSettings(kind="ivf", probes=300)


def test_texts_longer_than_a_model_reads_are_refused(tmp_path: Path) -> None:
    """A text beyond the model's positions ended in a traceback of torch's."""
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 512}')
    with pytest.raises(ConfigError, match=r"embedder\.max_word_pieces=513, but .* reads 512 at most"):
        BertTokenizer(tmp_path, 513)


def test_a_backbone_needs_an_engine() -> None:
    """It ended in an ``AttributeError``."""
    with pytest.raises(ConfigError, match=r"backbone\.engine is None; it must be the settings of an engine"):
        compose_plan(["backbone=smollm2_135m", "backbone.engine=null", "embedder=hashing"])


def test_blanks_that_an_endpoint_cannot_be_told_of_are_refused_before_anything_is_loaded() -> None:
    """It was said at the first call with a schema, when everything had been ingested."""
    endpoint = ["backbone=endpoint", "backbone.model=m", "backbone.engine.base_urls=[http://a:1/v1]"]
    with pytest.raises(ConfigError, match=r"backbone\.structured=json_spaced is for llama\.cpp and vLLM"):
        compose_plan([*endpoint, "backbone.context_length=8192", "backbone.structured=json_spaced"])


def test_a_type_of_numbers_that_vllm_does_not_know_is_refused() -> None:
    """The server ended with it after its start."""
    with pytest.raises(ConfigError, match=r"backbone\.engine\.dtype is 'float31'; it must be one of auto, bfloat16"):
        compose_plan(["backbone=qwen3_06b", "backbone.engine.dtype=float31", "embedder=hashing"])


def test_a_metric_list_is_never_empty() -> None:
    with pytest.raises(ConfigError, match=r"scoring\.metrics=\[\] scores no answer"):
        ScoringConfig(metrics=())


@pytest.mark.parametrize("kind", ["embedder", "backbone"])
def test_a_part_without_a_name_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"^{kind}.name=' ' is what tables and records call it; give it a name"):
        check_part(object(), kind, {"_target_": "some.Class", "name": " "})


def test_a_selection_that_leaves_nothing_names_every_setting() -> None:
    """It named the categories, which were not set."""
    selected = LocomoConfig(name="mine", sample=True, limit_sessions=1, categories=[1], conversations=["sample-1"])
    with pytest.raises(ConfigError) as raised:
        selected.load()
    assert str(raised.value) == (
        "the selection leaves no question: dataset.conversations=('sample-1',), dataset.limit_sessions=1, "
        "dataset.categories=(1,); keep more"
    )


def test_a_setting_of_turns_is_named_as_it_is_written() -> None:
    with pytest.raises(ConfigError, match=r"^dataset\.turn_style='fancy' is unknown"):
        LocomoConfig(name="mine", turn_style="fancy")  # type: ignore[arg-type]


def test_a_file_of_turns_is_no_folder(tmp_path: Path) -> None:
    """The message said that there is no such folder."""
    (tmp_path / "turns.jsonl").write_text("")
    with pytest.raises(DataError, match=r"turns\.jsonl is a file; name the folder that holds turns\.jsonl"):
        CustomConfig(path=str(tmp_path / "turns.jsonl")).load()


def test_a_file_in_place_of_the_models_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``models`` ended in a ``NotADirectoryError``."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "file"))
    with pytest.raises(AssetError, match=r"^MEMSYS_MODELS=.*file is a file; name the folder of the models$"):
        models_dir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["experiment=mine"],
            "experiment=mine: there is no experiment/mine to choose with +experiment=mine; a folder of your own for "
            "the run is run_dir=FOLDER",
        ),
        (["experiment=quickstart"], "write +experiment=quickstart"),
        (["protocol.columns={}"], "protocol.columns={} changes nothing: settings are merged into the existing ones"),
        (["protocol.labels=[]"], "protocol.labels=[]: protocol.labels is a mapping"),
        (["hydra.run.dir=/tmp/x"], "not a location for runs; use run_dir=FOLDER"),
        (["--cfg", "memory=rag"], "--cfg needs one of job, hydra, all, not memory=rag"),
        (["--cfg"], "--cfg needs one of job, hydra, all, not nothing"),
        (["--info=deflts"], "--info needs one of all, config"),
        (["--config-name=other"], "--config-name does not apply to run"),
        (["dataset=locomo_sampel"], "did you mean locomo_sample"),
        (["backbone=qwen3_06"], "did you mean qwen3_06b"),
        (["memory=RAG"], "did you mean rag"),
        (["-m", "seed=0,0"], "seed=0,0: 0 is listed twice, which would be the same run; remove one"),
        (["-m", "memory=rag,rag"], "memory=rag,rag: rag is listed twice"),
    ],
)  # fmt: skip
def test_a_command_line_says_what_is_wrong(arguments: list[str], message: str) -> None:
    """Taken without a word, answered with Hydra's usage, or with advice that the next message took back."""
    with pytest.raises(ConfigError) as raised:
        check_command_line(arguments)
    assert message in str(raised.value)


def test_a_part_that_cannot_be_replaced_names_the_choices_that_have_it() -> None:
    message = str(explained(["backbone/engine=vllm_attached"], ValueError("")))
    assert "the chosen backbone has no engine that could be replaced; choose another backbone, which may be" in message
    assert "qwen3_06b" in message and "smollm2_135m," not in message


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["memory.k=3", "seed=1", "memory.k=5"], "note: memory.k=3 has no effect: memory.k=5 comes after it\n"),
        (["memory=rag", "memory=clag"], "note: memory=rag has no effect: memory=clag comes after it\n"),
        (["+reader.x=1", "++reader.x=2"], "note: +reader.x=1 has no effect: ++reader.x=2 comes after it\n"),
        (["memory=rag", "memory.k=3", "+backbone@second=x", "backbone=y"], ""),
    ],
)
def test_a_setting_that_comes_again_is_told(settings: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The last held, and nothing said that the others had no effect."""
    report_repeated(settings)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "setting", ["backbone=qwen3_06b", "backbone.sampling.top_p=1", "reader=clag", "+backbone@second=x"]
)
def test_a_run_without_a_backbone_refuses_settings_of_one(setting: str) -> None:
    """They were taken, and had no effect."""
    config = compose(config_loader(), ["mode=retrieval_only"])
    with pytest.raises(ConfigError, match=r"changes nothing: mode=retrieval_only has no (backbone|reader); leave one"):
        check_effect(config, ["mode=retrieval_only", "memory=rag", setting])
    check_effect(compose(config_loader(), []), [setting])


def test_answers_are_not_shown_without_scores() -> None:
    line = ["score=false", "show_answers=3"]
    with pytest.raises(ConfigError, match="show_answers=3 changes nothing: answers are shown with their scores"):
        check_effect(compose(config_loader(), line), line)
    quickstart = ["+experiment=quickstart", "score=false"]
    check_effect(compose(config_loader(), quickstart), quickstart)


def test_the_memory_of_another_system_has_no_parity(tmp_path: Path) -> None:
    """The message was about a setting that nobody had written."""
    with pytest.raises(ConfigError, match=r"^against=authors_clag is code of clag; memory=rag is another$"):
        ParityRun.of("authors_clag", None, ["memory=rag"], 0, tmp_path)
