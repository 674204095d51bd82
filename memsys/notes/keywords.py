"""Role ``keywords``: the question as one string of comma-separated keywords, which is what A-Mem and CLAG search by."""

from collections.abc import Callable
from dataclasses import dataclass

from memsys.llm.contract import LanguageModel, Role
from memsys.seeding import question_key


@dataclass(frozen=True, slots=True)
class Keywords:
    """The keyword string and its parts. ``fallback`` names what replaced it, ``None`` if the reply was good.

    Fallbacks: ``raw_reply`` (malformed, the raw text is taken), ``question`` (nothing left to search by).
    """

    text: str
    fallback: str | None = None

    @property
    def tags(self) -> list[str]:
        """The string split on commas, without empty parts."""
        return [tag for part in self.text.split(",") if (tag := part.strip())]


async def ask_keywords(
    llm: LanguageModel,
    role: Role,
    question: str,
    *,
    question_if_empty: bool = True,
    read_text: Callable[[str], str] = str.strip,
) -> Keywords:
    """Turn a question into keywords with one call.

    Args:
        llm: the backbone.
        role: the role ``keywords``; without a schema its reply is free text.
        question: the question.
        question_if_empty: search by the question where no keyword is left; otherwise by the empty string, as the
            official code does.
        read_text: finds the keywords in a reply that is not an object of the role's schema.
    """
    key = question_key(question)
    reply = await llm.ask(role, {"question": question}, key=key)
    text = read_text(reply.text) if reply.value is None else role.reading.text(reply.value["keywords"])
    keywords = Keywords(text, "raw_reply" if reply.malformed else None)
    if question_if_empty and not keywords.tags:
        return Keywords(question, "question")
    return keywords
