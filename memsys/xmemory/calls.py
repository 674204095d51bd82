"""Expected calls of xMemory."""

from memsys.call_model import SHORT_TOKENS, DataShape, ExpectedCalls, settings_key
from memsys.episodes.calls import fact_calls, online_episode_calls
from memsys.xmemory.config import XMemoryConfig

#: Tokens of the context, the paper's figure.
CONTEXT_TOKENS = 4000.0


def expected_calls(config: XMemoryConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return the calls for boundaries, episodes, facts, theme names and probes of questions."""
    themes = sum(shape.turns) / 9
    construction = settings_key(config, "retrieval", "gate", "context")
    building = settings_key(config, "retrieval", "gate", "context", "theme", "graph")
    direct = config.semantic["mode"] == "direct"
    found = online_episode_calls(config, shape)
    roles = ("extract",) if direct else ("predict", "calibrate")
    found += fact_calls(roles, shape, building, ahead=direct and config.boundary["session_cut"])
    found.append(ExpectedCalls("consolidate", "theme", themes, 300, SHORT_TOKENS, construction))
    if config.gate["mode"] != "off":
        found.append(ExpectedCalls("retrieve", "probe", 6 * shape.asked, 2500, 10))
    return found


def context_tokens(config: XMemoryConfig, shape: DataShape) -> float:
    """Return the context size that the paper reports."""
    return CONTEXT_TOKENS
