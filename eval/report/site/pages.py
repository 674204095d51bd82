"""The pages of a site: data of the report page, cut into pages that link to each other."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from eval.loaders.question_types import ADVERSARIAL
from eval.loaders.registry import info_of
from eval.report.config import PageConfig
from eval.report.data import Collected
from eval.report.page import PageData, render_page
from eval.report.scores import PAGE_DECIMALS
from eval.report.site.submissions import Submission
from eval.results.stored_run import StoredRun
from memsys.errors import RunDirectoryError
from memsys.vocabulary import Json

#: Bytes of a page.
MOST = 3 << 20
INDEX = "index.html"


class Site:
    """Makes the pages of a site.

    Args:
        collected: runs, those of submissions among them.
        data: of the report page on them, without questions.
        submissions: packs that are shown.
        config: of the page.
    """

    def __init__(
        self, collected: Collected, data: PageData, submissions: Sequence[Submission], config: PageConfig
    ) -> None:
        self._runs, self._data, self._config = collected.runs, data, config
        self._submissions = submissions
        self._submitted = {number: one for number, run in enumerate(self._runs) for one in submissions
                           if one.pack.run == run.path}  # fmt: skip
        self._systems = _grouped([run.memory for run in self._runs])
        self._pages = _file_names("systems", list(self._systems))
        self._groups: list[Any] = [data.parts[f"group-{place}"] for place in range(len(data.first["groups"]))]
        titles = [head["data"] for head in data.first["groups"]]
        self._sets = _grouped(titles)
        self._set_pages = _file_names("questions", list(self._sets))

    def pages(self) -> dict[str, str]:
        """Return the pages by path below the site's folder.

        Raises:
            RunDirectoryError: one is larger than a page may be.
        """
        found = {INDEX: self._index()}
        found |= {self._pages[name]: self._system(name) for name in self._systems}
        found |= {self._set_pages[name]: self._questions(name) for name in self._sets}
        for path, page in found.items():
            if len(page.encode()) > MOST:
                raise RunDirectoryError(
                    f"{path} would have {len(page) >> 20} MiB, more than the {MOST >> 20} MiB of a page; "
                    "name fewer runs with --runs"
                )
        return found

    def _first(self, page: str, title: str = "", **changes: Json) -> dict[str, Json]:
        links = {str(number): self._pages[run.memory] for number, run in enumerate(self._runs)}
        site = {"page": page, "title": title, "root": "" if page == "index" else "../", "pages": links}
        return {**self._data.first, "unfinished": [], "skipped": [], **changes, "site": site}

    def _index(self) -> str:
        parts = {
            **{name: part for name, part in self._data.parts.items() if name != "runs"},
            "systems": [self._listed(name) for name in self._systems],
            "data": [self._set(name) for name in self._sets],
            "submissions": [self._submission(one) for one in self._submissions],
        }
        return render_page(PageData(self._first("index"), parts))

    def _submission(self, submission: Submission) -> Json:
        run = next((self._runs[number] for number, one in self._submitted.items() if one is submission), None)
        return submission.as_json() if run is None else submission.as_json(run.memory, self._pages[run.memory])

    def _listed(self, name: str) -> Json:
        boards = self._boards(name)
        return {
            "name": name,
            "page": self._pages[name],
            "boards": len({board["group"] for board in boards}),
            "first": sum(board["tier"] == 1 for board in boards),
            "runs": len(self._systems[name]),
            "data": ", ".join(dict.fromkeys(board["data"] for board in boards)),
        }

    def _set(self, name: str) -> Json:
        places = self._sets[name]
        runs = [self._runs[number] for place in places for number in self._groups[place]["members"]]
        info = info_of(runs[0].dataset)
        return {
            "name": name,
            "page": self._set_pages[name],
            "questions": len({row.question_id for run in runs for row in run.rows}),
            "runs": len(runs),
            "licence": "Apache-2.0" if runs[0].of_sample else info.licence if info else "not known",
            "texts": any(self._submitted[number].pack.manifest.texts for place in places
                         for number in self._groups[place]["members"] if number in self._submitted),
        }  # fmt: skip

    def _boards(self, name: str) -> list[dict[str, Any]]:
        """Return the place of a system in each comparison that it is in."""
        numbers = set(self._systems[name])
        return [
            self._board(place, number, metric, board)
            for place, group in enumerate(self._groups)
            for metric, board in _first_board(group)
            for number in board["runs"]
            if number in numbers
        ]

    def _board(self, place: int, number: int, metric: str, board: Mapping[str, Any]) -> dict[str, Any]:
        group, head = self._groups[place], self._data.first["groups"][place]
        index = board["runs"].index(number)
        ranked = sorted((board["figures"][at][0] for at, run in enumerate(board["runs"]) if run in group["systems"]),
                        reverse=True)  # fmt: skip
        costs = group["costs"][str(number)]
        test = board["tests"][index] or {}
        parts = (head["data"], head["model"] or "retrieval only", head["prompts"], head["timed"] and "timed one by one")
        title = " · ".join([*filter(None, parts), f"{head['questions']:,} questions"])
        return {
            "group": place, "title": title, "data": head["data"], "name": group["labels"][str(number)],
            "metric": metric, "figures": board["figures"][index],
            "place": ranked.index(board["figures"][index][0]) + 1 if number in group["systems"] else None,
            "of": len(ranked), "tier": board["tiers"][index] if board["tiers"] else None,
            "verdict": "" if board["fault"] else test.get("verdict", ""),
            "tokens": costs.get("tokens"), "write": costs.get("write"),
        }  # fmt: skip

    def _system(self, name: str) -> str:
        numbers, cards = self._systems[name], self._data.parts["runs"]
        submitted = [self._submission(self._submitted[number]) for number in numbers if number in self._submitted]
        part = {"boards": self._boards(name), "runs": [cards[number] for number in numbers], "submissions": submitted}
        first = self._first("system", name, groups=[], tables=[], pages={})
        return render_page(PageData(first, {"system": part}))

    def _questions(self, name: str) -> str:
        parts: dict[str, Json] = {}
        heads = []
        for own, place in enumerate(self._sets[name]):
            group = self._groups[place]
            heads.append({**self._data.first["groups"][place], "texts": True})
            parts[f"group-{own}"] = {key: group[key] for key in ("categories", "labels")} | {
                "boards": {}, "texts": list(group["members"]), "textLabels": group["labels"],
            }  # fmt: skip
            parts[f"questions-{own}"] = self._overview(group["members"])
        return render_page(PageData(self._first("questions", name, groups=heads, tables=[]), parts))

    def _overview(self, members: Sequence[int]) -> Json:
        """Return every question of a comparison with the scores of its runs, as the view of questions reads it."""
        listed: dict[str, Any] = {}
        for number in members:
            run = self._runs[number]
            texts = self._submitted[number].texts() if number in self._submitted else {}
            for row in run.rows:
                entry = listed.setdefault(row.question_id, {
                    "id": row.question_id, "conversation": row.conversation_id, "category": row.category,
                    "unanswerable": row.kind == ADVERSARIAL, "question": "", "gold": [], "evidence": 0, "runs": {},
                })  # fmt: skip
                packed, answer = texts.get(row.question_id, (None, None))
                if packed is not None:
                    entry |= {"question": packed.text, "gold": list(packed.answers)}
                entry["runs"][str(number)] = [self._scores(row.metrics), 0, False, False, answer]
        held = {name for entry in listed.values() for own in entry["runs"].values() for name in own[0]}
        names = [name for name in self._config.questions if name in held]
        return {"scores": names, "parts": [], "questions": list(listed.values())}

    def _scores(self, metrics: Mapping[str, float | None]) -> dict[str, float]:
        found = {name: metrics.get(name) for name in self._config.questions}
        return {name: round(value, PAGE_DECIMALS) for name, value in found.items() if value is not None}


def _first_board(group: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the score that a comparison shows first with its board; empty where it shows none."""
    return [(metric, next(iter(boards.values()))) for metric, boards in islice(group["boards"].items(), 1)]


def _grouped(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of each name, by name in alphabetical order."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(name, []).append(place)
    return dict(sorted(found.items()))


def _file_names(folder: str, names: Sequence[str]) -> dict[str, str]:
    """Return a page for each name, of signs that every file system and address has; no two share one."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-").lower()[:60] or "system"
        free = next(one for one in (stem, *(f"{stem}-{number}" for number in range(2, len(names) + 2)))
                    if one not in taken)  # fmt: skip
        taken.add(free)
        found[name] = f"{folder}/{free}.html"
    return found


def without(collected: Collected, submissions: Sequence[Submission]) -> Collected:
    """Leave out the runs of submissions in which something is forged."""
    forged = {one.pack.run for one in submissions if not one.fits}
    kept: tuple[StoredRun, ...] = tuple(run for run in collected.runs if run.path not in forged)
    return replace(collected, runs=kept)
