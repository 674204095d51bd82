"""Submitted packs of a site: what was checked of each, and the texts that it may show."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from eval.audit.packs.checking import Finding, check_opened
from eval.audit.packs.files import OpenPack, opened_pack
from eval.audit.packs.questions import PackedQuestion
from eval.commands.terminal import stage
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class Submission:
    """One pack that a site is made of.

    Attributes:
        pack: opened.
        findings: of its check.
    """

    pack: OpenPack
    findings: Sequence[Finding]

    @property
    def fits(self) -> bool:
        """Whether nothing of it is forged."""
        return not any(one.state == "does not fit" for one in self.findings)

    def as_json(self, system: str = "", page: str = "") -> Json:
        """Return what pages show of it, with the page of its system."""
        manifest = self.pack.manifest
        about = {"file": self.pack.path.name, "texts": manifest.texts, "licence": manifest.licence}
        found = [[one.state, one.what, one.text] for one in self.findings]
        return {**about, "system": system, "page": page, "findings": found}

    def texts(self) -> Mapping[str, tuple[PackedQuestion, str | None]]:
        """Return the questions with the system's answers, by id; nothing where texts are withheld."""
        if not self.pack.manifest.texts:
            return {}
        given = {name: row.prediction for name, row in self.pack.answers().items()}
        return {name: (one, given.get(name)) for name, one in self.pack.questions().items()}


def open_submissions(paths: Sequence[Path], stack: ExitStack) -> list[Submission]:
    """Open and check packs.

    Args:
        paths: of the files.
        stack: keeps them open.

    Raises:
        DataError, RunDirectoryError, ScoringError: one cannot be read.
    """
    found = []
    for path in paths:
        with stage(f"checking {path.name}"):
            pack = stack.enter_context(opened_pack(path))
            found.append(Submission(pack, check_opened(pack)))
    return found


def packs_in(folder: Path) -> list[Path]:
    """Return the packs of a folder, sorted."""
    return sorted(folder.glob("*.zip"))
