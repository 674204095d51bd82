"""FactConsolidation of MemoryAgentBench (Hu et al., 2025): numbered facts of which later ones overrule earlier ones.

Source: huggingface.co/datasets/ai-hyz/MemoryAgentBench, split ``Conflict_Resolution``. A context is one conversation,
a fact one turn. What the facts say about each question is derived, see :mod:`eval.loaders.factconsolidation_facts`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.factconsolidation_facts import Derived, FactBase, read_fact
from eval.loaders.jsonfile import JsonNode, read_json
from eval.loaders.label_problems import LABEL_PROBLEM
from eval.loaders.locate import find_source, sample_path
from eval.loaders.question_types import MULTI_HOP, SINGLE_HOP
from eval.loaders.selection import Selection, check_known, check_positive, count
from memsys.vocabulary import OVERRULED, Conversation, Json, Question, Reference, Sample, Turn

FILE = "memoryagentbench/Conflict_Resolution.json"
_URL = (
    "https://huggingface.co/datasets/ai-hyz/MemoryAgentBench/resolve/main/data/"
    "Conflict_Resolution-00000-of-00001.parquet"
)

FACTCONSOLIDATION = DatasetInfo(
    key="factconsolidation",
    title="FactConsolidation (MemoryAgentBench)",
    homepage="https://huggingface.co/datasets/ai-hyz/MemoryAgentBench",
    licence="MIT, by the repository of the code and by the hub's page of the data",
    passed_on=True,
    citation="Hu, Wang, McAuley: Evaluating Memory in LLM Agents via Incremental Multi-Turn Interactions, "
    "arXiv 2507.05257, 2025; the facts are those of MQuAKE (Zhong et al., EMNLP 2023)",
    files=(
        PinnedFile(
            FILE,
            sha256="d5168e94cba99744e35031c1e6419e6090d63978f5addc9163d56704a78c7acd",
            size=3_293_442,
            url=_URL,
            parquet=True,
        ),
    ),
    category_names={1: "multi-hop", 4: "single-hop"},
    kinds={1: MULTI_HOP, 4: SINGLE_HOP},
    question_counts={1: 400, 4: 400},
    floor_preset="factconsolidation",
    how_to_get="Fetch it with `memsys data factconsolidation`, or write the split Conflict_Resolution of "
    "ai-hyz/MemoryAgentBench as a JSON array; the card (datasets/factconsolidation/README.md) has the lines.",
    note_meanings={
        "facts": "of the contexts that are read: those selected",
        "facts_overruled": "facts that a later one of the same subject and relation overrules",
        "facts_without_form": "facts without a readable subject and relation",
        "questions_found": "newest facts that lead to the gold answer were found",
        "questions_gold_overruled": "the gold answer follows from overruled facts alone; marked",
        "questions_ambiguous": "several chains of newest facts lead to the gold answer; without evidence",
        "questions_unknown": "no chain of facts leads to the gold answer; without evidence",
        "questions_with_update": "of those found, at least one fact overrules an earlier one",
        "lines_without_number": "lines of a context that are no fact, such as its heading",
    },
)

_FACT = re.compile(r"(0|[1-9][0-9]{0,8})\. (.*\S)\s*")
_SOURCE = re.compile(r"(?:factconsolidation_)?((sh|mh)_\w+)")
_CATEGORY = {"sh": 4, "mh": 1}
_SPEAKER = "User"


@dataclass(frozen=True, kw_only=True)
class FactConsolidationConfig(Selection):
    """Settings; see :class:`eval.loaders.selection.Selection`. Conversations are named ``sh_6k`` to ``mh_262k``.

    Attributes:
        name: the preset's name.
        facts_per_session: facts that systems which work by sessions take together.
    """

    name: str = "factconsolidation"
    facts_per_session: int

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("facts_per_session", self.facts_per_session)

    @property
    def info(self) -> DatasetInfo:
        """Facts of the data set."""
        return FACTCONSOLIDATION

    def load(self) -> LoadedData:
        """Read the contexts, derive the evidence, and select."""
        path = (
            sample_path("factconsolidation")
            if self.sample
            else find_source(FACTCONSOLIDATION, FILE, self.path, self.data_dir)
        )
        top, sha256 = read_json(path)
        quirks: Counter[str] = Counter()
        # Deriving takes a second for all contexts together: what is not selected is not derived.
        contexts = [(_name(node), node) for node in top.elements()]
        check_known("conversations", self.conversations, [name for name, _ in contexts])
        wanted = [node for name, node in contexts if self.conversations is None or name in self.conversations]
        everything = [_sample(node, self.facts_per_session, quirks) for node in wanted]
        samples = self.apply(everything, FACTCONSOLIDATION.category_names)
        return LoadedData(
            samples=samples,
            sha256=sha256,
            source_name=path.name,
            category_names=FACTCONSOLIDATION.category_names,
            counts=count(samples),
            notes={
                "pinned": sha256 == FACTCONSOLIDATION.files[0].sha256,
                "sample": self.sample,
                **dict(sorted(quirks.items())),
            },
        )


def _name(node: JsonNode) -> str:
    source = node.get("metadata").get("source")
    match = _SOURCE.fullmatch(source.text())
    if match is None:
        raise source.error(f"unknown source {source.value!r}; known are factconsolidation_sh_... and ..._mh_...")
    return match[1]


def _sample(node: JsonNode, facts_per_session: int, quirks: Counter[str]) -> Sample:
    name = _name(node)
    lines = [(line, _FACT.fullmatch(line)) for line in node.get("context").text().split("\n")]
    numbered = [(int(match[1]), match[2]) for _, match in lines if match]
    quirks["lines_without_number"] += len(lines) - len(numbered)
    _check_order(node.get("context"), [number for number, _ in numbered])
    facts = [read_fact(number, text.removesuffix(".")) for number, text in numbered]
    base = FactBase(facts)
    quirks["facts"] += len(facts)
    quirks["facts_overruled"] += sum(len(group) - 1 for group in base.updates)
    quirks["facts_without_form"] += sum(not fact.relation for fact in facts)
    turns = tuple(
        Turn(str(number), f"facts_{position // facts_per_session + 1}", _SPEAKER, f"{number}. {text}")
        for position, (number, text) in enumerate(numbered)
    )
    questions, references = _questions(node, name, base, quirks)
    updates = tuple(tuple(str(fact.number) for fact in group) for group in base.updates)
    return Sample(Conversation(name, turns, (_SPEAKER,)), questions, references, updates)


def _check_order(context: JsonNode, numbers: Sequence[int]) -> None:
    """Refuse a context whose later facts do not have higher numbers: then nothing says which one holds."""
    if not numbers:
        raise context.error("holds no numbered fact")
    falling = next((late for early, late in pairwise(numbers) if late <= early), None)
    if falling is not None:
        raise context.error(f"fact {falling} follows one with the same or a higher number")


def _questions(
    node: JsonNode, name: str, base: FactBase, quirks: Counter[str]
) -> tuple[tuple[Question, ...], dict[str, Reference]]:
    asked, answers = node.get("questions").elements(), node.get("answers").elements()
    ids = node.get("metadata").get("qa_pair_ids").elements()
    if not len(asked) == len(answers) == len(ids):
        raise node.error(f"{len(asked)} questions, {len(answers)} answers and {len(ids)} qa_pair_ids; they must match")
    questions: list[Question] = []
    references: dict[str, Reference] = {}
    category = _CATEGORY[name[:2]]
    for question, gold, node_id in zip(asked, answers, ids, strict=True):
        question_id, texts = node_id.text(), tuple(gold.texts())
        if question_id in references:
            raise node_id.error(f"duplicate question id {question_id!r}")
        derived = (base.single if name[:2] == "sh" else base.chain)(question.text(), texts)
        kind = FACTCONSOLIDATION.kinds[category]
        questions.append(Question(question_id, name, question.text(), category, kind))
        references[question_id] = _reference(question_id, texts, derived, quirks)
    return tuple(questions), references


def _reference(question_id: str, answers: tuple[str, ...], derived: Derived, quirks: Counter[str]) -> Reference:
    quirks[f"questions_{derived.outcome}"] += 1
    quirks["questions_with_update"] += derived.outcome == "found" and bool(derived.overruled)
    extra: dict[str, Json] = {"derived": derived.outcome}
    if derived.overruled:
        extra[OVERRULED] = [str(fact.number) for fact in derived.overruled]
    plain = Reference(question_id, answers, tuple(str(fact.number) for fact in derived.newest), extra=extra)
    if derived.outcome != "gold_overruled":
        return plain
    return replace(plain, extra={**extra, LABEL_PROBLEM: derived.outcome})
