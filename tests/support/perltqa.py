"""A PerLTQA of any size in the format of version 2, with its known irregularities in known numbers."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY, QUESTIONS = "perltmem_en_v2.json", "perltqa_en_v2.json"
#: Ways in which the events' times are written, in turn.
TIMES = ("May 12, 2022", "October 2021", "2012", "during an election", "", "March 3, 2020 to March 9, 2020")


@dataclass(frozen=True)
class MadePerltqa:
    """What to make.

    Attributes:
        characters: with a memory.
        asked: of these, with questions.
        without_memory: further characters that have one question and no memory.
        as_text: memories whose relationships are the text of a Python dict.
        absent: questions that refer to an event that is not there.
        relationships, events, dialogues, lines: per character; lines are per dialogue, half of them at each time stamp.
        words: of an event's content.
    """

    characters: int = 4
    asked: int = 3
    without_memory: int = 1
    as_text: int = 0
    absent: int = 0
    relationships: int = 2
    events: int = 6
    dialogues: int = 4
    lines: int = 6
    words: int = 12

    def write(self, folder: Path) -> Path:
        """Write both files and return the folder."""
        memory = {name: self._record(number) for number, name in enumerate(self._names())}
        questions = [{name: self._asked(number, name)} for number, name in enumerate(self._names()[: self.asked])]
        stranger = {"profile": [_qa("Where is she?", "She is nowhere.", "Address")]}
        questions += [{f"Stranger {number}": stranger} for number in range(self.without_memory)]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MEMORY).write_text(json.dumps(memory, ensure_ascii=False), encoding="utf-8")
        (folder / QUESTIONS).write_text(json.dumps(questions, ensure_ascii=False), encoding="utf-8")
        return folder

    def _names(self) -> list[str]:
        return [f"Person {number}" for number in range(self.characters)]

    def _record(self, number: int) -> dict[str, Any]:
        people: Any = {
            f"{number}_{n}": {
                "Supporting Characters": f"Friend {n}",
                "Relationship": "friend",
                "Description": f"They've known each other for {n + 2} years.",
            }
            for n in range(self.relationships)
        }
        return {
            "profile": {"Protagonist": f"Person {number}", "Gender": "female", "Age": 30 + number % 9, "Awards": ""},
            "profile_description": "A person.",
            "social_relationship": str(people) if number < self.as_text else people,
            "events": {self._event_id(number, n): self._event(n) for n in range(self.events)},
            "dialogues": {f"{self._event_id(number, n)}#{n}": self._dialogue(number, n) for n in range(self.dialogues)},
        }

    def _event_id(self, number: int, n: int) -> str:
        return f"{number}_{n % self.relationships}_{n // self.relationships}"

    def _event(self, n: int) -> dict[str, Any]:
        words = " ".join(f"w{n}x{k}" for k in range(self.words))
        return {
            "content": words,
            "summary": f"Event {n}",
            "Characters": [],
            "Creation Time": TIMES[n % len(TIMES)],
            "Last Accessed Time": "",
            "Theme": "work",
        }

    def _dialogue(self, number: int, n: int) -> dict[str, Any]:
        said = [f"Person {number}: At {k}:00 we meet, item {n} of {self.words}." for k in range(self.lines)]
        half = len(said) // 2
        contents = {f"2021-0{1 + n % 9}-01 09:00": said[:half], f"2021-0{1 + n % 9}-02 09:00": said[half:]}
        return {"events": self._event_id(number, n), "contents": contents}

    def _asked(self, number: int, name: str) -> dict[str, Any]:
        """Two equal questions with different answers per event; the last dialogue's answer stands nowhere."""
        absent = range(self.absent) if number == 0 else range(0)
        events: list[dict[str, Any]] = [
            {event: [_qa("What happened?", f"It was w{n}x0.", f"['{event}']"), _qa("What happened?", "It was work.",
             f"['{event}']")]} for n in range(self.events) for event in [self._event_id(number, n)]
        ]  # fmt: skip
        events += [{"gone": [_qa(f"What of {n}?", "Nothing.", f"['{number}_9_{n}']") for n in absent]}] * bool(absent)
        dialogues = [
            {item: [_qa("When do they meet?", "They meet at 1:00.", f"['{item}']")]}
            for n in range(self.dialogues)
            for item in [f"{self._event_id(number, n)}#{n}"]
        ]
        last = next(iter(dialogues[-1]))
        dialogues[-1] = {last: [_qa("What does she buy?", "She buys equity crowdfunding shares.", f"['{last}']")]}
        return {
            "profile": [_qa(f"What is {name}'s gender?", f"{name} is female.", "Gender")],
            "social_relationship": [{f"{number}_0": [_qa("Who is Friend 0?", "A friend.", f"['{number}_0']")]}],
            "events": events,
            "dialogues": dialogues,
        }


def _qa(question: str, answer: str, reference: str) -> dict[str, Any]:
    return {"Question": question, "Answer": answer, "Reference Memory": reference, "Memory Anchors": [{"x": [-1, 3]}]}
