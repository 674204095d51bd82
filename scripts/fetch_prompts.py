"""Fetch the authors' prompts for prompts=authors: python scripts/fetch_prompts.py [PACK ...] [--list].

Each file is fetched from GitHub at the catalogue's commit, or taken from MEMSYS_SOURCES: a folder that holds git
repositories named owner+name, or their files as owner+name/path (owner+name@COMMIT/path, with seven digits, where a
file is needed of two commits). The text of a paper (memfly), which nothing can fetch, is taken from that folder alone
(papers/memfly.txt). The prompts are cut out (nothing of the authors' code is run), converted to our placeholders and
written under models/prompts (MEMSYS_PROMPTS: another folder), never committed.

Exit code 0: everything asked for is in place; 2: something is not, and the message says what to do. Where no pack is
named, a paper's text that is not there is told and is not a failure.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from memsys.assets.paths import ROOT
from memsys.errors import MemsysError
from memsys.prompt_packs.catalogue import PARTS, Pack, PackPrompt, check_converted, convert_prompt, find_packs
from memsys.prompt_packs.local import is_present, prompts_dir, write_text
from memsys.prompt_packs.sources import MissingPaperError, read_source, sources_folder


def present(pack: Pack, prompt: PackPrompt) -> bool:
    """Whether all texts of a prompt are in place."""
    references = [pack.reference(prompt, part) for part in PARTS]
    return all(reference is None or is_present(reference) for reference in references)


def show(packs: list[Pack]) -> None:
    """Print a row per role: whether it is fetched, its file and the checksums, or why there is none."""
    print(
        "| pack | role | for | authors' file | cut sha256 | template sha256 | fetched |\n|---|---|---|---|---|---|---|"
    )
    for pack in packs:
        for prompt in pack.prompts:
            files = ", ".join(dict.fromkeys(str(pack.sources[part.source]) for part in prompt.cuts()))
            place = "yes" if present(pack, prompt) else "no"
            hashes = f"{prompt.sha256[:12]} | {prompt.prompt_sha256[:12]}"
            print(f"| {pack.name} | {prompt.role} | {condition(prompt.when)} | {files} | {hashes} | {place} |")
        for absence in pack.without:
            print(f"| {pack.name} | {absence.role} | {condition(absence.when)} | none: {absence.why} | | | |")


def condition(when: object) -> str:
    """The settings that a prompt is for, in words."""
    pairs = when.items() if isinstance(when, dict) else ()
    return ", ".join(f"{key}={'/'.join(value) if isinstance(value, list) else value}" for key, value in pairs) or "all"


def get(pack: Pack) -> None:
    """Fetch, cut, check and write the prompts of a pack.

    Raises:
        MemsysError: a file cannot be had, or something is not what the catalogue says.
    """
    if all(present(pack, prompt) for prompt in pack.prompts):
        print(f"  {pack.name}: {len(pack.prompts)} prompts are in place")
        return
    folder = sources_folder()
    contents = {key: read_source(source, folder) for key, source in pack.sources.items()}
    for prompt in pack.prompts:
        converted = convert_prompt(pack, prompt, contents)
        check_converted(pack, prompt, converted)
        for part, text in converted.texts.items():
            write_text(pack.name, prompt.id if part == "prompt" else f"{prompt.id}.system", text)
    print(f"  {pack.name}: {len(pack.prompts)} prompts cut from {len(pack.sources)} files")


def tried(pack: Pack) -> MemsysError | None:
    """Fetch a pack; returns why that was not possible."""
    try:
        get(pack)
    except MemsysError as error:
        return error
    return None


def main() -> int:
    """Run the command line."""
    packs = {pack.name: pack for pack in find_packs(ROOT)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PACK", help=f"{', '.join(packs)} (default: all)")
    parser.add_argument("--list", action="store_true", help="show the catalogue and what has been fetched")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in packs]:
        parser.error(f"unknown: {', '.join(unknown)}; the packs are {', '.join(packs)}")
    chosen = [packs[name] for name in arguments.names or packs]
    if arguments.list:
        show(chosen)
        return 0
    problems = {pack.name: problem for pack in chosen if (problem := tried(pack))}
    for name, problem in problems.items():
        print(f"  {name}: {problem}", file=sys.stderr)
    print(f"{len(chosen) - len(problems)} of {len(chosen)} packs are in place in {prompts_dir()}")
    borne = () if arguments.names else (MissingPaperError,)
    return 2 if any(not isinstance(problem, borne) for problem in problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
