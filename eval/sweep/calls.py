"""How many calls a memory system makes: a model for each, from its settings and the sizes of the data.

A model says for each role how often it is asked and how long prompts and replies are. Counts follow from the method
(a note is analysed once, a question has one answer) or from a rate that real runs have shown, named below. Lengths are
sums of parts: template, turns, notes. ``python -m eval.sweep check`` holds all of it against the ledgers of real runs.

A new system gets a function here under the name of its config class; without one, a plan says that its calls are
missing rather than guess.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from math import ceil, floor, inf
from typing import Any

from eval.loaders.contract import DatasetConfig, LoadedData
from memsys.assets.paths import ROOT
from memsys.llm.contract import Phase
from memsys.protocol import MemoryConfig

CHARS_PER_TOKEN = 4.2
#: Share of notes that evolve when they are compared with their neighbours (A-Mem and CLAG, SmolLM2: 84 of 92).
EVOLVED = 0.91
#: Share of episodes that are merged, of those for which a partner is looked for: no run has shown it yet.
MERGED = 0.1
#: Share of units that a gate drops (SAGE's Table 5 prints 16 to 18 percent).
DROPPED = 0.17
#: Facts of an extraction, and share of extractions that give one (Mem0 on GPT-4o-mini as SAGE released it: 5,675 events
#: of 1,696 writes, 203 without any).
FACTS, WITH_FACTS = 3.3, 0.9
#: Tokens of what the backbone writes about a note (keywords, context, tags), and of other replies, where nothing in the
#: role's settings bounds them.
NOTE_TOKENS, EVOLUTION_TOKENS, PROFILE_TOKENS, SHORT_TOKENS = 90, 220, 60, 20
#: Tokens of the context that systems show whose hits vary in size (their papers' figures).
CONTEXTS = {
    "SageConfig": 1800.0, "Mem0Config": 1800.0, "MemflyConfig": 1600.0, "XMemoryConfig": 4000.0, "NemoriConfig": 7600.0,
}  # fmt: skip
#: MemoryBank: a summary or description.
SUMMARY_TOKENS = 150
#: ReadAgent: words of LoCoMo's turns per token, length of a gist over its page's, number and date before either.
WORDS_PER_TOKEN, GIST_SHARE, HEADER_TOKENS = 0.77, 0.25, 18
#: A reply's envelope (names of fields, brackets) beside its text.
ENVELOPE_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a data set.

    Attributes:
        turns: of each conversation.
        sessions: turns of each session of all conversations.
        questions: by category.
        turn_tokens: mean of a turn as systems see it.
        question_tokens: mean of a question.
    """

    turns: Sequence[int]
    sessions: Sequence[int]
    questions: Mapping[int, int]
    turn_tokens: float = 40.0
    question_tokens: float = 16.0

    @property
    def asked(self) -> int:
        """Questions of all categories."""
        return sum(self.questions.values())


@dataclass(frozen=True, slots=True)
class Expected:
    """Calls of one role.

    Attributes:
        phase: of the run.
        role: name.
        calls: over the whole data set.
        prompt: tokens of each prompt.
        reply: tokens of each reply.
        shared: equal for systems that make the very same calls; empty for calls of a system's own.
    """

    phase: Phase
    role: str
    calls: float
    prompt: float
    reply: float
    shared: str = ""


def shape_of(config: DatasetConfig, data: LoadedData) -> Shape:
    """Sizes of loaded data."""
    turns = [turn for sample in data.samples for turn in sample.conversation.turns]
    questions = [question for sample in data.samples for question in sample.questions]
    chars = sum(len(config.turn_format.render(turn)) for turn in turns)
    sessions = Counter(
        (s.conversation.conversation_id, t.session_id) for s in data.samples for t in s.conversation.turns
    )
    return Shape(
        turns=[len(sample.conversation.turns) for sample in data.samples],
        sessions=list(sessions.values()),
        questions=dict(sorted(Counter(question.category for question in questions).items())),
        turn_tokens=chars / CHARS_PER_TOKEN / max(len(turns), 1),
        question_tokens=sum(len(q.text) for q in questions) / CHARS_PER_TOKEN / max(len(questions), 1),
    )


def shape_of_counts(counts: Mapping[str, Any], turn_tokens: float = 40.0) -> Shape:
    """Sizes from what ``run.json`` says of the data; sessions are taken to be equally long."""
    by_category = {int(category): number for category, number in counts["questions_by_category"].items()}
    turns, sessions = counts["turns_per_conversation"], counts.get("sessions") or 1
    return Shape(turns, [round(sum(turns) / sessions)] * sessions, by_category, turn_tokens)


def memory_calls(config: MemoryConfig, shape: Shape) -> list[Expected] | None:
    """What a memory system will ask of the backbone; ``None`` where no model of it is known."""
    model = MODELS.get(type(config).__name__)
    return None if model is None else model(config, shape)


def reader_calls(config: Any, context_tokens: float, shape: Shape) -> list[Expected]:
    """One answer for each question, from the reader's role of its category."""
    found: dict[str, float] = {}
    for category, number in shape.questions.items():
        role = str(config.by_category.get(str(category), "default"))
        found[role] = found.get(role, 0) + number
    prompt = 60 + shape.question_tokens + context_tokens
    return [
        Expected("answer", role, number, prompt, reply_tokens(config.roles.get(role, {}), SHORT_TOKENS))
        for role, number in found.items()
    ]


def context_tokens(config: MemoryConfig, shape: Shape) -> float:
    """What a question's context takes."""
    settings: Any = config
    if type(config).__name__ == "GatedConfig":
        settings = settings.host
    name = type(settings).__name__
    note = shape.turn_tokens + 60
    if name == "RagConfig":
        if settings.budget_tokens:
            return float(settings.budget_tokens)
        passage = shape.turn_tokens if settings.unit == "turn" else settings.chunk_tokens * 0.9
        return float(settings.k * (passage + 15))
    if name == "FullContextConfig":
        whole = max(shape.turns, default=0) * shape.turn_tokens
        return float(min(whole, settings.window or whole))
    if name == "AmemConfig":
        return float(settings.retrieve_k * note)
    if name == "ClagConfig":
        return float(settings.k_retrieve * note)
    if name == "ReadAgentConfig":
        return _readagent_context(settings, shape)
    if name == "MemoryBankConfig":
        return _memorybank_context(settings, shape)
    if name == "OracleConfig":
        return 3 * shape.turn_tokens
    limit = settings.context["max_tokens"] if name == "NemoriConfig" else None
    return min(CONTEXTS.get(name, 0.0), float(limit or inf))


def reply_tokens(role: Mapping[str, Any], usual: float) -> float:
    """Length of a reply: as usual, but no more than its settings allow."""
    limits = [usual, float(role.get("max_tokens") or usual)]
    if role.get("max_chars"):
        limits.append(float(role["max_chars"]) * (role.get("max_items") or 1) / CHARS_PER_TOKEN + ENVELOPE_TOKENS)
    return min(limits)


@cache
def template_tokens(path: str) -> float:
    """Length of a prompt's template."""
    return len((ROOT / path).read_text(encoding="utf-8")) / CHARS_PER_TOKEN


def no_calls(config: Any, shape: Shape) -> list[Expected]:
    """A system that never asks."""
    return []


def rag_calls(config: Any, shape: Shape) -> list[Expected]:
    """Plain retrieval asks for keywords at most."""
    return [] if config.query == "question" else [_keywords(config, shape)]


def amem_calls(config: Any, shape: Shape) -> list[Expected]:
    """Each note is analysed and compared with its neighbours; each question gets keywords."""
    notes, first = sum(shape.turns), 0 if config.evolve_alone else len(shape.turns)
    found = [_analysis(config, shape, "joint" if config.calls == "joint" else "staged")]
    if config.evolution:
        found.append(_evolution(config, shape, notes - first, _key(config, "retrieve_k", "search_query", "context")))
    if config.calls == "staged":
        # Staged analysis is one call; a decision is followed by calls for what was decided.
        strengthened = EVOLVED * (notes - first)
        prompt, reply = found[-1].prompt, SHORT_TOKENS
        found[-1] = replace(found[-1], role="decide", reply=reply)
        found.append(Expected("write", "strengthen", strengthened, prompt, NOTE_TOKENS))
        found.append(Expected("write", "update_neighbours", strengthened, prompt, EVOLUTION_TOKENS))
    if config.search_query == "keywords":
        found.append(_keywords(config, shape))
    return found


def clag_calls(config: Any, shape: Shape) -> list[Expected]:
    """As A-Mem; from the first clusters on, notes are routed, clusters described and, for questions, selected."""
    read = ("retrieval_scope", "select", "k_stage1", "top_n", "selector_query", "search_query", "empty_keywords",
            "merge", "k_retrieve", "context")  # fmt: skip
    own = _key(config, *read)
    notes = sum(shape.turns)
    routed = sum(max(turns - config.buffer_size, 0) for turns in shape.turns)
    evolving = notes if config.cold_start == "evolve" else routed
    found = [_analysis(config, shape, "joint"), _evolution(config, shape, evolving, own)]
    card = config.card_examples * config.card_chars / CHARS_PER_TOKEN + 60
    if config.clustering == "agent" and routed:
        prompt = template_tokens("memsys/clag/prompts/router.txt") + shape.turn_tokens + 40 + config.k_route * card
        found.append(
            Expected("write", "router", routed, prompt, reply_tokens(config.roles["router"], SHORT_TOKENS), own)
        )
    during, after = _profiles(config, shape)
    prompt = template_tokens("memsys/clag/prompts/profile.txt") + config.profile_samples * (shape.turn_tokens + 60)
    reply = reply_tokens(config.roles["profile"], PROFILE_TOKENS)
    found += [Expected("write", "profile", during, prompt, reply, own)] if during else []
    found += [Expected("consolidate", "profile", after, prompt, reply, own)] if after else []
    found.append(_keywords(config, shape))
    clustered = sum(turns >= config.buffer_size for turns in shape.turns) / max(len(shape.turns), 1)
    if config.retrieval_scope == "cluster" and config.select == "agent" and clustered:
        prompt = (
            template_tokens("memsys/clag/prompts/selector.txt") + shape.question_tokens + 20 + config.k_stage1 * card
        )
        reply = reply_tokens(config.roles["selector"], SHORT_TOKENS)
        found.append(Expected("retrieve", "selector", clustered * shape.asked, prompt, reply))
    return found


def _profiles(config: Any, shape: Shape) -> tuple[float, float]:
    """Descriptions of clusters while writing, and once the stream has ended."""
    during = after = 0.0
    for turns in shape.turns:
        if turns < config.buffer_size:
            continue
        clusters = max(config.n_init, ceil(turns / config.tau_split))
        evolved = EVOLVED * turns
        before = floor(EVOLVED * config.buffer_size / config.consolidate_every)
        during += config.n_init + clusters * (floor(evolved / config.consolidate_every) - before)
        after += clusters if config.consolidate_at_end else 0
    return during, after


def memfly_calls(config: Any, shape: Shape) -> list[Expected]:
    """Each turn is ingested and, but for a conversation's first, compared; a question takes one to three rounds."""
    notes, rounds = sum(shape.turns), 1.8
    found = [Expected("prepare", "ingest", notes, 350 + shape.turn_tokens, NOTE_TOKENS, "memfly.ingest")]
    if not config.ablate["update"]:
        compared = config.candidates["kept"] * (shape.turn_tokens + 40)
        prompt = 450 + shape.turn_tokens + compared
        found.append(Expected("write", "update", notes - len(shape.turns), prompt, 40 * config.candidates["kept"]))
    evidence = CONTEXTS["MemflyConfig"]
    asked = shape.asked
    if config.ablate["ier"]:
        return [*found, Expected("retrieve", "intent", asked, 200, 40)]
    return [
        *found,
        Expected("retrieve", "intent", asked * rounds, 200, 40),
        Expected("retrieve", "draft", asked * rounds, 100 + evidence, SHORT_TOKENS),
        Expected("retrieve", "sufficient", asked * rounds, 150 + evidence, 40),
        Expected("retrieve", "subquery", asked * (rounds - 1), 150 + evidence, SHORT_TOKENS),
    ]


def sage_calls(config: Any, shape: Shape) -> list[Expected]:
    """An extraction for each batch of a session's messages and each scope; a merge for a few facts of the band."""
    extraction = _extraction(config, shape)
    return [extraction, Expected("write", "merge", 0.15 * extraction.calls, 250, 40)]


def mem0_calls(config: Any, shape: Shape) -> list[Expected]:
    """An extraction for each batch and scope, then a decision on its facts; three more where a graph is kept."""
    extraction = _extraction(config, shape)
    found = [extraction]
    if config.extract_context == "history":  # shown what came before, so that it cannot run ahead
        ended = len(shape.sessions) - len(shape.turns)
        length = sum(shape.turns) / max(len(shape.sessions), 1) * shape.turn_tokens
        prompt = extraction.prompt + 200 + config.history_messages * shape.turn_tokens
        found = [
            replace(extraction, phase="write", prompt=prompt, shared=""),
            Expected("write", "summary", ended, 300 + length, 200),
        ]
    listed = 30 * config.similar
    if config.decisions == "batched":
        reply = reply_tokens(config.roles["route"], FACTS * (listed + 40))
        found.append(Expected("write", "route", WITH_FACTS * extraction.calls, 300 + FACTS * (listed + 20), reply))
    if config.decisions == "per_fact":
        found.append(Expected("write", "decide", FACTS * extraction.calls, 220 + listed, 40))
    return [*found, *_graph_calls(config, shape, extraction)]


def _graph_calls(config: Any, shape: Shape, extraction: Expected) -> list[Expected]:
    if config.graph["use"] == "none":
        return []
    batch = 150 + config.batch_size * shape.turn_tokens
    found = [
        Expected("prepare", "entities", extraction.calls, batch, 120),
        Expected("prepare", "relations", extraction.calls, batch + 50, 150),
        Expected("write", "delete", extraction.calls, batch + 400, 40),
    ]
    if config.graph["use"] == "read":
        asked = _scopes(config) * shape.asked
        found.append(Expected("retrieve", "entities", asked, 150 + shape.question_tokens, SHORT_TOKENS))
    return found


def _extraction(config: Any, shape: Shape) -> Expected:
    """Facts of each batch of a session's messages for each scope: the same calls in SAGE and Mem0."""
    settings = config.roles["extract"]
    added = _scopes(config) * sum(ceil(turns / config.batch_size) for turns in shape.sessions)
    made_by = (
        config.batch_size,
        config.scopes,
        config.prompt_date,
        getattr(config, "extract_prompt", "user"),
    )
    prompt = 250 + config.batch_size * shape.turn_tokens
    shared = f"extract {made_by} {sorted(settings.items(), key=str)}"
    return Expected("prepare", "extract", added, prompt, reply_tokens(settings, 150), shared)


def _scopes(config: Any) -> int:
    return 2 if config.scopes == "speakers" else 1


#: Turns of an episode in the paper's LoCoMo memories; a small model cuts sooner.
_EPISODE_TURNS = 8


def xmemory_calls(config: Any, shape: Shape) -> list[Expected]:
    """Each message may end an episode; episodes are told and mined for facts, themes named, questions probed."""
    themes = sum(shape.turns) / 9
    construction = _key(config, "retrieval", "gate", "context")
    building = _key(config, "retrieval", "gate", "context", "theme", "graph")
    direct = config.semantic["mode"] == "direct"
    found = _online_episodes(config, shape)
    found += _facts(("extract",) if direct else ("predict", "calibrate"), shape, building)
    found.append(Expected("consolidate", "theme", themes, 300, SHORT_TOKENS, construction))
    if config.gate["mode"] != "off":
        found.append(Expected("retrieve", "probe", 6 * shape.asked, 2500, 10))
    return found


def nemori_calls(config: Any, shape: Shape) -> list[Expected]:
    """As xMemory up to the facts; or a call groups each batch, and episodes may be merged. Questions ask nothing."""
    episodes = sum(shape.turns) / _EPISODE_TURNS
    building = _key(config, "search", "context", "unit_turns")
    online = config.segmentation == "online"
    found = _online_episodes(config, shape) if online else _batch_episodes(config, shape, building)
    due = {"never": 0.0, "every": episodes, "first": episodes if online else found[0].calls}[config.merge["scope"]]
    if due:
        stored = config.merge["candidates"] * (config.merge["shown_chars"] / CHARS_PER_TOKEN + 30)
        found.append(Expected("write", "decide_merge", due, 500 + stored, SHORT_TOKENS, building))
        found.append(Expected("write", "merge", MERGED * due, 700, 250, building))
    roles = {"none": (), "direct": ("extract",), "predict_calibrate": ("predict", "calibrate")}
    return found + _facts(roles[config.facts["mode"]], shape, building)


def readagent_calls(config: Any, shape: Shape) -> list[Expected]:
    """Each page is cut and shortened once; a question is a look-up, or one more than the pages that it opens."""
    prompts, roles, gist = "baselines/readagent/prompts", config.roles, _gist_tokens(config)
    pages, cuts = _readagent_pages(config, shape)
    key = _key(config, "lookup", "context")
    chunk = 2 * config.pages["max_words"] / WORDS_PER_TOKEN  # the page before is shown too
    page = sum(shape.turns) * shape.turn_tokens / max(pages, 1)
    gists = (gist + HEADER_TOKENS) * pages / max(len(shape.turns), 1)
    role, rounds = "lookup", ceil(gists / (config.lookup["max_tokens"] or inf)) or 1
    if config.lookup["mode"] == "sequential":
        role, rounds = "lookup_next", ceil((config.lookup["sequential_pages"] + 1) / 2)
    asked = gists / rounds if role == "lookup" else gists
    prompt = template_tokens(f"{prompts}/{role}.txt") + shape.question_tokens + asked
    return [
        Expected("prepare", "paginate", cuts, template_tokens(f"{prompts}/paginate.txt") + chunk, ENVELOPE_TOKENS, key),
        Expected("prepare", "gist", pages, template_tokens(f"{prompts}/gist.txt") + page, gist, key),
        Expected("retrieve", role, rounds * shape.asked, prompt, reply_tokens(roles[role], SHORT_TOKENS)),
    ]


def _readagent_context(config: Any, shape: Shape) -> float:
    """All gists, some of them replaced by their pages."""
    per_conversation = _readagent_pages(config, shape)[0] / max(len(shape.turns), 1)
    page = sum(shape.turns) * shape.turn_tokens / max(_readagent_pages(config, shape)[0], 1)
    mode = config.lookup["mode"]
    opened = min(config.lookup[f"{mode}_pages"] / (2 if mode == "sequential" else 1), per_conversation)
    whole = per_conversation * (_gist_tokens(config) + HEADER_TOKENS) + opened * (page - _gist_tokens(config))
    return float(min(whole, config.context["max_tokens"] or whole))


def _readagent_pages(config: Any, shape: Shape) -> tuple[int, int]:
    """Pages, and calls that cut them, when a break falls into the middle of the marks."""
    rules = config.pages
    pages = cuts = 0
    for turns in shape.sessions if rules["respect_sessions"] else shape.turns:
        left = turns * shape.turn_tokens * WORDS_PER_TOKEN
        while left > 0:
            pages += 1
            if left < rules["tail_words"]:
                break
            cuts += 1
            left -= (rules["start_words"] + min(left, rules["max_words"])) / 2
    return pages, cuts


def _gist_tokens(config: Any) -> float:
    usual = (config.pages["start_words"] + config.pages["max_words"]) / 2 / WORDS_PER_TOKEN * GIST_SHARE
    return reply_tokens(config.roles["gist"], usual)


def memorybank_calls(config: Any, shape: Shape) -> list[Expected]:
    """Each session, or part of a long one, is summarised and described once; all of them once at the end."""
    rules, roles = config.summaries, config.roles
    parts = sum(ceil(turns * shape.turn_tokens / rules["part_tokens"]) for turns in shape.sessions)
    day = sum(shape.turns) * shape.turn_tokens / max(parts, 1)
    days = parts / max(len(shape.turns), 1)
    found = []
    for wanted, each, whole in (
        (rules["days"], "day_summary", "overall_history"),
        (rules["portrait"] != "off", "day_personality", "overall_personality"),
    ):
        if not wanted:
            continue
        reply, last = reply_tokens(roles[each], SUMMARY_TOKENS), reply_tokens(roles[whole], SUMMARY_TOKENS)
        key = f"{each} {sorted(rules.items(), key=str)} {sorted(roles[each].items(), key=str)}"
        found.append(Expected("prepare", each, parts, 60 + day, reply, key))
        if whole == "overall_personality" or rules["overall_history"]:
            key = f"{whole} {key} {sorted(roles[whole].items(), key=str)}"
            found.append(Expected("consolidate", whole, len(shape.turns), 60 + days * (reply + 15), last, key))
    return found


def _memorybank_context(config: Any, shape: Shape) -> float:
    """Portrait, digest, and pairs of turns with their dates."""
    rules, roles = config.summaries, config.roles
    whole = config.retrieve_k * ((2 if config.pieces == "pairs" else 1) * shape.turn_tokens + 15)
    whole += reply_tokens(roles["overall_personality"], SUMMARY_TOKENS) if rules["portrait"] != "off" else 0
    whole += reply_tokens(roles["overall_history"], SUMMARY_TOKENS) if rules["overall_history"] else 0
    return float(min(whole, config.context["max_tokens"] or whole))


def gated_calls(config: Any, shape: Shape) -> list[Expected] | None:
    """As the host, less what is dropped before it: a sixth to a third, says the paper; here a sixth."""
    passed = 1 - DROPPED
    host = memory_calls(config.host, replace(shape, turns=[ceil(turns * passed) for turns in shape.turns]))
    if host is None:
        return None
    # A unit that passes is analysed as without the gate; what follows depends on what was dropped before.
    return [each if each.phase in ("prepare", "retrieve") else replace(each, shared="") for each in host]


MODELS: dict[str, Callable[[Any, Shape], list[Expected] | None]] = {
    "RagConfig": rag_calls,
    "PrunedRagConfig": rag_calls,
    "FullContextConfig": no_calls,
    "NoMemoryConfig": no_calls,
    "OracleConfig": no_calls,
    "AmemConfig": amem_calls,
    "ClagConfig": clag_calls,
    "MemflyConfig": memfly_calls,
    "SageConfig": sage_calls,
    "Mem0Config": mem0_calls,
    "XMemoryConfig": xmemory_calls,
    "NemoriConfig": nemori_calls,
    "GatedConfig": gated_calls,
    "ReadAgentConfig": readagent_calls,
    "MemoryBankConfig": memorybank_calls,
}


def _online_episodes(config: Any, shape: Shape) -> list[Expected]:
    """Message by message: whether it begins an episode; then each is told. The same in Nemori and xMemory."""
    messages, cutting, telling = sum(shape.turns), config.roles["boundary"], config.roles["episode"]
    cut = f"{sorted(config.boundary.items())} {sorted(cutting.items(), key=str)}"
    told = f"{cut} {sorted(telling.items(), key=str)}"
    return [
        Expected("write", "boundary", messages, 350 + 10 * shape.turn_tokens, 40, cut),
        *(Expected(phase, "episode", calls, _episode_prompt(shape), 200, told) for phase, calls in _told(shape)),
    ]


def _batch_episodes(config: Any, shape: Shape, shared: str) -> list[Expected]:
    """A call for each batch that is large enough, as if no session cut one; then each of its groups is told."""
    size, least = config.batch["size"], config.batch["least"]
    batches = sum((turns // size if size >= least else 0) + (turns % size >= least) for turns in shape.turns)
    reply = reply_tokens(config.roles["segment"], 5 * size)
    episodes = sum(shape.turns) / _EPISODE_TURNS
    return [
        Expected("prepare", "segment", batches, 250 + size * (shape.turn_tokens + 4), reply, shared),
        Expected("prepare", "episode", episodes, _episode_prompt(shape), 200, shared),
    ]


def _facts(roles: Sequence[str], shape: Shape, shared: str) -> list[Expected]:
    """Each role is asked of each episode."""
    prompt = 600 + _EPISODE_TURNS * shape.turn_tokens
    return [Expected(phase, role, calls, prompt, 200, shared) for phase, calls in _told(shape) for role in roles]


def _told(shape: Shape) -> tuple[tuple[Phase, float], ...]:
    """Episodes by phase: a conversation's last one is told when it is over."""
    last = len(shape.turns)
    return ("write", sum(shape.turns) / _EPISODE_TURNS - last), ("consolidate", last)


def _episode_prompt(shape: Shape) -> float:
    return 400 + _EPISODE_TURNS * shape.turn_tokens


def _analysis(config: Any, shape: Shape, kind: str) -> Expected:
    role = next(iter(config.roles)) if kind == "staged" else "analyse"
    settings = config.roles[role]
    prompt = template_tokens("memsys/notes/prompts/analyse.txt") + shape.turn_tokens
    shared = f"{role} {sorted(settings.items(), key=str)}"
    return Expected("prepare", role, sum(shape.turns), prompt, reply_tokens(settings, NOTE_TOKENS), shared)


def _evolution(config: Any, shape: Shape, calls: float, shared: str) -> Expected:
    settings = config.roles.get("evolve", {})
    note = shape.turn_tokens + 60
    prompt = template_tokens("memsys/notes/prompts/evolve.txt") + (1 + config.k_local) * note
    return Expected("write", "evolve", calls, prompt, reply_tokens(settings, EVOLUTION_TOKENS), shared)


def _keywords(config: Any, shape: Shape) -> Expected:
    settings = config.roles["keywords"]
    prompt = template_tokens("memsys/notes/prompts/keywords.txt") + shape.question_tokens
    shared = f"keywords {type(config).__name__ == 'RagConfig'} {sorted(settings.items(), key=str)}"
    return Expected("retrieve", "keywords", shape.asked, prompt, reply_tokens(settings, SHORT_TOKENS), shared)


def _key(config: Any, *reading: str) -> str:
    """Names the calls of the write path: equal for settings that differ in name and in how they read alone."""
    assert is_dataclass(config) and not isinstance(config, type)
    fields = {name: value for name in config.__dataclass_fields__ if (value := getattr(config, name)) is not None}
    kept = {name: value for name, value in fields.items() if name not in (*reading, "name")}
    return f"{type(config).__name__} {sorted(kept.items(), key=str)}"
