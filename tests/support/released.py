"""A worker of authors' released code on files that stand in for that code, in this interpreter."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from eval.parity import authors
from eval.parity.endpoint import ParityEndpoint
from eval.parity.ours import SideResult
from eval.parity.replies import DeterministicBackbone
from memsys.embedding.hashing import HashingEmbedder
from memsys.vocabulary import Conversation, Json, Question, Reference, Sample, Turn

QUESTION = Question(question_id="q", conversation_id="c", text="why?", category=1)
TURNS = tuple(Turn(f"D1:{n}", "s", "Ann", f"t{n}", date_time="noon") for n in (1, 2))


class StandIn:
    """A worker whose released files are stand-ins.

    Args:
        package: folder of the worker.
        files: module -> text of the file that stands for it.
        backbone: what answers the worker's calls.
    """

    def __init__(self, package: str, files: Mapping[str, str], backbone: DeterministicBackbone) -> None:
        self.package, self.files = package, files
        self.endpoint = ParityEndpoint(backbone, HashingEmbedder(8))

    def run(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        settings: Mapping[str, Json],
        question: Question = QUESTION,
        options: tuple[str, ...] = (),
    ) -> SideResult:
        """Write the files, hand the worker two turns, and ask it one question.

        Args:
            folder: of the files, and of the worker's ``log``.
            monkeypatch: puts this interpreter in the place of the environment's.
            settings: for the worker, but for its name and files.
            question: that is asked.
            options: that the question shows.
        """
        monkeypatch.setattr(authors, "interpreter", lambda environment: Path(sys.executable))
        told = {"name": "stand-in", "files": self._written(folder), **settings}
        plan = SimpleNamespace(
            seed=0,
            dataset=SimpleNamespace(turn_format=SimpleNamespace(render=lambda turn: f"Ann: {turn.text}")),
            reader=SimpleNamespace(build=lambda seed: SimpleNamespace(options=lambda *given: options)),
        )
        with self.endpoint.listening():
            url = self.endpoint.url("theirs")
            run = authors.AuthorsRun(self.package, self.package, told, url, folder / "log")
            return asyncio.run(run.run(plan, _sample(question)))

    def roles(self) -> list[str]:
        """Roles of the worker's calls, in their order."""
        return [call.request.role for call in self.endpoint.calls["theirs"]]

    def _written(self, folder: Path) -> dict[str, Json]:
        places: dict[str, Json] = {}
        for module, text in self.files.items():
            path = folder.joinpath(*module.split(".")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            places[module] = str(path)
        return places


def _sample(question: Question) -> Sample:
    reference = Reference(question.question_id, ("yes",), adversarial_answer="yes")
    return Sample(Conversation("c", TURNS, ("Ann", "Bob")), (question,), {question.question_id: reference})
