"""Their side of a parity run: the authors' files, fetched by checksum, in a process and an environment of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval.parity.ours import Answered, SideResult
from memsys.assets.paths import ROOT
from memsys.prompt_packs.sources import SourceFile, read_source, sources_folder
from memsys.vocabulary import Conversation, Json, Question, Sample
from memsys.workers.environments import interpreter_of
from memsys.workers.process import WorkerCommand, WorkerProcess
from memsys.workers.worker_loop import PROTOCOL

PACKAGES = ROOT / "baselines" / "packages"
#: Seconds that one request may take; some releases write a whole conversation in one, an hour on a busy machine.
_LIMIT_S = 7200.0


def write_sources(sources: Mapping[str, SourceFile], folder: Path) -> dict[str, str]:
    """Fetch the authors' files, compare their checksums, and write them to a folder.

    Returns:
        Place of each file by its module.

    Raises:
        DataError: a file cannot be had, or is not the one of the catalogue.
    """
    places = {}
    for module, source in sources.items():
        text = read_source(source, sources_folder())
        path = folder.joinpath(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        places[module] = str(path)
    return places


def interpreter(environment: str) -> Path:
    """Return the Python of an environment.

    Raises:
        AssetError: it has not been made.
    """
    return interpreter_of(environment, PACKAGES / environment / "requirements.lock")


@dataclass(frozen=True, slots=True)
class AuthorsRun:
    """Messages to the worker.

    Attributes:
        package: folder of the worker.
        environment: that it runs in.
        settings: for the worker.
        url: of the deterministic backbone, and of the embedder.
        log: what the authors' code prints.
    """

    package: str
    environment: str
    settings: Mapping[str, Json]
    url: str
    log: Path

    async def run(self, plan: Any, sample: Sample) -> SideResult:
        """Run the authors' code over a conversation.

        Args:
            plan: of our side: how turns are written, and in which order the options of a question are shown.
            sample: the conversation.

        Raises:
            WorkerError: the authors' code failed.
        """
        command = WorkerCommand(
            self.package, interpreter(self.environment), PACKAGES / self.package / "worker.py", self.log
        )
        with TemporaryDirectory() as folder:
            worker = await WorkerProcess.start(command, Path(folder))
            try:
                await worker.request("open", self._opening(plan.seed, sample, folder), limit_s=_LIMIT_S)
                for unit in unit_messages(plan, sample):
                    await worker.request("add", {"unit": unit}, limit_s=_LIMIT_S)
                await worker.request("finish", {}, limit_s=_LIMIT_S)
                told = await worker.request("store", {}, limit_s=_LIMIT_S)
                answers = await self._answers(worker, plan, sample)
            finally:
                await worker.close()
        return SideResult(told["store"], answers)

    def _opening(self, seed: int, sample: Sample, folder: str) -> dict[str, Json]:
        access: dict[str, Json] = {"base_url": self.url, "api_key": "none", "model": "deterministic"}
        said: dict[str, Json] = {"protocol": PROTOCOL, "seed": seed, "folder": folder}
        settings = {
            **self.settings,
            "speakers": list(speakers(sample.conversation)),
            "conversation": sample.conversation.conversation_id,
        }
        return {**said, "settings": settings, "llm": access, "embedder": access}

    async def _answers(self, worker: WorkerProcess, plan: Any, sample: Sample) -> dict[str, Answered]:
        found = {}
        for question, message in question_messages(plan, sample):
            told = await worker.request("answer", {"question": message}, limit_s=_LIMIT_S)
            made = told["answer"]
            found[question.question_id] = Answered(question.text, made["context"], made["prediction"])
        return found


def question_messages(plan: Any, sample: Sample) -> Iterator[tuple[Question, dict[str, Json]]]:
    """Yield the questions for the worker; ``answer`` is the false one where two options are shown."""
    reader = plan.reader.build(plan.seed)
    for question in sample.questions:
        reference = sample.references[question.question_id]
        options = reader.options(question, reference)
        answer = reference.adversarial_answer if options else (reference.answers or ("",))[0]
        yield (
            question,
            {
                "text": question.text,
                "category": question.category,
                "answer": answer,
                "answer_first": bool(options) and options[0] == answer,
            },
        )


def speakers(conversation: Conversation) -> Sequence[str]:
    """Return the speakers of a conversation, as the data set names them, else in the order they speak."""
    return conversation.speakers or conversation.speaking


def unit_messages(plan: Any, sample: Sample) -> Iterator[dict[str, Json]]:
    """Yield the turns for the worker, one per unit."""
    for turn, (line, time) in zip(sample.conversation.turns, note_inputs(plan, sample), strict=True):
        shown: dict[str, Json] = {"turn_id": turn.turn_id, "speaker": turn.speaker, "date": time, "line": line}
        yield {"unit_id": turn.turn_id, "turns": [{**shown, "session": turn.session_id, "text": turn.text}]}


def note_inputs(plan: Any, sample: Sample) -> list[tuple[str, str]]:
    """Return the content and time of each note, one per turn, as our side writes them."""
    render = plan.dataset.turn_format.render
    return [(render(turn), turn.date_time) for turn in sample.conversation.turns]
