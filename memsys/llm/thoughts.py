"""Separation of a reply from the model's reasoning: one reader for live, recorded and judges' replies.

A server's reasoning parser puts thoughts into a field of their own. Where it has none, or where replies come from a
file, they are in the text, between the marks that the model was trained on. :data:`RULES` names what is cut; a run's
``run.json`` lists them, and its ledger says which one each reply met.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

#: Marks that open and close a thought, by rule.
_PAIRS: Mapping[str, tuple[str, str]] = {
    "think": ("<think>", "</think>"),  # DeepSeek-R1, Qwen3, QwQ
    "thinking": ("<thinking>", "</thinking>"),
    "thought": ("<thought>", "</thought>"),  # EXAONE Deep
    "reasoning": ("<reasoning>", "</reasoning>"),
    "bracket_think": ("[THINK]", "[/THINK]"),  # Magistral
    "kimi": ("◁think▷", "◁/think▷"),
    "begin_of_thought": ("<|begin_of_thought|>", "<|end_of_thought|>"),  # Sky-T1, OpenThinker
    "start_thinking": ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A Reasoning
    "seed_think": ("<seed:think>", "</seed:think>"),  # Seed-OSS
    "gemma_channel": ("<|channel>thought", "<channel|>"),  # Gemma 4
}
#: Marks around the answer that follows a thought.
_ANSWERS = (
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<answer>", "</answer>"),
)
_HARMONY, _HARMONY_PLAIN, _FENCE = "harmony", "harmony_without_marks", "code_fence"
#: Names of everything that is cut; ``code_fence`` from answers alone.
RULES = (*_PAIRS, _HARMONY, _HARMONY_PLAIN, _FENCE)

_BY_MARK = {mark.lower(): (rule, mark == pair[0]) for rule, pair in _PAIRS.items() for mark in pair}
_MARK = re.compile("|".join(map(re.escape, _BY_MARK)), re.IGNORECASE | re.ASCII)
#: In every mark; looking for them takes a tenth of the time of the marks themselves.
_STEMS = ("think", "thought", "reasoning", "channel")
#: OpenAI's response format of gpt-oss: messages in channels, of which ``final`` is for the user.
_HARMONY_BEGINS = re.compile(r"\s*(?:<\|start\|>\s*assistant\s*)?<\|(?:channel|message)\|>")
_HARMONY_FINAL = re.compile(r"(?:<\|end\|>|<\|start\|>\s*assistant)\s*<\|channel\|>\s*final\b")
_HARMONY_ENDS = re.compile(r"<\|(?:end|return|call|start)\|>")
#: The same where the server left out the marks and kept the names of the channels.
_HARMONY_NAMES = re.compile(r"\s*(?:analysis|commentary).*assistantfinal(?P<said>.*)\Z", re.DOTALL)
_FENCED = re.compile(r"```[\w+-]*[ \t]*\n(?P<inside>(?:(?!```).)*?)\n?```", re.DOTALL)
_QUOTES = frozenset("\"'`“”‘’«»„")
_AFTER_A_WORD = frozenset(".,;:!?)")


@dataclass(frozen=True, slots=True)
class ReplyText:
    """A reply as it is read.

    Attributes:
        text: what is said, without white space around it where something was cut.
        rule: name of what was cut first; empty where nothing was.
        closed: whether every thought came to its end.
    """

    text: str
    rule: str = ""
    closed: bool = True


@lru_cache(maxsize=4)  # the reply and its row in the ledger are read one after the other
def read_text(text: str) -> ReplyText:
    """Cut the thoughts of a reply: also one that its template opened, and one that was never closed.

    A mark that is only mentioned (in quotation marks, as a word of a sentence, in a JSON text) is left where it is.
    """
    found = _harmony(text) or _paired(text)
    if found.rule and text.lstrip().startswith("{") and _is_json(text):
        return ReplyText(text)
    return found


def strip_thinking(text: str) -> str:
    """Return what a reply says, without white space around it; see :func:`read_text`."""
    return read_text(text).text.strip()


def read_answer(text: str) -> ReplyText:
    """Read a reply that is an answer as a whole: a code fence around all of it is not part of it either."""
    said = read_text(text)
    fenced = _FENCED.fullmatch(said.text.strip())
    if fenced is None:
        return said
    inner = read_text(fenced["inside"])
    return ReplyText(inner.text.strip(), said.rule or inner.rule or _FENCE, said.closed and inner.closed)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _harmony(text: str) -> ReplyText | None:
    if "<|" not in text and "assistantfinal" not in text:
        return None
    if plain := _HARMONY_NAMES.match(text):
        return ReplyText(plain["said"].strip(), _HARMONY_PLAIN)
    if not (_HARMONY_BEGINS.match(text) or _HARMONY_FINAL.search(text)):
        return None
    finals = [body for name, body in map(_message, text.split("<|channel|>")[1:]) if name == "final"]
    if not finals and text.lstrip().startswith("<|message|>"):  # the template named the channel
        finals = [_message(text)[1]]
    return ReplyText("\n".join(finals).strip(), _HARMONY, closed=bool(finals))


def _message(segment: str) -> tuple[str, str]:
    """Return the channel and body of what follows a channel's mark."""
    header, _, body = segment.partition("<|message|>")
    return header.strip().partition(" ")[0].partition("<")[0], _HARMONY_ENDS.split(body, maxsplit=1)[0]


def _paired(text: str) -> ReplyText:
    """Cut what is between marks, and what comes before a closing mark whose opening the template wrote."""
    marks = _marks(text) if any(map(text.lower().__contains__, _STEMS)) else []
    if not marks:
        return ReplyText(text)
    last_closing = {rule: match.start() for match, rule, opens in marks if not opens}
    begin = len(text) - len(text.lstrip())
    said: list[str] = []
    place, inside, first = 0, "", ""
    for match, rule, opens in marks:
        start = match.start()
        begins_line = start == begin or text[start - 1] == "\n"
        if opens and not inside and (start < last_closing.get(rule, -1) or begins_line):
            said.append(text[place:start])
            inside = rule
        elif not opens and inside in ("", rule):
            if not inside:
                said.clear()
            place, inside = match.end(), ""
        else:
            continue
        first = first or rule
    if not inside:
        said.append(text[place:])
    return ReplyText(_unwrapped("".join(said).strip()), first, not inside) if first else ReplyText(text)


def _marks(text: str) -> list[tuple[re.Match[str], str, bool]]:
    """Return the marks of a text, the rule of each and whether it opens, without those that are only mentioned."""
    found = []
    quoted = ""  # rule of a thought that is quoted as a whole
    for match in _MARK.finditer(text):
        rule, opens = _BY_MARK[match[0].lower()]
        if opens and _opens_quotation(text, match):
            quoted = rule
        elif not opens and quoted == rule:
            quoted = ""
        elif not _is_mention(text, match):
            found.append((match, rule, opens))
    return found


def _opens_quotation(text: str, mark: re.Match[str]) -> bool:
    before, after = text[max(0, mark.start() - 2) : mark.start()], text[mark.end() : mark.end() + 1]
    return len(before) == 2 and before[1] in _QUOTES and after not in _QUOTES


def _is_mention(text: str, mark: re.Match[str]) -> bool:
    """Return whether a mark is only mentioned: quoted, or a word in the middle of a line."""
    before, after = text[max(0, mark.start() - 2) : mark.start()], text[mark.end() : mark.end() + 2]
    if not before or not after:
        return False
    if before[-1] in _QUOTES and after[0] in _QUOTES:
        return True
    is_word = before[-1] == " " and (before[0].isalnum() or before[0] in ",;:(")
    goes_on = after[0] == " " and (after[-1].isalnum() or after[-1] in _QUOTES)
    return is_word and (goes_on or after[0] in _AFTER_A_WORD)


def _unwrapped(text: str) -> str:
    """Return the answer without the marks that some models put around it."""
    for opening, closing in _ANSWERS:
        if text.startswith(opening):
            return text.removeprefix(opening).removesuffix(closing).strip()
    return text
