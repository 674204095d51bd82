"""Expected calls of Nemori."""

from baselines.nemori.config import NemoriConfig
from memsys.call_model import CHARS_PER_TOKEN, SHORT_TOKENS, DataShape, ExpectedCalls, reply_tokens, settings_key
from memsys.episodes.calls import EPISODE_TURNS, episode_prompt_tokens, fact_calls, online_episode_calls

#: Share of episodes that are merged, of those for which a partner is looked for: no run has shown it yet.
MERGED = 0.1
#: Tokens of the context, the paper's figure.
CONTEXT_TOKENS = 7600.0


def expected_calls(config: NemoriConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return xMemory's calls up to the facts, or one per batch and merges of episodes; none for questions."""
    episodes = sum(shape.turns) / EPISODE_TURNS
    building = settings_key(config, "search", "context", "unit_turns")
    online = config.segmentation == "online"
    found = online_episode_calls(config, shape) if online else _batch_episode_calls(config, shape, building)
    due = {"never": 0.0, "every": episodes, "first": episodes if online else found[0].calls}[config.merge["scope"]]
    if due:
        stored = config.merge["candidates"] * (config.merge["shown_chars"] / CHARS_PER_TOKEN + 30)
        found.append(ExpectedCalls("write", "decide_merge", due, 500 + stored, SHORT_TOKENS, building))
        found.append(ExpectedCalls("write", "merge", MERGED * due, 700, 250, building))
    mode = config.facts["mode"]
    if mode == "predict_calibrate":  # a conversation's first facts, when there is nothing to predict from
        found.append(ExpectedCalls("write", "extract", len(shape.turns), episode_prompt_tokens(shape), 200, building))
    roles = {"none": (), "direct": ("extract",), "predict_calibrate": ("predict", "calibrate")}
    return found + fact_calls(roles[mode], shape, building)


def _batch_episode_calls(config: NemoriConfig, shape: DataShape, shared: str) -> list[ExpectedCalls]:
    """Return a call for each full batch, ignoring sessions' ends, and calls that write its groups."""
    size, least = config.batch["size"], config.batch["least"]
    if least < size:  # all messages of a conversation wait together
        batches = sum(-(-turns // size) for turns in shape.turns if turns >= least)
    else:
        batches = sum((turns // size if size == least else 0) + (turns % size >= least) for turns in shape.turns)
    reply = reply_tokens(config.roles["segment"], 5 * size)
    episodes = sum(shape.turns) / EPISODE_TURNS
    return [
        ExpectedCalls("prepare", "segment", batches, 250 + size * (shape.turn_tokens + 4), reply, shared),
        ExpectedCalls("prepare", "episode", episodes, episode_prompt_tokens(shape), 200, shared),
    ]


def context_tokens(config: NemoriConfig, shape: DataShape) -> float:
    """Return the context size that the paper reports, or the preset's limit."""
    return min(CONTEXT_TOKENS, float(config.context["max_tokens"] or CONTEXT_TOKENS))
