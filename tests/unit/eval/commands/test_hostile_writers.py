"""Runs whose names, ids and texts are hostile, through every command: parsers of what is written say what is read."""

import csv
import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from eval.runs.load import checksums
from eval.runs.signing import sign_folder
from tests.end_to_end.test_commands_and_streams import COMMANDS
from tests.support.fake_run import FakeRun, rewrite

NAMES = (
    "=1+1|<script>alert(1)</script>\x1b]0;title\x07",
    "@SUM(A1)[x](javascript:alert(1))`\u202e\\input{x}$\\foo$",
)
TEXT = "\x1b[2J<img src=x onerror=alert(1)>\r\nrun        forged \u202e\x9b31m|`=1"

#: What each command is given; OUT is a folder, RUNS a folder of hostile runs, FIRST one of them, DATA hostile data.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "eval.compare": ("RUNS", "--out", "OUT"),
    "eval.lens": ("RUNS", "--out", "OUT/lens.md"),
    "eval.tables": ("--paper", "clag", "--runs", "RUNS", "--out", "OUT"),
    "eval.report": ("--runs", "RUNS", "--out", "OUT/report.html"),
    "eval.plots": ("--runs", "RUNS", "--out", "OUT"),
    "eval.explain": ("3", "RAG", "Multi Hop F1", "--runs", "RUNS"),
    "eval.export": ("RUNS", "--out", "OUT"),
    "eval.settle": ("FIRST",),
    "eval.pack": ("FIRST", "--out", "OUT/run.zip"),
    "eval.report.site": ("RUNS", "--out", "OUT/site"),
    "eval.gate": ("FIRST", "--against", "FIRST"),
    "eval.inspect_data": ("dataset=locomo", "path=DATA"),
}
#: Commands that show no text of a run or a data set beyond its path, or need a model or a batch system.
ELSEWHERE = {
    "eval.run", "eval.judge", "eval.serve", "eval.sweep", "eval.sweep.servers", "eval.score", "eval.floors",
    "eval.results.analysis.clag_failures", "eval.results.analysis.clag_clusters",
    "eval.results.analysis.xmemory_structure", "eval.results.analysis.coverage",
    "eval.results.analysis.design", "eval.results.analysis.foreign_memories",
    "eval", "eval.results.choices_page", "eval.audit", "eval.recorded", "eval.models", "eval.data",
    "eval.results.figures.scale", "eval.proxy", "eval.convert_data", "eval.parity", "eval.parity.stages",
    "eval.results.own.results_page", "eval.parity.mutations", "eval.parity.page", "eval.sign", "eval.check_memory",
    "eval.completion", "eval.demo", "eval.probe", "eval.reproduce", "eval.stress", "eval.verify",
    "eval.sweep.hosted_page",
}  # fmt: skip


#: Ids of runs become names of files there: a hostile one is refused.
REFUSED = {"eval.export", "eval.pack"}
#: Commands that write no file.
SHOWN = {"eval.explain", "eval.inspect_data", "eval.settle", "eval.gate"}


def test_every_command_is_tried() -> None:
    assert set(ARGUMENTS) | ELSEWHERE == set(COMMANDS) and not set(ARGUMENTS) & ELSEWHERE


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    plain = FakeRun(questions_each=5)
    for number, name in enumerate((*NAMES, "")):
        path = replace(plain, memory=f"rag{number}" if name else "rag", seed=number).write(folder)
        rewrite(path, "answers.jsonl", _spoil("question", "prediction"))
        rewrite(path, "references.jsonl", _spoil("answers"))
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        if name:
            record["config"]["memory"]["name"] = record["config"]["backbone"]["name"] = name
        record["run_id"] = f"fake/{number}{NAMES[number % 2].replace('/', '')}"
        record["commit"] = record["hardware"]["cpu"] = TEXT
        (path / "run.json").write_text(json.dumps(record), encoding="utf-8")
        meta = json.loads((path / "scores_meta.json").read_text(encoding="utf-8"))
        (path / "scores_meta.json").write_text(json.dumps({**meta, "inputs": checksums(path)}), encoding="utf-8")
        sign_folder(path)
    return folder


def _spoil(*keys: str) -> Any:
    def change(number: int, row: dict[str, Any]) -> None:
        row |= {key: [TEXT] if isinstance(row[key], list) else TEXT for key in keys}

    return change


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).resolve().parents[4] / "datasets" / "locomo" / "sample.json"
    tree = json.loads(source.read_text(encoding="utf-8"))
    tree[0]["sample_id"] = TEXT
    path = tmp_path_factory.mktemp("data") / "x\u202e.json"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", sorted(ARGUMENTS))
def test_a_command_writes_hostile_text_as_text(
    command: str, runs: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        module = importlib.import_module(f"{command}.__main__")
    except ModuleNotFoundError:
        module = importlib.import_module(command)
    first = next(path.parent for path in sorted(runs.rglob("run.json")))
    places = {"RUNS": str(runs), "FIRST": str(first), "OUT": str(tmp_path), "DATA": str(data)}
    arguments = list(ARGUMENTS[command])
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    status = module.main(arguments)
    shown = capsys.readouterr()
    assert status == (2 if command in REFUSED else 0), shown.err
    for text in (shown.out, shown.err):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert "\nrun        forged" not in shown.out
    written = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert bool(written) == (command not in SHOWN | REFUSED)
    for path in written:
        CHECKS.get(path.suffix, lambda path: None)(path)


def _markdown(path: Path) -> None:
    text = _without_code(path.read_text(encoding="utf-8"))
    assert not re.search(r"<(?!u>|/u>)[A-Za-z/!?]", text)
    assert not re.search(r"(?<!\\)\]\(javascript", text) and "\x1b" not in text
    for table in _tables(text):
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table}) == 1, table


def _without_code(text: str) -> str:
    """Drop code, in which nothing is markup; a backslash before a backtick makes it none."""
    code = re.compile(r"\\.|(`+)(?!`).*?(?<!`)\1(?!`)")
    return code.sub(lambda match: "" if match[1] else match[0], text)


def _tables(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
        elif lines:
            yield lines
            lines = []


def _csv(path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert len({len(row) for row in rows}) == 1
    for cell in (cell for row in rows for cell in row):
        assert re.fullmatch(r"[+-]?\d[\d.]*", cell) or not re.match(r"[=+\-@\t\r]", cell), cell
        assert "\x1b" not in cell


def _svg(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    assert not {element.tag for element in root.iter() if element.tag.endswith(("script", "foreignObject", "img"))}


def _latex(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "\\input" not in text and not re.search(r"\\foo\b", text) and "\x1b" not in text
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0


def _html(path: Path) -> None:
    scripts: list[list[tuple[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "script":
                scripts.append(attrs)
            assert tag != "img" and not any(name.startswith("on") for name, _ in attrs)

    Reader().feed(path.read_text(encoding="utf-8"))
    data = [attributes for attributes in scripts if attributes]
    assert len(scripts) - len(data) == 1, "the page's own program, and nothing else that runs"
    for attributes in data:
        assert [key for key, _ in attributes] == ["type", "id"]
        kind, name = (value or "" for _, value in attributes)
        assert kind in ("application/json", "text/plain") and re.fullmatch(r"data|part-[\w-]+", name)


CHECKS = {".md": _markdown, ".csv": _csv, ".svg": _svg, ".tex": _latex, ".html": _html}


def test_a_report_where_nothing_can_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from eval.report.__main__ import main

    FakeRun(questions_each=5).write(tmp_path / "runs")
    (tmp_path / "file").write_text("")
    arguments = ["--runs", str(tmp_path / "runs"), "--no-questions", "--out", str(tmp_path / "file" / "x.html")]
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: cannot write") and errors.count("\n") == 1
