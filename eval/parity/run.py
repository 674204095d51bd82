"""One parity run: both sides over one conversation, compared and explained."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval.commands.terminal import stage
from eval.config.compose import choice_settings, find_settings
from eval.config.presets import read_settings
from eval.parity.authors import AuthorsRun, interpreter, note_inputs, question_messages, unit_messages, write_sources
from eval.parity.compare import Comparer
from eval.parity.config import TOKENS, Counterpart, backbone_settings, find_counterpart, name_of
from eval.parity.endpoint import ParityEndpoint
from eval.parity.explain import explain
from eval.parity.facts import KnownTexts
from eval.parity.kept import keep, kept, key_of
from eval.parity.ours import SideResult, one_sample, run_ours
from eval.parity.released_settings import given_values, released_values, value_of
from eval.parity.replies import DeterministicBackbone
from eval.parity.report import ParityReport, write_calls, write_report
from eval.parity.stores import STORES
from eval.parity.ties import tied_neighbours, tied_questions
from eval.running.composed import plan_of
from eval.running.models import embedder_for
from eval.running.servers import findings_folder
from memsys.assets.paths import ROOT
from memsys.deviations import Deviation, read_deviations, system_of
from memsys.errors import AssetError, ConfigError
from memsys.llm.findings import Findings, FindingsStore
from memsys.prompt_packs.sources import MissingSourceError, SourceFile, read_source, sources_folder
from memsys.vocabulary import Json, Sample

LOG = "authors.log"
#: So many files are named in a report.
_NAMED_FILES = 5


@dataclass(frozen=True, slots=True)
class ParityRun:
    """Parts of a parity run.

    Attributes:
        against: name of the released code.
        counterpart: what ``released/`` says of it.
        sources: the authors' files by module.
        plan: of our side, but for the backbone's address.
        sample: the conversation.
        spoiled_one_in: one reply in N is malformed; 0 for none.
        folder: gets the report, our run and what the authors' code printed.
        moved: names of the memory's settings that the command line or ``released/`` sets on both sides.
        kept: folder of what released codes did (:mod:`eval.parity.kept`). With one, nothing is run that is known: not
            the released code where it ran in the same way before, and neither side where the settings differ.
    """

    against: str
    counterpart: Counterpart
    sources: Mapping[str, SourceFile]
    plan: Any
    sample: Sample
    spoiled_one_in: int
    folder: Path
    moved: Sequence[str] = ()
    kept: Path | None = None

    @classmethod
    def of(
        cls,
        against: str,
        conversation: str | None,
        overrides: Sequence[str],
        spoiled_one_in: int,
        out: Path,
        kept: Path | None = None,
    ) -> "ParityRun":
        """Read the settings of a run.

        Raises:
            MemsysError: a setting is wrong, or the data set cannot be read.
        """
        counterpart = find_counterpart(against)
        for name in [text.partition("=")[2] for text in overrides if text.startswith("memory=")]:
            preset = find_settings("memory", name)
            if preset is not None and system_of(str(preset["_target_"]))[0] != counterpart.system:
                raise ConfigError(f"against={against} is code of {counterpart.system}; memory={name} is another")
        chosen = [f"dataset.conversations=[{conversation}]"] if conversation else []
        all_overrides = overrides_for(counterpart, overrides)
        plan = plan_of([*backbone_settings().overrides, *all_overrides, *chosen])
        if system_of(str(plan.settings["memory"]["_target_"]))[0] != counterpart.system:
            raise ConfigError(
                f"against={against} is code of {counterpart.system}; memory={plan.memory.name} is another"
            )
        sample = one_sample(plan.dataset.load().samples)
        name = f"{plan.memory.name}-{against}-{plan.dataset.name}-{sample.conversation.conversation_id}"
        sources = counterpart.sources(counterpart.find_pack(ROOT))
        moved = [name_of(one).removeprefix("memory.") for one in all_overrides if name_of(one).startswith("memory.")]
        return cls(against, counterpart, sources, plan, sample, spoiled_one_in, out / name, moved, kept)

    def missing(self) -> str:
        """Return why the authors' code cannot be run here; empty where it can.

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
        words, code = backbone_settings().words, self.counterpart
        backbone = DeterministicBackbone(known, words, self.spoiled_one_in, code.phrases, code.kept_types)
        self.folder.mkdir(parents=True, exist_ok=True)
        comparer = Comparer(known, {question.text: question.question_id for question in self.sample.questions})
        with tempfile.TemporaryDirectory() as temporary:
            files = write_sources(self.sources, Path(temporary))
            released = self._released_values(files)
            comparer.compare_settings(self._preset_values(released), released)
            if self.kept and (report := self._report(comparer)).unexplained:
                return self._written(report)
            endpoint = ParityEndpoint(backbone, embedder_for(self.plan), tokens=TOKENS[self.counterpart.tokens])
            with endpoint.listening():
                ours = run_ours(self._plan_at(endpoint.url("ours")), self.sample, STORES[self.counterpart.store])
                with stage(f"running {self.against}"):
                    theirs = self._theirs(files, released, endpoint)
        comparer.tied = tied_questions(endpoint, ours, theirs) | tied_neighbours(endpoint, ours, theirs)
        for side, calls in endpoint.calls.items():
            write_calls(calls, self.folder / f"calls-{side}.jsonl")
        comparer.compare_calls(endpoint.calls["ours"], endpoint.calls["theirs"])
        comparer.compare_results(ours, theirs)
        return self._written(self._report(comparer))

    def _plan_at(self, url: str) -> Any:
        """Return the plan of our side; its endpoint takes everything, and is not asked what it takes."""
        engine = replace(self.plan.backbone.engine, base_urls=[url])
        cache_dir = self.folder / "cache"
        address, model = engine.served()
        known = Findings(asked=datetime.now(UTC).isoformat())
        FindingsStore(findings_folder(cache_dir)).put(address, model, known)
        backbone = replace(self.plan.backbone, engine=engine)
        return replace(self.plan, backbone=backbone, run_dir=self.folder / "ours", cache_dir=cache_dir, score=False)

    def _released_values(self, files: Mapping[str, str]) -> dict[str, Json]:
        """Return the release's own settings, by the names of ours."""
        texts = {module: Path(path).read_text(encoding="utf-8") for module, path in files.items()}
        return released_values(self.counterpart.released, texts)

    def _preset_values(self, released: Mapping[str, Json]) -> dict[str, Json]:
        """Return the same settings of our preset, before the command line changes any."""
        preset = choice_settings("memory", self.plan.memory.name)
        return {name: value_of(preset, name) for name in released}

    def _theirs(self, files: Mapping[str, str], released: Mapping[str, Json], endpoint: ParityEndpoint) -> SideResult:
        """Run their side, or read what it did in a run that was the same."""
        settings = self._their_settings(files, released)
        if self.kept is None:
            return self._run_theirs(settings, endpoint.url("theirs"))
        given = {**settings, "files": {module: source.sha256 for module, source in self.sources.items()}}
        asked = [message for _, message in question_messages(self.plan, self.sample)]
        told = [self.plan.seed, self.plan.embedder, self.spoiled_one_in, self.counterpart]
        path = self.kept / f"{key_of(given, asked, list(unit_messages(self.plan, self.sample)), told)}.json"
        if (found := kept(path)) is not None:
            endpoint.calls["theirs"], result = found
            return result
        result = self._run_theirs(settings, endpoint.url("theirs"))
        keep(path, endpoint.calls["theirs"], result)
        return result

    def _run_theirs(self, settings: Mapping[str, Json], url: str) -> SideResult:
        log, code = self.folder / LOG, self.counterpart
        log.unlink(missing_ok=True)
        return asyncio.run(AuthorsRun(code.package, code.environment, settings, url, log).run(self.plan, self.sample))

    def _their_settings(self, files: Mapping[str, str], released: Mapping[str, Json]) -> dict[str, Json]:
        code = self.counterpart
        deviating = {match.place for one in self._deviations() for match in one.match if match.kind == "setting"}
        values = given_values(released, self.plan.settings["memory"], {*self.moved, *deviating})
        return {
            "name": self.against,
            "files": dict(files),
            "texts": read_settings(ROOT / code.texts) if code.texts else {},
            "attributes": {one.attribute: values[name] for name, one in code.released.items() if one.attribute},
            **{one.driver: values[name] for name, one in code.released.items() if one.driver},
        }

    def _deviations(self) -> list[Deviation]:
        """Return the documented deviations of the preset."""
        memory = self.plan.settings["memory"]
        found = read_deviations(system_of(str(memory["_target_"]))[1])
        return [one for one in found if one.applies_to(str(memory["name"]))]

    def _report(self, comparer: Comparer) -> ParityReport:
        preset = str(self.plan.settings["memory"]["name"])
        prompts = str(self.plan.settings.get("prompts", {}).get("source", "ours"))
        settings = {
            "prompts": prompts,
            "embedder": str(self.plan.embedder.name),
            "spoiled replies": f"one in {self.spoiled_one_in}" if self.spoiled_one_in else "none",
            "authors' files": _named(list(self.sources.values())),
        }
        return ParityReport(
            memory=self.plan.memory.name,
            against=self.against,
            conversation=self.sample.conversation.conversation_id,
            settings=settings,
            comparison=comparer.result,
            explained=explain(comparer.result.differences, self._deviations(), preset, prompts),
        )

    def _written(self, report: ParityReport) -> ParityReport:
        write_report(report, self.folder)
        return report


def _named(sources: Sequence[SourceFile]) -> str:
    """Return the authors' files, or the number of each repository's where they are many."""
    if len(sources) <= _NAMED_FILES:
        return ", ".join(map(str, sources))
    counts = Counter(f"{one.repository}@{one.commit[:7]}" for one in sources)
    return ", ".join(f"{name}: {count} files" for name, count in counts.items())


def overrides_for(counterpart: Counterpart, given: Sequence[str]) -> list[str]:
    """Return our run's overrides; the command line's take precedence over those of the released code."""
    names = {name_of(override) for override in given}
    return [*given, *(one for one in counterpart.overrides if name_of(one) not in names)]
