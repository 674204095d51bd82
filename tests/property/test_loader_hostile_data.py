"""Whatever stands in a data file, a loader loads or says what is wrong in one error of the project."""

import json
import shutil
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eval.inspect_data import presets, read_config
from eval.loaders import locate
from eval.loaders.registry import DATASETS
from memsys.assets.paths import ROOT
from memsys.errors import DataError

SAMPLES = ROOT / "datasets"


@dataclass(frozen=True)
class Raw:
    """JSON as written, where Python's own writer would not write it so."""

    text: str


LONG = "1" * 5000
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 10**30, 2.5, "", " ", [], {}, [[]], [{}], {"": ""}, [None], ["x", 1],
    Raw(LONG), Raw("-" + LONG), Raw("1e999"), Raw("NaN"), Raw("-Infinity"), Raw("0." + LONG),
    Raw('"\\ud800"'), Raw('"\\udc00 end"'), Raw('{"\\ud800": 1}'), Raw("[" * 500 + "]" * 500),
    Raw("[" * 200_000 + "]" * 200_000), Raw('{"a":' * 500 + "1" + "}" * 500), Raw('{"a": 1, "a": 2}'),
    LONG, f"D{LONG}:1", f"D1:{LONG}", f"D1:1 {LONG}", "D\u0661:\u0662", "\u0661", "\u00b2", "session_01", "D01:01",
    "&#" + LONG + ";", "&#xd800;", "[" * 3000, "[" * 90 + "]" * 90, "{[1]: 2}", "['\\ud800']", "[1e999]", f"[{LONG}]",
    "{1: 2}", "[{'a': b'x'}]", "-" * 9000 + "1", "'\\d'", "Apr\u0130l 5, 2021", "\u017fept 3, 2020", "2020-13-45",
    "\u0662\u0660\u0662\u0660-01-01", "1_0_" + LONG, "abc", "\x00", "\x1b]0;title\x07", "x" * 100_000, "May " * 5000,
)  # fmt: skip
KEYS = ("", "session_01", f"session_{LONG}", "session_\u0661", "session_01_date_time", "events", "social relationship",
        "profile", "\x00", "1_0_0", "x", LONG)  # fmt: skip


@cache
def sample_files(preset: str) -> tuple[str, ...]:
    """Files below ``datasets/`` that a preset's loader reads with ``sample=true``."""
    read: list[str] = []
    original = Path.read_bytes

    def remember(path: Path) -> bytes:
        if path.is_relative_to(SAMPLES):
            read.append(str(path.relative_to(SAMPLES)))
        return original(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", remember)
        read_config(preset, {"sample": True}).load()
    return tuple(dict.fromkeys(name for name in read if "sample" in name))


def one_preset_per_loader() -> Iterator[tuple[str, str]]:
    """A preset for every loader and file of its samples; a set from the hub has no file."""
    seen = set()
    for preset in presets():
        config = read_config(preset, {})
        kind = (
            type(config),
            getattr(config, "source", ""),
            getattr(config, "layout", ""),
            getattr(config, "build", ""),
        )
        if kind not in seen and getattr(config, "source", "") != "distractor_hub":
            seen.add(kind)
            yield from ((preset, file) for file in sample_files(preset))


CASES = sorted(one_preset_per_loader())


def test_every_data_set_of_the_registry_is_tried() -> None:
    tried = {Path(file).parts[0] for _, file in CASES}
    assert tried == {info.card or info.key for info in DATASETS.values()}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    found, waiting = [], [value]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        found += [(node, key) for key in keys]
        waiting += [node[key] for key in keys]
    return found


def parsed(path: Path) -> Any:
    """The tree of a file; of JSON Lines, an array of its lines."""
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def written(value: Any) -> str:
    """JSON of a tree with :class:`Raw` in it."""
    raw: list[str] = []

    def note(given: Raw) -> str:
        raw.append(given.text)
        return f"@@{len(raw) - 1}@@"

    text = json.dumps(value, default=note, ensure_ascii=False)
    for number, own in enumerate(raw):
        text = text.replace(f'"@@{number}@@"', own)
    return text


def load(folder: Path, preset: str) -> str:
    """Load a sample from a folder of samples; returns the message of the project's error, empty where it loads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locate, "shipped", folder.joinpath)
        try:
            data = read_config(preset, {"sample": True}).load()
        except DataError as error:
            assert str(error) and len(str(error)) < 2000
            str(error).encode()
            return str(error)
    json.dumps([data.counts, data.notes], allow_nan=False, ensure_ascii=False).encode()
    for sample in data.samples:
        texts = [turn.text + turn.speaker + turn.turn_id + turn.session_id for turn in sample.conversation.turns]
        "".join([*texts, *(question.text for question in sample.questions)]).encode()
        ids = [question.question_id for question in sample.questions]
        assert len(set(ids)) == len(ids) and set(sample.references) == set(ids)
    return ""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    shutil.copytree(SAMPLES, folder / "datasets")
    return folder


@pytest.mark.parametrize(("preset", "file"), CASES, ids=[f"{preset}: {file}" for preset, file in CASES])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_changed_values_and_keys(copied: Path, preset: str, file: str, data: st.DataObject) -> None:
    path = copied / "datasets" / file
    original = path.read_bytes()
    tree = parsed(path)
    for _ in range(data.draw(st.integers(1, 3))):
        found = places(tree)
        if not found:
            break
        node, key = found[data.draw(st.integers(0, len(found) - 1))]
        change = data.draw(st.sampled_from(("value", "key", "twice", "gone")))
        if change == "value":
            node[key] = deepcopy(data.draw(st.sampled_from(VALUES)))  # a later change may be inside of it
        elif change == "gone":
            del node[key]
        elif isinstance(node, list):
            node.append(node[key])
        else:
            node[data.draw(st.sampled_from(KEYS))] = node[key] if change == "twice" else node.pop(key)
    lines = [written(item) for item in tree] if path.suffix == ".jsonl" else [written(tree)]
    path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
    try:
        load(copied, preset)
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize(("preset", "file"), CASES, ids=[f"{preset}: {file}" for preset, file in CASES])
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_changed_bytes(copied: Path, preset: str, file: str, data: st.DataObject) -> None:
    path = copied / "datasets" / file
    original = path.read_bytes()
    start = data.draw(st.integers(0, len(original)))
    end = data.draw(st.integers(start, min(len(original), start + 50)))
    path.write_bytes(original[:start] + data.draw(st.binary(max_size=8)) + original[end:])
    try:
        load(copied, preset)
    finally:
        path.write_bytes(original)


@pytest.mark.parametrize(("preset", "file"), CASES, ids=[f"{preset}: {file}" for preset, file in CASES])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.encode("utf-16"), "not UTF-8 text but UTF-16"),
        (lambda text: text.encode("utf-16-be"), "not UTF-8 text but UTF-16-BE"),
        (lambda text: text.encode("utf-32"), "not UTF-8 text but UTF-32"),
        (lambda text: b"[" * 300_000, "lie too deep inside each other"),
        (lambda text: f"[{LONG}]".encode(), "[0]: a number of 5000 characters"),
        (lambda text: b'{"a": {"b": [NaN]}}', "a.b[0]: NaN is not a number"),
        (lambda text: b'[{"a": "x\\ud800"}]', "[0].a: half of a surrogate pair (\\ud800) at character 1"),
        (lambda text: b'[{"a\\udc00": 1}]', "[0]: half of a surrogate pair (\\udc00)"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_kept_is_named_with_its_place(
    copied: Path, preset: str, file: str, spoil: Any, words: str
) -> None:
    path = copied / "datasets" / file
    original = path.read_bytes()
    path.write_bytes(spoil(original.decode()))
    try:
        message = load(copied, preset)
    finally:
        path.write_bytes(original)
    assert Path(file).name in message and words in message
