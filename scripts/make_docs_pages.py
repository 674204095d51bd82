"""Lay out the pages of the site in build/pages: the documents as they are, and a reference made from the code.

Usage: scripts/make_docs_pages.py [FOLDER]

Pages keep their places in the repository, so that their links hold here and there. The reference of commands is their
own --help, that of settings the files of conf/ with their comments, that of Python the public names of memsys, which
mkdocstrings describes from their docstrings. llms.txt lists all pages in the order of zensical.toml.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
#: What people read, and what these pages show or link to.
COPIED = (
    "*.md", "docs/**/*", "datasets/*/README.md", "examples/*", "baselines/external/openapi.yaml",
    "results/tables/*.md", "results/audit/*", "results/stress/*", "results/figures/*.svg", "results/*/README.md",
)  # fmt: skip
#: Pages of long tables, which would fill the results of a search.
NOT_SEARCHED = ("results/tables/", "results/audit/", "CHANGELOG.md")
_NO_SEARCH = "---\nsearch:\n  exclude: true\n---\n\n"
#: What a system or a metric of one's own is made with, next to the public names of ``memsys``.
EXTENDING = (
    "memsys.protocol.MemorySystem", "memsys.protocol.BaseMemory", "memsys.protocol.Parts", "memsys.vocabulary.Unit",
    "eval.metrics.registry.register",
)  # fmt: skip
#: Columns of help and settings that a page shows without scrolling.
_WIDTH = "84"


def copy_pages(out: Path) -> None:
    """Copy the pages of the checkout, those of long tables without a place in the search."""
    for path in {found for pattern in COPIED for found in ROOT.glob(pattern) if found.is_file()}:
        name = path.relative_to(ROOT).as_posix()
        write(out / name, path.read_bytes())
        if path.suffix == ".md" and name.startswith(NOT_SEARCHED):
            write(out / name, (_NO_SEARCH + path.read_text(encoding="utf-8")).encode())


def write(path: Path, content: bytes) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def fenced(text: str, language: str = "text") -> str:
    """Return a text as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def help_of(command: str) -> str:
    """Return what ``memsys COMMAND --help`` prints."""
    line = [sys.executable, "-m", "eval", command, "--help"]
    places = {**os.environ, "COLUMNS": _WIDTH, "NO_COLOR": "1"}
    done = subprocess.run(line, cwd=ROOT, env=places, capture_output=True, text=True, check=True)
    return done.stdout


def commands_page() -> str:
    """Return the page of all commands, each with its help."""
    from eval.commands.catalogue import commands

    known = commands()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        helps = list(pool.map(help_of, [each.name for each in known]))
    sections = [f"## {each.name}\n\n{each.summary}.\n\n{fenced(text)}" for each, text in zip(known, helps, strict=True)]
    about = "What each command says of itself with `--help`. How they end: [exit statuses](../docs/exit_codes.md)."
    return "\n".join(("# Commands", "", about, "", *sections))


def settings_pages() -> dict[str, str]:
    """Return the pages of settings by name: the whole configuration, and the choices of each of its groups."""
    from eval.config.presets import CONF, descriptions
    from eval.config.run_help import groups, typed

    main = fenced((CONF / "config.yaml").read_text(encoding="utf-8"), "yaml")
    listed = "\n".join(f"* [`{typed(group)}=`]({group}.md)" for group in groups(CONF))
    about = "Every setting of a run with its default, `conf/config.yaml`; the choices of each group have a page."
    pages = {"index": f"# Settings\n\n{about}\n\n{listed}\n\n{main}"}
    for group in groups(CONF):
        title = f"# {typed(group)}=\n\nWhat each choice of this group is, and its file `conf/{group}/NAME.yaml`.\n"
        choices = [
            choice(CONF / group / f"{prefix}{name}.yaml", f"{prefix}{name}", about)
            for prefix in ("", "base/")  # what the choices start from
            for name, about in descriptions(CONF / group / prefix).items()
        ]
        pages[group] = "\n".join((title, *choices))
    return pages


def choice(preset: Path, name: str, about: str) -> str:
    """Return the section of a choice: what it is, and its settings."""
    return f"## {name}\n\n{about.rstrip('.')}.\n\n{fenced(body(preset), 'yaml')}"


def body(preset: Path) -> str:
    """Return a preset without its first comment, which describes it."""
    return re.sub(r"\A(#[^\n]*\n)+", "", preset.read_text(encoding="utf-8"))


def api_page() -> str:
    """Return the page of the public names of Python, which mkdocstrings fills in."""
    import memsys

    public = [(name, getattr(memsys, name).__module__) for name in memsys.__all__]
    functions = [f"{module}.{name}" for name, module in public if name[0].islower()]
    classes = [f"{module}.{name}" for name, module in public if name[0].isupper()]
    sections = {
        "Functions": ("`import memsys`; see [Python](../docs/python.md) for examples.", functions),
        "Types": ("Names of `memsys` too.", classes),
        "To extend memsys": ("See [add a memory system](../docs/add_a_memory_system.md).", EXTENDING),
    }
    text = "# Python interface\n"
    for heading, (about, names) in sections.items():
        text += f"\n## {heading}\n\n{about}\n\n" + "\n".join(f"::: {name}\n" for name in names)
    return text


def navigation() -> Iterator[tuple[str, list[str]]]:
    """Return the headings of the navigation with their pages."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    for section in nav:
        yield from section.items()


def title_and_about(page: str) -> tuple[str, str]:
    """Return a page's heading and the first sentence below it."""
    title = re.search(r"^# (.+)$", page, re.MULTILINE)
    if not title:
        raise SystemExit(f"error: a page without a heading: {page[:80]!r}")
    rest = re.sub(r"^```.*?^```$|^(?:[|!#<*-]|  )[^\n]*$", "", page[title.end() :], flags=re.MULTILINE | re.DOTALL)
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|\*\*", r"\1", " ".join(rest.split()))
    return title[1], re.split(r"(?<=\.) ", plain, maxsplit=1)[0].rstrip(".:")


def llms_text(out: Path) -> str:
    """Return llms.txt (https://llmstxt.org): every page of the navigation, with a sentence each."""
    title, about = title_and_about((out / "README.md").read_text(encoding="utf-8"))
    lines = [f"# {title}", "", f"> {about}."]
    for heading, pages in navigation():
        lines += ["", f"## {heading}", ""]
        for page in pages:
            name, sentence = title_and_about((out / page).read_text(encoding="utf-8"))
            lines.append(f"- [{name}]({page}): {sentence}.")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write all pages anew."""
    out = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "pages"
    shutil.rmtree(out, ignore_errors=True)
    copy_pages(out)
    settings = {f"settings/{name}": text for name, text in settings_pages().items()}
    for name, text in {"commands": commands_page(), "api": api_page(), **settings}.items():
        write(out / "reference" / f"{name}.md", text.encode())
    write(out / "llms.txt", llms_text(out).encode())
    print(f"{len(list(out.rglob('*.md')))} pages in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
