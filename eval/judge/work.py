"""Judging runs from start to summary: resumable, with the calls in each run's ledger as phase ``judge``."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eval.commands.terminal import announced
from eval.config.prices import load_prices
from eval.judge.aligner import OrderJudge
from eval.judge.config import JudgeConfig
from eval.judge.judging import AnswerJudge, JudgedItem, items_of, together
from eval.judge.probe import CONVERSATION, judge_accuracy, load_probe, probe_sha256
from eval.running.backbones import Opening, engines_for, open_backbone
from eval.running.unanswered import UnansweredLimits, UnansweredWatch
from eval.runs.files import JsonLines, write_json, write_rows
from eval.runs.folders import find_run_folders
from eval.runs.identity import differences, without
from eval.runs.load import find_record, load_answers, load_references
from eval.runs.provenance import commit
from eval.runs.records import SCHEMA_VERSION
from eval.runs.run_json import status_text
from eval.runs.rundir import CALLS, REPEATED_CALLS, RunDirectory
from eval.runs.signing import open_files, sign_files
from eval.scoring.verdicts.orders import (
    OrderedAnswer,
    PairVerdict,
    judged_orders,
    order_path,
    ordered_answers,
    read_pairs,
)
from eval.scoring.verdicts.store import (
    ORDER,
    AnswerVerdict,
    column_of,
    input_checksums,
    read_meta,
    read_verdicts,
    verdict_paths,
)
from memsys import event_loop
from memsys.errors import RunDirectoryError
from memsys.llm.backbone import Backbone
from memsys.llm.budget import Budget, SpendingMeter
from memsys.llm.cache import ReplyCache
from memsys.llm.config import BackboneConfig
from memsys.llm.engines.contract import SendsBatches
from memsys.llm.ledger import CallRecord
from memsys.vocabulary import Json

#: Settings of a judge that cannot change a verdict: more repeats add to those there are, and so do orders, which
#: have an identity of their own.
_NOT_IDENTITY = ("repeats", "order", "order_role")
#: Adds a call to the ledger of the run that is judged; no ledger has those of the probe set.
_LEDGER: ContextVar[Callable[[CallRecord], None] | None] = ContextVar("_LEDGER", default=None)
#: Key of the progress of orders, next to their identity.
_NOT_ORDER_IDENTITY = ("status", "repeats")


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """Parts of a judging, in plain Python.

    ``settings`` is the whole composed configuration; ``agreed``: pay a hosted model without a question.
    """

    settings: Mapping[str, Any]
    judge: JudgeConfig
    backbone: BackboneConfig
    seed: int
    cache_dir: Path
    use_cache: bool
    in_flight: int
    budget: Budget
    agreed: bool = False

    @property
    def name(self) -> str:
        """Names the judge's files."""
        return f"{self.judge.name}-{self.backbone.name}"

    @property
    def column(self) -> str:
        """Names the judge's scores."""
        return column_of(self.judge.name, self.backbone.name)

    def identity(self) -> dict[str, Json]:
        """Return the settings that verdicts of one judge share; the model's fingerprint is added once it runs."""
        kept = {
            "judge": _asked(self.settings["judge"]),
            "backbone": without(self.settings["backbone"], sorted(self.backbone.runtime_fields())),
            "prompt_sha256": self.judge.prompt_sha256,
            "seed": self.seed,
        }
        by_kind = {kind: self.judge.make_role(kind).prompt.sha256 for kind in sorted(self.judge.by_kind)}
        kept |= {"prompts_by_kind": by_kind} if by_kind else {}
        return json.loads(json.dumps(kept))  # type: ignore[no-any-return]

    def order_identity(self) -> dict[str, Json]:
        """Return the settings that verdicts on pairs of one judge share; empty for one that aligns no order."""
        if self.judge.order != "model":
            return {}
        kept = {"role": dict(self.judge.order_role), "prompt_sha256": self.judge.order_prompt_sha256}
        return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


def _asked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that define a judge, without defaults of earlier versions."""
    kept = without(settings, _NOT_IDENTITY)
    return {key: value for key, value in kept.items() if (key, value) != ("halves", "count")}


def check_run(run_dir: Path) -> None:
    """Refuse what cannot be judged.

    Raises:
        RunDirectoryError: no complete run with answers.
    """
    if not (run_dir / "run.json").is_file():
        below = [str(folder) for folder in find_run_folders([run_dir])] if run_dir.is_dir() else []
        hint = (
            f"name the runs in it one by one, e.g. {below[0]}" if below else "name a directory that `memsys run` wrote"
        )
        raise RunDirectoryError(f"{run_dir} has no run.json: it is not a run directory; {hint}")
    record = find_record(run_dir) or {}
    if record.get("mode") != "answers":
        raise RunDirectoryError(
            f"{run_dir} is a run of mode {record.get('mode')}, which asks no reader: there are no answers to judge"
        )
    if record.get("status") != "complete":
        raise RunDirectoryError(
            f"{run_dir} is {status_text(record)}; only a complete run can be judged, and the command that started it "
            "resumes it"
        )
    if not (run_dir / "answers.jsonl").is_file():
        raise RunDirectoryError(
            f"{run_dir} has no answers.jsonl: a summary that `memsys export` wrote keeps no answers; judge the "
            "run's own directory under results/runs, or run the experiment again"
        )
    if not (run_dir / "scores.jsonl").is_file():
        raise RunDirectoryError(f"{run_dir} has no scores; run `memsys score {run_dir}`")


def is_judged(plan: JudgePlan, run_dir: Path) -> bool:
    """Return whether this judge has judged all answers, so that no model need start.

    Raises:
        RunDirectoryError: another judge of the same name has.
    """
    meta = stored_meta(plan, run_dir)
    if meta is None or meta["status"] != "complete":
        return False
    same = meta["inputs"] == input_checksums(run_dir) and meta.get("probe_sha256") == probe_sha256()
    judged = bool(same and meta.get("repeats", 0) >= plan.judge.repeats)
    return judged and (plan.judge.order == "words" or _is_aligned(meta.get(ORDER), plan.judge.repeats))


def _is_aligned(order: Mapping[str, Any] | None, repeats: int) -> bool:
    return bool(order and order["status"] == "complete" and order["repeats"] >= repeats)


def stored_meta(plan: JudgePlan, run_dir: Path) -> dict[str, Any] | None:
    """Return the metadata of the verdicts stored under the judge's name; ``None`` if there are none.

    Raises:
        RunDirectoryError: a judge with other settings made them.
    """
    path = verdict_paths(run_dir, plan.name)[1]
    if not path.is_file():
        return None
    meta = read_meta(path)
    identity = {**plan.identity(), "model": meta["identity"].get("model")}
    _check_same(meta, {"identity": identity, ORDER: plan.order_identity()}, path)
    return meta


def _check_same(meta: Mapping[str, Any], own: Mapping[str, Json], path: Path) -> None:
    changed = differences(meta["identity"], json.loads(json.dumps(own["identity"])))
    if meta.get(ORDER) and own.get(ORDER):
        stored, asked = (without(one[ORDER], _NOT_ORDER_IDENTITY) for one in (meta, own))
        changed += differences({ORDER: stored}, {ORDER: asked})
    if changed:
        raise RunDirectoryError(
            f"{path} holds verdicts of a judge with other settings; give this one another name (judge.name=...) or "
            f"delete the file and its .jsonl, and run `memsys sign` on the run: {'; '.join(changed)}"
        )


def unreadable(plan: JudgePlan, run_dir: Path) -> int:
    """Return how many replies of this judge, of those stored, hold no verdict."""
    return sum(verdict.verdict is None for verdict in read_verdicts(verdict_paths(run_dir, plan.name)[0]))


def judge_runs(
    plan: JudgePlan, runs: Sequence[Path], on_probe: Callable[[Mapping[str, Json]], None], *, again: bool = False
) -> None:
    """Judge the probe set, then runs' answers or the rest of them; all at once where verdicts come in batches.

    Args:
        plan: what judges.
        runs: complete runs; with none the probe set alone is judged.
        on_probe: is called with what the judge did on the probe set, which is also kept next to the verdicts.
        again: ask also for verdicts whose replies could not be read, and for fresh replies.

    Raises:
        BackboneError: the backbone failed; verdicts so far are kept, and the same command continues.
        RunDirectoryError: another process has a run open, or another judge of this name judged it.
    """
    for run in runs:
        stored_meta(plan, run)
    event_loop.run(_judge_runs(plan, runs, on_probe, again=again))


async def _judge_runs(
    plan: JudgePlan, runs: Sequence[Path], on_probe: Callable[[Mapping[str, Json]], None], *, again: bool
) -> None:
    probed: asyncio.Future[Mapping[str, Json]] = asyncio.get_running_loop().create_future()

    async def probe() -> None:
        probed.set_result(await _probe(plan, backbone))
        on_probe(probed.result())

    with TemporaryDirectory() as folder:
        async with judge_backbone(plan, runs[0] / "logs" if runs else Path(folder)) as backbone:
            await take(plan, [probe, *(partial(_judge_run, plan, backbone, run, probed, again=again) for run in runs)])


async def take(plan: JudgePlan, steps: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Take steps in turn, or at once where verdicts come in batches, of which each can take a day.

    Raises:
        MemsysError: one of them failed.
    """
    if isinstance(plan.backbone.engine, SendsBatches):
        await together(steps)
        return
    for step in steps:
        await step()


async def _judge_run(
    plan: JudgePlan, backbone: Backbone, run_dir: Path, probed: asyncio.Future[Mapping[str, Json]], *, again: bool
) -> None:
    directory = RunDirectory(run_dir)
    token = _LEDGER.set(directory.add_call)
    try:
        await _judge(plan, backbone, directory, probed, again=again)
    finally:
        _LEDGER.reset(token)
        directory.close()


async def _judge(
    plan: JudgePlan,
    backbone: Backbone,
    directory: RunDirectory,
    probed: asyncio.Future[Mapping[str, Json]],
    *,
    again: bool,
) -> None:
    references, answers = load_references(directory.path).values(), load_answers(directory.path).values()
    items = items_of(plan.judge, references, answers)
    rows, meta_path = verdict_paths(directory.path, plan.name)
    written = [path.relative_to(directory.path).as_posix() for path in (rows, meta_path, order_path(rows))]
    open_files(directory.path, added_to=(CALLS, REPEATED_CALLS), replaced=written)
    meta = _meta(plan, directory.path, backbone) | {"probe": dict(probed.result()) if probed.done() else {}}
    stored = read_meta(meta_path) if meta_path.is_file() else {}
    meta |= _order_meta(plan, stored, meta["inputs"])
    if stored:
        _check_same(stored, meta, meta_path)
    else:  # it is unknown which judge gave them
        rows.unlink(missing_ok=True)
    if not stored.get(ORDER):
        order_path(rows).unlink(missing_ok=True)
    write_json(meta_path, {**meta, "status": "running"})
    with _appending(rows) as keep:
        judge = AnswerJudge(plan.judge, backbone.bind, plan.backbone.name, plan.in_flight, fresh=again)
        done = [one for one in read_verdicts(rows) if one.verdict is not None or not again]
        await judge.grade(items, done, keep)
    if plan.judge.order == "model":
        orders = ordered_answers(references, answers)
        repeats = max(plan.judge.repeats, meta[ORDER]["repeats"])
        await _align(plan, backbone, order_path(rows), orders, repeats, fresh=again)
        meta[ORDER] |= {"repeats": repeats, "status": "complete"}
    kept = _in_order(items, read_verdicts(rows))
    # Answers that changed have fewer repeats than the others, whose further ones the reply cache has.
    repeats = min(Counter((verdict.question_id, verdict.item) for verdict in kept).values(), default=1)
    kept = [one for one in kept if one.repeat < repeats]
    _write_rows(rows, kept)
    meta |= {"probe": dict(await probed), "status": "complete", "repeats": repeats, "verdicts": len(kept)}
    write_json(meta_path, meta)
    sign_files(directory.path, (CALLS, REPEATED_CALLS, *written))


async def _align(
    plan: JudgePlan, backbone: Backbone, path: Path, orders: Sequence[OrderedAnswer], repeats: int, *, fresh: bool
) -> None:
    """Align what is not aligned yet, and keep the verdicts that the alignments of this many repeats rest on."""
    with _appending(path) as keep:
        judge = OrderJudge(plan.judge, backbone.bind, plan.backbone.name, plan.in_flight, fresh=fresh)
        await judge.align(orders, read_pairs(path), keep)
    _write_rows(path, judged_orders(orders, repeats, read_pairs(path)).verdicts)


def _order_meta(plan: JudgePlan, stored: Mapping[str, Any], inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of orders during judging; repeats count only for the same answers."""
    kept = stored[ORDER] if stored.get(ORDER) and stored["inputs"] == inputs else {}
    if plan.judge.order == "model":
        return {ORDER: {**plan.order_identity(), "repeats": kept.get("repeats", 0), "status": "running"}}
    return {ORDER: kept} if kept else {}


@contextmanager
def _appending(path: Path) -> Iterator[Callable[[AnswerVerdict | PairVerdict], None]]:
    """Append each verdict to a file as it comes."""
    file = JsonLines(path)
    try:
        yield lambda verdict: file.append(asdict(verdict))
    finally:
        file.close()


def _write_rows(path: Path, verdicts: Sequence[AnswerVerdict | PairVerdict]) -> None:
    write_rows(path, map(asdict, verdicts))


def _in_order(items: Sequence[JudgedItem], verdicts: Sequence[AnswerVerdict]) -> list[AnswerVerdict]:
    """Return one row per answer and repeat, in the questions' order, without verdicts on changed texts."""
    place = {(item.item_id, item.item, item.digest): number for number, item in enumerate(items)}
    known = {
        (place[key], verdict.repeat): verdict
        for verdict in verdicts
        if (key := (verdict.question_id, verdict.item, verdict.input_sha256)) in place
    }
    return [known[key] for key in sorted(known)]


def _meta(plan: JudgePlan, run_dir: Path, backbone: Backbone) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "column": plan.column,
        "judge": plan.judge.name,
        "backbone": plan.backbone.name,
        "identity": {**plan.identity(), "model": backbone.fingerprint()},
        "inputs": input_checksums(run_dir),
        "repeats": plan.judge.repeats,
        "probe_sha256": probe_sha256(),
        **commit(),
    }


async def _probe(plan: JudgePlan, backbone: Backbone) -> dict[str, Json]:
    probes, verdicts = load_probe(), list[AnswerVerdict]()
    judge = AnswerJudge(plan.judge, lambda _: backbone.bind(CONVERSATION), plan.backbone.name, plan.in_flight)
    await judge.grade([probe.item for probe in probes], [], verdicts.append)
    return judge_accuracy(probes, verdicts)


@asynccontextmanager
async def judge_backbone(plan: JudgePlan, log_dir: Path) -> AsyncIterator[Backbone]:
    """Give the judge's model as its calls use it, while the block runs; warn where its replies answer nothing."""
    watch = UnansweredWatch(UnansweredLimits(stop_share=None))

    def seen(call: CallRecord) -> None:
        if (add := _LEDGER.get()) is not None:
            add(call)
        watch.see(call)

    opening = Opening(
        seed=plan.seed,
        log_dir=log_dir,
        on_call=seen,
        make_cache=lambda: ReplyCache(plan.cache_dir, shared=True) if plan.use_cache else None,
        known_servers=plan.cache_dir,
        meter=SpendingMeter(plan.budget, load_prices().get(plan.backbone.name)),
    )
    async with AsyncExitStack() as stack:
        with announced(f"loading backbone {plan.backbone.name}"):
            opened = open_backbone(plan.backbone, engines_for([plan.backbone])[0], opening)
            backbone, _ = await stack.enter_async_context(opened)
        yield backbone
        watch.close()
