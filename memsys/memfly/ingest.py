"""Role ``ingest``: one turn as keywords and a denoised statement (paper, equation 5), from the turn alone."""

from dataclasses import dataclass

from memsys.embedding.contract import Embedder, Vectors
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.memfly.note import RawItem, raw_items, raw_text
from memsys.memfly.phrases import fallback_phrases, turn_keywords
from memsys.memfly.roles import TEXTS
from memsys.memfly.rules import IngestRules
from memsys.turns import TurnFormat
from memsys.vocabulary import Unit


@dataclass(frozen=True, slots=True)
class Denoised:
    """A turn made ready for the store, which it does not know yet.

    Attributes:
        raw: the turns.
        context: the denoised statement, or the raw text.
        keywords: phrases, their canonical keys distinct.
        context_vector: embedding of ``context``, shape (d,).
        keyword_vectors: embeddings of ``keywords``, shape (n, d).
        malformed: the reply was not a valid object: the context is the raw text, the keywords were found without a
            model.
        context_empty: the reply was valid but its context, where one is wanted, empty: the raw text is used.
        phatic: the turn holds no keyword and few words.
    """

    raw: tuple[RawItem, ...]
    context: str
    keywords: tuple[str, ...]
    context_vector: Vectors
    keyword_vectors: Vectors
    malformed: bool
    context_empty: bool
    phatic: bool


@dataclass(frozen=True, slots=True)
class NoteIngestion:
    """Asks the role and embeds what came of it; changes nothing, so it may run ahead of the writes.

    Attributes:
        llm: the backbone.
        embedder: shared embedder.
        role: the role ``ingest``.
        turn_format: how turns are written.
        rules: limits.
        denoise: false keeps the raw text as context (ablation).
    """

    llm: LanguageModel
    embedder: Embedder
    role: Role
    turn_format: TurnFormat
    rules: IngestRules
    denoise: bool

    async def denoise_unit(self, unit: Unit) -> Denoised:
        """Make a unit ready with one call and one batch of embeddings."""
        raw = raw_items(unit, self.turn_format)
        content = raw_text(raw)
        dates = dict.fromkeys(item.timestamp for item in raw if item.timestamp)
        values = {"content": content, "date_time": "; ".join(dates) or TEXTS("unknown_date")}
        reply = await self.llm.ask(self.role, values, key=unit.unit_id)
        keywords = self._keywords(unit, reply)
        said = "" if reply.value is None else " ".join(reply.value["context"].split())
        context = said if said and self.denoise else content
        vectors = await self.embedder.embed([context, *keywords])
        spoken = " ".join(turn.text for turn in unit.turns).split()
        return Denoised(
            raw=tuple(raw),
            context=context,
            keywords=tuple(keywords),
            context_vector=vectors[0],
            keyword_vectors=vectors[1:],
            malformed=reply.value is None,
            context_empty=self.denoise and reply.value is not None and not said,
            phatic=not keywords and len(spoken) < self.rules.phatic_words,
        )

    def _keywords(self, unit: Unit, reply: Reply) -> list[str]:
        text = " ".join(turn.text for turn in unit.turns)
        phrases = (
            fallback_phrases(text, self.rules.fallback_letters) if reply.value is None else reply.value["keywords"]
        )
        speakers = [turn.speaker for turn in unit.turns]
        return turn_keywords(phrases, speakers, text, (self.rules.max_keywords, self.rules.max_words))
