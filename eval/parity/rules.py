"""Tests of a difference's two values, by the names that ``match`` in ``deviations.yaml`` uses."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from eval.parity.agent_messages import MEMORY_PARTS, shown_memory, shown_messages
from eval.parity.compare import AGAIN
from eval.parity.facts import MARK
from memsys.dates import parse_date
from memsys.errors import ConfigError

#: Words that precede the fields of a note or a cluster, on either side.
LABELS = frozenset(
    ("cluster_id", "id", "size", "summary", "cluster_tags", "tags", "representative_memories", "example", "content",
     "context", "query", "user")
)  # fmt: skip
#: Words of the descriptions of clusters that have no profile, on either side.
DESCRIPTIONS = frozenset(
    ("cluster", "around", "memories", "related", "to", "notes", "about", "on", "various", "topics", "subcluster",
     "part", "a", "b")
)  # fmt: skip
#: Words of the headings above lists of memories, on either side.
HEADINGS = frozenset(("memories", "for", "user", "of"))
#: Lines that are above lists, in small letters.
LINES = frozenset(("original messages:", "(none)"))
#: Lines at the ends of a text, or of an excerpt of it, in ReadAgent's prompts.
EDGES = frozenset(("...", "(none: the text begins)", "(the text ends)"))
#: Lines of lists of pages: an abstract under its number, a page with the tool that found it and its number.
_PAGE_LINE = re.compile(r"^(?:Page \d+: .*|\d+\. \[\w+\]\(\d+\) .*)$", flags=re.MULTILINE)
#: Lines of pages and of what is known of them: a session's heading, a turn with its id, what the backbone wrote.
_TOLD_LINE = re.compile(rf"^(?:=== .*|[^:\n]+ \(D\d+:\d+\): .*|.*{MARK.pattern}.*)$", flags=re.MULTILINE)
#: The question in a prompt of ours.
_QUESTION = re.compile(r"^Question: (.*)$", flags=re.MULTILINE)
#: What is around the lines of MemoryOS's context: bullets, brackets, and when a fact was said.
_AROUND = re.compile(r"^(?:\[|\(about: |(?:- )+)|(?: \(said on [^)]*\)|\]|\))$")
#: Headings above what is known of a speaker, in MemoryOS's context.
_ABOUT = re.compile(r"^(?:Facts about|Profile of) (.*):$", re.MULTILINE)
_OF_A_PAGE = re.compile(r"\bUser: .*? Assiant: ", re.DOTALL)
_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')
_WORD = re.compile(r"\w+")
#: Titles and stories of an episode that no reply describes, in the releases of Nemori and xMemory; and ours.
_UNTOLD = re.compile(
    r"(?:Episode generation failed|Generated Episode|Conversation [\d-]+ [\d:]+ \(\d+ messages\))$"
    r"|Unable to generate episode content|Episode content not generated$|Episode created at "
)
_COUNTED = re.compile(r"\b\d+ messages?\b")
#: No run takes longer.
_A_RUN = timedelta(days=1)
#: A time in brackets; where a line begins with one, what precedes it in them, and a message's number after it.
_TIME = re.compile(r"\[([^\]\n]*)\] ?")
_STAMP = re.compile(r"^\[(?P<before>Memory recorded on: )?(?P<time>[^\]\n]*)\](?: (?P<number>\d+)\.)?")
#: A heading above the memories of a speaker.
_SPEAKER = re.compile(r"^Memories (?:of|for user) (.*):$")
#: Lines of a prompt that has a place for two speakers, where there are memories of one.
_NOBODY = ("Memories for user Speaker 2:", "No memories available.")


def links_to_stored_notes(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether ours are their links without those to no stored note (``place`` is ``notes.N.links``)."""
    number = int(place.split(".")[1])
    return bool(ours == [link for link in theirs if isinstance(link, int) and 0 <= link < number])


def two_members(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether there are two: both are equally near to their mean, so that the last digit orders them."""
    return len(ours) == len(theirs) == 2


def same_words_but_labels(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both have the same words as often, apart from labels of fields and Python's notation."""
    return _words(_unescaped(ours)) == _words(_unescaped(theirs))


def same_words_but_descriptions(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether ``same_words_but_labels`` holds, apart from descriptions of clusters without a profile."""
    return _words(ours, DESCRIPTIONS) == _words(theirs, DESCRIPTIONS)


def same_words_but_headings(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both have the same words as often, apart from headings of lists and JSON notation."""
    return _words(_unescaped(ours), HEADINGS) == _words(_unescaped(theirs), HEADINGS)


def same_lines(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both have the same lines in order, apart from headings, bullets, blank lines and capitals."""
    return _lines(ours) == _lines(theirs)


def same_but_edges(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both hold the same lines in order, but for blank ones and what marks the ends of a text."""
    return _within(ours) == _within(theirs)


def same_but_correction(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both are equal, apart from white space, up to their last message, which corrects a reply."""
    one, other = ours.rpartition(AGAIN)[0].rstrip(), theirs.rpartition(AGAIN)[0].rstrip()
    return bool(one == other and one)


def theirs_of_a_page(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether only theirs exists: a call about both sides of a page, as MemoryOS's release writes them."""
    return ours is None and _OF_A_PAGE.search(theirs) is not None


def lines_shown(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether all our lines are in theirs and both show the same of what the backbone wrote.

    Lines are compared without their bullet and brackets and when a fact was said.
    """
    lines = [_AROUND.sub("", line).strip() for line in ours.splitlines() if not line.endswith(":")]
    shown = [line for line in lines if line]
    return bool(shown) and all(line in theirs for line in shown) and _marks(ours) == _marks(theirs)


def lines_shown_but_names(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether ``lines_shown`` holds, apart from how the two speakers are named in their profiles."""
    names = "|".join(map(re.escape, _ABOUT.findall(ours)))
    who = re.compile(rf"\b(?:(?:the )?assistant|(?:the )?user|I{'|' * bool(names)}{names})\b", re.IGNORECASE)
    return lines_shown(place, who.sub("*", ours), who.sub("*", theirs))


def same_words(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both have the same words, numbers and signs in order: only white space differs."""
    return "".join(ours.split()) == "".join(theirs.split())


def same_but_stamps(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both have the same lines and days, apart from indents, headings and the date's format."""
    return _stamped(ours) == _stamped(theirs)


def same_but_numbers(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether ``same_but_stamps`` holds, apart from the numbers of messages."""
    pairs = zip(_numbers(ours), _numbers(theirs), strict=False)
    shifts = {other - one for one, other in pairs} - {0}
    return _stamped(ours, numbers=False) == _stamped(theirs, numbers=False) and len(shifts) == 1 and min(shifts) > 0


def same_but_dates(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both are equal, apart from our dates of statements in brackets."""
    return _undated(ours) == str(theirs)


def same_but_dates_and_order(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether ``same_but_dates`` holds, apart from the order of lines."""
    one = _undated(ours)
    return one != theirs and sorted(one.splitlines()) == sorted(theirs.splitlines())


def an_earlier_topic(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether theirs is the number of a topic before ours."""
    return isinstance(ours, int) and isinstance(theirs, int) and theirs < ours


def _stamped(text: str, *, numbers: bool = True) -> list[str]:
    """Return the lines that are not blank, without indents, with a time in brackets replaced by its day."""
    lines = (_SPEAKER.sub(r"Memories: \1", line.strip()) for line in text.splitlines() if line.strip() not in _NOBODY)
    return [_STAMP.sub(lambda found: _day(found, numbers), line) for line in lines if line]


def _day(found: re.Match[str], numbers: bool) -> str:
    """Return a line's stamp by its day; unchanged where it cannot be parsed."""
    moment, weekday = parse_date(found["time"]), found["time"].rpartition(",")[2].strip()
    if moment is None:
        return found[0]
    number = f" {found['number']}." if numbers and found["number"] else ""
    return f"[{found['before'] or ''}{moment.date()} {weekday[:3]}]{number}"


def _numbers(text: str) -> list[int]:
    found = (_STAMP.match(line.strip()) for line in text.splitlines())
    return [int(one["number"]) for one in found if one and one["number"]]


def _undated(text: str) -> str:
    return _TIME.sub(lambda found: "" if parse_date(found[1]) else found[0], text)


def same_agent_prompt(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both show the same messages of MemGPT's queue, core memory and numbers of stored messages.

    Core memory and numbers must be found on both sides: where neither can be read, nothing was compared.
    """
    memory = shown_memory(ours)
    return len(memory) == MEMORY_PARTS and memory == shown_memory(theirs) and same_agent_message(place, ours, theirs)


def same_agent_message(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both are messages of MemGPT's queue with the same content."""
    if not (isinstance(ours, str) and isinstance(theirs, str)):
        return False
    said = shown_messages(ours)
    return bool(said) and said == shown_messages(theirs) and MARK.findall(ours) == MARK.findall(theirs)


def theirs_untold(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether theirs is what the releases of Nemori and xMemory store where no reply describes an episode."""
    return isinstance(theirs, str) and _UNTOLD.match(theirs) is not None and _COUNTED.search(str(ours)) is not None


def theirs_of_the_run(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether theirs is the time of this run, and ours another."""
    moments = [parse_date(str(value)) for value in (ours, theirs)]
    now = datetime.now(UTC).astimezone().replace(tzinfo=None)  # the release's clock is that of the machine
    return None not in moments and [abs(now - one) < _A_RUN for one in moments if one] == [False, True]


def ours_alone(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether theirs is missing or an empty text; a 0 is a value."""
    return ours is not None and (theirs is None or theirs == "")


def theirs_alone(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether ours is missing or an empty text; a 0 is a value."""
    return ours is None and theirs is not None


def same_pages(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both list the same pages, with numbers, tools and order."""
    pages = _PAGE_LINE.findall(ours)
    return bool(pages and pages == _PAGE_LINE.findall(theirs))


def same_question_or_turns(place: str, ours: Any, theirs: Any) -> bool:
    """Return whether both have the same question or turns, and the same text of the backbone, in order."""
    told, question = _TOLD_LINE.findall(ours), _QUESTION.search(ours)
    if told != _TOLD_LINE.findall(theirs):
        return False
    return bool(told) if question is None else question[1] in theirs.splitlines()


def _marks(text: str) -> list[str]:
    return sorted(MARK.findall(text))


def _within(text: str) -> list[str]:
    return [line for each in text.splitlines() if (line := each.strip()) and line not in EDGES]


def _lines(text: str) -> list[str]:
    lines = (line.strip(" •").lower() for line in text.splitlines())
    return [line for line in lines if line and line not in LINES]


def _unescaped(text: str) -> str:
    """Return a text with its JSON escapes resolved."""
    read = _ESCAPE.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)
    return read.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _words(text: str, others: frozenset[str] = frozenset()) -> Counter[str]:
    return Counter(word for word in _WORD.findall(text) if word.lower() not in LABELS | others)


RULES: Mapping[str, Callable[[str, Any, Any], bool]] = {
    "lines_shown": lines_shown,
    "lines_shown_but_names": lines_shown_but_names,
    "links_to_stored_notes": links_to_stored_notes,
    "theirs_alone": theirs_alone,
    "theirs_of_a_page": theirs_of_a_page,
    "theirs_of_the_run": theirs_of_the_run,
    "theirs_untold": theirs_untold,
    "two_members": two_members,
    "ours_alone": ours_alone,
    "same_agent_message": same_agent_message,
    "same_agent_prompt": same_agent_prompt,
    "an_earlier_topic": an_earlier_topic,
    "same_but_correction": same_but_correction,
    "same_but_dates": same_but_dates,
    "same_but_dates_and_order": same_but_dates_and_order,
    "same_but_edges": same_but_edges,
    "same_but_numbers": same_but_numbers,
    "same_but_stamps": same_but_stamps,
    "same_lines": same_lines,
    "same_pages": same_pages,
    "same_question_or_turns": same_question_or_turns,
    "same_words": same_words,
    "same_words_but_headings": same_words_but_headings,
    "same_words_but_descriptions": same_words_but_descriptions,
    "same_words_but_labels": same_words_but_labels,
}


def passes(rule: str | None, place: str, ours: Any, theirs: Any) -> bool:
    """Return whether two values pass a rule; without a rule all do.

    Raises:
        ConfigError: there is no such rule.
    """
    if rule is None:
        return True
    if rule not in RULES:
        raise ConfigError(f"deviations.yaml: match: rule={rule} is unknown; choose one of {', '.join(RULES)}")
    return RULES[rule](place, ours, theirs)
