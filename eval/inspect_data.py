"""Show what a data set holds before running it: ``memsys inspect_data dataset=locomo [KEY=VALUE ...]``.

Prints sizes, categories, lengths, how evidence resolves, and what the loader repaired. Settings override those of
``conf/dataset/<name>.yaml``, e.g. ``labels=audited`` or ``conversations=[conv-26]``.
"""

import argparse
import importlib
import json
import re
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from typing import cast

from eval.commands.commands import described, explains_errors, program, start
from eval.commands.help_text import Paragraphs
from eval.commands.rendering.table import Column, Table
from eval.commands.rendering.terminal import render_terminal
from eval.commands.suggestions import close_names
from eval.commands.terminal import console
from eval.config.command_line import no_dashes
from eval.config.compose import choice_settings
from eval.config.presets import CONF, preset_names
from eval.loaders.contract import DatasetConfig, LoadedData
from eval.loaders.custom import CustomConfig
from eval.loaders.custom_files import PAGE, QUESTIONS
from eval.loaders.label_problems import LABEL_PROBLEM
from eval.loaders.meanings import COUNTS, NOTES
from memsys.assets.hints import of_source
from memsys.counting import repeated
from memsys.errors import ConfigError
from memsys.vocabulary import Json, Reference, Sample

#: Columns that say what a row is about.
_KEYS = ("count", "category", "name", "tokens", "conversation")
#: In the table of conversations, or of use to programs alone.
_SHOWN_ELSEWHERE = ("turns_per_conversation", "files")
#: Headings short enough for eighty columns.
_HEADINGS = {
    "category": "no.",
    "questions": "asked",
    "question_tokens": "quest. tokens",
    "answer_tokens": "answer tokens",
    "without_answer": "no ans.",
    "evidence_ids": "evid. ids",
    "without_evidence": "no evid.",
    "unresolved": "lost ids",
    "label_problems": "bad label",
}
#: Under the tables: what these headings represent.
_LEGEND = (
    "no ans.: without a true answer, such as adversarial questions; evid. ids: gold turns; no evid.: excluded from "
    "evidence metrics; lost ids: with an id that names no turn; bad label: disputed gold, scored, with means without "
    "it next to the others"
)
_UNASKED = "There are no questions yet: nothing to show by category.\n"
FOLDER = CONF / "dataset"
#: The tokenizer of every length printed here: a run of word characters, or one other visible character.
TOKEN = re.compile(r"\w+|[^\w\s]")


def count_tokens(text: str) -> int:
    """Count tokens with :data:`TOKEN`; a stated measure, not any backbone's."""
    return len(TOKEN.findall(text))


def read_config(name: str, overrides: Mapping[str, Json]) -> DatasetConfig:
    """Make the configuration object of a choice of ``conf/dataset`` with some settings replaced.

    Raises:
        ConfigError: no such preset, or no such setting.
    """
    settings = choice_settings("dataset", name)
    module, _, attribute = settings.pop("_target_").rpartition(".")
    unknown = sorted(set(overrides) - set(settings))
    if unknown:
        raise ConfigError(f"dataset {name} has no setting {', '.join(unknown)}; it has {', '.join(settings)}")
    make = getattr(importlib.import_module(module), attribute)
    return cast(DatasetConfig, make(**{**settings, **overrides}))


def presets() -> list[str]:
    """Return the names of all data set presets."""
    return list(preset_names(FOLDER))


def describe(config: DatasetConfig, data: LoadedData) -> dict[str, Json]:
    """Measure a loaded data set; JSON values throughout."""
    render = config.turn_format.render
    own = data.notes.get("pinned") is False and bool(getattr(config, "path", None)) and bool(config.info.files)
    turn_tokens = [[count_tokens(render(turn)) for turn in sample.conversation.turns] for sample in data.samples]
    return {
        "name": config.name,
        "title": f"in the format of {config.info.title}; the checksum matches no known file"
        if own
        else config.info.title,
        "licence": "that of the file" if own else config.info.licence,
        "source": data.source_name,
        "sha256": data.sha256,
        "card": of_source(f"datasets/{config.info.card or config.info.key}/README.md"),
        "counts": dict(data.counts),
        "notes": dict(data.notes),
        "note_meanings": dict(config.info.note_meanings),
        "tokens": {
            "per_turn": _spread([n for tokens in turn_tokens for n in tokens]),
            "per_conversation": _spread([sum(tokens) for tokens in turn_tokens]),
        },
        "categories": [_category(data, number, name) for number, name in data.category_names.items()],
        "conversations": [
            _conversation(sample, sum(tokens)) for sample, tokens in zip(data.samples, turn_tokens, strict=True)
        ],
    }


def _spread(values: Sequence[int]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "mean": round(statistics.fmean(ordered), 1),
        "median": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "min": ordered[0],
        "max": ordered[-1],
        "sum": sum(ordered),
    }


def _category(data: LoadedData, number: int, name: str) -> dict[str, Json]:
    pairs = [
        (question, sample.references[question.question_id])
        for sample in data.samples
        for question in sample.questions
        if question.category == number
    ]
    references = [reference for _, reference in pairs]
    return {
        "category": number,
        "name": name,
        "questions": len(pairs),
        "question_tokens": _mean([count_tokens(question.text) for question, _ in pairs]),
        "answer_tokens": _mean([count_tokens(answer) for reference in references for answer in reference.answers]),
        "without_answer": sum(not reference.answers for reference in references),
        "evidence_ids": _mean([len(reference.evidence) for reference in references]),
        "without_evidence": sum(not reference.evidence for reference in references),
        "unresolved": sum(bool(reference.unresolved_evidence) for reference in references),
        "label_problems": sum(_label_problem(reference) for reference in references),
    }


def _label_problem(reference: Reference) -> bool:
    return LABEL_PROBLEM in reference.extra


def _mean(values: Sequence[int]) -> float | None:
    return round(statistics.fmean(values), 1) if values else None


def _conversation(sample: Sample, tokens: int) -> dict[str, Json]:
    turns = sample.conversation.turns
    return {
        "conversation": sample.conversation.conversation_id,
        "sessions": len({turn.session_id for turn in turns}),
        "turns": len(turns),
        "tokens": tokens,
        "questions": len(sample.questions),
    }


def tables(report: Mapping[str, Json]) -> list[Table | str]:
    """Lay a report out in tables; a line is printed where there is nothing for a table."""
    lengths = [{"tokens": key.replace("_", " "), **spread} for key, spread in report["tokens"].items()]
    meanings = {**NOTES, **report["note_meanings"]}
    return [
        _table("What is selected", _explained(report["counts"], COUNTS)),
        _table("Loader statistics of the whole file", _explained(report["notes"], meanings)),
        _table("Questions by category (means per question)", report["categories"])
        if report["categories"]
        else _UNASKED,
        _table(r"Length of turns as written, tokens of \w+|[^\w\s]", lengths),
        _table("Conversations", report["conversations"]),
    ]


def _explained(values: Mapping[str, Json], meanings: Mapping[str, str]) -> list[dict[str, Json]]:
    return [
        {"count": key.replace("_", " "), "value": _cell(value), "meaning": meanings.get(key, "")}
        for key, value in values.items()
        if key not in _SHOWN_ELSEWHERE
    ]


def _table(title: str, rows: Sequence[Mapping[str, Json]]) -> Table:
    shown = [_column(key, value) for key, value in (rows[0] if rows else {"nothing to tell": ""}).items()]
    return Table(title, shown, [[_cell(value) for value in row.values()] for row in rows])


def _column(key: str, value: Json) -> Column:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return Column(_HEADINGS.get(key, key.replace("_", " ")), "right" if number else "left", key=key in _KEYS)


def _cell(value: Json) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {inner}" for key, inner in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return "-" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)


def parse(arguments: Sequence[str] | None) -> tuple[str, dict[str, Json], bool]:
    """Read the command line into preset, overrides and whether JSON is wanted."""
    parser = argparse.ArgumentParser(prog=program("inspect_data"), description=described(__doc__))
    parser.formatter_class = Paragraphs
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="dataset=NAME, one of " + ", ".join(presets()))
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    read, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"{unknown[0]} is not an option{no_dashes(unknown[0], read.settings)}")
    keys = [setting.partition("=")[0] for setting in read.settings if "=" in setting]
    if len(keys) < len(read.settings) or "dataset" not in keys:
        bare = next((setting for setting in read.settings if "=" not in setting), "")
        meant = bare if bare in presets() else next(iter(close_names(bare, presets())), "")
        parser.error(f"give dataset=NAME and settings as key=value{f'; write dataset={meant}' if meant else ''}")
    overrides = read_overrides(read.settings, parser)
    return str(overrides.pop("dataset")), overrides, read.json


def read_overrides(settings: Sequence[str], parser: argparse.ArgumentParser) -> dict[str, Json]:
    """Read settings of one data set.

    Args:
        settings: each ``key=value``; keys may begin with ``dataset.``.
        parser: of the command, which ends with its usage where a setting is given twice.

    Raises:
        ConfigError: a value is not YAML.
    """
    pairs = [setting.partition("=") for setting in settings]
    overrides = {key.removeprefix("dataset."): _value(key, value) for key, _, value in pairs}
    if twice := repeated(key.removeprefix("dataset.") for key, _, _ in pairs):
        parser.error(f"{twice[0]}= is given twice; settings are of one data set")
    return overrides


def _value(key: str, text: str) -> Json:
    """Read the value of a setting as YAML.

    Raises:
        ConfigError: it is none.
    """
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{key}={text}: the value is not YAML; put quotes around text") from error


def _look_at(config: DatasetConfig) -> LoadedData:
    """Load a data set; turns of one's own without questions, as a converted chat has them, with a warning."""
    if not isinstance(config, CustomConfig):
        return config.load()
    data = config.survey()
    if not data.counts["questions"]:
        sys.stderr.write(f"warning: {QUESTIONS} holds no question; memsys run needs one ({PAGE})\n")
    return data


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 is success, 2 a setting or file that is wrong."""
    name, overrides, as_json = parse(arguments)
    config = read_config(name, overrides)
    started = time.perf_counter()
    data = _look_at(config)
    seconds = time.perf_counter() - started
    report = describe(config, data)
    if as_json:
        console().print_json(json.dumps(report))
        return 0
    facts = [f"{key}: {report[key]}" for key in ("title", "licence", "source", "sha256", "card")]
    console().print(*facts, f"loaded in {seconds:.2f} s", sep="\n", highlight=False, markup=False)
    for part in tables(report):
        console().print(part if isinstance(part, str) else render_terminal(part), highlight=False)
    console().print(_LEGEND, style="dim", highlight=False)
    return 0


if __name__ == "__main__":
    start(main)
