"""Their side of a parity run: the authors' files, fetched by checksum, in a process and an environment of their own."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from eval.parity.ours import Answered, SideResult
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError, DataError, MemsysError
from memsys.prompt_packs.catalogue import Pack
from memsys.prompt_packs.sources import read_source, sources_folder
from memsys.vocabulary import Json, Sample

PACKAGES = ROOT / "baselines" / "packages"
ENVIRONMENTS = ROOT / ".venv-packages"


class AuthorsCodeError(MemsysError):
    """The authors' code stopped with an error of its own."""


def write_sources(pack: Pack, folder: Path) -> dict[str, str]:
    """Fetch the authors' files, compare their checksums, and write them to a folder.

    Returns:
        Place of each file by its key in the pack.

    Raises:
        DataError: a file cannot be had, or is not the one of the catalogue.
    """
    places = {}
    for key, source in pack.sources.items():
        text = read_source(source, sources_folder())
        path = folder / f"{key}-{Path(source.path).name}"
        path.write_text(text, encoding="utf-8")
        places[key] = str(path)
    return places


def interpreter(package: str) -> Path:
    """The Python of a package's environment.

    Raises:
        ConfigError: it has not been made.
    """
    python = ENVIRONMENTS / package / "bin" / "python"
    if not python.exists():
        raise ConfigError(f"{python} does not exist; run `python scripts/make_package_env.py {package}`")
    return python


class AuthorsProcess:
    """The worker: one request, one answer, each a line of JSON."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process, self._log = process, log
        assert process.stdin is not None and process.stdout is not None
        self._input: IO[str] = process.stdin
        self._output: IO[str] = process.stdout

    def call(self, do: str, **given: Any) -> Any:
        """Ask for something; returns its result.

        Raises:
            AuthorsCodeError: the authors' code raised an error, or ended.
        """
        try:
            self._input.write(json.dumps({"do": do, **given}) + "\n")
            self._input.flush()
        except BrokenPipeError:
            pass  # it has ended, which the empty line below tells
        line = self._output.readline()
        answer: Mapping[str, Any] = json.loads(line) if line else {"error": "it ended"}
        if "error" in answer:
            raise AuthorsCodeError(f"the authors' code failed in {do}: {answer['error']}; {self._log} has the rest")
        return answer["result"]


@contextmanager
def authors_process(package: str, log: Path) -> Iterator[AuthorsProcess]:
    """Run a package's worker while the block runs; what it prints goes to a file.

    Raises:
        ConfigError: its environment has not been made.
    """
    command = [str(interpreter(package)), str(PACKAGES / package / "worker.py")]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        try:
            yield AuthorsProcess(process, log)
        finally:
            process.kill()
            process.wait()


def run_authors(worker: AuthorsProcess, plan: Any, sample: Sample, opening: Mapping[str, Json]) -> SideResult:
    """Run the authors' code over a conversation.

    Args:
        worker: its process.
        plan: of our side: how turns are written and in which order the options of a question stand.
        sample: the conversation.
        opening: files, settings and addresses for the worker.

    Raises:
        AuthorsCodeError: the authors' code failed.
    """
    worker.call("open", **opening)
    for content, time in note_inputs(plan, sample):
        worker.call("add", content=content, time=time)
    worker.call("finish")
    store = worker.call("store")
    reader, found = plan.reader.build(plan.seed), {}
    for question in sample.questions:
        reference = sample.references[question.question_id]
        options = reader.options(question, reference)
        answer = reference.adversarial_answer if options else (reference.answers or ("",))[0]
        first = bool(options) and options[0] == answer
        told = worker.call(
            "ask", question=question.text, category=question.category, answer=answer, answer_first=first
        )
        found[question.question_id] = Answered(question.text, told["context"], told["prediction"])
    return SideResult(store, found)


def note_inputs(plan: Any, sample: Sample) -> list[tuple[str, str]]:
    """Content and time of each note, one per turn, as our side writes them."""
    render = plan.dataset.turn_format.render
    return [(render(turn), turn.date_time) for turn in sample.conversation.turns]
