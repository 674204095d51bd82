"""Mistakes of new users that were accepted, or ended in a message of Python's: each is now one that says what to do."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eval.config.field_types import wrong_types
from eval.running.composed import compose_plan
from eval.running.plan import run_folder
from memsys.errors import ConfigError
from memsys.llm.roles import make_role
from memsys.llm.sampling import SAMPLING_FIELDS
from tests.support.backbones import backbone_config
from tests.support.composing import composed, memory_config

QUICK = ("mode=retrieval_only", "embedder=hashing")


@dataclass(frozen=True)
class Settings:
    size: int
    share: float
    wanted: bool
    title: str
    limit: int | None
    names: list[str]
    anything: object


def settings(**changes: object) -> dict[str, object]:
    target = f"{__name__}.Settings"
    fitting = {"size": 1, "share": 1, "wanted": True, "title": "a", "limit": None, "names": [], "anything": 3}
    return {"_target_": target, **fitting, **changes}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"size": "many"}, "part.size='many' must be a whole number"),
        ({"size": True}, "part.size=True must be a whole number"),
        ({"share": "half"}, "part.share='half' must be a number"),
        ({"wanted": "maybe"}, "part.wanted='maybe' must be true or false"),
        ({"title": None}, "part.title=None must be a text"),
        ({"limit": "x"}, "part.limit='x' must be a whole number, or null"),
        ({"share": math.nan}, "part.share=nan must be a finite number"),
    ],
)
def test_a_setting_of_a_wrong_type_is_named(changes: dict[str, object], problem: str) -> None:
    assert wrong_types(settings(**changes), "part") == [problem]
    assert wrong_types({"engine": settings(**changes)}, "all") == [problem.replace("part.", "all.engine.")]


def test_what_fits_is_not_named() -> None:
    assert wrong_types(settings(), "part") == [] and wrong_types(settings(limit=3, anything="x"), "part") == []


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("embedder.dimension=many", "embedder.dimension='many' must be a whole number"),
        ("memory.k=1.5", "memory.k=1.5 must be a whole number, at least 1"),
        ("schedule.questions_in_flight=0", "schedule.questions_in_flight=0 must be a number, at least 1"),
        ("schedule.warmup=-1", "schedule.warmup=-1 must be a number, at least 0"),
        ("schedule.prepare_ahead=lots", "schedule.prepare_ahead='lots' must be a number, at least 0"),
        ("dataset.sample=maybe", "dataset.sample='maybe' must be true or false"),
        ("reader.adversarial_options=maybe", "reader.adversarial_options='maybe' must be true or false"),
        ("reader.by_kind=null", "reader.by_kind=None must be settings by name"),
        ("score=maybe", "score='maybe' must be true or false"),
        ("use_cache=maybe", "use_cache='maybe' must be true or false"),
        ("memory.fusion.dense_weight=nan", "memory.fusion.dense_weight=nan must be a finite number"),
        ("+memory.roles.keywords.raw=maybe", "roles.keywords.raw='maybe' must be true or false"),
    ],
)
def test_a_run_names_the_setting(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        compose_plan([*QUICK, override])
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("preset", "group", "key", "value", "message"),
    [
        ("clag", "evolution_rules", "unique_links", "maybe", "'maybe' must be true or false"),
        ("amem", "context", "separator", 5, "5 must be a text"),
        ("gam", "research", "tools", "keyword", "'keyword' must be a list"),
        ("memgpt", "search", "bm25", 5, "5 must be a list"),
        ("memoryos", "heat", "mu", math.inf, "inf must be a finite number"),
        ("xmemory", "theme", "eps", "small", "'small' must be a number"),
    ],
)
def test_a_setting_within_a_group_is_named(preset: str, group: str, key: str, value: Any, message: str) -> None:
    """Each of these was taken for true, for a list of letters, or ended in a ``TypeError``."""
    with pytest.raises(ConfigError) as raised:
        memory_config(preset, **{group: {**composed(preset)[group], key: value}})
    assert str(raised.value) == f"memory.{group}.{key}={message}"


def test_a_group_that_is_no_mapping_is_named() -> None:
    with pytest.raises(ConfigError, match=r"memory\.heat=5 must be settings by name"):
        memory_config("memoryos", heat=5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampling": {"top_p": "high"}}, "backbone.sampling.top_p='high' must be a number, or null"),
        ({"sampling": {"top_k": 1.5}}, "backbone.sampling.top_k=1.5 must be a whole number, or null"),
        ({"temperature": -1.0}, "backbone.temperature=-1.0 must be a number, at least 0"),
    ],
)
def test_a_backbone_names_what_no_sampler_can_use(changes: dict[str, Any], message: str) -> None:
    sampling = {**dict.fromkeys(SAMPLING_FIELDS), **changes.pop("sampling", {})}
    with pytest.raises(ConfigError) as raised:
        backbone_config(sampling=sampling, **changes)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("key", "value", "must"),
    [
        ("temperature", "hot", "a number, at least 0"),
        ("temperature", -1, "a number, at least 0"),
        ("max_tokens", 0, "a number, at least 1"),
        ("max_tokens", 1.5, "a whole number, at least 1"),
        ("malformed_retries", -1, "a number, at least 0"),
        ("temperature", math.inf, "a number, at least 0"),
        ("max_items", 0, "a number, at least 1"),
        ("prompt", 5, "a text, or null"),
    ],
)
def test_a_role_names_what_no_sampling_can_use(tmp_path: Path, key: str, value: Any, must: str) -> None:
    (tmp_path / "ask.txt").write_text("$question")
    settings = {"temperature": 0.0, "max_tokens": 8, key: value}
    with pytest.raises(ConfigError, match=f"roles.ask.{key}={value!r} must be {must}"):
        make_role("ask", settings, tmp_path, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": " "}, "roles.ask.correction.text=' ' must say"),
        ({"temperature_step": -1}, "roles.ask.correction.temperature_step=-1 must be a number, at least 0"),
        ({"warmer": 1}, "roles.ask.correction: unknown are warmer"),
    ],
)
def test_a_correction_names_what_is_wrong_with_it(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    (tmp_path / "ask.txt").write_text("$question")
    correction = {"text": "Only JSON.", "temperature_step": 0.1, "max_temperature": 0.5, **changes}
    with pytest.raises(ConfigError) as raised:
        make_role("ask", {"temperature": 0.0, "max_tokens": 8, "correction": correction}, tmp_path, None)
    assert str(raised.value).startswith(message)


def test_a_run_is_not_written_among_other_files(tmp_path: Path) -> None:
    assert run_folder(str(tmp_path)) == tmp_path
    (tmp_path / "answers.jsonl").write_text("")
    (tmp_path / ".lock").write_text("")
    assert run_folder(str(tmp_path)) == tmp_path
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match=r"holds other files \(thesis\.tex\); name an empty or a new folder"):
        run_folder(str(tmp_path))
    (tmp_path / "run.json").write_text("{}")
    assert run_folder(str(tmp_path)) == tmp_path
