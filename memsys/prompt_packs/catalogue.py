"""The catalogue of the authors' prompts: one ``prompt_pack.yaml`` next to each system that has released prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from memsys.deviations import module_of
from memsys.errors import ConfigError, DataError
from memsys.prompt_packs.converting import Mapped, braced, convert, unused
from memsys.prompt_packs.cutting import Cut, Piece, cut
from memsys.prompt_packs.local import DIGITS, PackReference
from memsys.prompt_packs.paper_cutting import PaperCut, cut_lines
from memsys.prompt_packs.sources import PaperText, Source, make_source
from memsys.vocabulary import Json
from memsys.yaml_files import read_yaml

FILE = "prompt_pack.yaml"

Part = Literal["prompt", "system"]
PARTS: tuple[Part, ...] = ("prompt", "system")


@dataclass(frozen=True, slots=True)
class CutPart:
    """A text of a file; ``source`` is the key of the file in the pack."""

    source: str
    place: Cut | PaperCut


@dataclass(frozen=True, slots=True)
class PackPrompt:
    """An authors' prompt for one role.

    Attributes:
        id: name of its local files.
        role: that it is for.
        when: settings of the system (dotted) and the value, or the values, that they must have.
        prompt: what the user message is made of, in order: texts that are cut, and templates of ours between them.
        system: likewise of the system message; empty for none of theirs.
        mapped: how its slots are filled.
        sha256: of the cut source texts, joined by line ends.
        prompt_sha256: of the template made of ``prompt``.
        system_sha256: of the template made of ``system``; ``None`` if there is none.
        settings: settings of the role that go with the prompt (schema, reading ...).
        note: what differs in how it is filled here.
    """

    id: str
    role: str
    prompt: Sequence[CutPart | str]
    sha256: str
    prompt_sha256: str
    when: Mapping[str, Json] = field(default_factory=dict)
    system: Sequence[CutPart | str] = ()
    system_sha256: str | None = None
    mapped: Mapped = field(default_factory=Mapped)
    settings: Mapping[str, Json] = field(default_factory=dict)
    note: str = ""

    def cuts(self) -> list[CutPart]:
        """Return all texts that are cut, those of the user message first."""
        return [part for part in (*self.prompt, *self.system) if isinstance(part, CutPart)]


@dataclass(frozen=True, slots=True)
class Absence:
    """A role without an authors' prompt, and why."""

    role: str
    why: str
    when: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pack:
    """The prompts of a system's authors.

    Attributes:
        name: the system's folder.
        sources: files of the authors, and texts of their papers, by key.
        prompts: the first that fits a role and the system's settings is its prompt.
        without: roles that have none.
        settings: settings of the system that all its prompts need, such as how replies are read.
        otherwise: why a role that it does not name has none.
    """

    name: str
    sources: Mapping[str, Source]
    prompts: tuple[PackPrompt, ...]
    without: tuple[Absence, ...]
    settings: Mapping[str, Json] = field(default_factory=dict)
    otherwise: str = "the authors' release has no such call"

    def reference(self, prompt: PackPrompt, part: Part) -> PackReference | None:
        """Return the name of the fetched text; ``None`` where the authors have no system message."""
        digest = prompt.prompt_sha256 if part == "prompt" else prompt.system_sha256
        name = prompt.id if part == "prompt" else f"{prompt.id}.system"
        return None if digest is None else PackReference(self.name, name, digest[:DIGITS])

    def find(self, role: str, settings: Mapping[str, Any]) -> PackPrompt | Absence:
        """Return the prompt that these settings of the system ask for, or why there is none."""
        entries: tuple[PackPrompt | Absence, ...] = (*self.prompts, *self.without)
        for entry in entries:
            if entry.role == role and _applies(entry.when, settings):
                return entry
        return Absence(role, self.otherwise)


@dataclass(frozen=True, slots=True)
class Converted:
    """Texts of a prompt and the checksum of what was cut for them."""

    texts: Mapping[Part, str]
    cut_sha256: str


def convert_prompt(pack: Pack, prompt: PackPrompt, contents: Mapping[str, str]) -> Converted:
    """Cut and convert a prompt; nothing is compared yet.

    Args:
        pack: of the prompt.
        prompt: which.
        contents: text of each source file, by its key in the pack.

    Raises:
        DataError: a text is not where the catalogue says, or a slot is not in the map.
    """
    name = f"{pack.name}/{prompt.id}"
    pieces: list[Piece] = []
    texts: dict[Part, str] = {}
    for part in PARTS:
        parts = prompt.prompt if part == "prompt" else prompt.system
        if parts:
            texts[part] = "".join(_part_text(one, contents, pack, prompt.mapped, name, pieces) for one in parts)
    lacking = unused([segment for piece in pieces for segment in piece.segments], prompt.mapped)
    if lacking:
        raise DataError(f"prompt {name}: the text has no {', '.join(map(repr, lacking))}; correct the catalogue")
    source = "\n".join(piece.source for piece in pieces)
    return Converted(texts, sha256(source.encode()).hexdigest())


def _part_text(
    part: CutPart | str, contents: Mapping[str, str], pack: Pack, mapped: Mapped, name: str, pieces: list[Piece]
) -> str:
    if isinstance(part, str):
        return braced(part)
    content, file = contents[part.source], str(pack.sources[part.source])
    place = part.place
    piece = cut_lines(content, place, file) if isinstance(place, PaperCut) else cut(content, place, file)
    pieces.append(piece)
    return convert(piece.segments, mapped, name)


def check_converted(pack: Pack, prompt: PackPrompt, converted: Converted) -> None:
    """Compare the checksums with the catalogue's.

    Raises:
        DataError: one differs.
    """
    found = {"sha256": converted.cut_sha256}
    for part in PARTS:
        text = converted.texts.get(part)
        found[f"{part}_sha256"] = "" if text is None else sha256(text.encode()).hexdigest()
    for key, digest in found.items():
        wanted = getattr(prompt, key) or ""
        if digest != wanted:
            raise DataError(f"prompt {pack.name}/{prompt.id}: {key} is {digest}, the catalogue says {wanted or 'none'}")


def _applies(when: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    def value(dotted: str) -> Any:
        node: Any = settings
        for key in dotted.split("."):
            node = node.get(key) if isinstance(node, Mapping) else None
        return node

    return all(value(key) in (wanted if isinstance(wanted, list) else [wanted]) for key, wanted in when.items())


def pack_of(target: str) -> Pack | None:
    """Return the pack next to the system that a preset configures; ``None`` where it has none.

    Args:
        target: the preset's ``_target_``, such as ``memsys.clag.config.ClagConfig``.

    Raises:
        ConfigError: the pack is broken.
    """
    module = module_of(target)
    spec = find_spec(module) if module else None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    path = Path(folders[0]) / FILE if folders else None
    return read_pack(path) if path is not None and path.is_file() else None


def find_packs(root: Path) -> list[Pack]:
    """Return all packs of the checkout, by name."""
    places = [path for top in ("memsys", "baselines", "eval") for path in (root / top).glob(f"*/{FILE}")]
    return sorted((read_pack(path) for path in places), key=lambda pack: pack.name)


def read_pack(path: Path) -> Pack:
    """Read a pack, parsing each version of a file once; its name is the folder's where it gives none.

    Raises:
        ConfigError: it cannot be read, or a key is missing, unknown or has a wrong value.
    """
    try:
        written = path.stat().st_mtime_ns
    except OSError:
        written = 0
    return _read_pack(path, written)


@lru_cache(maxsize=256)
def _read_pack(path: Path, _written: int) -> Pack:
    """Read the version of a pack that was written at a time, in nanoseconds."""
    given = read_yaml(path, "restore it from the repository")
    try:
        sources = {key: make_source(source) for key, source in given["sources"].items()}
        prompts = tuple(_prompt(entry) for entry in given.get("prompts") or ())
        without = tuple(Absence(**entry) for entry in given.get("without") or ())
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(f"{path} is not a prompt pack: {' '.join(str(error).split())}") from error
    pack = Pack(str(given.get("name", path.parent.name)), sources, prompts, without, given.get("settings") or {})
    pack = replace(pack, otherwise=str(given.get("otherwise", pack.otherwise)))
    _check(pack, path)
    return pack


def _check(pack: Pack, path: Path) -> None:
    names = [prompt.id for prompt in pack.prompts]
    repeated = sorted({name for name in names if names.count(name) > 1})
    cuts = [part for one in pack.prompts for part in one.cuts()]
    unknown = sorted({part.source for part in cuts} - set(pack.sources))
    if repeated or unknown:
        raise ConfigError(f"{path}: repeated ids: {repeated or 'none'}; unknown sources: {unknown or 'none'}")
    for part in cuts:
        if isinstance(part.place, PaperCut) != isinstance(pack.sources[part.source], PaperText):
            raise ConfigError(f"{path}: source {part.source}: a paper is cut by its lines, and nothing else is")


def _prompt(entry: Mapping[str, Any]) -> PackPrompt:
    given = dict(entry)
    source = str(given.pop("source", ""))
    mapped = Mapped(
        slots=given.pop("slots", {}),
        replace=given.pop("replace", {}),
        spans=[(span["from"], span["to"], span["with"]) for span in given.pop("spans", ())],
    )
    prompt, system = ([_part(part, source) for part in given.pop(key, ())] for key in PARTS)
    made = PackPrompt(prompt=prompt, system=system, mapped=mapped, **given)
    return replace(made, sha256=str(made.sha256), prompt_sha256=str(made.prompt_sha256))


def _part(part: Mapping[str, Any], source: str) -> CutPart | str:
    if "text" in part:
        return str(part["text"])
    given = dict(part)
    source = str(given.pop("source", source))
    if "lines" in given:
        first, last = given.pop("lines")
        return CutPart(source, PaperCut((first, last), **given))
    return CutPart(source, Cut(**{"scope": str(given.pop("in", "")), **given}))
