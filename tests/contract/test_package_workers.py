"""What every package in a worker must keep: the tests' own worker, and each package whose environment is installed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from baselines.packages.config import PackageConfig
from eval.config.presets import read_settings
from eval.runs.records import ReferenceRecord, RetrievalRecord
from eval.score import load_preset
from eval.scoring.retrievals import retrieval_scores
from memsys.rows import record_from
from tests.support.composing import CONF, PACKAGES, check_settings, memory_config
from tests.support.package_runs import INSTALLED, TINIES, PackageRun, config_of, package_reply, sample
from tests.support.stub_server import StubServer


def stated(run: PackageRun) -> PackageConfig:
    """What a run's preset says of the package."""
    assert isinstance(run.config, PackageConfig)
    return run.config


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    """One server for all runs; its replies are a function of the request."""
    with StubServer() as running:
        running.state.replies = package_reply
        running.state.keep_requests = False
        yield running


@pytest.fixture(scope="module", params=[*TINIES, *INSTALLED])
def whole(request: pytest.FixtureRequest, server: StubServer, tmp_path_factory: pytest.TempPathFactory) -> PackageRun:
    """An undisturbed run of each package."""
    run = PackageRun(server, tmp_path_factory.mktemp("whole"), config_of(request.param))
    outcome = run.go()
    assert outcome is not None and outcome.failures == {}
    return run


@pytest.mark.parametrize("preset", PACKAGES)
def test_a_package_s_preset_spells_out_every_setting_and_how_to_install_it(preset: str) -> None:
    check_settings(preset)
    config: Any = memory_config(preset)
    lock = config.requirements.read_text(encoding="utf-8").splitlines()
    assert re.search(r"locked on \d{4}-\d\d-\d\d", lock[0])
    assert lock[1].startswith("# python: 3.")
    assert all(re.fullmatch(r"[\w.-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lock[2:])
    assert config.interpreter is None and config.worker is None
    assert preset in read_settings(CONF / "names.yaml"), "give it a line, its name in tables of papers"


@pytest.mark.parametrize(
    "place",
    ["baselines/packages/NAME/requirements.lock", "baselines/packages/NAME/worker.py", "conf/memory/package_NAME.yaml",
     "conf/names.yaml", "docs/choices.md", "eval.results.choices_page", "baselines/packages/deviations.yaml"],
)  # fmt: skip
def test_the_guide_names_every_place_that_a_package_takes(place: str) -> None:
    guide = (CONF.parent / "docs" / "packages.md").read_text(encoding="utf-8")
    assert place in guide.partition("## Add one")[2].partition("## The protocol")[0]


@pytest.mark.parametrize("preset", [name for name in PACKAGES if memory_config(name).package != "mem0_2"])
def test_no_client_of_a_package_gives_a_call_up_or_asks_again_by_itself(preset: str) -> None:
    """Whose limit of ten minutes is shorter than a slow backbone's reply would ask twice more for each."""
    config: Any = memory_config(preset)
    assert 'PATIENT = {"timeout": None, "max_retries": 0}' in config.worker_file.read_text(encoding="utf-8")


def test_every_call_is_booked_with_its_phase_and_unit(whole: PackageRun) -> None:
    units = {turn.turn_id for turn in sample().conversation.turns}
    rows = whole.rows("calls")
    writes = [row for row in rows if row["phase"] == "write"]
    assert {row["item"] for row in writes} <= units
    counts = stated(whole).call_counts
    assert counts is None or bool(writes) == (counts.per_write > 0), "calls.per_write is not what the worker does"
    assert {row["item"] for row in rows if row["phase"] in ("retrieve", "answer")} == set(whole.answers())
    assert max(whole.ledger().values()) == 1


def test_hits_name_the_turns_they_come_from_or_the_worker_says_why_they_cannot(whole: PackageRun) -> None:
    said, rows = whole.statistics(), whole.rows("retrievals")
    named = [set(hit["turn_ids"]) for row in rows for hit in row["hits"]]
    assert named and said["package"] and said["version"]
    if said["lineage"] == "changes":
        known = {turn.turn_id for turn in sample().conversation.turns}
        assert all(turns and turns <= known for turns in named)
        assert said["memories"] == said["added"] - said["deleted"] > 0
    else:
        assert said["lineage"] == "none" and said["lineage_reason"]
        assert not any(named)
        assert said["memories"] == said["added"] == said["updated"] == said["deleted"] == 0, "it reports changes"


def test_evidence_is_scored_by_turns_where_hits_name_them_and_nowhere_else(whole: PackageRun) -> None:
    traced = whole.statistics()["lineage"] == "changes"
    reference = sample().references["q0"]
    gold = ReferenceRecord(
        reference.question_id, "talk", 4, list(reference.answers), None, list(reference.evidence), [], ["the boat"]
    )
    rows = [record_from(RetrievalRecord, row) for row in whole.rows("retrievals")]
    (scores,) = [
        retrieval_scores(row, gold, load_preset("default")) for row in rows if row.question_id == gold.question_id
    ]
    assert [scores[name] is not None for name in ("recall@10", "e_f1")] == [traced, traced]
    assert scores["recall@10_substring"] is not None


def test_a_run_that_is_killed_goes_on_to_the_same_answers(whole: PackageRun, tmp_path: Path) -> None:
    calls = sum(whole.ledger().values())
    for number, die_after in enumerate((calls // 3, calls - 2)):
        run = PackageRun(whole.server, tmp_path / str(number), whole.config)
        assert run.go(die_after=die_after) is None
        assert run.answers() != whole.answers()
        run.go()
        assert run.answers() == whole.answers()
        assert run.ledger() == whole.ledger()
        assert run.statistics() == whole.statistics()


def test_a_worker_that_is_killed_is_started_again_and_gives_the_same_answers(whole: PackageRun, tmp_path: Path) -> None:
    run = PackageRun(whole.server, tmp_path, whole.config)
    outcome = run.go(kill_worker_at=4)
    assert outcome is not None and outcome.failures == {}
    assert "starting it again (1 of 3)" in (tmp_path / "run" / "logs" / "worker-talk.log").read_text(encoding="utf-8")
    assert run.answers() == whole.answers()
    assert run.ledger() == whole.ledger()
    assert run.statistics() == whole.statistics()
