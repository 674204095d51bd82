"""Expected calls of A-Mem."""

from dataclasses import replace

from baselines.amem.config import AmemConfig
from memsys.call_model import SHORT_TOKENS, DataShape, ExpectedCalls, settings_key
from memsys.notes.calls import EVOLUTION_TOKENS, EVOLVED, NOTE_TOKENS, analysis_calls, evolution_calls, keyword_calls


def expected_calls(config: AmemConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return an analysis and an evolution for each note, and keywords for each question."""
    notes, first = sum(shape.turns), 0 if config.evolve_alone else len(shape.turns)
    found = [analysis_calls(config, shape, "joint" if config.calls == "joint" else "staged")]
    if config.evolution:
        found.append(
            evolution_calls(config, shape, notes - first, settings_key(config, "retrieve_k", "search_query", "context"))
        )
    if config.calls == "staged":
        # Staged analysis is one call; a decision is followed by calls for what was decided.
        strengthened = EVOLVED * (notes - first)
        prompt, reply = found[-1].prompt, SHORT_TOKENS
        found[-1] = replace(found[-1], role="decide", reply=reply)
        found.append(ExpectedCalls("write", "strengthen", strengthened, prompt, NOTE_TOKENS))
        found.append(ExpectedCalls("write", "update_neighbours", strengthened, prompt, EVOLUTION_TOKENS))
    if config.search_query == "keywords":
        found.append(keyword_calls(config, shape))
    return found


def context_tokens(config: AmemConfig, shape: DataShape) -> float:
    """Return the tokens of the retrieved notes."""
    return float(config.retrieve_k * (shape.turn_tokens + 60))
