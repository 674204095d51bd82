"""The patterns of CLAG's failures as rules on stored records (CLAG, appendix G; the rules are ours)."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval.runs.records import RetrievalRecord
from memsys.errors import ConfigError

#: Pattern of a case that no rule fits.
RESIDUAL = "residual"

_SPEAKER = re.compile(r"^(?:Speaker (?P<clag>.+?)says : |(?P<plain>[^:\n]{1,40}): )")
_NAME = re.compile(r"\b[A-Z][\w'’-]*")


@dataclass(frozen=True, slots=True)
class FailureConfig:
    """Rules and cues.

    Attributes:
        order: rules in the order they are tried; each at most once, not all need be there.
        em_metric: exact match, by its name in ``scores.jsonl``.
        f1_metric: F1, by its name in ``scores.jsonl``.
        compositional_categories: categories that count as compositional without a cue.
        temporal_categories: categories that count as temporal without a cue.
        compositional_cues: expressions in the question.
        temporal_cues: expressions in the question.
        temporal_words: expressions that a profile with temporal content has.
        location_cues: expressions in the question.
        location_words: expressions that a profile with spatial content has.
        numeric_cues: expressions in the question.
        numeric_words: expressions that a profile with numbers has.
        no_names: capitalised words that are not names.
    """

    order: Sequence[str]
    em_metric: str
    f1_metric: str
    compositional_categories: Sequence[int]
    temporal_categories: Sequence[int]
    compositional_cues: Sequence[str]
    temporal_cues: Sequence[str]
    temporal_words: Sequence[str]
    location_cues: Sequence[str]
    location_words: Sequence[str]
    numeric_cues: Sequence[str]
    numeric_words: Sequence[str]
    no_names: Sequence[str]

    def __post_init__(self) -> None:
        wrong = [rule for rule in self.order if rule not in RULES] or [
            rule for rule, count in Counter(self.order).items() if count > 1
        ]
        if wrong:
            raise ConfigError(f"order: {', '.join(wrong)} unknown or repeated; choose among {', '.join(RULES)}")


@dataclass(frozen=True, slots=True)
class Case:
    """One failure with all that the rules look at."""

    question_id: str
    question: str
    category: int
    evidence: frozenset[str]
    clag: RetrievalRecord
    baseline: RetrievalRecord

    @property
    def selected(self) -> Sequence[str]:
        """Ids of the clusters that the selector picked."""
        chosen: Sequence[str] = self.clag.trace.get("selected", ())
        return chosen

    @property
    def profiles(self) -> str:
        """Summaries and tags of the picked clusters."""
        profiles = self.clag.trace.get("profiles", ())
        return "\n".join(" ".join([profile["summary"], *profile["tags"]]) for profile in profiles)


def compositional(case: Case, config: FailureConfig) -> bool:
    """Return whether the question combines facts, but at most one cluster was picked."""
    asked = case.category in config.compositional_categories or found(config.compositional_cues, case.question)
    return asked and len(case.selected) <= 1


def temporal(case: Case, config: FailureConfig) -> bool:
    """Return whether the question asks for a time, and no picked profile speaks of any."""
    asked = case.category in config.temporal_categories or found(config.temporal_cues, case.question)
    return asked and not found(config.temporal_words, case.profiles)


def location(case: Case, config: FailureConfig) -> bool:
    """Return whether the question asks for a place, and no picked profile speaks of any."""
    return found(config.location_cues, case.question) and not found(config.location_words, case.profiles)


def numeric(case: Case, config: FailureConfig) -> bool:
    """Return whether the question asks for a number, and no picked profile speaks of any."""
    return found(config.numeric_cues, case.question) and not found(config.numeric_words, case.profiles)


def stale(case: Case, config: FailureConfig) -> bool:
    """Return whether the baseline holds gold evidence that CLAG missed and that is later.

    Later than every turn CLAG retrieved, or in a later session than CLAG's best hit.
    """
    ours, theirs = turns_of(case.clag), turns_of(case.baseline)
    missed = [place(turn_id) for turn_id in theirs if turn_id in case.evidence and turn_id not in ours]
    if not missed or not ours:
        return False
    latest, first = max(place(turn_id) for turn_id in ours), place(ours[0])
    return any(turn > latest or turn[:-1] > first[:-1] for turn in missed)


def entity(case: Case, config: FailureConfig) -> bool:
    """Return whether a name of the question is in no picked profile, or most hits are by another speaker."""
    names = names_in(case.question, config.no_names)
    if not names:
        return False
    profiles = {word.lower() for word in re.findall(r"\w+", case.profiles)}
    if any(name.lower() not in profiles for name in names):
        return True
    speaker = majority_speaker(case.clag)
    return speaker is not None and speaker not in names


RULES: Mapping[str, Callable[[Case, FailureConfig], bool]] = {
    "compositional": compositional,
    "temporal": temporal,
    "location": location,
    "numeric": numeric,
    "stale": stale,
    "entity": entity,
}


def found(expressions: Sequence[str], text: str) -> bool:
    """Return whether one of the expressions occurs in a text as whole words, in any case."""
    return any(re.search(rf"(?<!\w)(?:{expression})(?!\w)", text, re.IGNORECASE) for expression in expressions)


def place(turn_id: str) -> tuple[int, ...]:
    """Return a turn id's numbers, which order the turns: ``D3:12`` is turn 12 of session 3."""
    return tuple(int(number) for number in re.findall(r"\d+", turn_id)) or (0,)


def turns_of(retrieval: RetrievalRecord) -> list[str]:
    """Return the turns of all hits, best hit first."""
    return list(dict.fromkeys(turn_id for hit in retrieval.hits for turn_id in hit.turn_ids))


def names_in(question: str, no_names: Sequence[str]) -> set[str]:
    """Return the capitalised words of a question that may be names, without the genitive's s."""
    ignored = {word.lower() for word in no_names}
    words = (re.sub(r"['’]s?$", "", word) for word in _NAME.findall(question))
    return {word for word in words if word.lower() not in ignored}


def majority_speaker(retrieval: RetrievalRecord) -> str | None:
    """Return who says more than half of the hits, read from their texts; ``None`` if nobody does."""
    matches = [_SPEAKER.match(hit.text) for hit in retrieval.hits]
    speakers = Counter((match["clag"] or match["plain"]).strip() for match in matches if match)
    if not speakers:
        return None
    speaker, count = speakers.most_common(1)[0]
    return speaker if 2 * count > len(retrieval.hits) else None


def pattern(case: Case, config: FailureConfig) -> str:
    """Return the first rule that holds, else ``residual``."""
    return next((rule for rule in config.order if RULES[rule](case, config)), RESIDUAL)
