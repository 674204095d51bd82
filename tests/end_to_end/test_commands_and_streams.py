"""Every command under Ctrl-C, a full device, a reader that has gone, and a terminal that knows ASCII alone."""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUMMARY = "results/summaries/locomo_qwen05b_plain_all"

#: Raises KeyboardInterrupt where a module is imported, as Ctrl-C during the import does.
SITECUSTOMIZE = """
import os, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
"""


def commands() -> list[str]:
    """Modules that run as ``python -m``, found by their last statement."""
    found = []
    for path in sorted((ROOT / "eval").rglob("*.py")):
        if '__name__ == "__main__"' in path.read_text(encoding="utf-8"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append(".".join(parts[:-1] if parts[-1] == "__main__" else parts))
    return found


COMMANDS = commands()
#: The batch system's own entry, which reads no options.
WITH_OPTIONS = [name for name in COMMANDS if name != "eval.sweep.servers"]


def run(arguments: list[str], *, stdout: int | None = subprocess.PIPE, **environment: str) -> tuple[int, str, str]:
    known: Mapping[str, str] = {**os.environ, "PYTHONHASHSEED": "0", **environment}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, stdout=stdout, stderr=subprocess.PIPE, env=known, timeout=280,
        check=False,
    )  # fmt: skip
    return done.returncode, (done.stdout or b"").decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def test_there_are_commands_and_each_starts_by_the_wrapper() -> None:
    assert {"eval.run", "eval.compare", "eval.sweep", "eval.score"} <= set(COMMANDS)
    for name in COMMANDS:
        module = ROOT / name.replace(".", "/")
        path = module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
        last = ast.parse(path.read_text(encoding="utf-8")).body[-1]
        assert isinstance(last, ast.If), name
        assert ast.unparse(last.body[-1]).startswith("start("), name


@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_while_a_command_is_imported_is_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    code, _, errors = run([name, "--help"], PYTHONPATH=str(tmp_path), INTERRUPT_AT="eval.commands.commands")
    assert (code, errors) == (130, "error: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "at"),
    [
        (["eval.compare", SUMMARY, "--out", "OUT"], "matplotlib"),
        (["eval.run", "run_dir=OUT/run", "mode=retrieval_only", "embedder=hashing", "memory=rag"], "memsys.index.bm25"),
        (["eval.run", "run_dir=OUT/run", "mode=retrieval_only", "embedder=hashing"], "eval.running.experiment"),
        (["eval.inspect_data", "dataset=locomo_sample"], "eval.loaders.locomo"),
        (["eval.judge", "judge=strict"], "eval.judge.work"),
    ],
)
def test_ctrl_c_while_a_command_starts_is_one_line(tmp_path: Path, arguments: list[str], at: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITECUSTOMIZE)
    arguments = [argument.replace("OUT", str(tmp_path)) for argument in arguments]
    code, _, errors = run(arguments, PYTHONPATH=str(tmp_path), INTERRUPT_AT=at)
    assert code == 130 and errors.startswith("error: interrupted") and errors.count("\n") == 1, errors


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_a_full_device_is_one_message(name: str) -> None:
    with Path("/dev/full").open("wb") as full:
        code, _, errors = run([name, "--help"], stdout=full.fileno())
    assert code == 2 and errors.startswith("error: standard output cannot be written"), errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_a_reader_that_has_gone_is_no_message(name: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        code, _, errors = run([name, "--help"], stdout=writer)
    finally:
        os.close(writer)
    assert (code, errors) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize(
    "arguments",
    [
        ["eval.inspect_data", "dataset=locomo_sample"],
        ["eval.run", "run_dir=OUT/run", "mode=retrieval_only", "embedder=hashing", "score=false"],
        ["eval.run", "--cfg", "job"],
        ["eval.explain", "3", "rag_quickstart", "Average F1", "--runs", SUMMARY],
    ],
)
def test_results_for_a_full_device_are_one_message(tmp_path: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        code, _, errors = run([text.replace("OUT", str(tmp_path)) for text in arguments], stdout=full.fileno())
    assert code == 2 and "Traceback" not in errors, errors
    assert errors.startswith("error: ") and errors.count("\n") == 1, errors


ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_help_in_ascii(name: str) -> None:
    code, output, errors = run([name, "--help"], **ASCII)
    assert code == 0 and output.isascii() and "Traceback" not in errors, errors


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval.inspect_data", "dataset=locomo_sample"],
        ["eval.inspect_data", "dataset=locomo_sample", "--json"],
        ["eval.run", "run_dir=OUT/run", "mode=retrieval_only", "embedder=hashing", "memory=rag"],
        ["eval.compare", SUMMARY, "--out", "OUT"],
        ["eval.tables", "--table", "3", "--runs", SUMMARY, "--out", "OUT"],
        ["eval.lens", SUMMARY, "--out", "OUT/lens.md"],
    ],
)
def test_results_in_ascii(tmp_path: Path, arguments: list[str]) -> None:
    code, output, errors = run([text.replace("OUT", str(tmp_path)) for text in arguments], **ASCII)
    assert code == 0 and output and output.isascii() and "Traceback" not in errors, errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval.run", "seed=one"], "seed='one' must be a whole number"),
        (["eval.run", "show_answers=-1"], "show_answers=-1 must be a whole number from 0 on"),
        (["eval.run", "runs_dir=FILE/x", "mode=retrieval_only", "embedder=hashing"], "cannot make"),
        (["eval.run", "-m", "runs_dir=FILE/x", "seed=0,1"], "cannot make"),
        (["eval.run", "run_dir=FILE/x", "mode=retrieval_only", "embedder=hashing"], "cannot open run directory"),
        (["eval.lens", SUMMARY, "--out", "FILE/x/lens.md"], "there is no folder"),
        (["eval.compare", SUMMARY, "--out", "FILE/x"], "there is no folder"),
        (["eval.plots", "--runs", SUMMARY, "--out", "FILE/x"], "there is no folder"),
        (["eval.inspect_data", "dataset=locomo_sample", "conversations=[a"], "is not YAML"),
    ],
)
def test_what_a_user_can_mend_is_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    """A file in the place of a folder stands for a folder that cannot be written, which root always can."""
    (tmp_path / "file").write_text("")
    code, _, errors = run([text.replace("FILE", str(tmp_path / "file")) for text in arguments])
    assert code == 2 and words in errors and errors.startswith("error: ") and errors.count("\n") == 1, errors


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("embedder.dimension=512", "embedder.dimension=512, but"),
        ("embedder.device=cuda", "embedder.device=cuda, but torch sees no CUDA device"),
    ],
)
def test_an_embedder_that_cannot_work_is_one_line(tmp_path: Path, override: str, words: str) -> None:
    arguments = ["eval.run", f"run_dir={tmp_path / 'run'}", "mode=retrieval_only", "memory=rag", override]
    code, _, errors = run(arguments, CUDA_VISIBLE_DEVICES="")
    assert code == 2 and words in errors and errors.count("\n") == 1, errors
