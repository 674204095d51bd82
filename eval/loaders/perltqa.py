"""PerLTQA (Du et al., 2024): personal long-term memories of invented characters, with questions on each.

English version 2 (which xMemory uses), the original English version and the Chinese original; all layouts are
recognised.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.jsonfile import JsonNode, read_json
from eval.loaders.label_problems import LABEL_PROBLEM, LOW_SUPPORT
from eval.loaders.locate import find_source, sample_path
from eval.loaders.perltqa_memory import Source, read_character, records
from eval.loaders.perltqa_questions import SECTIONS, ask, by_character, read_entries
from eval.loaders.records import hash_of_files
from eval.loaders.selection import Selection, check_choice, check_positive, count
from memsys.errors import ConfigError
from memsys.seeding import generator
from memsys.settings import check_share
from memsys.vocabulary import Sample

FOLDER = "perltqa"
#: Names of the files of version 2, which the sample's bear too.
_NAMES = ("perltmem_en_v2.json", "perltqa_en_v2.json")
#: Names of the Chinese files, which the Chinese sample's bear too.
_CHINESE = ("perltmem.json", "perltqa.json")
#: Characters of the published files of version 2, whose checksums we do not have.
_SIZES = (12_862_915, 6_766_562)
_V2 = "https://raw.githubusercontent.com/Elvin-Yiming-Du/PerLTQA/67f8351aa6cedddcfc9985e475cfb5565ffd6fa8/Dataset/en_v2"

PERLTQA = DatasetInfo(
    key="perltqa",
    title="PerLTQA (English, version 2)",
    homepage="https://github.com/Elvin-Yiming-Du/PerLTQA",
    licence="CC BY-NC 4.0",
    citation="Du et al., PerLTQA: A Personal Long-Term Memory Dataset for Memory Classification, Retrieval, and "
    "Synthesis in Question Answering, arXiv 2402.16288, 2024",
    files=tuple(PinnedFile(f"{FOLDER}/{name}", sha256="", size=0, url=f"{_V2}/{name}") for name in _NAMES),
    category_names=SECTIONS,
    kinds=SECTIONS,
    note_meanings={
        "sizes_as_published": "both files have the published number of characters",
        "characters_without_memory": "characters with questions alone; left out",
        "characters_without_questions": "characters with a memory alone; not ingested",
        "questions_without_memory": "questions on characters without memory",
        "questions_without_answer_dropped": "questions without question or answer text",
        "repeated_questions": "questions that occur more than once in their group; all asked",
        "empty_profile_fields": "profile fields without a value; left out",
        "lines_without_speaker": "dialogue lines joined to the line before",
        "sections_from_text": "relationships stored as the text of a Python dict; parsed",
        "sections_unreadable": "relationships stored as text that cannot be parsed; left out",
        "undated_events": "events with a time without year; placed next to their siblings",
        "undated_dialogue_blocks": "dialogues with a time without year; likewise",
        "unreadable_references": "references that are no list and no id",
        "unresolved_references": "references to memories that are not there",
        "low_support_by_section": "selected questions with an answer that is mostly not in the memory they name",
    },
)


@dataclass(frozen=True, kw_only=True)
class PerltqaConfig(Selection):
    """Settings of the PerLTQA loader; see :class:`eval.loaders.selection.Selection` for the rest.

    Attributes:
        name: the preset's name.
        memory_file: name of the memory file in the folder.
        question_file: name of the question file in the folder.
        sources: what is ingested; ``profile_description`` restates the profile and is off by default.
        per_section: questions drawn from each section of each character; ``None`` takes all.
        min_support: questions whose answer the memory they name holds to a smaller share are marked as doubtful, so
            so that tables also show means without them; none is left out. See
            :func:`eval.loaders.perltqa_questions.support`.
        seed: of that draw.
    """

    name: str = "perltqa"
    memory_file: str = _NAMES[0]
    question_file: str = _NAMES[1]
    sources: Sequence[Source] = ("profile", "relationships", "events", "dialogues")
    per_section: int | None = None
    min_support: float = 0.5
    seed: int = 42

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.sources, str) or not self.sources:
            raise ConfigError(f"dataset.sources={self.sources!r} must be a list of {', '.join(get_args(Source))}")
        for source in self.sources:
            check_choice("sources", source, get_args(Source))
        object.__setattr__(self, "sources", tuple(self.sources))
        if self.per_section is not None:
            check_positive("per_section", self.per_section, " (null: all)")
        check_share(self, "dataset", "min_support")

    @property
    def info(self) -> DatasetInfo:
        """Facts of PerLTQA."""
        return PERLTQA

    def load(self) -> LoadedData:
        """Read both files, join them by character, and select."""
        memory, questions = (self._file(name) for name in self._names())
        everything, quirks, sha256 = read_perltqa(memory, questions, self.sources)
        if self.per_section is not None:
            everything = [_draw(sample, self.per_section, self.seed) for sample in everything]
        samples = self.apply([_mark(sample, self.min_support) for sample in everything], PERLTQA.category_names)
        return LoadedData(
            samples=samples,
            sha256=sha256,
            source_name=f"{memory.name}, {questions.name}",
            category_names=PERLTQA.category_names,
            counts=count(samples),
            notes={
                "pinned": False,
                "sizes_as_published": [_characters(memory), _characters(questions)] == list(_SIZES),
                "sample": self.sample,
                **dict(sorted(quirks.items())),
                **_low_support(samples),
            },
        )

    def _names(self) -> tuple[str, str]:
        chosen = (self.memory_file, self.question_file)
        return _NAMES if self.sample and chosen != _CHINESE else chosen

    def _file(self, name: str) -> Path:
        if self.sample:
            return sample_path(FOLDER, f"sample/{name}")
        explicit = str(Path(self.path) / name) if self.path else None
        return find_source(PERLTQA, f"{FOLDER}/{name}", explicit, self.data_dir)


def read_perltqa(
    memory_file: Path, question_file: Path, sources: Sequence[Source]
) -> tuple[list[Sample], Counter[str], str]:
    """Join memories and questions by character, in the order of the question file.

    Returns:
        One sample per character with questions, what was met on the way, and the sha256 over both files' checksums.
    """
    memory_top, memory_hash = read_json(memory_file)
    question_top, question_hash = read_json(question_file)
    quirks: Counter[str] = Counter()
    memories = _by_name(records(memory_top))
    asked = _by_name(by_character(question_top))
    quirks["characters_without_questions"] = len(memories.keys() - asked.keys())
    samples = []
    for name, node in asked.items():
        if name not in memories:
            quirks["characters_without_memory"] += 1
            quirks["questions_without_memory"] += len(read_entries(node))
            continue
        character = read_character(name, memories[name], sources, quirks)
        questions, references = ask(character, read_entries(node), quirks)
        samples.append(Sample(character.conversation, tuple(questions), {ref.question_id: ref for ref in references}))
    hashes = {memory_file.name: memory_hash, question_file.name: question_hash}
    return samples, quirks, hash_of_files(hashes)


def _characters(path: Path) -> int:
    return len(path.read_text(encoding="utf-8"))


def _by_name(pairs: Iterable[tuple[str, JsonNode]]) -> dict[str, JsonNode]:
    """Return the index of characters by trimmed name, the only key that matches them."""
    found: dict[str, JsonNode] = {}
    for name, node in pairs:
        if name in found:
            raise node.error(f"duplicate character {name!r}")
        found[name] = node
    return found


def _draw(sample: Sample, per_section: int, seed: int) -> Sample:
    """Draw questions of each section, kept in the order of the file."""
    by_section: dict[int, list[int]] = defaultdict(list)
    for position, question in enumerate(sample.questions):
        by_section[question.category].append(position)
    chosen: set[int] = set()
    for category, positions in by_section.items():
        random = generator(seed, "perltqa", sample.conversation.conversation_id, category)
        chosen.update(random.permutation(positions)[:per_section].tolist())
    questions = tuple(sample.questions[position] for position in sorted(chosen))
    references = {question.question_id: sample.references[question.question_id] for question in questions}
    return replace(sample, questions=questions, references=references)


def _mark(sample: Sample, min_support: float) -> Sample:
    references = {
        question_id: replace(reference, extra={**reference.extra, LABEL_PROBLEM: LOW_SUPPORT})
        if reference.extra.get("support", 1.0) < min_support
        else reference
        for question_id, reference in sample.references.items()
    }
    return replace(sample, references=references)


def _low_support(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    """Count questions per section whose answer is mostly absent from the memory it refers to."""
    low: Counter[str] = Counter()
    for sample in samples:
        for reference in sample.references.values():
            low[str(reference.extra["section"])] += LABEL_PROBLEM in reference.extra
    return {"low_support_by_section": dict(sorted(low.items()))}
