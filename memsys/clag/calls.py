"""Expected calls of CLAG."""

from dataclasses import replace
from math import ceil, floor

from memsys.call_model import (
    CHARS_PER_TOKEN,
    SHORT_TOKENS,
    DataShape,
    ExpectedCalls,
    reply_tokens,
    settings_key,
    template_tokens,
)
from memsys.clag.config import ClagConfig
from memsys.notes.calls import EVOLUTION_TOKENS, EVOLVED, analysis_calls, evolution_calls, keyword_calls

#: Tokens of the description of a cluster.
PROFILE_TOKENS = 60


def expected_calls(config: ClagConfig, shape: DataShape) -> list[ExpectedCalls]:
    """Return A-Mem's calls, and routing, profiling and selection of clusters once there are clusters."""
    read = ("retrieval_scope", "select", "k_stage1", "top_n", "selector_query", "search_query", "empty_keywords",
            "merge", "k_retrieve", "context")  # fmt: skip
    own = settings_key(config, *read)
    notes = sum(shape.turns)
    routed = sum(max(turns - config.buffer_size, 0) for turns in shape.turns)
    evolving = notes if config.cold_start == "evolve" else routed
    found = [analysis_calls(config, shape, "joint"), *_evolution_calls(config, shape, evolving, own)]
    card = config.card_examples * config.card_chars / CHARS_PER_TOKEN + 60
    if config.clustering == "agent" and routed:
        prompt = template_tokens("memsys/clag/prompts/router.txt") + shape.turn_tokens + 40 + config.k_route * card
        found.append(
            ExpectedCalls("write", "router", routed, prompt, reply_tokens(config.roles["router"], SHORT_TOKENS), own)
        )
    during, after = _profile_calls(config, shape)
    prompt = template_tokens("memsys/clag/prompts/profile.txt") + config.profile_samples * (shape.turn_tokens + 60)
    reply = reply_tokens(config.roles["profile"], PROFILE_TOKENS)
    found += [ExpectedCalls("write", "profile", during, prompt, reply, own)] if during else []
    found += [ExpectedCalls("consolidate", "profile", after, prompt, reply, own)] if after else []
    found.append(keyword_calls(config, shape))
    clustered = sum(turns >= config.buffer_size for turns in shape.turns) / max(len(shape.turns), 1)
    if config.retrieval_scope == "cluster" and config.select == "agent" and clustered:
        prompt = (
            template_tokens("memsys/clag/prompts/selector.txt") + shape.question_tokens + 20 + config.k_stage1 * card
        )
        reply = reply_tokens(config.roles["selector"], SHORT_TOKENS)
        found.append(ExpectedCalls("retrieve", "selector", clustered * shape.asked, prompt, reply))
    return found


def _evolution_calls(config: ClagConfig, shape: DataShape, evolving: float, own: str) -> list[ExpectedCalls]:
    """Return one joint call per evolving note, or one for its links and one for each neighbour."""
    joint = evolution_calls(config, shape, evolving, own)
    if config.evolution_calls == "joint":
        return [joint]
    reply = reply_tokens(config.roles["rewrite"], EVOLUTION_TOKENS / config.k_local)
    return [
        replace(joint, role="link", reply=reply_tokens(config.roles["link"], SHORT_TOKENS)),
        replace(joint, role="rewrite", calls=config.k_local * evolving, reply=reply),
    ]


def _profile_calls(config: ClagConfig, shape: DataShape) -> tuple[float, float]:
    """Return the descriptions of clusters while writing, and once the stream has ended."""
    buffered = config.cold_start == "buffer"
    during = after = 0.0
    for turns in shape.turns:
        if turns < config.buffer_size:
            continue
        clusters = max(config.n_init, ceil(turns / config.tau_split))
        evolved = EVOLVED * (turns - config.buffer_size if buffered else turns)
        before = 0 if buffered else floor(EVOLVED * config.buffer_size / config.consolidate_every)
        during += config.n_init + clusters * (floor(evolved / config.consolidate_every) - before)
        if config.profile_update == "on_evolution":
            during += EVOLVED * (turns - config.buffer_size)
        after += clusters if config.consolidate_at_end else 0
    return during, after


def context_tokens(config: ClagConfig, shape: DataShape) -> float:
    """Return the tokens of the retrieved notes."""
    return float(config.k_retrieve * (shape.turn_tokens + 60))
