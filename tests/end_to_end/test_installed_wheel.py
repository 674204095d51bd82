"""The wheel, built and installed as a user has it: no checkout in sight, any folder, everything it needs inside."""

import importlib.metadata
import os
import shutil
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eval.config.first_run import missing_models
from memsys.assets.paths import models_dir

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("memsys", "baselines", "eval", "conf", "datasets", "results/printed", "pyproject.toml",
           "setup.py", "README.md", "LICENSE")  # fmt: skip
#: Which only extras bring.
HEAVY = ("torch", "triton", "transformers", "sentence-transformers", "vllm", "matplotlib", "litellm")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__", "local"))
        else:
            shutil.copy(ROOT / name, target)
    command = [sys.executable, "-m", "pip", "wheel", str(source), "--no-deps", "--no-build-isolation", "-q", "-w", out]
    subprocess.run(command, check=True, timeout=200)
    (made,) = out.glob("memsys-*.whl")
    return made


@pytest.fixture(scope="module")
def memsys(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The console script of an environment that has the wheel, and the dependencies of this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=100)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "-q", wheel]
    subprocess.run(command, check=True, timeout=200)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder / "bin" / "memsys"


def run(
    memsys: Path, folder: Path, *arguments: str, timeout: float = 200, **further: str
) -> subprocess.CompletedProcess[str]:
    kept = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MEMSYS_MODELS", "MEMSYS_DATA")
    }
    environment = {**kept, "XDG_CACHE_HOME": str(folder / "cache"), **further}
    return subprocess.run(
        [memsys, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )


def test_everything_that_is_read_is_inside(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = [name for name in names if name.startswith("memsys/_shipped/")]
    for folder in ("conf", "datasets", "results/printed"):
        here = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
        here = {name for name in here if not name.startswith("conf/local/") and "__pycache__" not in name}
        assert here <= {name.removeprefix("memsys/_shipped/") for name in shipped}
    for package in ("memsys", "baselines", "eval"):
        kept = [path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        assert {path.relative_to(ROOT).as_posix() for path in kept} <= names
    tops = {name.partition("/")[0] for name in names}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"memsys", "baselines", "eval"}
    assert not [name for name in names if name.startswith(("tests/", "results/")) or "/local/" in name]


def test_the_small_install_has_no_torch() -> None:
    """5.3 of 6.4 GB were torch, triton and NVIDIA's libraries, which the first run does not need."""
    needed, seen = ["memsys"], set()
    while needed:
        name = canonicalize_name(needed.pop())
        try:
            wanted = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:  # of another platform
            continue
        seen.add(name)
        lines = [Requirement(line) for line in wanted]
        found = {line.name for line in lines if line.marker is None or line.marker.evaluate({"extra": ""})}
        needed += sorted(found - seen)
    assert {"hydra-core", "onnxruntime", "xllamacpp"} <= seen
    assert not [name for name in seen if name in HEAVY or name.startswith(("nvidia-", "cuda-"))]


def test_a_memory_in_the_current_folder_is_found(memsys: Path, tmp_path: Path) -> None:
    (tmp_path / "my_words.py").write_text(
        "class Words:\n    def __init__(self):\n        self.texts = []\n    def add(self, text):\n"
        "        self.texts.append(text)\n    def search(self, query, k):\n        return self.texts[:k]\n"
    )
    settings = ("memory=object", "memory.object=my_words:Words", "dataset=locomo_sample", "mode=retrieval_only")
    done = run(memsys, tmp_path, "run", *settings, "embedder=hashing")
    assert done.returncode == 0, done.stderr
    lost = run(memsys, tmp_path, "run", "memory=object", "memory.object=no_words:Words", *settings[2:])
    assert lost.returncode == 2 and "of a module in the current folder or on PYTHONPATH" in lost.stderr


def test_it_runs_from_an_empty_folder(memsys: Path, tmp_path: Path) -> None:
    settings = ("memory=rag_quickstart", "dataset=locomo_sample", "mode=retrieval_only", "embedder=hashing")
    done = run(memsys, tmp_path, "run", *settings)
    assert done.returncode == 0, done.stderr
    (record,) = (tmp_path / "results" / "runs" / "adhoc").glob("rag_quickstart-*/run.json")
    assert '"commit": null' in record.read_text() and (record.parent / "summary.json").is_file()
    assert not (tmp_path / "conf").exists()
    exported = run(memsys, tmp_path, "export", str(record.parent))
    assert exported.returncode == 0, exported.stderr
    assert (tmp_path / "results" / "summaries" / "adhoc" / "scores.parquet").is_file()


@pytest.mark.real_model
@pytest.mark.timeout(1000)
@pytest.mark.skipif(bool(missing_models("qwen25_coder_05b")), reason="memsys models qwen25_coder_05b")
def test_the_demo_is_that_of_the_checkout(memsys: Path, tmp_path: Path) -> None:
    """One of its three systems and two of its questions."""
    less = ("memory=rag_quickstart", "dataset.limit_questions=2")
    done = run(memsys, tmp_path, "demo", *less, timeout=900, MEMSYS_MODELS=str(models_dir()))
    assert done.returncode == 0, done.stderr
    assert " gold " in done.stdout and " rag_quickstart " in done.stdout and "E-F1" in done.stdout
    assert done.stdout.endswith("memsys report --runs results/runs/quickstart\n")
    (record,) = (tmp_path / "results" / "runs" / "quickstart").glob("rag_quickstart-qwen25_coder_05b-s0-*/run.json")
    assert '"status": "complete"' in record.read_text()


def test_it_says_what_there_is_and_where_models_go(memsys: Path, tmp_path: Path) -> None:
    assert "compare" in run(memsys, tmp_path).stdout
    assert "clag_code  " in run(memsys, tmp_path, "run", "--help", "memory").stdout
    sweep = run(memsys, tmp_path, "run", "-m", "hydra/launcher=lokal")
    assert sweep.returncode == 2 and "did you mean local" in sweep.stderr
    missing = run(memsys, tmp_path, "run", "memory=no_memory")
    assert missing.returncode == 2, missing.stderr
    assert str(tmp_path / "cache" / "memsys" / "models") in missing.stderr and "memsys models" in missing.stderr
    assert "MEMSYS_DATA" in run(memsys, tmp_path, "run", "dataset=locomo", "mode=retrieval_only").stderr
