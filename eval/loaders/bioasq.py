"""BioASQ-20: biomedical factoid and list questions over pools of snippet sentences, built as CLAG builds them.

The six golden test batches of Task 10b are merged, factoid and list questions with snippets and an exact answer are
kept and shuffled, and the first ten chunks of twenty become pools. A pool's memory is its own questions' snippets in
sentences: there are no other distractors.
"""

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.jsonfile import JsonNode, read_json
from eval.loaders.locate import find_source, sample_path, warn_of_missing
from eval.loaders.pooled import PooledQuestion, PooledSelection, PooledText, make_pool
from eval.loaders.question_types import LIST, SINGLE_HOP
from eval.loaders.records import hash_of_files
from eval.loaders.selection import check_choice, count
from memsys.errors import DataError
from memsys.vocabulary import Sample

FOLDER = "bioasq10b"
_PINS = {
    "10B1_golden.json": ("ef0a762ca4304854a8421581701ab0182bf3290de9ee23b55a7a27243d0528f0", 476_512),
    "10B2_golden.json": ("d4e51037d2821b3938e7e06a4f21da2d0abef501e7ac0e5cad4e676e3e2ac0b7", 501_837),
    "10B3_golden.json": ("3fe1ba47176e4956b4b6dd4610adc9cae7f7cb8059194aa2a495444f9fd8f71c", 442_547),
    "10B4_golden.json": ("3ea3a9a7fbaa19288fb0dfa2d36461161714695363bfd9c2d558a32b25e4c2ce", 489_896),
    "10B5_golden.json": ("ed5648fc222e4c24a5f63cb849b81d1e383f4834ad95fae5aa0a8e65d1f409e8", 541_060),
    "10B6_golden.json": ("bf59785a8293b3fac257125e6c82227ce47aecac824cfe8bb00bedc429ef8902", 322_974),
}
CATEGORIES = {"factoid": 4, "list": 6}
#: Kinds of question that have no short answer; CLAG leaves them out.
_UNUSED = ("yesno", "summary")

BIOASQ = DatasetInfo(
    key="bioasq20",
    title="BioASQ-20 (Task 10b golden batches 1 to 6)",
    homepage="http://participants-area.bioasq.org/datasets/",
    licence="BioASQ terms, after free registration; abstracts under the terms of the National Library of Medicine",
    citation="Tsatsaronis et al., An overview of the BIOASQ large-scale biomedical semantic indexing and question "
    "answering competition, BMC Bioinformatics 16, 2015",
    files=tuple(PinnedFile(f"{FOLDER}/{name}", sha256, size) for name, (sha256, size) in _PINS.items()),
    category_names={number: name for name, number in CATEGORIES.items()},
    kinds={CATEGORIES["factoid"]: SINGLE_HOP, CATEGORIES["list"]: LIST},
    floor_preset="bioasq20_clag",
    note_meanings={
        "usable_questions": "factoid and list questions with snippets and an answer",
        "usable_by_category": "of these, by category",
        "repeated_snippets_dropped": "snippets that a question gives twice",
        "skipped_summary": "questions that ask for a text",
        "skipped_yesno": "questions answered by yes or no",
        "skipped_without_answer": "factoid and list questions without exact answer",
        "skipped_without_snippets": "factoid and list questions without snippet",
    },
    how_to_get=(
        "Register (free of charge) at http://participants-area.bioasq.org, open Datasets, and download the Task 10b "
        "golden enriched test set; its archive contains 10B1_golden.json to 10B6_golden.json."
    ),
)

Build = Literal["gold_context", "plain"]
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True, kw_only=True)
class BioasqConfig(PooledSelection):
    """Settings of the BioASQ loader; see :class:`eval.loaders.pooled.PooledSelection` for the rest.

    Attributes:
        name: the preset's name.
        build: ``gold_context`` drops a question's repeated snippets; ``plain`` keeps them.
        seed: of the shuffle.
    """

    name: str = "bioasq20"
    build: Build = "gold_context"
    seed: int = 42

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("build", self.build, get_args(Build))

    @property
    def info(self) -> DatasetInfo:
        """Facts of BioASQ-20."""
        return BIOASQ

    def load(self) -> LoadedData:
        """Read the batches, build the pools, and select."""
        if self.sample:
            folder = sample_path("bioasq20", "sample")
        else:
            folder = find_source(BIOASQ, FOLDER, self.path, self.data_dir)
        records, skipped, hashes = read_batches(folder, keep_repeats=self.build == "plain")
        warn_of_missing(folder, BIOASQ, () if self.sample else _PINS, hashes)
        everything = build_pools(records, *self.pool_sizes(len(records)), self.seed, self.date_time)
        samples = self.apply(everything, BIOASQ.category_names)
        return LoadedData(
            samples=samples,
            sha256=hash_of_files(hashes),
            source_name=folder.name,
            category_names=BIOASQ.category_names,
            counts=count(samples),
            notes={
                "pinned": hashes == {name: sha256 for name, (sha256, _) in _PINS.items()},
                "sample": self.sample,
                "files": dict(hashes),
                "usable_questions": len(records),
                "usable_by_category": dict(sorted(Counter(str(record.category) for record in records).items())),
                **dict(sorted(skipped.items())),
            },
        )


@dataclass(frozen=True, slots=True)
class BioasqRecord:
    """One usable question: its snippets in sentences, and its answer items, each with its synonyms."""

    source_id: str
    text: str
    category: int
    snippets: tuple[tuple[str, ...], ...]
    items: tuple[tuple[str, ...], ...]


def read_batches(folder: Path, keep_repeats: bool) -> tuple[list[BioasqRecord], Counter[str], dict[str, str]]:
    """Read every ``10B*_golden.json`` of a folder, in the order of their names.

    Returns:
        The usable questions, how many were left out and why, and the sha256 of each file.

    Raises:
        DataError: no such file, or one of the wrong shape.
    """
    if folder.is_file():
        raise DataError(f"{folder} is a file; dataset.path names the folder that holds the files 10B*_golden.json")
    paths = sorted(folder.glob("10B*_golden.json"))
    if not paths:
        raise DataError(f"{folder}: holds no 10B*_golden.json. {BIOASQ.how_to_get}")
    records: list[BioasqRecord] = []
    skipped: Counter[str] = Counter()
    hashes: dict[str, str] = {}
    seen: set[str] = set()
    for path in paths:
        top, hashes[path.name] = read_json(path)
        for node in top.get("questions").elements():
            record = _record(node, keep_repeats, skipped)
            if record is None:
                continue
            if record.source_id in seen:
                raise node.get("id").error(f"duplicate question id {record.source_id!r}")
            seen.add(record.source_id)
            records.append(record)
    return records, skipped, hashes


def _record(node: JsonNode, keep_repeats: bool, skipped: Counter[str]) -> BioasqRecord | None:
    kind = node.get("type").text()
    if kind not in (*CATEGORIES, *_UNUSED):
        known = ", ".join((*CATEGORIES, *_UNUSED))
        raise node.get("type").error(f"unknown type {kind!r}; known are {known}")
    if kind in _UNUSED:
        skipped[f"skipped_{kind}"] += 1
        return None
    snippets = _snippets(node, keep_repeats, skipped)
    items = _answer_items(node)
    if not snippets or not items:
        skipped["skipped_without_snippets" if not snippets else "skipped_without_answer"] += 1
        return None
    return BioasqRecord(
        source_id=node.get("id").text(),
        text=node.get("body").text().strip(),
        category=CATEGORIES[kind],
        snippets=tuple(tuple(split_sentences(snippet)) for snippet in snippets),
        items=items,
    )


def _snippets(node: JsonNode, keep_repeats: bool, skipped: Counter[str]) -> list[str]:
    found = node.find("snippets")
    texts = [snippet.get("text").text() for snippet in found.elements()] if found else []
    texts = [text for text in texts if text.strip()]
    if keep_repeats:
        return texts
    unique: dict[str, str] = {}
    for text in texts:
        unique.setdefault(" ".join(text.split()).lower(), text)
    skipped["repeated_snippets_dropped"] += len(texts) - len(unique)
    return list(unique.values())


def split_sentences(text: str) -> list[str]:
    """Split after ``.``, ``!`` or ``?`` followed by white space, as CLAG's builder does; white space collapses."""
    return [sentence for sentence in _SENTENCE_END.split(" ".join(text.split())) if sentence]


def _answer_items(node: JsonNode) -> tuple[tuple[str, ...], ...]:
    """Read the answer's items, each a list of synonyms; items without a first synonym are left out."""
    answer = node.find("exact_answer")
    items = [item.texts() for item in answer.elements()] if answer else []
    return tuple(tuple(name.strip() for name in item if name.strip()) for item in items if item and item[0].strip())


def build_pools(
    records: Sequence[BioasqRecord], pools: int, pool_questions: int, seed: int, date_time: str | None = None
) -> list[Sample]:
    """Shuffle the questions and cut them into pools.

    The order must be CLAG's, so the shuffle is Python's own and not the harness's generator.
    """
    order = list(range(len(records)))
    random.Random(seed).shuffle(order)
    chunks = [order[n * pool_questions : (n + 1) * pool_questions] for n in range(pools)]
    return [_pool(number, [records[index] for index in chunk], date_time) for number, chunk in enumerate(chunks)]


def _pool(number: int, records: Sequence[BioasqRecord], date_time: str | None) -> Sample:
    texts: list[PooledText] = []
    questions: list[PooledQuestion] = []
    for record in records:
        first = len(texts)
        for place, snippet in enumerate(record.snippets):
            texts += [PooledText(sentence, f"{record.source_id}/{place}") for sentence in snippet]
        questions.append(
            PooledQuestion(
                source_id=record.source_id,
                text=record.text,
                answer=" ; ".join(item[0] for item in record.items),
                category=record.category,
                kind=BIOASQ.kinds[record.category],
                gold=range(first, len(texts)),
                extra=_synonyms(record),
            )
        )
    return make_pool("bioasq20", number, texts, questions, date_time)


def _synonyms(record: BioasqRecord) -> Mapping[str, list[list[str]]]:
    return {"answer_items": [list(item) for item in record.items]}
