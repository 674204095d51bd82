"""Every experiment composes, its parts fit each other, every pair of the papers has one; what cannot change a result is
no part of a run's identity."""

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from eval.config.former_constants import without_former_constants
from eval.config.presets import preset_names, read_settings
from eval.loaders.selection import Selection
from eval.results.tables.comparability import other_terms
from eval.results.tables.spec import load_spec
from eval.running.composed import make_plan
from eval.running.plan import Plan, identity_of, run_path
from eval.runs.identity import differences, identity_hash
from tests.support.composing import composed

ROOT = Path(__file__).resolve().parents[4]
CONF = ROOT / "conf"
EXPERIMENTS = preset_names(CONF / "experiment")

#: Paper -> data set -> the backbones its tables have.
PAIRS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "clag": dict.fromkeys(
        ("locomo", "hotpotqa20", "bioasq20"), ("qwen3_06b", "llama32_1b", "deepseek_r1_15b", "qwen3_8b")
    ),
    "xmemory": dict.fromkeys(("locomo", "perltqa"), ("qwen3_8b", "llama31_8b", "gpt5_nano")),
    "memfly": {"locomo": ("gpt4o_mini", "gpt4o", "qwen3_8b", "qwen3_14b")},
    "sage": {
        "locomo": (
            "deepseek_r1_15b", "deepseek_r1_7b", "llama32_1b", "llama32_3b", "qwen25_15b", "qwen25_3b", "qwen25_7b",
            "gpt4o_mini",
        ),
        "locomo_20_percent": ("qwen25_15b", "qwen25_3b"),
    },
    "sage_gate": {"locomo": ("qwen25_3b", "qwen25_7b", "llama31_8b", "llama32_3b", "gpt4o_mini")},
}  # fmt: skip
#: How the file names call the data sets.
SHORT = {"hotpotqa20": "hotpotqa", "bioasq20": "bioasq", "locomo_20_percent": "locomo20"}
PAPERS = [
    (paper, dataset, backbone)
    for paper, datasets in PAIRS.items()
    for dataset, backbones in datasets.items()
    for backbone in backbones
]

#: Paper and data set -> presets of data set, embedder and reader.
SETTINGS = {
    ("clag", "locomo"): ("locomo_clag", "all-MiniLM-L6-v2", "clag"),
    ("clag", "hotpotqa20"): ("hotpotqa20_clag", "all-MiniLM-L6-v2", "clag"),
    ("clag", "bioasq20"): ("bioasq20_clag", "all-MiniLM-L6-v2", "clag"),
    ("xmemory", "locomo"): ("locomo", "text-embedding-3-small", "xmemory"),
    ("xmemory", "perltqa"): ("perltqa", "text-embedding-3-small", "perltqa"),
    ("memfly", "locomo"): ("locomo", "all-MiniLM-L6-v2", "amem"),
    ("sage", "locomo"): ("locomo", "nomic-embed-text", "sage"),
    ("sage", "locomo_20_percent"): ("locomo_20_percent", "nomic-embed-text", "sage"),
    ("sage_gate", "locomo"): ("locomo_clag", "all-MiniLM-L6-v2", "amem"),
}


@cache
def plan(*overrides: str) -> Plan:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        made: Plan = make_plan(compose("config", overrides=list(overrides)))
    return made


def experiment(paper: str, dataset: str, backbone: str) -> Plan:
    name = f"{paper}_{SHORT.get(dataset, dataset)}"
    assert name in EXPERIMENTS, f"{paper} prints {dataset}, and there is no +experiment={name}"
    own = f"{name}_{backbone}"
    return plan(f"+experiment={own}") if own in EXPERIMENTS else plan(f"+experiment={name}", f"backbone={backbone}")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_makes_a_plan(name: str) -> None:
    made = plan(f"+experiment={name}")
    own = "experiment" in read_settings(CONF / "experiment" / f"{name}.yaml")
    assert made.experiment == name or not own  # which only chooses another backbone
    assert run_path(made, identity_of(made, "0" * 64)).parent.name == made.experiment


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_reader_answers_every_category_of_the_data_set(name: str) -> None:
    made = plan(f"+experiment={name}")
    names = made.dataset.info.category_names
    asked = getattr(made.dataset, "categories", None) or sorted(names)
    made.reader.check(made.dataset.name, {number: (names[number], made.dataset.info.kinds[number]) for number in asked})


@pytest.mark.parametrize(("paper", "dataset", "backbone"), PAPERS)
def test_every_pair_of_the_papers_has_an_experiment_in_its_setting(paper: str, dataset: str, backbone: str) -> None:
    made = experiment(paper, dataset, backbone)
    assert made.backbone is not None
    assert made.backbone.name == backbone and made.dataset.info.key == dataset.removesuffix("_20_percent")
    preset, embedder, reader = SETTINGS[paper, dataset]
    if (paper, backbone) == ("sage", "gpt4o_mini"):
        embedder = "text-embedding-3-small"
    assert (made.dataset.name, made.embedder.name, made.reader.name) == (preset, embedder, reader)
    assert made.protocol.name == paper.removesuffix("_gate")
    assert (made.mode, made.timing) == ("answers", "throughput")


def printed_pairs() -> set[tuple[str, str, str]]:
    """Pairs that the printed numbers of ``results/printed`` name, by this file's names of papers and data sets."""
    pairs = set()
    for path in (ROOT / "results" / "printed").glob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row.get("dataset") and row.get("backbone"):
                    pairs.add((row["paper"], row["dataset"], row["backbone"]))
    return pairs


#: What printed numbers call a backbone and is none: means over SAGE's open ones.
NO_RUN = {"seven_open_models"}


def test_latency_of_every_system_on_the_small_model_has_one_experiment() -> None:
    """There was no command for the milliseconds of all systems with one model."""
    name = "locomo_qwen05b_latency"
    found = plan(f"+experiment={name}")
    assert (found.timing, found.backbone and found.backbone.name) == ("latency", "qwen25_coder_05b")
    assert isinstance(found.dataset, Selection)
    assert (found.dataset.limit_sessions, found.dataset.limit_questions) == (5, 12)
    assert found.dataset.conversations == ("conv-26",)
    file = read_settings(CONF / "experiment" / f"{name}.yaml")
    swept = set(file["hydra"]["sweeper"]["params"]["memory"].split(","))
    small = {name for name in preset_names(CONF / "memory") if name.endswith("_small")} - {"memorybank_items_small"}
    assert small | {"rag", "bm25_turn", "hybrid_turn", "gated", "no_memory"} == swept


def test_no_printed_number_lacks_its_experiment() -> None:
    long = {short: name for name, short in SHORT.items()}
    known = {(paper.removesuffix("_gate"), dataset, backbone) for paper, dataset, backbone in PAPERS}
    named = {(paper, long.get(dataset, dataset), backbone) for paper, dataset, backbone in printed_pairs()}
    assert named, "results/printed holds no number"
    assert {pair for pair in named if pair[2] not in NO_RUN} <= known


def test_papers_ask_a_backbone_that_they_share_each_in_their_own_way() -> None:
    def asked(paper: str, backbone: str) -> tuple[str, object, object]:
        config = experiment(paper, "locomo", backbone).backbone
        assert config is not None
        return config.prompt_mode, config.sampling["top_p"], config.context_length

    assert asked("clag", "qwen3_8b") == ("completion", 1.0, 32768)
    assert asked("xmemory", "qwen3_8b") == asked("memfly", "qwen3_8b") == ("chat", 0.8, 32768)
    assert asked("clag", "llama32_1b") == ("completion", 1.0, 32768)
    assert asked("sage", "llama32_1b") == ("chat", 0.1, 8192)
    assert asked("sage", "gpt4o_mini") == ("chat", 0.1, 128000)


def test_sage_neither_shows_captions_nor_asks_category_5() -> None:
    made = experiment("sage", "locomo", "llama32_1b")
    assert made.dataset.turn_format.captions == "none"
    assert list(made.dataset.categories) == [1, 2, 3, 4]


@pytest.mark.parametrize(("paper", "dataset", "backbone"), [pair for pair in PAPERS if pair[0] != "sage_gate"])
def test_a_run_of_a_papers_experiment_may_stand_beside_its_printed_numbers(
    paper: str, dataset: str, backbone: str
) -> None:
    made, spec = experiment(paper, dataset, backbone), load_spec(paper)
    name = spec.dataset_of(made.dataset.name)
    assert name is not None and spec.readers_of(name)[0] == made.reader.name and backbone in spec.backbones
    run: Any = SimpleNamespace(
        record={"config": made.settings, "data": {}}, floor=False, retrieval_only=False, dataset=made.dataset.name,
        backbone=backbone, reader=made.reader.name, unscored_questions=False,
    )  # fmt: skip
    assert other_terms(run, name, spec) == ()


def test_where_vectors_are_made_is_no_part_of_the_identity_but_by_which_model_is() -> None:
    hosted = "embedder=text_embedding_3_small"
    base, elsewhere, other = (
        identity_hash(identity_of(plan(hosted, *changes), "x"))
        for changes in ((), ("embedder.base_url=http://a/v1", "embedder.retries=9"), ("embedder.model=large",))
    )
    assert base == elsewhere != other


@pytest.mark.parametrize(
    ("override", "same"),
    [
        ("schedule.prepare_ahead=1", True),
        ("backbone.max_in_flight=3", True),
        ("backbone.engine.threads=1", True),
        ("runs_dir=elsewhere", True),
        ("protocol=locomo", True),
        ("memory.name=other", True),
        ("backbone.name=other", True),
        ("reader.name=other", True),
        ("memory=clag_tau_015", False),
        ("seed=1", False),
        ("memory.tau=0.2", False),
        ("backbone.sampling.top_p=0.9", False),
        ("reader.roles.default.max_tokens=7", False),
        ("dataset.turn_style=clag", False),
        ("timing=latency", False),
    ],
)
def test_identity_holds_what_can_change_a_result(override: str, same: bool) -> None:
    base = identity_of(plan("memory=clag"), "x")
    changed = identity_of(plan("memory=clag", override), "x")
    assert (identity_hash(base) == identity_hash(changed)) is same


def test_settings_that_are_only_named_like_keys_tell_runs_apart_and_are_not_written() -> None:
    """``stop_token`` is masked in files, and runs with two values of it shared a folder."""
    plain = plan("memory=clag")

    def identity(**further: str) -> dict[str, Any]:
        return identity_of(replace(plain, settings={**plain.settings, "memory": {**memory, **further}}), "x")

    memory: Any = plain.settings["memory"]
    made = [identity(stop_token=value) for value in ("###END", "###STOP", "###END")]
    hashes = [identity_hash(one) for one in made]
    assert hashes[0] == hashes[2] != hashes[1]
    assert run_path(plain, made[0]) != run_path(plain, made[1])
    assert made[0]["memory"]["stop_token"] == "***" and "###" not in json.dumps(made)
    assert differences(made[0], made[1])[0].startswith("left_out.memory: ")
    assert "left_out" not in identity(title="###END")


@pytest.mark.parametrize(
    ("memory", "key", "other"),
    [
        ("amem_robust", "heuristics", {"keywords": 5, "shortest_word": 3, "tags": 4, "context_chars": 200}),
        ("nemori_small", "episode.quoted_chars", 99),
        ("xmemory", "episode.quoted_chars", 99),
        ("xmemory", "theme.summaries", "as_written"),
        ("xmemory", "gate.silent", 5.0),
        ("lightmem_small", "bare_lists", "read"),
        ("memfly_small", "ingest.fallback_letters", 5),
        ("gam", "research.max_requests", 4),
        ("gam_small", "pages.embedded", "mean_of_windows"),
        ("gam_small", "research.keywords", "lucene"),
        ("gam_small", "research.opened", "all"),
        ("gam_small", "research.ties", "found"),
        ("gam", "research.checks", "released"),
        ("gam", "texts.no_findings", ""),
        ("memoryos", "retrieve.max_keywords", 2),
        ("memoryos", "mid_term.keyword_case", "kept"),
        ("memoryos", "mid_term.copies", True),
        ("memoryos_small", "mid_term.unread_topics", "drop"),
        ("memoryos", "mid_term.continues", "exact"),
        ("memoryos", "mid_term.chain_shown", "two_later"),
        ("memoryos", "mid_term.keywords_of", "asked"),
        ("memoryos_small", "mid_term.page_vector", "run_on"),
        ("memoryos", "long_term.reading", "as_written"),
        ("memoryos_small", "retrieve.keyword_fallback", "none"),
        ("memoryos", "prompt_layout", {"profile": "P:", "facts": "F:"}),
        ("memoryos", "heat.credit", "nearest"),
        ("memoryos_small", "heat.nothing_new", "block"),
    ],
)
def test_a_former_constant_is_part_of_the_identity_where_it_was_changed(memory: str, key: str, other: Any) -> None:
    """Runs of before the setting keep their folders."""
    settings, parent, child = dict(composed(memory)), *key.rpartition(".")[::2]
    group = dict(settings[parent]) if parent else settings
    before = without_former_constants({"name": "gated", "host": settings})["host"]
    assert child in group and child not in (before[parent] if parent else before)
    group[child] = other
    changed = {**settings, **({parent: group} if parent else group)}
    assert without_former_constants(changed) != before
    assert without_former_constants(before) == before


def test_former_constants_are_left_out_of_a_runs_identity() -> None:
    memory = identity_of(plan("memory=amem_robust"), "x")["memory"]
    assert isinstance(memory, dict) and "heuristics" not in memory and "calls" in memory
