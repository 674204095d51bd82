"""Every experiment composes, its parts can be made, and what cannot change a result is no part of its identity."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from eval.experiment import identity_of, run_path
from eval.run import make_plan
from eval.rundir import identity_hash

CONF = Path(__file__).resolve().parents[2] / "conf"
EXPERIMENTS = sorted(path.stem for path in (CONF / "experiment").glob("*.yaml"))


def plan(*overrides: str) -> object:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return make_plan(compose("config", overrides=list(overrides)))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiment_makes_a_plan(name: str) -> None:
    made = plan(f"+experiment={name}")
    assert made.experiment == name  # type: ignore[attr-defined]
    assert run_path(made, identity_of(made, "0" * 64)).parent.name == name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("override", "same"),
    [
        ("schedule.prepare_ahead=1", True),
        ("backbone.max_in_flight=3", True),
        ("backbone.engine.threads=1", True),
        ("runs_dir=elsewhere", True),
        ("protocol=locomo", True),
        ("seed=1", False),
        ("memory.tau=0.2", False),
        ("backbone.sampling.top_p=0.9", False),
        ("reader.roles.default.max_tokens=7", False),
        ("dataset.turn_style=clag", False),
        ("timing=latency", False),
    ],
)
def test_identity_holds_what_can_change_a_result(override: str, same: bool) -> None:
    base = identity_of(plan("memory=clag"), "x")  # type: ignore[arg-type]
    changed = identity_of(plan("memory=clag", override), "x")  # type: ignore[arg-type]
    assert (identity_hash(base) == identity_hash(changed)) is same
