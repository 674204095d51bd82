"""The catalogue of published answers (``catalogue.yaml``): where each file lies, how it is read, what was printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from eval.audit.recorded.importing import Imported, import_rows
from eval.audit.recorded.questions import QuestionSet, load_questions, own_questions
from eval.audit.recorded.rows import read_rows
from eval.audit.recorded.run_folder import Origin
from eval.audit.recorded.shapes import Shape, make_shape
from eval.config.presets import read_settings
from eval.loaders.published_files import VARIABLE, PublishedFiles, recorded_folder
from eval.loaders.registry import OWN
from memsys.errors import ConfigError, DataError

FILE = Path(__file__).parent / "catalogue.yaml"
#: How the means of the catalogue's runs are taken: most of them leave category 5 out.
PROTOCOL = "xmemory"


@dataclass(frozen=True, slots=True)
class PrintedScore:
    """A number printed for a run: of ``metric`` over all its questions, percent."""

    value: float
    metric: str
    source: str


@dataclass(frozen=True, slots=True)
class CatalogueEntry(PublishedFiles):
    """One run of the catalogue, or a file of questions; several files are the parts of one run.

    Attributes:
        system: what answered.
        backbone: language model of the reader, as far as named.
        shape: name in the catalogue.
        dataset: preset of ``conf/dataset``, a question file of the catalogue, or ``own``.
        printed: headline numbers of the authors.
        notes: what one must know of the file.
        kind: ``run``; ``wrong`` for answers that are wrong on purpose; ``questions`` for files without answers.
        repeats: name that repetitions of one experiment share; empty for a run of its own.
        categories: printed name of a category -> the judge's score printed under it, percent.
        reruns: path to the list of questions that were run again.
        row: the row of a paper's tables that these answers of its authors gave: ``paper``, ``memory``, ``backbone``;
            with ``differs``, which says how, the row whose system others ran: next to the number, never compared with
            it.
        check: facts of the file that a test compares with, by name.
        reference: the answers bound what a memory can do (gold evidence or everything as context); they are not ranked.
        by_order: the file has altered questions, which are at their places in the data set.
    """

    shape: str
    system: str = ""
    backbone: str = ""
    dataset: str = "locomo"
    printed: tuple[PrintedScore, ...] = ()
    notes: Sequence[str] = ()
    kind: str = "run"
    repeats: str = ""
    check: Mapping[str, Any] = field(default_factory=dict)
    categories: Mapping[str, float] = field(default_factory=dict)
    reruns: str = ""
    row: Mapping[str, str] = field(default_factory=dict)
    reference: bool = False
    by_order: bool = False

    @property
    def origin(self) -> Origin:
        """For the ``run.json`` of an imported run."""
        paths, sums = " ".join(self.files), " ".join(self.files.values())
        return Origin(
            system=self.system,
            backbone=self.backbone,
            repository=self.repository,
            commit=self.commit,
            path=paths,
            sha256=sums,
            licence=self.licence,
            notes=tuple(self.notes),
            row=self.row,
            reference=self.reference or self.kind == "wrong",
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Shapes and entries by name."""

    shapes: Mapping[str, Shape]
    entries: Mapping[str, CatalogueEntry]

    def runs(self) -> list[CatalogueEntry]:
        """Return the entries with answers."""
        return [entry for entry in self.entries.values() if entry.kind != "questions"]


@cache
def load_catalogue() -> Catalogue:
    """Read the catalogue.

    Raises:
        ConfigError: a setting is missing, unknown or wrong; says where.
    """
    settings = read_settings(FILE)
    shapes = {name: make_shape(name, own, f"{FILE}: shapes.{name}") for name, own in settings["shapes"].items()}
    entries = {name: _entry(name, own, shapes, f"{FILE}: files.{name}") for name, own in settings["files"].items()}
    return Catalogue(shapes, entries)


def _entry(name: str, settings: Mapping[str, Any], shapes: Mapping[str, Shape], where: str) -> CatalogueEntry:
    unknown = settings.keys() - {one.name for one in fields(CatalogueEntry)}
    if unknown:
        raise ConfigError(f"{where}.{sorted(unknown)[0]} is unknown")
    if settings.get("shape") not in shapes:
        raise ConfigError(f"{where}.shape={settings.get('shape')!r}; choose one of {', '.join(shapes)}")
    printed = tuple(PrintedScore(**one) for one in settings.get("printed", ()))
    return CatalogueEntry(name=name, **{**settings, "printed": printed})


def find_entry(name: str) -> CatalogueEntry:
    """Look an entry up.

    Raises:
        ConfigError: there is no such name.
    """
    entries = load_catalogue().entries
    if name not in entries:
        raise ConfigError(f"{name!r} is not in the catalogue; `memsys recorded list` names what is")
    return entries[name]


def paths_of(entry: CatalogueEntry, folder: Path | None = None) -> list[Path]:
    """Return the files of an entry on this machine.

    Raises:
        DataError: one is not there.
    """
    folder = folder or recorded_folder()
    found = [folder / file.name for file in entry.pinned]
    absent = [path for path in found if not path.is_file()]
    if absent:
        raise DataError(
            f"{absent[0]}: no such file; `memsys recorded fetch` fetches it, or "
            f"{VARIABLE} names the folder that holds it"
        )
    return found


@cache
def question_set(name: str) -> QuestionSet:
    """Return the questions of a data set: of a loader's preset, or of a question file of the catalogue.

    Raises:
        ConfigError: there is neither.
        DataError: the file is not there.
    """
    entry = load_catalogue().entries.get(name)
    if entry is None or entry.kind != "questions":
        return load_questions(name)
    shape = load_catalogue().shapes[entry.shape]
    rows = read_rows(paths_of(entry), shape)
    made = own_questions(rows, apart=shape.conversation_is == "question")
    return replace(made, name=name, sha256=next(iter(entry.files.values())))  # of a file that is published, as loaders'


def import_entry(entry: CatalogueEntry) -> Imported:
    """Read and align the answers of an entry.

    Raises:
        DataError: a file is missing, damaged or of another shape.
    """
    questions = None if entry.dataset == OWN else question_set(entry.dataset)
    shape = load_catalogue().shapes[entry.shape]
    return import_rows(paths_of(entry), shape, questions, by_order=entry.by_order)
