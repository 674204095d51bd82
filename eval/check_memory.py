"""Say what a memory from outside does wrong, before a run: ``memsys check_memory URL``, or settings that choose one."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from baselines.external.config import ExternalConfig, HttpConfig, McpConfig, ObjectConfig
from baselines.external.http_server import HttpStore
from baselines.external.store import Found, Item, Sources, Store
from baselines.external.system import make_store
from eval.commands.commands import EXIT_DIFFERENT, EXIT_DONE, explains_errors, program, start
from eval.commands.terminal import say
from eval.config.compose import compose, config_loader
from eval.running.composed import make_part
from memsys.embedding.hashing import HashingEmbedder
from memsys.errors import ConfigError
from memsys.llm.none import NoBackbone
from memsys.protocol import Parts
from memsys.vocabulary import Turn

#: What is stored: facts that share no word but the speakers' names, each on a date of its own.
_FACTS = (
    ("Ann", "My cat is called Pixel.", "2024-01-05"),
    ("Bob", "I sold the blue bicycle yesterday.", "2024-02-10"),
    ("Ann", "Grandmother moved to Lisbon.", "2024-03-15"),
    ("Bob", "The violin lessons begin on Tuesday.", "2024-04-20"),
)
_QUERY, _WANTED = "What is the name of Ann's cat Pixel?", "Pixel"
_UNSEEN = "/stats does not return the reset_id of /reset; a restart that loses everything goes unnoticed"


class Check(NamedTuple):
    """One thing that a run relies on, and whether the memory does it; ``said`` is why, empty for ``right``."""

    name: str
    verdict: Literal["right", "wrong", "note", "not checked"]
    said: str = ""


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Run every check; returns 5 where something is wrong."""
    parser = argparse.ArgumentParser(prog=program("check_memory"), description=(__doc__ or "").split(":")[0])
    parser.add_argument(
        "memory", nargs="+", metavar="URL | SETTING", help="address of a memory behind HTTP; or settings, as "
        "memory=object memory.object=package.module:Class",
    )  # fmt: skip
    first, *settings = parser.parse_args(arguments).memory
    wanted = [first] if first.startswith("memory=") else ["memory=http", f"memory.url='{first}'"]
    config = make_part(compose(config_loader(), [*wanted, *settings]), "memory")
    checks = asyncio.run(check(checked(config)))
    for name, verdict, said in checks:
        say(f"{verdict}  {name}{said and f': {said}'}")
    return EXIT_DIFFERENT if any(one.verdict == "wrong" for one in checks) else EXIT_DONE


def checked(config: object) -> ExternalConfig:
    """Return settings of a memory that can be checked.

    Raises:
        ConfigError: it is not an external memory, or needs a model.
    """
    if not isinstance(config, ExternalConfig):
        raise ConfigError("memory= must be object, http or mcp: the others are of this project")
    if isinstance(config, McpConfig) and None in (config.write_tool, config.search_tool):
        raise ConfigError("memory=mcp is checked without a model: name memory.write_tool and memory.search_tool")
    if config.lends:
        raise ConfigError(
            f"memory={config.name} calls the run's models, and a check has no models: test it with `memsys run`"
        )
    return config


async def check(config: ExternalConfig) -> list[Check]:
    """Try what a run relies on.

    Raises:
        MemsysError: the memory cannot be made or reached, or refuses a request.
    """
    one, other = _store(config, "memsys-check-1"), _store(config, "memsys-check-2")
    items = [_item(number, *fact) for number, fact in enumerate(_FACTS, 1)]
    try:
        await one.open({})
        await other.open({})
        returned = [await one.add(item) for item in items]
        early = await one.search(_QUERY, 10)
        await one.settle()
        found = await one.search(_QUERY, 10)
        again = await one.search(_QUERY, 10)
        two = await one.search(_QUERY, 2)
        scores = [each.score for each in found if each.score is not None]
        said = [each.text for each in found if _WANTED in each.text]
        indexed = _judged("results are indexed when /stats says so", _late(early, found), found)
        return [
            _judged("what was added is found", _missing(found)),
            _judged("no more results than asked for", _too_many(two), two),
            _judged("results come best first", _unordered(scores), scores[1:], "no two results have a score"),
            *([] if isinstance(config, ObjectConfig) else [indexed]),
            _traced(found, items, returned),
            _judged("dates are kept", _dateless(said), said, "the turn was not found"),
            _judged("a search changes nothing", _changed(found, again), [*found, *again]),
            _judged("users are separate", _leaked(await other.search(_QUERY, 10)), found),
            *await _reset(config, found),
            _judged("any script is text", await _script(other)),
        ]
    finally:
        await one.close()
        await other.close()


def _judged(name: str, problem: str, seen: Sequence[object] = (True,), unseen: str = "no results") -> Check:
    """Return a check that has failed where there is a problem; one that saw nothing is not checked, for a reason."""
    if problem:
        return Check(name, "wrong", problem)
    return Check(name, "right") if seen else Check(name, "not checked", unseen)


def _item(number: int, speaker: str, text: str, date: str) -> Item:
    turn = Turn(f"turn-{number}", "session-1", speaker, text, date)
    return Item(f"item-{number}", (turn,), (f"[{date}] {speaker}: {text}",), "Ann")


def _store(config: ExternalConfig, user: str) -> Store:
    return make_store(config, Parts(user, NoBackbone(config.name), HashingEmbedder(1), 0), user)


async def _reset(config: ExternalConfig, before: Sequence[Found]) -> list[Check]:
    """Make the first user's memory empty, where that is a request: objects and servers of MCP are made empty."""
    if not isinstance(config, HttpConfig):
        return []
    store = _store(config, "memsys-check-1")
    assert isinstance(store, HttpStore)
    await store.open({})
    try:
        return [
            _judged("reset deletes", _kept(await store.search(_QUERY, 10)), before),
            _judged("a lost memory shows", "" if store.watched else _UNSEEN),
        ]
    finally:
        await store.close()


async def _script(store: Store) -> str:
    await store.add(_item(9, "李娜", "我的猫叫小米。", "2024-05-01"))
    await store.settle()
    texts = [found.text for found in await store.search("猫叫什么？ 小米", 10)]
    return "" if any("小米" in text for text in texts) else f"a Chinese text is not found; results: {texts[:2]}"


def _missing(found: Sequence[Found]) -> str:
    return "" if any(_WANTED in one.text for one in found) else f"{_QUERY!r} does not find the turn that says it"


def _too_many(found: Sequence[Found]) -> str:
    return f"k=2 gave {len(found)} results" if len(found) > 2 else ""


def _unordered(scores: Sequence[float]) -> str:
    return "" if scores == sorted(scores, reverse=True) else f"scores rise: {scores[:4]}"


def _late(early: Sequence[Found], found: Sequence[Found]) -> str:
    late = len(found) > len(early)
    return "results appeared only after a delay that the memory did not announce" if late and not early else ""


def _traced(found: Sequence[Found], items: Sequence[Item], returned: Sequence[Sequence[str]]) -> Check:
    """Say whether results name the turns they came from; ids are optional where texts come back as they were added."""
    sources, name = Sources(), "results name ids"
    for item, ids in zip(items, returned, strict=True):
        sources.added(item, ids)
    counts = Counter(sources.trace(one)[0] for one in found)
    if counts["none"]:
        lost = f"{counts['none']} of {len(found)} results name no ids and are not texts that were added"
        return Check(name, "note", f"{lost}: a run has no evidence by turn ids; return ids from add and search")
    if counts["text"]:
        said = f"{counts['text']} of {len(found)} results name none; their turns are found by equal text"
        return Check(name, "note", said)
    return _judged(name, "", found)


def _dateless(said: Sequence[str]) -> str:
    lost = [text for text in said if "2024-01-05" not in text]
    return "the date that was added is not in the text of the result: readers do not see it" if lost else ""


def _changed(first: Sequence[Found], second: Sequence[Found]) -> str:
    same = [one.text for one in first] == [one.text for one in second]
    return "" if same else "the same search gave other results the second time"


def _leaked(found: Sequence[Found]) -> str:
    return f"another user finds {found[0].text!r}" if found else ""


def _kept(found: Sequence[Found]) -> str:
    return f"{len(found)} results after /reset" if found else ""


if __name__ == "__main__":
    start(main)
