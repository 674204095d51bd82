"""Pools of HotpotQA paragraphs: drawn from questions, and cut into memories."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eval.loaders.pooled import PooledQuestion, PooledText, make_pool
from eval.loaders.question_types import MULTI_HOP
from memsys.errors import ConfigError
from memsys.seeding import generator
from memsys.vocabulary import Sample

#: HotpotQA has one kind of question; CLAG's file numbers it 4.
CATEGORY = 4
PREFIX = "hotpotqa20"

#: What one turn holds.
PassageUnit = Literal["sentence", "paragraph"]


@dataclass(frozen=True, slots=True)
class ArticleParagraph:
    """The first paragraph of a Wikipedia article, in sentences."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One question of the official set: its ten paragraphs, gold titles, and (title, sentence) facts."""

    source_id: str
    question: str
    answer: str
    paragraphs: tuple[ArticleParagraph, ...]
    gold_titles: tuple[str, ...]
    facts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """One question of a pool. ``own`` and ``gold`` are positions of paragraphs, ``facts`` of (paragraph, sentence)."""

    source_id: str
    question: str
    answer: str
    own: tuple[int, ...]
    gold: tuple[int, ...]
    facts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ParagraphPool:
    """The paragraphs of several questions, and the questions."""

    paragraphs: tuple[ArticleParagraph, ...]
    questions: tuple[PoolEntry, ...]


def draw_pools(records: Sequence[Record], pools: int, pool_questions: int, seed: int) -> list[ParagraphPool]:
    """Draw questions without repetition and join the paragraphs of each ``pool_questions`` of them."""
    wanted = pools * pool_questions
    order = generator(seed, "hotpotqa").permutation(len(records))[:wanted]
    return [
        _join([records[i] for i in order[start : start + pool_questions]]) for start in range(0, wanted, pool_questions)
    ]


def _join(records: Sequence[Record]) -> ParagraphPool:
    """Lay the paragraphs out in the order of the questions; a title met again is not repeated."""
    positions: dict[str, int] = {}
    paragraphs: list[ArticleParagraph] = []
    asked: list[PoolEntry] = []
    for record in records:
        for paragraph in record.paragraphs:
            if paragraph.title not in positions:
                positions[paragraph.title] = len(paragraphs)
                paragraphs.append(paragraph)
        asked.append(
            PoolEntry(
                source_id=record.source_id,
                question=record.question,
                answer=record.answer,
                own=tuple(positions[paragraph.title] for paragraph in record.paragraphs),
                gold=tuple(positions[title] for title in record.gold_titles),
                facts=tuple((positions[title], sentence) for title, sentence in record.facts),
            )
        )
    return ParagraphPool(tuple(paragraphs), tuple(asked))


def one_memory_per_pool(
    pools: Sequence[ParagraphPool], unit: PassageUnit, date_time: str | None = None
) -> list[Sample]:
    """Return one memory per pool, its questions asked of it."""
    return [_sample(number, pool, unit, date_time) for number, pool in enumerate(pools)]


def one_memory_per_question(
    pools: Sequence[ParagraphPool], unit: PassageUnit, passages: int, seed: int, date_time: str | None = None
) -> list[Sample]:
    """Return one memory per question: its own paragraphs, filled up to ``passages`` with others of its pool, shuffled.

    CLAG's file does not say which distractors belong to which question; there the own paragraphs are the gold ones.
    """
    single = [_narrow(pool, asked, passages, seed) for pool in pools for asked in pool.questions]
    return [_sample(number, pool, unit, date_time) for number, pool in enumerate(single)]


def _narrow(pool: ParagraphPool, asked: PoolEntry, passages: int, seed: int) -> ParagraphPool:
    if passages < len(asked.own) or passages > len(pool.paragraphs):
        raise ConfigError(
            f"dataset.passages_per_question={passages} must lie between the question's own {len(asked.own)} "
            f"and the {len(pool.paragraphs)} paragraphs of its pool"
        )
    random = generator(seed, "hotpotqa", asked.source_id)
    others = [n for n in range(len(pool.paragraphs)) if n not in asked.own]
    added = random.choice(others, size=passages - len(asked.own), replace=False).tolist()
    chosen = random.permutation([*asked.own, *added]).tolist()
    place = {old: new for new, old in enumerate(chosen)}
    moved = PoolEntry(
        source_id=asked.source_id,
        question=asked.question,
        answer=asked.answer,
        own=tuple(place[n] for n in asked.own),
        gold=tuple(place[n] for n in asked.gold),
        facts=tuple((place[n], sentence) for n, sentence in asked.facts),
    )
    return ParagraphPool(tuple(pool.paragraphs[n] for n in chosen), (moved,))


def _sample(number: int, pool: ParagraphPool, unit: PassageUnit, date_time: str | None) -> Sample:
    texts: list[PooledText] = []
    places: list[list[int]] = []
    for paragraph in pool.paragraphs:
        contents = paragraph.sentences if unit == "sentence" else ("".join(paragraph.sentences),)
        places.append(list(range(len(texts), len(texts) + len(contents))))
        written = [f"Title: {paragraph.title}\nContent: {content}" for content in contents]
        texts += [PooledText(text, paragraph.title) for text in written]
    questions = [
        PooledQuestion(
            source_id=asked.source_id,
            text=asked.question,
            answer=asked.answer,
            category=CATEGORY,
            kind=MULTI_HOP,
            gold=[place for paragraph in asked.gold for place in places[paragraph]],
            extra=_facts(number, asked, places, unit),
        )
        for asked in pool.questions
    ]
    return make_pool(PREFIX, number, texts, questions, date_time)


def _facts(number: int, asked: PoolEntry, places: Sequence[Sequence[int]], unit: PassageUnit) -> dict[str, list[str]]:
    """Return the supporting facts, without indices past the end of a paragraph."""
    if not asked.facts or unit == "paragraph":
        return {}
    found = [places[paragraph][n] for paragraph, n in asked.facts if n < len(places[paragraph])]
    return {"supporting_facts": [f"{number}:{place}" for place in found]}
