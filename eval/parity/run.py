"""One parity run: both sides over one conversation, compared and explained."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.cli.terminal import stage
from eval.configs.choices import find, settings_of
from eval.parity.authors import AuthorsRun, interpreter, note_inputs, write_sources
from eval.parity.compare import Comparer
from eval.parity.config import TOKENS, Counterpart, backbone_settings, find_counterpart
from eval.parity.endpoint import ParityEndpoint
from eval.parity.explain import explain
from eval.parity.facts import KnownTexts
from eval.parity.ours import SideResult, one_sample, run_ours
from eval.parity.replies import DeterministicBackbone
from eval.parity.report import ParityReport, write_calls, write_report
from eval.parity.stores import STORES
from eval.running.models import embedder_for
from eval.serve import plan_of
from memsys.assets.paths import ROOT
from memsys.departures import read_departures, system_of
from memsys.errors import AssetError, ConfigError
from memsys.prompt_packs.sources import MissingSourceError, SourceFile, read_source, sources_folder
from memsys.vocabulary import Json, Sample

LOG = "authors.log"
#: So many files are named in a report.
_NAMED_FILES = 5


@dataclass(frozen=True, slots=True)
class ParityRun:
    """What to run.

    Attributes:
        against: name of the released code.
        counterpart: what ``released/`` says of it.
        sources: the authors' files by module.
        plan: of our side, but for the backbone's address.
        sample: the conversation.
        spoiled_one_in: one reply in so many is no clean JSON; 0 for none.
        folder: gets the report, our run and what the authors' code printed.
    """

    against: str
    counterpart: Counterpart
    sources: Mapping[str, SourceFile]
    plan: Any
    sample: Sample
    spoiled_one_in: int
    folder: Path

    @classmethod
    def of(
        cls, against: str, conversation: str | None, overrides: Sequence[str], spoiled_one_in: int, out: Path
    ) -> "ParityRun":
        """Read the settings of a run.

        Raises:
            MemsysError: a setting is wrong, or the data set cannot be read.
        """
        counterpart = find_counterpart(against)
        for preset in [find(text.partition("=")[2]) for text in overrides if text.startswith("memory=")]:
            if preset is not None and system_of(str(settings_of(preset)["_target_"]))[0] != counterpart.system:
                raise ConfigError(f"against={against} is code of {counterpart.system}; memory={preset.name} is another")
        chosen = [f"dataset.conversations=[{conversation}]"] if conversation else []
        plan = plan_of([*backbone_settings().overrides, *overrides_for(counterpart, overrides), *chosen])
        if system_of(str(plan.settings["memory"]["_target_"]))[0] != counterpart.system:
            raise ConfigError(
                f"against={against} is code of {counterpart.system}; memory={plan.memory.name} is another"
            )
        sample = one_sample(plan.dataset.load().samples)
        name = f"{plan.memory.name}-{against}-{plan.dataset.name}-{sample.conversation.conversation_id}"
        sources = counterpart.sources(counterpart.find_pack(ROOT))
        return cls(against, counterpart, sources, plan, sample, spoiled_one_in, out / name)

    def missing(self) -> str:
        """Why the authors' code cannot be run here; empty where it can.

        Raises:
            DataError: a file is there and is not that of the catalogue.
        """
        try:
            interpreter(self.counterpart.environment)
            for source in self.sources.values():
                read_source(source, sources_folder())
        except (AssetError, MissingSourceError) as error:
            return str(error)
        return ""

    def compare(self) -> ParityReport:
        """Run both sides, compare, and write the report.

        Raises:
            MemsysError: one side failed.
        """
        interpreter(self.counterpart.environment)
        known = KnownTexts([*(content for content, _ in note_inputs(self.plan, self.sample)),
                            *(question.text for question in self.sample.questions)])  # fmt: skip
        words, phrases = backbone_settings().words, self.counterpart.phrases
        backbone = DeterministicBackbone(known, words, self.spoiled_one_in, phrases)
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as temporary:
            files = write_sources(self.sources, Path(temporary))
            endpoint = ParityEndpoint(backbone, embedder_for(self.plan), tokens=TOKENS[self.counterpart.tokens])
            with endpoint.listening():
                ours = run_ours(self._plan_at(endpoint.url("ours")), self.sample, STORES[self.counterpart.store])
                with stage(f"running {self.against}"):
                    theirs = self._run_theirs(files, endpoint.url("theirs"))
        for side, calls in endpoint.calls.items():
            write_calls(calls, self.folder / f"calls-{side}.jsonl")
        comparer = Comparer(known, {question.text: question.question_id for question in self.sample.questions})
        comparer.compare_calls(endpoint.calls["ours"], endpoint.calls["theirs"])
        comparer.compare_results(ours, theirs)
        return self._report(comparer)

    def _plan_at(self, url: str) -> Any:
        engine = replace(self.plan.backbone.engine, base_urls=[url])
        return replace(
            self.plan, backbone=replace(self.plan.backbone, engine=engine), run_dir=self.folder / "ours", score=False
        )

    def _run_theirs(self, files: Mapping[str, str], url: str) -> SideResult:
        memory, log = self.plan.settings["memory"], self.folder / LOG
        log.unlink(missing_ok=True)
        settings: dict[str, Json] = {
            "name": self.against,
            "files": dict(files),
            "attributes": _values(memory, self.counterpart.settings),
            "retrieve_k": _value(memory, self.counterpart.retrieve_k),
            **_values(memory, self.counterpart.driver),
        }
        code = self.counterpart
        return asyncio.run(AuthorsRun(code.package, code.environment, settings, url, log).run(self.plan, self.sample))

    def _report(self, comparer: Comparer) -> ParityReport:
        memory = self.plan.settings["memory"]
        prompts = str(self.plan.settings.get("prompts", {}).get("source", "ours"))
        departures = read_departures(system_of(str(memory["_target_"]))[1])
        settings = {
            "prompts": prompts,
            "embedder": str(self.plan.embedder.name),
            "spoiled replies": f"one in {self.spoiled_one_in}" if self.spoiled_one_in else "none",
            "authors' files": _named(list(self.sources.values())),
        }
        report = ParityReport(
            memory=self.plan.memory.name,
            against=self.against,
            conversation=self.sample.conversation.conversation_id,
            settings=settings,
            comparison=comparer.result,
            explained=explain(comparer.result.differences, departures, str(memory["name"]), prompts),
        )
        write_report(report, self.folder)
        return report


def _named(sources: Sequence[SourceFile]) -> str:
    """The authors' files, or how many of each repository where they are many."""
    if len(sources) <= _NAMED_FILES:
        return ", ".join(map(str, sources))
    counts = Counter(f"{one.repository}@{one.commit[:7]}" for one in sources)
    return ", ".join(f"{name}: {count} files" for name, count in counts.items())


def _values(memory: Mapping[str, Any], wanted: Mapping[str, str]) -> dict[str, Json]:
    """Values of settings of ours by their names there."""
    return {theirs: _value(memory, ours) for theirs, ours in wanted.items()}


def _value(memory: Mapping[str, Any], name: str) -> Any:
    """A setting of a preset by its dotted name."""
    found: Any = memory
    for key in name.split("."):
        found = found[key]
    return found


def overrides_for(counterpart: Counterpart, given: Sequence[str]) -> list[str]:
    """Overrides of our run; what was given on the command line comes before what the released code needs."""
    names = {override.partition("=")[0].lstrip("+") for override in given}
    return [*given, *(one for one in counterpart.overrides if one.partition("=")[0] not in names)]
