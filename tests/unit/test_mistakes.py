"""Mistakes of new users that were accepted, or ended in a message of Python's: each is now one that says what to do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eval.configs.field_types import wrong_types
from eval.run import compose_plan
from eval.running.plan import run_folder
from memsys.errors import ConfigError
from memsys.llm.contract import make_role

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
    ],
)
def test_a_run_names_the_setting(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        compose_plan([*QUICK, override])
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("key", "value", "must"),
    [
        ("temperature", "hot", "a number, at least 0"),
        ("temperature", -1, "a number, at least 0"),
        ("max_tokens", 0, "a number, at least 1"),
        ("max_tokens", 1.5, "a whole number, at least 1"),
        ("malformed_retries", -1, "a number, at least 0"),
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
