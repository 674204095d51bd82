"""Calibrate the gate's threshold on diaries that the backbone writes, without looking at a benchmark.

Usage: scripts/calibrate_gate.py [--corpus FILE] [--out conf/memory/gated_calibrated.yaml] [KEY=VALUE ...]

Overrides are those of eval.run: ``backbone=qwen25_3b embedder=minilm memory.min_scope=1 memory.kappa_cap=null``.
Diaries are read from --corpus (one JSON object per line) if it exists, else written, and stored there.
"""

import argparse
import asyncio
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eval.running.composed import compose_plan
from eval.running.models import embedder_for, open_backbones
from eval.running.plan import Plan
from eval.runs.rundir import RunDirectory
from memsys.errors import ConfigError, DataError, MemsysError
from memsys.gate.calibration import Diary, Persona, diary_role, personas, stream_scores, threshold, write_diary
from memsys.gate.config import CALIBRATED_FOR, GatedConfig, gate_format
from memsys.llm.scope import CallScope, call_scope
from memsys.vocabulary import Turn

#: Tokens that one diary entry may take.
ENTRY_TOKENS = 60


async def write_corpus(plan: Plan, arguments: argparse.Namespace) -> list[Diary]:
    """Let the backbone write all diaries."""
    role = diary_role(arguments.temperature, ENTRY_TOKENS * arguments.per_call)
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            directory = RunDirectory(Path(folder))
            stack.callback(directory.close)
            backbone = await open_backbones(plan, directory, stack)
            if backbone is None:
                raise ConfigError("mode=retrieval_only has no backbone to write diaries; use mode=answers")
            llm = backbone.bind("calibration")
            call_scope.set(CallScope("prepare", "diary"))
            chosen = personas()[: arguments.personas]
            tasks = (write_diary(llm, role, each, arguments.entries, arguments.per_call) for each in chosen)
            return list(await asyncio.gather(*tasks))


def stored(diaries: Sequence[Diary]) -> str:
    """Write diaries as JSON lines."""
    lines = [
        {"name": each.persona.name, "about": each.persona.description, "entries": each.entries} for each in diaries
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def read_corpus(path: Path) -> list[Diary]:
    """Read what :func:`stored` wrote.

    Raises:
        DataError: a line is not a diary.
    """
    diaries = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            read = json.loads(line)
            diaries.append(Diary(Persona(read["name"], read["about"]), tuple(read["entries"]), 0))
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}, line {number}: a diary is an object with name, about and entries ({error!r}); mend it, or "
                "name a file that does not exist to have diaries written"
            ) from error
    return diaries


async def all_scores(plan: Plan, gate: GatedConfig, diaries: Sequence[Diary]) -> list[float]:
    """Score every diary in a scope of its own, written as the gate writes turns."""
    turn_format = gate_format(plan.dataset.turn_format, gate.text)
    scores: list[float] = []
    for diary in diaries:
        texts = [turn_format.render(Turn("", "", diary.persona.name, entry)) for entry in diary.entries]
        scores += await stream_scores(embedder_for(plan), texts, gate.rule)
    return scores


def preset(name: str, plan: Plan, gate: GatedConfig, facts: dict[str, object], tau: float) -> str:
    """Write the preset of the calibrated gate."""
    held = {key: embedder_for(plan).name if key == "embedder" else getattr(gate, key) for key in CALIBRATED_FOR}
    cap = "null" if gate.kappa_cap is None else gate.kappa_cap
    lines = [
        "# Written by scripts/calibrate_gate.py; the threshold holds for this embedder, text and kappa.",
        "defaults:", "  - gated", "  - _self_", "", f"name: {name}_${{.host.name}}", f"tau_noop: {tau:.4f}",
        f"min_scope: {gate.min_scope}", f"kappa_cap: {cap}", f"kappa_floor: {gate.kappa_floor}", f"text: {gate.text}",
        f"calibration: {json.dumps({'tau_noop': round(tau, 4), **held, **facts})}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", help="as for eval.run")
    parser.add_argument("--corpus", type=Path, help="JSON lines of diaries to read, or to write if absent")
    parser.add_argument("--out", type=Path, help="preset to write, e.g. conf/memory/gated_calibrated.yaml")
    parser.add_argument("--personas", type=int, default=10)
    parser.add_argument("--entries", type=int, default=600, help="per person")
    parser.add_argument("--per-call", type=int, default=10, help="entries asked for at once")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--quantile", type=float, default=0.8)
    return parser.parse_args()


def check(arguments: argparse.Namespace) -> None:
    """Refuse what would fail only after the diaries were paid for.

    Raises:
        ConfigError: a number is out of range, or a folder is not there.
    """
    for key in ("personas", "entries", "per_call"):
        if getattr(arguments, key) < 1:
            raise ConfigError(f"--{key.replace('_', '-')}={getattr(arguments, key)} must be at least 1")
    if not 0 < arguments.quantile < 1:
        raise ConfigError(f"--quantile={arguments.quantile} must lie between 0 and 1")
    for path in (arguments.corpus, arguments.out):
        if path is not None and not path.parent.is_dir():
            raise ConfigError(f"{path}: the folder {path.parent} does not exist; make it first")


def check_written(arguments: argparse.Namespace, diaries: Sequence[Diary]) -> None:
    """Refuse a threshold from a backbone that could not write the diaries.

    Raises:
        DataError: less than half of the entries came.
    """
    written, wanted = sum(len(each.entries) for each in diaries), arguments.personas * arguments.entries
    if 2 * written < wanted:
        raise DataError(
            f"the backbone wrote {written} of the {wanted} entries asked for: too few for a threshold; take a larger "
            "backbone, or name a file of diaries with --corpus"
        )


def calibrate(arguments: argparse.Namespace) -> None:
    """Write or read the diaries, score them, print the threshold and write the preset."""
    check(arguments)
    plan: Plan = compose_plan(["memory=gated", *arguments.overrides])
    gate = plan.memory
    if not isinstance(gate, GatedConfig):
        raise ConfigError(f"memory={gate.name} is not a gate; leave memory out or name a gate")
    known = arguments.corpus is not None and arguments.corpus.is_file()
    diaries = read_corpus(arguments.corpus) if known else asyncio.run(write_corpus(plan, arguments))
    text = stored(diaries)
    if not known:
        if arguments.corpus:
            arguments.corpus.write_text(text, encoding="utf-8")
        check_written(arguments, diaries)
    scores = asyncio.run(all_scores(plan, gate, diaries))
    if not scores:
        raise ConfigError(f"no entry was scored: the diaries are not longer than memory.min_scope={gate.min_scope}")
    tau = threshold(scores, arguments.quantile)
    facts: dict[str, object] = {
        "quantile": arguments.quantile,
        "scores": len(scores),
        "backbone": "corpus" if known or plan.backbone is None else plan.backbone.name,
        "temperature": None if known else arguments.temperature,
        "corpus_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    quantiles = ", ".join(f"p{q}={threshold(scores, q / 100):.3f}" for q in (50, 70, 80, 90))
    print(f"tau_noop={tau:.4f} from {len(scores)} scores of {len(diaries)} diaries ({quantiles})")
    print(f"entries: {[len(each.entries) for each in diaries]}, malformed calls: {sum(d.malformed for d in diaries)}")
    if arguments.out:
        arguments.out.write_text(preset(arguments.out.stem, plan, gate, facts, tau), encoding="utf-8")
        print(f"wrote {arguments.out}")


def main() -> int:
    """Run; exit status 2 and one message if it fails."""
    try:
        calibrate(parsed())
    except MemsysError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
