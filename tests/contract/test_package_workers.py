"""What every package in a worker must keep: the tests' own worker, and each package whose environment is installed."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.composing import PACKAGES, check_settings, memory_config
from tests.support.package_runs import INSTALLED, PackageRun, config_of, package_reply, sample
from tests.support.stub_server import StubServer


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    """One server for all runs; its replies are a function of the request."""
    with StubServer() as running:
        running.state.replies = package_reply
        running.state.keep_requests = False
        yield running


@pytest.fixture(scope="module", params=["tiny", *INSTALLED])
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
    assert all(re.fullmatch(r"[\w.-]+==\S+", line) for line in lock[2:])
    assert config.interpreter is None and config.worker is None


@pytest.mark.parametrize("preset", [name for name in PACKAGES if memory_config(name).package != "mem0_2"])
def test_no_client_of_a_package_gives_a_call_up_or_asks_again_by_itself(preset: str) -> None:
    """Whose limit of ten minutes is shorter than a slow backbone's reply would ask twice more for each."""
    config: Any = memory_config(preset)
    assert 'PATIENT = {"timeout": None, "max_retries": 0}' in config.worker_file.read_text(encoding="utf-8")


def test_every_call_is_booked_with_its_phase_and_unit(whole: PackageRun) -> None:
    units = {turn.turn_id for turn in sample().conversation.turns}
    rows = whole.rows("calls")
    writes = [row for row in rows if row["phase"] == "write"]
    assert writes and {row["item"] for row in writes} <= units
    assert {row["item"] for row in rows if row["phase"] in ("retrieve", "answer")} == set(whole.answers())
    assert max(whole.ledger().values()) == 1


def test_hits_name_the_turns_they_come_from(whole: PackageRun) -> None:
    known = {turn.turn_id for turn in sample().conversation.turns}
    hits = [hit for row in whole.rows("retrievals") for hit in row["hits"]]
    assert hits
    assert all(hit["turn_ids"] and set(hit["turn_ids"]) <= known for hit in hits)
    said = whole.statistics()
    assert said["lineage"] == "changes" and said["package"] and said["version"]
    assert said["memories"] == said["added"] - said["deleted"] > 0


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
