"""Make a run folder of externally recorded answers."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.commands.commands import described, explains_errors, program, start
from eval.commands.help_text import Paragraphs
from eval.commands.places import RESULTS
from eval.commands.terminal import console, say, stage
from eval.config.presets import default_choice
from memsys.errors import ConfigError, DataError, quoted
from memsys.files import name_problem

#: Subfolder of the runs' folder for recorded answers, next to those of experiments.
RUNS = RESULTS / "runs" / "recorded"
#: What the help of an import says of the file, and how it is called.
_COLUMNS = described("""\
Make a run folder from recorded answers.

A CSV file, or a JSON list of objects, needs a column `prediction` (or `hypothesis`) and one of `question` and
`question_id`; `gold` (or `reference`), `category`, `conversation` (or `conversation_id`) and `context` are read where
they are there. Of other files the form is found out if it is a known one; else they need --shape (see
docs/recorded.md).""")
_EXAMPLE = """\
examples:
  memsys recorded import answers.csv --as mine --dataset locomo --system "My memory" --backbone gpt-4o-mini
  memsys recorded import answers.csv --as mine --dataset own
  memsys recorded import answers.csv --as mine --dataset custom dataset.data_dir=FOLDER"""


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do what it says; returns the exit status."""
    parser = _parser()
    options, late = parser.parse_known_args(arguments)
    unknown = [word for word in late if options.do is not _import or word.startswith("-")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.do is _import:
        _read_words([*options.words, *late], options, parser)
    status: int = options.do(options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("recorded"), description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    make = commands.add_parser(
        "import",
        help="make a run folder from recorded answers",
        description=_COLUMNS,
        epilog=_EXAMPLE,
        formatter_class=Paragraphs,
    )
    make.add_argument(
        "words",
        nargs="*",
        metavar="FILE",
        help="JSON, JSON lines, CSV, .gz, or a folder; also settings of the data set, such as dataset.data_dir=FOLDER",
    )
    make.add_argument("--as", dest="name", required=True, metavar="NAME", help="name of the run, or of a folder for it")
    make.add_argument("--entry", metavar="NAME", help="run of the catalogue, instead of files")
    make.add_argument("--shape", metavar="NAME|YAML", help="shape of the catalogue, or a YAML of your own")
    make.add_argument("--dataset", metavar="NAME", help="preset of conf/dataset; `own`: questions and gold of the file")
    make.add_argument(
        "--by-order",
        action="store_true",
        help="take a row's place in the file for what neither its id nor its text decides; else the file is refused",
    )
    make.add_argument("--cutoff", metavar="NAME", help="which cut-off to take, where a file holds several")
    make.add_argument("--system", default="", help="what answered (default: NAME)")
    make.add_argument("--backbone", default="", help="language model that answered")
    make.add_argument(
        "--protocol",
        metavar="NAME",
        help="preset of conf/protocol by which the run is compared (default: that of a run; with --entry xmemory)",
    )
    make.add_argument(
        "--reference", action="store_true", help="bounds what a memory can do (gold evidence, everything): not ranked"
    )
    make.set_defaults(do=_import)
    fetch = commands.add_parser("fetch", help="fetch the files of the catalogue and verify their checksums")
    fetch.add_argument("names", nargs="*", metavar="NAME", help="entries (default: all)")
    fetch.set_defaults(do=_fetch)
    commands.add_parser("list", help="what is in the catalogue").set_defaults(do=_list)
    return parser


def _read_words(words: Sequence[str], options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Tell files from settings of the data set, ``dataset.KEY=VALUE``; ``dataset=NAME`` is ``--dataset NAME``."""
    from eval.inspect_data import read_overrides

    settings = [word for word in words if "=" in word and not _is_there(word)]
    options.files = [Path(word) for word in words if word not in settings]
    options.settings = read_overrides(settings, parser)
    named = options.settings.pop("dataset", None)
    if named is not None and options.dataset:
        parser.error(f"--dataset {options.dataset} and dataset={named} are both given; leave one out")
    options.dataset = options.dataset or (None if named is None else str(named))


def _is_there(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # too long for a path, or with a NUL
        return False


def _import(options: argparse.Namespace) -> int:
    from eval.audit.recorded.catalogue import PROTOCOL, find_entry, import_entry
    from eval.audit.recorded.run_folder import write_run
    from eval.scoring.protocols import load_protocol

    _check_names(options)
    folder = _folder(options.name)
    protocol = load_protocol(options.protocol or (PROTOCOL if options.entry else default_choice("protocol"))).name
    with stage("reading and aligning"):
        if options.entry:
            entry = find_entry(options.entry)
            imported, origin = import_entry(entry), entry.origin
        else:
            imported, origin = _from_files(options, folder.name)
    if options.system or options.backbone:
        origin = replace(origin, system=options.system or origin.system, backbone=options.backbone or origin.backbone)
    if options.reference:
        origin = replace(origin, reference=True)
    if not imported.alignment.rows:
        raise DataError(
            f"none of the {len(imported.rows)} recorded rows asks a question of {options.dataset or options.entry}; "
            "name the data set that was asked, or --dataset own for the gold answers of the file"
        )
    report = write_run(imported, folder, origin, protocol)
    _say(folder, report["counts"])
    return 0


def _folder(name: str) -> Path:
    """Return the run folder of a name or path.

    Raises:
        ConfigError: it is none that can be made, or holds all runs.
    """
    folder = Path(name) if Path(name).parent != Path() else RUNS / name
    if problem := name_problem(folder.name) or ("has no NUL" if "\0" in name else ""):
        raise ConfigError(f"--as {quoted(name)} is not a name of a folder; take one that {problem}")
    if RUNS.is_relative_to(folder.resolve()):
        raise ConfigError(f"--as {name}: {folder} is where all runs are stored; name a folder in it")
    return folder


def _check_names(options: argparse.Namespace) -> None:
    """Refuse a run without a name, and files next to an entry of the catalogue, which has its own."""
    if not options.name.strip():
        raise ConfigError("--as is empty; name the run, or a folder for it")
    given = [
        f"--{key.replace('_', '-')}" for key in ("dataset", "shape", "cutoff", "by_order") if getattr(options, key)
    ]
    given += [*map(str, options.files), *(f"dataset.{key}=" for key in options.settings)]
    if options.entry and given:
        raise ConfigError(f"--entry {options.entry} has files, shape and data set of its own; leave {given[0]} out")


def _from_files(options: argparse.Namespace, name: str) -> Any:
    from eval.audit.recorded.importing import checksum, import_rows
    from eval.audit.recorded.run_folder import Origin
    from eval.loaders.registry import OWN
    from eval.loaders.trees import files_of

    if not options.files:
        raise ConfigError("name a file or folder to import, or a run of the catalogue with --entry")
    if not options.dataset:
        raise ConfigError("--dataset is missing: a preset of conf/dataset, or `own` for the file's own gold answers")
    if options.settings and options.dataset == OWN:
        raise ConfigError(f"dataset.{next(iter(options.settings))}=: --dataset own has no settings; leave it out")
    questions = _questions(options)  # before the answers: data that are not there are the longest way to go
    files = [file for path in options.files for file in files_of(path)]
    shape = _shape(options.shape, files)
    if options.cutoff and not shape.cutoffs:
        raise ConfigError(f"--cutoff {options.cutoff}: this shape has no cut-offs; leave it out")
    origin = Origin(system=name, path=" ".join(file.name for file in files), sha256=checksum(files))
    return import_rows(files, shape, questions, options.cutoff, options.by_order), origin


def _questions(options: argparse.Namespace) -> Any:
    """Return the data set's questions; ``None`` for those of the file."""
    from eval.audit.recorded.catalogue import question_set
    from eval.audit.recorded.questions import load_questions
    from eval.loaders.registry import OWN

    if options.dataset == OWN:
        return None
    return load_questions(options.dataset, options.settings) if options.settings else question_set(options.dataset)


def _shape(named: str | None, files: Sequence[Path]) -> Any:
    """Return the named shape, or the one that fits the files, which is reported."""
    from eval.audit.recorded.catalogue import load_catalogue
    from eval.audit.recorded.guess import guess_shape
    from eval.audit.recorded.shapes import read_shape

    shapes = load_catalogue().shapes
    if named is None:
        shape = guess_shape(files, shapes.values())
        if shape.name in shapes:
            say(f"shape {shape.name}: {shape.about}")
        return shape
    if named in shapes:
        return shapes[named]
    if Path(named).suffix in (".yaml", ".yml"):
        return read_shape(Path(named))
    raise ConfigError(f"--shape {quoted(named)}: choose one of {', '.join(shapes)}, or name a YAML file")


def _say(folder: Path, counts: Mapping[str, int]) -> None:
    shown = ("rows", "aligned", "data_set_questions")
    problems = {key: value for key, value in counts.items() if value and key not in shown}
    say(
        f"{folder}: {counts['aligned']} of {counts['rows']} rows aligned, of {counts['data_set_questions']} "
        "questions of the data set"
    )
    for key, value in problems.items():
        console().print(f"  {key.replace('_', ' ')}: {value}", highlight=False, markup=False)
    if problems:
        console().print("  import.json of the run folder lists them", highlight=False, markup=False)
    say(f"next: memsys score {folder}")


def _fetch(options: argparse.Namespace) -> int:
    from eval.audit.recorded.catalogue import find_entry, load_catalogue
    from eval.audit.recorded.fetching import fetch_entry
    from eval.loaders.locomo_corrections import CORRECTIONS
    from eval.loaders.published_files import PublishedFiles, recorded_folder

    chosen = [find_entry(name) for name in options.names]
    entries: list[PublishedFiles] = [*chosen] or [*load_catalogue().entries.values(), CORRECTIONS]
    folder = recorded_folder()
    failed = [entry.name for entry in entries if not fetch_entry(entry, folder)]
    whole = len(entries) - len(failed)
    say(f"{whole} of {len(entries)} entries are in place in {folder}")
    return 2 if failed else 0


def _list(options: argparse.Namespace) -> int:
    from eval.audit.recorded.catalogue import load_catalogue

    for entry in load_catalogue().entries.values():
        line = f"{entry.name}: {entry.system}, {entry.backbone or 'model not named'}, {entry.dataset}; "
        say(f"{line}{entry.repository} ({entry.licence}), shape {entry.shape}")
    return 0


if __name__ == "__main__":
    start(main)
