"""Rules of the checkout that no linter checks."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("memsys", "baselines", "eval")


def python_files() -> list[Path]:
    return [path for package in (*PACKAGES, "scripts", "tests") for path in (ROOT / package).rglob("*.py")]


def test_datasets_folder_holds_no_python_and_does_not_hide_hugging_face() -> None:
    assert list((ROOT / "datasets").rglob("*.py")) == []
    code = "import datasets, sys; sys.exit(not hasattr(datasets, 'load_dataset'))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


def test_no_module_bears_a_standard_library_name() -> None:
    names = {path.stem for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert names & set(sys.stdlib_module_names) - {"__init__"} == set()


def test_eval_has_few_folders() -> None:
    folders = {path.relative_to(ROOT / "eval").parts[0] for path in (ROOT / "eval").rglob("*/*.py")}
    assert len(folders) == 14


def test_eval_is_never_imported_bare() -> None:
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.split(".")[0] == "eval" for alias in node.names), path


def imports() -> dict[str, set[str]]:
    """Modules that each module of the project imports: at its top, in functions and for type checking alone."""
    files = {path.relative_to(ROOT).with_suffix("") for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    modules = {".".join(file.parts).removesuffix(".__init__"): ROOT / file.with_suffix(".py") for file in files}
    return {name: set(imported(path, modules)) - {name} for name, path in modules.items()}


def imported(path: Path, modules: Container[str]) -> Iterator[str]:
    """Modules of the project that a file imports, wherever in it; a name of a module counts as its module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                yield from [found for found in (name, node.module) if found in modules][:1]


def circle(graph: Mapping[str, Collection[str]]) -> list[str]:
    """A circle of imports, from a module to itself; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_no_imports_form_a_circle() -> None:
    graph = imports()
    assert "memsys.clag.config" in graph["memsys.clag.memory"]
    assert " -> ".join(circle(graph)) == ""


@pytest.mark.parametrize(
    "line",
    ["from memsys.two import x", "def f():\n    import memsys.two", "if TYPE_CHECKING:\n    from memsys import two"],
)
def test_a_circle_of_imports_is_found_wherever_they_are_made(tmp_path: Path, line: str) -> None:
    (tmp_path / "one.py").write_text(line, encoding="utf-8")
    known = {"memsys", "memsys.one", "memsys.two"}
    graph = {"memsys.one": set(imported(tmp_path / "one.py", known)), "memsys.two": {"memsys.one"}}
    assert circle(graph) in (
        ["memsys.one", "memsys.two", "memsys.one"],
        ["memsys.two", "memsys.one", "memsys.two"],
    )


def test_nobody_catches_everything() -> None:
    broad = re.compile(r"except\s*(\(?\s*(Base)?Exception\b(?!Group)|:)")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in python_files()
        if "tests" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if broad.search(line)
    ]
    # The run record may see everything pass: it notes "interrupted" and raises again. So may the side of the worker's
    # process: what a package raises goes to memsys as the reply. What plug-ins raise at their import is a message. The
    # proxy answers a fault of its own too, as the program would wait for a connection that is gone. What a user's
    # object raises is a message that names the method.
    places = [line.partition(":")[0] for line in found]
    assert sorted(places) == [
        "baselines/external/objects.py",
        "eval/commands/plugins.py",
        "eval/running/experiment.py",
        "memsys/proxy/server.py",
        "memsys/workers/worker_loop.py",
    ]


@pytest.mark.parametrize(
    "module",
    [
        "eval.run",
        "eval.running.experiment",
        "eval.score",
        "eval.tables",
        "eval.compare",
        "eval.judge.__main__",
        "eval.lens",
        "eval.explain",
        "eval.report.__main__",
    ],
)
def test_modules_import_without_heavy_libraries(module: str) -> None:
    heavy = ["torch", "transformers", "sentence_transformers", "faiss", "sklearn", "matplotlib", "nltk", "pandas"]
    code = f"import sys; from importlib import import_module; import_module({module!r}); " + (
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_committed_text_names_no_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    suspicious = re.compile(
        "|".join(("/" + "work/", "/" + "root/", r"/home/\w", r"pypi\." + "org", "python" + "hosted"))
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in {".png", ".npz", ".gz"} or not path.is_file():
            continue
        match = suspicious.search(path.read_text(encoding="utf-8", errors="replace"))
        assert match is None, f"{name}: {match}"


#: Modules that open files of run folders, and what they do there besides reading finished runs.
_OPENS_RUN_FILES = {
    "eval/runs/load.py",  # reads them, for everybody
    "eval/runs/rundir.py",  # writes a run, and takes it up again
    "eval/running/budgets.py",  # sums what earlier parts of a run that goes on have paid
    "eval/sweep/expense.py",  # counts the calls of a run that goes on, before its first
    "eval/running/proxy/ledger.py",  # the proxy's own ledger, which belongs to no run
    "eval/scoring/verdicts/store.py",  # verdicts, in files of the judges' own
    "eval/scoring/verdicts/orders.py",  # likewise
    "eval/audit/packs/files.py",  # rows in a pack
}
#: Modules that define how rows are read, and the functions that open files of rows.
_ROWS = ("eval.runs.rows", "eval.runs.files")
_OPENERS = {"read_rows", "read_json_lines", "answers", "references", "settled", "ledger"}


def test_one_module_reads_the_files_of_runs() -> None:
    """Everything behind a run takes it from ``eval.results.frame``, or its rows from ``eval.runs.load``."""
    found = set()
    for path in (ROOT / "eval").rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names}
                opens = (node.module in _ROWS and names & _OPENERS) or (node.module == "eval.runs" and "rows" in names)
                found |= {name} if opens and name != "eval/runs/rows.py" else set()
    assert found == _OPENS_RUN_FILES


def test_the_import_contracts_have_at_most_three_exceptions() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    exceptions = [one for contract in settings["contracts"] for one in contract.get("ignore_imports", [])]
    assert len(exceptions) <= 3


def test_each_renderer_is_defined_once() -> None:
    names = Counter(
        node.name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("render_")
    )
    assert {"render_markdown", "render_csv", "render_latex"} <= names.keys()
    assert [name for name, count in names.items() if count > 1] == []


def test_one_file_uses_what_hydra_keeps_for_itself() -> None:
    found = [
        path for path in python_files() if "tests" not in path.parts and "hydra._internal" in path.read_text("utf-8")
    ]
    assert [path.relative_to(ROOT).as_posix() for path in found] == ["eval/config/compose.py"]


def committed(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def test_committed_results_are_small_and_hold_no_png() -> None:
    results = committed("results")
    assert sum(path.stat().st_size for path in results) < 20_000_000
    assert [path for path in results if path.suffix == ".png"] == []


def test_a_page_links_each_committed_table_and_figure() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in committed("*.md")
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    }
    shown = [path for path in committed("results/*.md", "results/*.svg") if path.name != "README.md"]
    assert len(shown) > 50
    assert [path.relative_to(ROOT).as_posix() for path in shown if path not in linked] == []
