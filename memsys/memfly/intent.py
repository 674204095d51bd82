"""Role ``intent``: what a question is about, as a heading and as keywords (paper, equation 11)."""

from dataclasses import dataclass

from memsys.embedding.contract import Embedder
from memsys.index.words import words
from memsys.llm.contract import LanguageModel, Role
from memsys.memfly.pathways import Signals
from memsys.memfly.phrases import question_keywords
from memsys.seeding import question_key


@dataclass(frozen=True, slots=True)
class Intent:
    """A parsed question.

    Attributes:
        topic: heading.
        keywords: names, things, terms.
        fallbacks: what stood in: ``intent:malformed`` for both, ``intent:no_topic`` for the heading (the question is
            taken), ``intent:no_keywords`` for the keywords (the question's content words are taken).
    """

    topic: str
    keywords: tuple[str, ...]
    fallbacks: tuple[str, ...] = ()


async def ask_intent(llm: LanguageModel, role: Role, question: str, max_words: int) -> Intent:
    """Parse a question with one call.

    Args:
        llm: the backbone.
        role: the role ``intent``.
        question: the question or a sub-question.
        max_words: longest keyword.
    """
    reply = await llm.ask(role, {"question": question}, key=question_key(question))
    value = reply.value or {"topic_desc": "", "keywords": []}
    topic = " ".join(value["topic_desc"].split())
    keywords = question_keywords(value["keywords"], max_words)
    fallbacks = [] if topic else ["intent:no_topic"]
    fallbacks += [] if keywords else ["intent:no_keywords"]
    return Intent(
        topic=topic or question,
        keywords=tuple(keywords) or tuple(dict.fromkeys(words(question))),
        fallbacks=("intent:malformed",) if reply.value is None else tuple(fallbacks),
    )


async def embed_signals(embedder: Embedder, question: str, intent: Intent) -> Signals:
    """Embed what the pathways search by, in one batch."""
    vectors = await embedder.embed([question, intent.topic, *intent.keywords])
    return Signals(vectors[0], vectors[1], vectors[2:])
