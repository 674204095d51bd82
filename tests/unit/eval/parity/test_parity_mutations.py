"""The changes of ``make parity-mutations``: each can be made, and what becomes of them decides the exit status."""

from collections import Counter
from pathlib import Path

import pytest

from eval.commands.commands import EXIT_DIFFERENT, EXIT_DONE, EXIT_ERROR, EXIT_INCOMPLETE
from eval.config.presets import make_preset
from eval.parity import mutations
from eval.parity.config import counterparts, find_counterpart
from eval.parity.mutations import Mutation, read_mutations
from eval.parity.stages import FILE, ParityStages
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError

MUTATIONS = read_mutations()


def test_there_are_sixty_at_least_over_all_systems() -> None:
    assert len(MUTATIONS) >= 60
    assert {one.system for one in MUTATIONS} == {find_counterpart(name).system for name in counterparts()}
    assert {one.stage for one in MUTATIONS} <= set(make_preset(ParityStages, FILE).stages)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_each_can_be_made(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.before) == 1
    assert mutation.before != mutation.after


def test_a_change_is_undone(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("k = 5\n", encoding="utf-8")
    with Mutation("s", "t", "a.py", "k = 5", "k = 4").made(tmp_path):
        assert (tmp_path / "a.py").read_text(encoding="utf-8") == "k = 4\n"
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "k = 5\n"
    with pytest.raises(ConfigError, match="once"), Mutation("s", "t", "a.py", "j", "i").made(tmp_path):
        pass


class Copies:
    """Stages that end as told: without a change, then with each."""

    def __init__(self, unchanged: int, *changed: int) -> None:
        self._statuses = [[unchanged], list(changed)]

    def map(self, runs: object, *, told: bool = False) -> list[int]:
        return self._statuses.pop(0)


@pytest.mark.parametrize(
    ("unchanged", "changed", "status", "said"),
    [
        (
            EXIT_DONE,
            (EXIT_DIFFERENT, EXIT_ERROR),
            EXIT_DONE,
            "2 of 2 changes caught (1 of them stopped the run), 0 missed",
        ),
        (EXIT_DONE, (EXIT_DIFFERENT, EXIT_DONE), EXIT_DIFFERENT, "1 of 2 changes caught"),
        (EXIT_INCOMPLETE, (), EXIT_INCOMPLETE, "0 missed, 2 not tried"),
        (EXIT_DIFFERENT, (), EXIT_ERROR, "0 missed, 2 not tried"),
    ],
)
def test_what_is_missed_makes_the_campaign_fail(
    unchanged: int, changed: tuple[int, ...], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [Mutation("s", "t", "a.py", before, "x") for before in "ab"]
    assert mutations._campaign(given, Copies(unchanged, *changed)) == status  # type: ignore[arg-type]
    assert said in capsys.readouterr().out
    assert Counter(changed)[EXIT_DONE] == (status == EXIT_DIFFERENT)
