"""All cases over all presets, found from ``conf/memory``, and how each is run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from tests.support.bad_replies import BAD_REPLIES
from tests.support.composing import IN_PROCESS as PRESETS
from tests.support.composing import composed
from tests.support.faults.bench import Bench
from tests.support.faults.damage import STATES, DamageCase, Pristine, damage_cases, run_damage_case
from tests.support.faults.disk import DiskCase, disk_cases, run_disk_case
from tests.support.faults.kills import KillCase, kill_cases, run_kill_case
from tests.support.faults.replies import ReplyCase, run_reply_case

Case = KillCase | ReplyCase | DamageCase | DiskCase

#: What a section is called in the figures.
SECTIONS: dict[type, str] = {KillCase: "kills", ReplyCase: "bad replies", DamageCase: "files", DiskCase: "disks"}

#: The preset whose runs all commands read; its row stands in a paper's table, which `eval.explain` needs.
READ_PRESET = "rag"


@dataclass
class Cases:
    """Makes and runs cases on one bench."""

    bench: Bench
    seed: int
    _pristine: dict[str, Pristine] = field(default_factory=dict)

    def pristine(self, preset: str) -> Pristine:
        """Undamaged runs of a preset, made when first asked for."""
        if preset not in self._pristine:
            self._pristine[preset] = Pristine(self.bench, preset)
        return self._pristine[preset]

    def kills(self, preset: str, count: int) -> list[KillCase]:
        """So many kills of a preset's run."""
        return kill_cases(self.bench, preset, count, Random(f"{self.seed} {preset}"))

    def replies(self, presets: Sequence[str]) -> Iterator[ReplyCase]:
        """Every role of every memory class, and of the reader, by every kind; one in three gets it now and then."""
        known: set[tuple[str, str]] = set()
        rng = Random(f"{self.seed} replies")
        for preset in presets:
            new = {(self.owner(preset, role), role) for role in self.bench.roles(preset)} - known
            known |= new
            made = [
                ReplyCase(preset, role, kind, rng.choice((1, 1, 2))) for _, role in sorted(new) for kind in BAD_REPLIES
            ]
            rng.shuffle(made)
            yield from made

    def owner(self, preset: str, role: str) -> str:
        """The class whose role it is; the reader's roles are the same for all."""
        rows = self.bench.rows(preset, "calls.jsonl")
        asked = {row["phase"] for row in rows if row["role"] == role}
        return "reader" if asked == {"answer"} else memory_class(preset)

    def damage(self, preset: str, every_command: bool) -> Iterator[DamageCase]:
        """Every file of a complete and of an interrupted run, damaged in every way."""
        for state in STATES:
            cases = damage_cases(self.pristine(preset), state, Random(f"{self.seed} {preset} {state}"))
            yield from (case for case in cases if every_command or case.command == "run")

    def run(self, case: Case) -> dict[str, Any]:
        """Run a case; the result has its section, its label and the problem, which is empty if there is none."""
        runs: dict[type, Callable[[Any], dict[str, Any]]] = {
            KillCase: lambda case: run_kill_case(self.bench, case),
            ReplyCase: lambda case: run_reply_case(self.bench, case),
            DamageCase: lambda case: run_damage_case(self.pristine(case.preset), case),
            DiskCase: lambda case: run_disk_case(self.bench, case),
        }
        return {"section": SECTIONS[type(case)], "case": case.label(), **runs[type(case)](case)}

    def all(self, presets: Sequence[str], kills: int, only: str | None = None) -> Iterator[Case]:
        """All cases of these presets, or those of one section, mixed, so that few of them are a fair sample too.

        What a preset's cases are is known from its undisturbed run, which is made when the first of them is due.
        """
        rng = Random(self.seed)
        sources = [source for section, source in self._sources(presets, kills) if only in (None, section)]
        while sources:
            source = rng.choice(sources)
            case = next(source, None)
            if case is None:
                sources.remove(source)
            else:
                yield case

    def _sources(self, presets: Sequence[str], kills: int) -> list[tuple[str, Iterator[Case]]]:
        """Sections and their cases, by preset or by class."""

        def killed(preset: str) -> Iterator[Case]:
            yield from self.kills(preset, kills)

        def shuffled(cases: Callable[[], Iterable[Case]]) -> Iterator[Case]:
            made = list(cases())
            Random(self.seed).shuffle(made)
            yield from made

        classes: dict[str, list[str]] = {}
        for preset in presets:
            classes.setdefault(memory_class(preset), []).append(preset)
        sources = [(SECTIONS[KillCase], killed(preset)) for preset in presets]
        for members in classes.values():
            preset = READ_PRESET if READ_PRESET in members else members[-1]
            sources += [
                # Each role of a class is met by the first of its presets that asks it.
                (SECTIONS[ReplyCase], self.replies(members)),
                (SECTIONS[DamageCase], shuffled(partial(self.damage, preset, every_command=preset == READ_PRESET))),
                (SECTIONS[DiskCase], shuffled(partial(disk_cases, preset))),
            ]
        return sources


def memory_class(preset: str) -> str:
    """The class that a preset configures."""
    return str(composed(preset)["_target_"])


def shard(number: int, of: int) -> list[str]:
    """A share of the presets, those of one class together, so that each of its roles is tried once."""
    classes = sorted({memory_class(preset) for preset in PRESETS})
    return [preset for preset in PRESETS if classes.index(memory_class(preset)) % of == number]
