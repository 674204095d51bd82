"""HotpotQA-20: multi-hop questions over pools of Wikipedia sentences.

CLAG releases ten pools of twenty questions (``hotpot_200.json``); each pool joins the ten paragraphs (two gold, eight
distractors) of its questions, one sentence a turn. The same kind of pool can be built from the official distractor
set, and both can be cut the way CLAG's text reads literally: one memory per question with twenty paragraphs.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from eval.loaders.contract import DatasetInfo, LoadedData, PinnedFile
from eval.loaders.hotpotqa_files import HUB_NAME, read_hub, read_official, read_released
from eval.loaders.hotpotqa_pools import (
    CATEGORY,
    ParagraphPool,
    PassageUnit,
    draw_pools,
    one_memory_per_pool,
    one_memory_per_question,
)
from eval.loaders.locate import find_source, sample_path
from eval.loaders.pooled import PooledSelection
from eval.loaders.question_types import MULTI_HOP
from eval.loaders.selection import check_choice, check_positive, count
from memsys.errors import ConfigError

HOTPOTQA = DatasetInfo(
    key="hotpotqa20",
    title="HotpotQA-20 (CLAG's hotpot_200.json)",
    homepage="https://github.com/dmis-lab/CLAG",
    licence="CC BY-SA 4.0",
    passed_on=True,
    citation="Yang et al., HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering, EMNLP 2018",
    files=(
        PinnedFile(
            name="hotpot_200.json",
            sha256="a65710edf7aed9450bd9e48af94a389c23cae1f8a9caed847988c76202fd7d1e",
            size=2_390_805,
            url="https://raw.githubusercontent.com/dmis-lab/CLAG/098bdd8a92afeb038d85d13497c24242c1d15e47/data/hotpot_200.json",
        ),
    ),
    category_names={CATEGORY: "multi-hop QA"},
    kinds={CATEGORY: MULTI_HOP},
    floor_preset="hotpotqa20_clag",
    note_meanings={
        "yes_no_answers": "questions answered by yes or no",
        "paragraphs_per_pool": "distinct paragraphs of each pool",
    },
)
HOTPOTQA_OFFICIAL = replace(
    HOTPOTQA,
    key="hotpotqa_official",
    title="HotpotQA, distractor development set",
    homepage="https://hotpotqa.github.io",
    files=(
        PinnedFile(
            name="hotpot_dev_distractor_v1.json",
            sha256="",
            size=0,
            url="http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_dev_distractor_v1.json",
        ),
    ),
    card="hotpotqa20",
    floor_preset="",
)

Source = Literal["released", "distractor_file", "distractor_hub"]
Layout = Literal["pooled", "per_question"]


@dataclass(frozen=True, kw_only=True)
class HotpotqaConfig(PooledSelection):
    """Settings of the HotpotQA loader; see :class:`eval.loaders.pooled.PooledSelection` for the rest.

    Attributes:
        name: the preset's name.
        source: ``released`` reads CLAG's file; ``distractor_file`` builds from ``hotpot_dev_distractor_v1.json``,
            ``distractor_hub`` from the Hugging Face hub.
        layout: ``pooled`` is one memory per pool of questions, ``per_question`` one per question.
        unit: what a turn holds, a sentence (CLAG) or a paragraph.
        passages_per_question: paragraphs of each memory (``per_question``): the question's own and others of its pool;
            cut to what the pool has with ``sample``.
        seed: of the questions drawn (distractor sources) and the paragraphs added (``per_question``).
        hub_split: split of the hub's set.
    """

    name: str = "hotpotqa20"
    source: Source = "released"
    layout: Layout = "pooled"
    unit: PassageUnit = "sentence"
    passages_per_question: int = 20
    seed: int = 42
    hub_split: str = "validation"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, choices in (("source", Source), ("layout", Layout), ("unit", PassageUnit)):
            check_choice(name, getattr(self, name), get_args(choices))
        if self.sample and self.source == "distractor_hub":
            raise ConfigError(
                "dataset.sample=true reads the project's own sample; dataset.source=distractor_hub does not"
            )
        check_positive("passages_per_question", self.passages_per_question)

    @property
    def info(self) -> DatasetInfo:
        """Facts of HotpotQA-20."""
        return HOTPOTQA

    def load(self) -> LoadedData:
        """Read or build the pools, cut them into memories, and select."""
        pools, sha256, source_name = self._read()
        if self.layout == "per_question":
            passages = self.passages_per_question
            if self.sample:
                passages = min([passages, *(len(pool.paragraphs) for pool in pools)])
            everything = one_memory_per_question(pools, self.unit, passages, self.seed, self.date_time)
        else:
            everything = one_memory_per_pool(pools, self.unit, self.date_time)
        samples = self.apply(everything, HOTPOTQA.category_names)
        return LoadedData(
            samples=samples,
            sha256=sha256,
            source_name=source_name,
            category_names=HOTPOTQA.category_names,
            counts=count(samples),
            notes={
                "pinned": sha256 == HOTPOTQA.files[0].sha256,
                "sample": self.sample,
                "yes_no_answers": sum(q.answer.lower() in ("yes", "no") for pool in pools for q in pool.questions),
                "paragraphs_per_pool": [len(pool.paragraphs) for pool in pools],
            },
        )

    def _read(self) -> tuple[list[ParagraphPool], str, str]:
        if self.source == "released":
            path = self._path("sample.json", HOTPOTQA)
            pools, sha256 = read_released(path)
            return pools, sha256, path.name
        if self.source == "distractor_hub":
            records, sha256 = read_hub(self.hub_split)
            source_name = f"{HUB_NAME} distractor {self.hub_split}"
        else:
            path = self._path("sample_distractor.json", HOTPOTQA_OFFICIAL)
            records, sha256 = read_official(path)
            source_name = path.name
        return draw_pools(records, *self.pool_sizes(len(records)), self.seed), sha256, source_name

    def _path(self, sample: str, info: DatasetInfo) -> Path:
        if self.sample:
            return sample_path("hotpotqa20", sample)
        return find_source(info, info.files[0].name, self.path, self.data_dir)
