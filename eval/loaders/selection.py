"""Common parts of all data sets: the settings that pick a part of them, and the counts of what was picked."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eval.loaders.checks import check_samples
from eval.loaders.contract import DatasetInfo
from memsys.errors import ConfigError, DataError
from memsys.turns import Captions, Style, TurnFormat
from memsys.vocabulary import Json, Sample


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Settings that every ``conf/dataset/*.yaml`` has.

    Attributes:
        path: explicit file (or folder, for sets of several files); wins over ``data_dir``.
        data_dir: folder of the data sets; ``None`` means ``MEMSYS_DATA``, else ``data/`` of the checkout.
        sample: read the small sample that comes with the project instead.
        conversations: ids to keep; ``None`` keeps all. Kept in the order of the file.
        limit_conversations: keep the first N, after ``conversations``.
        limit_sessions: keep the first N sessions of each conversation, and the questions whose whole evidence
            lies in them; questions without evidence go.
        limit_questions: keep this many questions of each conversation, evenly spread, after ``categories``.
        categories: kinds of questions to keep: each a kind (``temporal``), the data set's own name of the category
            (``temporal-reasoning``), or its number.
        turn_style: see :class:`memsys.turns.TurnFormat`.
        turn_captions: see :class:`memsys.turns.TurnFormat`.
    """

    path: str | None = None
    data_dir: str | None = None
    sample: bool = False
    conversations: Sequence[str] | None = None
    limit_conversations: int | None = None
    limit_sessions: int | None = None
    limit_questions: int | None = None
    categories: Sequence[int | str] | None = None
    turn_style: Style = "plain"
    turn_captions: Captions = "all"
    turn_format: TurnFormat = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turn_format", TurnFormat(style=self.turn_style, captions=self.turn_captions))
        self._freeze_list("conversations", (str,), "str")
        self._freeze_list("categories", (int, str), "kinds or of their numbers")
        for name in ("limit_conversations", "limit_sessions", "limit_questions"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), " (null: no limit)")
        for name in ("path", "data_dir"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or "\0" in value):
                raise ConfigError(f"dataset.{name}={value!r} must be the path of a file or folder, or null")
        if self.sample and (self.path or self.data_dir):
            raise ConfigError("dataset.sample=true reads the project's own sample; leave path and data_dir null")

    @property
    def info(self) -> DatasetInfo:
        """Facts of the data set."""
        raise NotImplementedError

    def _freeze_list(self, name: str, types: Collection[type], what: str) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, str) or not isinstance(value, Sequence) or not all(type(item) in types for item in value):
            raise ConfigError(f"dataset.{name}={value!r} must be a list of {what}, or null for all")
        if not value:
            raise ConfigError(f"dataset.{name}=[] keeps nothing; name what to keep, or write null for all")
        object.__setattr__(self, name, tuple(value))

    def apply(
        self, samples: Sequence[Sample], category_names: Mapping[int, str], questions_needed: bool = True
    ) -> tuple[Sample, ...]:
        """Return the selected part of the data set, in the order of the file.

        A conversation whose questions are all of other categories, or about later sessions, is left out.

        Args:
            samples: of the whole set.
            category_names: of the whole set.
            questions_needed: refuse a set that asks nothing; without it, such a set can be looked at.

        Raises:
            ConfigError: a conversation or category is named that the set does not have, or nothing is left to ask.
            DataError: the set asks nothing, or is none that can be run; see :func:`eval.loaders.checks.check_samples`.
        """
        check_samples(samples, category_names)
        check_known("conversations", self.conversations, [sample.conversation.conversation_id for sample in samples])
        categories = category_numbers(self.categories, category_names, self.info.kinds)
        kept = [
            sample
            for sample in samples
            if self.conversations is None or sample.conversation.conversation_id in self.conversations
        ]
        shortened = [first_sessions(sample, self.limit_sessions) for sample in kept[: self.limit_conversations]]
        picked = tuple(self._pick_questions(sample, categories) for sample in shortened)
        if not any(sample.questions for sample in samples):
            if questions_needed:
                raise DataError("the data set holds no question")
            return picked
        if not any(sample.questions for sample in picked):
            settings = ("conversations", "limit_conversations", "limit_sessions", "categories")
            given = [f"dataset.{key}={getattr(self, key)!r}" for key in settings if getattr(self, key) is not None]
            raise ConfigError(f"the selection leaves no question: {', '.join(given)}; keep more")
        if self.categories is None and self.limit_sessions is None:
            return picked
        return tuple(sample for sample in picked if sample.questions)  # no memory is built that nothing is asked

    def _pick_questions(self, sample: Sample, categories: Collection[int] | None) -> Sample:
        asked = [question for question in sample.questions if categories is None or question.category in categories]
        # Spread out: data sets sort questions by category or by session, so the first ones are not like the rest.
        limit = min(self.limit_questions or len(asked), len(asked))
        questions = [asked[index * len(asked) // limit] for index in range(limit)]
        references = {question.question_id: sample.references[question.question_id] for question in questions}
        return replace(sample, questions=tuple(questions), references=references)


def category_numbers(
    wanted: Sequence[int | str] | None, names: Mapping[int, str], kinds: Mapping[int, str]
) -> list[int] | None:
    """Turn kinds and names of categories into their numbers, in the order given.

    Args:
        wanted: kinds, names or numbers; ``None`` for all.
        names: the data set's names of its categories, by number.
        kinds: of the same categories, by number.

    Raises:
        ConfigError: the data set has none of this kind; names those that it has.
    """
    if wanted is None:
        return None
    spelled = {number: dict.fromkeys(map(_spelled, (name, kinds.get(number, name)))) for number, name in names.items()}
    found = {
        item: [number for number in spelled if item == number or _spelled(item) in spelled[number]] for item in wanted
    }
    unknown = [item for item, numbers in found.items() if not numbers]
    if unknown:
        choices = ", ".join(f"{number} ({' or '.join(texts)})" for number, texts in spelled.items())
        raise ConfigError(f"dataset.categories: {unknown!r} not in this data set; choose from {choices}")
    return list(dict.fromkeys(number for numbers in found.values() for number in numbers))


def _spelled(name: object) -> str:
    """Return a category in its canonical spelling: ``multi_hop`` for ``multi-hop`` and ``Multi hop``."""
    return str(name).strip().lower().replace("-", "_").replace(" ", "_")


def first_sessions(sample: Sample, limit: int | None) -> Sample:
    """Cut a conversation after its first sessions, and drop the questions that need more than these."""
    if limit is None:
        return sample
    conversation = sample.conversation
    kept_sessions = list(dict.fromkeys(turn.session_id for turn in conversation.turns))[:limit]
    turns = tuple(turn for turn in conversation.turns if turn.session_id in kept_sessions)
    known = {turn.turn_id for turn in turns}
    questions = tuple(
        question
        for question in sample.questions
        if (evidence := sample.references[question.question_id].evidence) and known.issuperset(evidence)
    )
    references = {question.question_id: sample.references[question.question_id] for question in questions}
    return Sample(replace(conversation, turns=turns), questions, references, _kept_updates(sample.updates, known))


def _kept_updates(
    updates: tuple[tuple[str, ...], ...] | None, known: Collection[str]
) -> tuple[tuple[str, ...], ...] | None:
    """Return the updates among the kept turns, of which the last one is valid."""
    if updates is None:
        return None
    groups = (tuple(turn for turn in group if turn in known) for group in updates)
    return tuple(group for group in groups if len(group) > 1)


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Refuse a setting that is not one of its choices.

    Raises:
        ConfigError: names key, value and choices.
    """
    if value not in choices:
        raise ConfigError(f"dataset.{name}={value!r} is unknown; choose one of {', '.join(map(str, choices))}")


def check_name(name: str, value: object, of: str) -> None:
    """Refuse a setting that is not the name of a file or folder.

    Raises:
        ConfigError: names key, value and what it must name.
    """
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"dataset.{name}={value!r} must be the name of {of}")


def check_positive(name: str, value: object, hint: str = "") -> None:
    """Refuse a number below 1.

    Raises:
        ConfigError: names key and value.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"dataset.{name}={value!r} must be a whole number from 1{hint}")


def check_known(name: str, wanted: Sequence[object] | None, known: Sequence[object]) -> None:
    """Refuse names that a data set does not have; lists those that it has.

    Raises:
        ConfigError: there is such a name.
    """
    unknown = [item for item in wanted or () if item not in known]
    if unknown:
        choices = ", ".join(map(str, known))
        raise ConfigError(f"dataset.{name}: {unknown!r} not in this data set; choose from {choices}")


def count(samples: Sequence[Sample]) -> dict[str, Json]:
    """Count what was selected; the same keys for every data set."""
    turns = [turn for sample in samples for turn in sample.conversation.turns]
    references = [reference for sample in samples for reference in sample.references.values()]
    categories = Counter(question.category for sample in samples for question in sample.questions)
    sessions = [len({turn.session_id for turn in sample.conversation.turns}) for sample in samples]
    return {
        "conversations": len(samples),
        "sessions": sum(sessions),
        "turns": len(turns),
        "turns_per_conversation": [len(sample.conversation.turns) for sample in samples],
        "questions": len(references),
        "questions_by_category": {str(category): categories[category] for category in sorted(categories)},
        "captions": sum(bool(turn.caption) for turn in turns),
        "captions_with_img_url": sum(bool(turn.caption and turn.extra.get("img_url")) for turn in turns),
        "evidence_ids": sum(len(reference.evidence) for reference in references),
        "unresolved_evidence_ids": sum(len(reference.unresolved_evidence) for reference in references),
        "questions_without_evidence": sum(not reference.evidence for reference in references),
    }
