"""Readers of HotpotQA: CLAG's released pools, the official distractor file, the Hugging Face set."""

import hashlib
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from eval.loaders.hotpotqa_pools import CATEGORY, ArticleParagraph, ParagraphPool, PoolEntry, Record
from eval.loaders.jsonfile import JsonNode, read_json
from memsys.errors import DataError

HUB_NAME = "hotpotqa/hotpot_qa"
#: The commit of the set that is read.
HUB_REVISION = "1908d6afbbead072334abe2965f91bd2709910ab"
_TITLE, _CONTENT = "Title: ", "\nContent: "


def read_released(path: Path) -> tuple[list[ParagraphPool], str]:
    """Read ``hotpot_200.json``.

    Returns:
        Its pools in the order of the file, and the file's sha256.
    """
    top, sha256 = read_json(path)
    return [_released_pool(node) for node in top.elements()], sha256


def _released_pool(node: JsonNode) -> ParagraphPool:
    turns = node.get("conversation").get("session_0").elements()
    titled = [_title_and_content(turn.get("text")) for turn in turns]
    paragraph_of: dict[str, int] = {}
    sizes: list[int] = []
    paragraphs: list[ArticleParagraph] = []
    runs = groupby(zip(turns, titled, strict=True), key=lambda item: item[1][0])
    for number, (title, group) in enumerate(runs):
        sentences: list[str] = []
        for turn, (_, content) in group:
            turn_id = turn.get("dia_id")
            if turn_id.text() in paragraph_of:
                raise turn_id.error(f"duplicate turn id {turn_id.value!r}")
            paragraph_of[turn_id.text()] = number
            sentences.append(content)
        sizes.append(len(sentences))
        paragraphs.append(ArticleParagraph(title, tuple(sentences)))
    items = node.get("qa").elements()
    _check_unique([item.get("question_id") for item in items])
    return ParagraphPool(tuple(paragraphs), tuple(_released_question(item, paragraph_of, sizes) for item in items))


def _check_unique(ids: list[JsonNode]) -> None:
    seen: set[str] = set()
    for node in ids:
        if node.text() in seen:
            raise node.error(f"duplicate question id {node.value!r}")
        seen.add(node.text())


def _title_and_content(text: JsonNode) -> tuple[str, str]:
    head, separator, content = text.text().partition(_CONTENT)
    if not separator or not head.startswith(_TITLE):
        raise text.error("expected 'Title: <title>' and 'Content: <sentence>' on two lines")
    return head.removeprefix(_TITLE), content


def _released_question(node: JsonNode, paragraph_of: dict[str, int], sizes: list[int]) -> PoolEntry:
    """Read a question. Its gold ids are whole paragraphs, which is checked: the pools are rebuilt from paragraphs."""
    gold_ids = node.get("gold_turn_ids")
    unknown = [turn_id for turn_id in gold_ids.texts() if turn_id not in paragraph_of]
    if unknown:
        raise gold_ids.error(f"{unknown!r} name no turn of this pool")
    gold = tuple(sorted({paragraph_of[turn_id] for turn_id in gold_ids.texts()}))
    if sum(sizes[paragraph] for paragraph in gold) != len(set(gold_ids.texts())):
        raise gold_ids.error("does not hold every sentence of its paragraphs")
    if node.get("category").integer() != CATEGORY:
        raise node.get("category").error(f"unknown category {node.get('category').value}; known is {CATEGORY}")
    return PoolEntry(
        source_id=node.get("question_id").text(),
        question=node.get("question").text(),
        answer=node.get("answer").text(),
        own=gold,
        gold=gold,
    )


def read_official(path: Path) -> tuple[list[Record], str]:
    """Read the official distractor file (``hotpot_dev_distractor_v1.json``).

    Returns:
        Its questions in the order of the file, and the file's sha256.
    """
    top, sha256 = read_json(path)
    _check_unique([node.get("_id") for node in top.elements()])
    return [_official_record(node) for node in top.elements()], sha256


def read_hub(split: str) -> tuple[list[Record], str]:
    """Read the distractor set from the Hugging Face hub or its local cache.

    Returns:
        Its questions, and a sha256 over their canonical JSON, since the hub serves no single file.

    Raises:
        DataError: the hub cannot be reached and its cache does not have the set.
    """
    from datasets import load_dataset

    try:
        rows = load_dataset(HUB_NAME, "distractor", split=split, revision=HUB_REVISION)
    except (ConnectionError, FileNotFoundError, ValueError) as error:
        raise DataError(
            f"{HUB_NAME} (distractor, {split}) cannot be loaded from the Hugging Face hub: {error}. Download "
            "hotpot_dev_distractor_v1.json by hand and use dataset.source=distractor_file dataset.path=..."
        ) from error
    return records_of_rows([dict(row) for row in rows], f"{HUB_NAME}:{split}")


def records_of_rows(rows: list[dict[str, object]], name: str) -> tuple[list[Record], str]:
    """Turn the hub's rows, whose lists are columns, into records; see :func:`read_hub`."""
    sha256 = hashlib.sha256(json.dumps(rows, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    records = [_official_record(JsonNode(_row(row), row.path, name)) for row in JsonNode(rows, "", name).elements()]
    return records, sha256


def _row(row: JsonNode) -> dict[str, object]:
    context, facts = row.get("context"), row.get("supporting_facts")
    titles, sentences = context.get("title").texts(), [node.texts() for node in context.get("sentences").elements()]
    fact_titles, fact_ids = facts.get("title").texts(), [node.integer() for node in facts.get("sent_id").elements()]
    return {
        "_id": row.get("id").text(),
        "question": row.get("question").text(),
        "answer": row.get("answer").text(),
        "context": _joined(context, titles, sentences),
        "supporting_facts": _joined(facts, fact_titles, fact_ids),
    }


def _joined(node: JsonNode, one: Sequence[object], other: Sequence[object]) -> list[list[object]]:
    if len(one) != len(other):
        raise node.error(f"columns of different lengths, {len(one)} and {len(other)}")
    return [list(pair) for pair in zip(one, other, strict=True)]


def _official_record(node: JsonNode) -> Record:
    paragraphs = tuple(_paragraph(pair) for pair in node.get("context").elements())
    titles = {paragraph.title for paragraph in paragraphs}
    facts = []
    for pair in node.get("supporting_facts").elements():
        title, sentence = _pair(pair)
        if title.text() not in titles:
            raise title.error(f"{title.value!r} is not a title of this question's context")
        if sentence.integer() < 0:
            raise sentence.error(f"{sentence.value} is not a position of a sentence; the first is 0")
        facts.append((title.text(), sentence.integer()))
    return Record(
        source_id=node.get("_id").text(),
        question=node.get("question").text(),
        answer=node.get("answer").text(),
        paragraphs=paragraphs,
        gold_titles=tuple(dict.fromkeys(title for title, _ in facts)),
        facts=tuple(facts),
    )


def _paragraph(node: JsonNode) -> ArticleParagraph:
    title, sentences = _pair(node)
    return ArticleParagraph(title.text(), tuple(sentences.texts()))


def _pair(node: JsonNode) -> tuple[JsonNode, JsonNode]:
    parts = node.elements()
    if len(parts) != 2:
        raise node.error(f"expected a pair, found {len(parts)} elements")
    return parts[0], parts[1]
