"""Make a run folder of answers that somebody else recorded."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.cli.commands import explains_errors, program, start
from eval.cli.places import RESULTS
from eval.cli.terminal import console, say, stage
from eval.configs.presets import default_choice
from memsys.errors import ConfigError, DataError

#: Where run folders are put, beside those of experiments.
RUNS = RESULTS / "runs" / "recorded"
#: What the help of an import says of the file, and how it is called.
_COLUMNS = """\
Make a run folder from recorded answers.

A CSV file, or a JSON list of objects, needs a column `prediction` (or `hypothesis`) and one of `question` and
`question_id`; `gold` (or `reference`), `category`, `conversation` (or `conversation_id`) and `context` are read where
they are there. Files of another form need --shape; docs/scores.md says more."""
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
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

    settings = [word for word in words if "=" in word and not Path(word).exists()]
    options.files = [Path(word) for word in words if word not in settings]
    options.settings = read_overrides(settings, parser)
    named = options.settings.pop("dataset", None)
    if named is not None and options.dataset:
        parser.error(f"--dataset {options.dataset} and dataset={named} are both given; leave one out")
    options.dataset = options.dataset or (None if named is None else str(named))


def _import(options: argparse.Namespace) -> int:
    from eval.recorded.catalogue import PROTOCOL, find_entry, import_entry
    from eval.recorded.run_folder import write_run
    from eval.scoring.protocols import load_protocol

    _check_names(options)
    protocol = load_protocol(options.protocol or (PROTOCOL if options.entry else default_choice("protocol"))).name
    folder = Path(options.name) if Path(options.name).parent != Path() else RUNS / options.name
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


def _check_names(options: argparse.Namespace) -> None:
    """Refuse a run without a name, and files beside an entry of the catalogue, which has its own."""
    if not options.name.strip():
        raise ConfigError("--as is empty; name the run, or a folder for it")
    beside = [f"--{key}" for key in ("dataset", "shape", "cutoff") if getattr(options, key)]
    beside += [*map(str, options.files), *(f"dataset.{key}=" for key in options.settings)]
    if options.entry and beside:
        raise ConfigError(f"--entry {options.entry} has files, shape and data set of its own; leave {beside[0]} out")


def _from_files(options: argparse.Namespace, name: str) -> Any:
    from eval.loaders.registry import OWN
    from eval.recorded.catalogue import load_catalogue, question_set
    from eval.recorded.importing import checksum, import_rows
    from eval.recorded.questions import load_questions
    from eval.recorded.run_folder import Origin
    from eval.recorded.shapes import read_shape
    from eval.recorded.source import files_of

    if not options.files:
        raise ConfigError("name a file or folder to import, or a run of the catalogue with --entry")
    if not options.dataset:
        raise ConfigError("--dataset is missing: a preset of conf/dataset, or `own` for the file's own gold answers")
    if options.settings and options.dataset == OWN:
        raise ConfigError(f"dataset.{next(iter(options.settings))}=: --dataset own has no settings; leave it out")
    files = [file for path in options.files for file in files_of(path)]
    shapes = load_catalogue().shapes
    if options.shape is None:
        shape = _guessed(files)
    elif options.shape in shapes:
        shape = shapes[options.shape]
    elif Path(options.shape).suffix in (".yaml", ".yml"):
        shape = read_shape(Path(options.shape))
    else:
        raise ConfigError(f"--shape {options.shape}: choose one of {', '.join(shapes)}, or name a YAML file")
    if options.cutoff and not shape.cutoffs:
        raise ConfigError(f"--cutoff {options.cutoff}: this shape has no cut-offs; leave it out")
    if options.dataset == OWN:
        questions = None
    elif options.settings:
        questions = load_questions(options.dataset, options.settings)
    else:
        questions = question_set(options.dataset)
    origin = Origin(system=name, path=" ".join(file.name for file in files), sha256=checksum(files))
    return import_rows(files, shape, questions, options.cutoff), origin


def _guessed(files: Sequence[Path]) -> Any:
    """Shape of tables or of flat rows from the names of their columns: of all rows, since JSON leaves out what is not.

    Raises:
        DataError: a file is no list of rows, none has a row, or their columns do not say what is asked and answered.
    """
    from eval.recorded.shapes import column_shape
    from eval.recorded.source import is_table

    rows = [(row, is_table(path)) for path in files for row in _flat_rows(path)]
    if not rows:
        header = is_table(files[0]) and files[0].stat().st_size > 0
        raise DataError(f"{files[0]}: has {'a header and ' if header else ''}no rows; write one for each answer")
    holds: dict[str, bool] = {}
    for row, table in rows:
        for key, value in row.items():
            blank = value is None or value == [] or (table and not value.strip())
            holds[str(key)] = holds.get(str(key), False) or not blank
    return column_shape(list(holds), files[0], {key for key, held in holds.items() if not held})


def _flat_rows(path: Path) -> list[Mapping[str, Any]]:
    """Rows of a file that holds nothing else; one further down that is no object is named where it is read."""
    from eval.recorded.source import read_tree

    tree = read_tree(path)
    if not isinstance(tree, list) or (tree and not isinstance(tree[0], dict)):
        raise DataError(f"{path}: is no list of rows; say with --shape where the rows and their values stand")
    return [row for row in tree if isinstance(row, dict)]


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
    from eval.recorded.catalogue import find_entry, load_catalogue, recorded_folder
    from eval.recorded.fetching import fetch_entry
    from eval.recorded.labels import CORRECTIONS

    entries = [find_entry(name) for name in options.names] or [*load_catalogue().entries.values(), CORRECTIONS]
    folder = recorded_folder()
    failed = [entry.name for entry in entries if not fetch_entry(entry, folder)]
    whole = len(entries) - len(failed)
    say(f"{whole} of {len(entries)} entries are in place in {folder}")
    return 2 if failed else 0


def _list(options: argparse.Namespace) -> int:
    from eval.recorded.catalogue import load_catalogue

    for entry in load_catalogue().entries.values():
        line = f"{entry.name}: {entry.system}, {entry.backbone or 'model not named'}, {entry.dataset}; "
        say(f"{line}{entry.repository} ({entry.licence}), shape {entry.shape}")
    return 0


if __name__ == "__main__":
    start(main)
