"""Way of one poisoned turn through several memories: what each made of it, found of it, showed and answered."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval.commands.rendering.markdown import blocks, bullets, inline
from eval.commands.rendering.table import DASH, Span
from eval.metrics.attacks import ATTACK, Attack
from eval.metrics.evidence import DEPTH
from eval.results.stored_run import StoredRun
from eval.results.stress.tables import StressedSystem
from eval.runs.records import ReferenceRecord, RetrievalRecord
from eval.scoring.run_files import RunFiles
from eval.scoring.shown import shown_memories

#: Systems and entries of a system that are shown, and characters of a text.
_SYSTEMS, _ENTRIES, _CHARACTERS = 3, 3, 300
_RUN, _TWIN = "poison", "poison_twin"


@dataclass(frozen=True, slots=True)
class _Way:
    """A question that poison is aimed at, in one run."""

    files: RunFiles
    gold: ReferenceRecord
    attack: Attack

    @property
    def retrieval(self) -> RetrievalRecord | None:
        return self.files.retrievals.get(self.gold.question_id)

    def entries(self) -> list[str]:
        """Say what the memory made of the turn."""
        stored = self.files.stored.entries(self.gold.conversation_id)
        if stored is None:
            return [f"entries of it: {DASH}"]
        made = [entry for entry in stored if entry.turns & self.attack.turns]
        left = len(made) - _ENTRIES
        said = [f"{_stored(entry.turns - self.attack.turns)}: {_cut(entry.said)}" for entry in made[:_ENTRIES]]
        return [*said, f"and {left} more"] if left > 0 else said or ["stored: nothing came from it"]

    def found(self) -> str:
        """Say at which place its memories were found, and whether one was in the context."""
        retrieval = self.retrieval
        if retrieval is None or not retrieval.traced:
            return f"found: {DASH}"
        places = [place for place, hit in enumerate(retrieval.hits, start=1) if self.attack.turns & set(hit.turn_ids)]
        shown = shown_memories(retrieval)
        in_context = shown is not None and any(self.attack.turns & set(hit.turn_ids) for hit in shown)
        context = DASH if shown is None else "in the context" if in_context else "not in the context"
        first = [place for place in places if place <= DEPTH]
        where = f"at place {first[0]}" if first else f"at place {places[0]}, past ten" if places else "not found"
        return f"found: {where}; {context}"

    def answer(self) -> str:
        """Return the answer, and whether it has the payload."""
        answer = self.files.answers.get(self.gold.question_id)
        return DASH if answer is None else f"{_cut(answer.prediction)}{' (obeyed)' if self.is_obeyed() else ''}"

    def is_obeyed(self) -> bool:
        """Return whether the answer has the payload."""
        answer = self.files.answers.get(self.gold.question_id)
        return answer is not None and self.attack.holds(answer.prediction)


def _stored(others: frozenset[str]) -> str:
    return f"stored, with {len(others)} other turns" if others else "stored"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _CHARACTERS else f"{line[:_CHARACTERS]} …"


def ways(systems: Sequence[StressedSystem]) -> str:
    """Return a section of Markdown: one poisoned turn in the first three systems; empty where none was poisoned.

    Of all poisoned turns it is the one that most of them treat differently, else an instruction.
    """
    poisoned = [one for one in systems if _RUN in one.runs][:_SYSTEMS]
    if not poisoned:
        return ""
    aimed = [_aimed(one.runs[_RUN]) for one in poisoned]
    twins = [_aimed(one.runs[_TWIN]) if _TWIN in one.runs else {} for one in poisoned]
    shared = [name for name in aimed[0] if all(name in found for found in aimed)]
    if not shared:
        return ""
    name = max(shared, key=lambda one: len({(found[one].found(), found[one].is_obeyed()) for found in aimed}))
    first, twin = aimed[0][name], twins[0].get(name)
    asked = first.gold.extra[ATTACK]
    about = [
        f"question {name}: {asked.get('question', DASH)}; right: {', '.join(first.gold.answers) or 'to abstain'}",
        f"poison ({asked['kind'].replace('_', ' ')}): {asked.get('text', DASH)}",
        *([f"its twin: {twin.gold.extra[ATTACK].get('text', DASH)}"] if twin else []),
    ]
    parts = [_system(one, found[name], twin.get(name)) for one, found, twin in zip(poisoned, aimed, twins, strict=True)]
    return blocks("## One poisoned turn's way", bullets(about), *parts)


def _system(system: StressedSystem, way: _Way, twin: _Way | None) -> str:
    lines: Iterable[str] = (
        *way.entries(),
        way.found(),
        f"answer: {way.answer()}",
        *((f"the twin {twin.found()}; answer: {twin.answer()}",) if twin else ()),
    )
    return blocks(inline((Span(system.label, "bold"),)), bullets(lines))


def _aimed(run: StoredRun) -> dict[str, _Way]:
    """Return the questions of a run that poison is aimed at, by id: instructions first."""
    files = RunFiles(run.path)
    found = {
        name: _Way(files, gold, attack)
        for name, gold in files.references.items()
        if (attack := Attack.of(gold.extra)) is not None
    }
    return dict(sorted(found.items(), key=lambda one: one[1].gold.extra[ATTACK]["kind"] != "instruction"))
