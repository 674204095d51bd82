"""The reader: turns a question and the retrieved context into a prediction, the same way for every memory system.

An adversarial question is answered by choosing between two options, one of which is the data set's false answer: the
only gold a reader ever sees, and only where the config says ``adversarial_options``. Which option is first comes
from a hash of run seed and question id, so it is the same for every system.

The kind of a question (:mod:`eval.loaders.question_types`) chooses the prompt; kinds that a reader does not name take
its default. A reader that refuses a kind that is asked is stopped before any model is loaded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, get_args

from eval.config.answer_prompts import prompt_folder
from eval.config.presets import CONF, preset_names, read_settings
from eval.loaders.question_types import ADVERSARIAL, BEFORE_KINDS, kind_of
from eval.metrics.locomo import chosen_option
from eval.metrics.text import as_text
from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel, Role
from memsys.llm.outcomes import Outcome, outcome_of, reason_of
from memsys.llm.reading import unfenced_object
from memsys.llm.roles import make_role
from memsys.llm.thoughts import read_answer
from memsys.seeding import stable_seed
from memsys.vocabulary import Json, Question, Reference

FOLDER = CONF / "reader"

AnswerFormat = Literal["json", "text", "whole", "whole_or_json"]
OptionStyle = Literal["named", "lettered"]

_ANSWER = "answer"
ANSWER_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {_ANSWER: {"type": "string"}},
    "required": [_ANSWER],
    "additionalProperties": False,
}

#: What is read of a reply where ``reading.check: used``: an answer of any type, as text.
ANSWER_USED: Mapping[str, Json] = {"type": "object", "required": [_ANSWER]}

#: What is read of it elsewhere: servers without constrained decoding write a number as one.
ANSWER_READ: Mapping[str, Json] = {**ANSWER_SCHEMA, "properties": {_ANSWER: {"type": ["string", "number"]}}}

#: What a prompt may show; the options only in adversarial questions, the date only where the data set gives one.
PLACEHOLDERS = ("context", "question", "question_date", "option_a", "option_b")
_NO_DATE = "unknown"


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """A named way to ask for answers (``conf/reader``).

    Attributes:
        name: name of the preset.
        prompt_set: folder under ``eval/running/prompts`` that holds one file per role, or ``PACKAGE:FOLDER`` for a
            folder in a third-party package.
        roles: role name -> sampling (see :class:`memsys.llm.roles.RoleSettings`).
        default: role name for every kind of question that ``by_kind`` does not name, and for adversarial questions that
            are asked plainly.
        by_kind: kind of question -> role name; null refuses the kind.
        answer_format: ``json`` asks for ``{"answer": ...}`` by schema and takes the raw text when that fails (what
            counts as failing, and whether it is asked again, the roles' ``reading`` and ``malformed_retries`` say);
            ``text`` takes the first line of the reply, ``whole`` all of it without white space around it;
            ``whole_or_json`` does too, but of a reply that is one JSON object (code fences aside) takes its ``answer``.
        adversarial_options: offer the false answer of adversarial questions next to the abstention; off asks plainly.
        option_style: ``named`` shows the texts, ``lettered`` shows (a) and (b) and maps a reply that is only a
            letter back (:func:`eval.metrics.locomo.chosen_option`).
        abstention: text of the abstaining option.
    """

    name: str
    prompt_set: str
    roles: Mapping[str, Mapping[str, Json]]
    default: str
    by_kind: Mapping[str, str | None]
    answer_format: AnswerFormat
    adversarial_options: bool
    option_style: OptionStyle
    abstention: str

    def __post_init__(self) -> None:
        for field, literal in (("answer_format", AnswerFormat), ("option_style", OptionStyle)):
            choices = get_args(literal)
            if getattr(self, field) not in choices:
                raise ConfigError(f"reader.{field}={getattr(self, field)!r}; choose one of {', '.join(choices)}")
        if isinstance(self.abstention, str) and not self.abstention.strip():
            raise ConfigError(f"reader.abstention={self.abstention!r} must say how a question is declined")
        named = {self.default, *(role for role in self.by_kind.values() if role is not None)}
        unknown = sorted(named - set(self.roles))
        if unknown:
            raise ConfigError(f"reader.default or by_kind names roles that reader.roles lacks: {', '.join(unknown)}")

    def role_of(self, kind: str, *, options: bool) -> str | None:
        """Return the name of the role that asks a kind of question; ``None`` where the reader refuses it.

        Args:
            kind: of the question; empty for the default.
            options: whether two options are shown, which only the role of adversarial questions has room for.
        """
        if kind == ADVERSARIAL and not options:
            return self.default
        return self.by_kind.get(kind, self.default)

    def build(self, seed: int) -> "Reader":
        """Make the reader of a run.

        Raises:
            ConfigError: a prompt file is missing or has an unknown placeholder, or a role has an unknown setting.
        """
        return Reader(self, seed)

    def _check_kinds(self, asked: Sequence[str]) -> None:
        """Refuse a kind that is a misspelt one: nothing asks it, and another that is asked has no prompt here."""
        known = {*asked, *BEFORE_KINDS.values()}
        free = sorted(known - set(self.by_kind))
        for kind in sorted(set(self.by_kind) - known):
            close = get_close_matches(kind, free, 1, 0.85)
            if close:
                raise ConfigError(f"reader.by_kind.{kind}: no question is of this kind; did you mean {close[0]}?")

    def check(self, dataset: str, asked: Mapping[int, tuple[str, str]]) -> None:
        """Refuse a data set that asks what this reader has no prompt for.

        Args:
            dataset: name of the data set.
            asked: category number -> its name and kind, of every category that has questions.

        Raises:
            ConfigError: names reader, category and what to choose.
        """
        self._check_kinds([kind for _, kind in asked.values()])
        lacking = [number for number, (_, kind) in asked.items() if self.by_kind.get(kind, self.default) is None]
        if not lacking:
            return
        left = [number for number in asked if number not in lacking]
        ways = (
            [f"choose reader={' or reader='.join(fitting)}"]
            if (fitting := readers_for(kind for _, kind in asked.values()))
            else []
        )
        ways += [f"leave these questions out (dataset.categories={left})"] if left else []
        ways += ["give the kind a role in reader.by_kind"]
        named = ", ".join(f"{number} ({asked[number][0]})" for number in lacking)
        raise ConfigError(
            f"reader {self.name} has no prompt for category {named} of data set {dataset}; {', or '.join(ways)}"
        )


def readers_for(kinds: Iterable[str]) -> list[str]:
    """Return the names of the readers in ``conf/reader`` that refuse none of these kinds of questions, sorted."""
    wanted = set(kinds)
    settings = {name: read_settings(FOLDER / f"{name}.yaml") for name in preset_names(FOLDER)}
    return [name for name, reader in settings.items() if not wanted & _refused(reader)]


def _refused(reader: Mapping[str, Any]) -> set[str]:
    return {kind for kind, role in (reader.get("by_kind") or {}).items() if role is None}


@dataclass(frozen=True, slots=True)
class Answer:
    """The reader's answer to one question, and the outcome of its call; ``reason`` says why it was not answered."""

    prediction: str
    raw: str
    malformed: bool
    options: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int
    outcome: Outcome = "answered"
    reason: str = ""


def own_answer(text: str) -> Answer:
    """Return the record of an answer by the memory itself, whose calls are in the ledger under ``retrieve``."""
    return Answer(prediction=text, raw=text, malformed=False, options=(), prompt_tokens=0, completion_tokens=0)


class Reader:
    """Asks the backbone for one answer per question."""

    def __init__(self, config: ReaderConfig, seed: int) -> None:
        self._config = config
        self._seed = seed
        schema = ANSWER_SCHEMA if config.answer_format == "json" else None
        folder = prompt_folder(config.prompt_set)
        self._roles: dict[str, Role] = {
            name: _numbers_read(make_role(name, settings, folder, schema, used=ANSWER_USED, loose=True))
            for name, settings in config.roles.items()
        }
        for role in self._roles.values():
            role.prompt.render(dict.fromkeys(PLACEHOLDERS, ""))

    def options(self, question: Question, reference: Reference) -> tuple[str, ...]:
        """Return the two options of an adversarial question in the order shown; empty for every other question."""
        false_answer = reference.adversarial_answer
        if (
            kind_of(question.kind, question.category) != ADVERSARIAL
            or not self._config.adversarial_options
            or false_answer is None
        ):
            return ()
        pair = (self._config.abstention, false_answer)
        return pair if stable_seed(self._seed, "options", question.question_id) % 2 == 0 else pair[::-1]

    def _role(self, question: Question, options: tuple[str, ...]) -> Role:
        kind = kind_of(question.kind, question.category)
        name = self._config.role_of(kind, options=bool(options))
        if name is None:
            raise ConfigError(
                f"reader {self._config.name} refuses questions of kind {kind} ({question.question_id}); "
                "give the kind a role in reader.by_kind"
            )
        return self._roles[name]

    async def answer(self, llm: LanguageModel, question: Question, reference: Reference, context: str) -> Answer:
        """Answer one question.

        Args:
            llm: the backbone, bound to the question's conversation.
            question: what is asked.
            reference: only its ``adversarial_answer`` is read, for the options of an adversarial question.
            context: the memory's text, exactly as the reader shows it.

        Raises:
            BackboneError: the backbone gave no completion; nothing is recorded for the question.
        """
        options = self.options(question, reference)
        date = question.question_date or _NO_DATE
        values = {"context": context, "question": question.text, "question_date": date}
        if options:
            values |= {"option_a": options[0], "option_b": options[1]}
        role = self._role(question, options)
        reply = await llm.ask(role, values, key=question.question_id)
        lacks_answer = reply.value is not None and _ANSWER not in reply.value
        given = reply.text if reply.value is None or lacks_answer else _field(reply.value, role)
        prediction, malformed = self._prediction(given, options), reply.malformed or lacks_answer
        outcome = outcome_of(prediction, reply.completion.finish_reason, malformed=malformed)
        return Answer(
            prediction=prediction,
            raw=reply.text,
            malformed=malformed,
            options=options,
            prompt_tokens=reply.completion.prompt_tokens,
            completion_tokens=reply.completion.completion_tokens,
            outcome=outcome,
            reason=reason_of(outcome, reply.completion),
        )

    def _prediction(self, text: str, options: tuple[str, ...]) -> str:
        if self._config.answer_format == "whole_or_json":
            found = unfenced_object(text) or {}
            text = as_text(found[_ANSWER], "amem") if _ANSWER in found else read_answer(text).text.strip()
        elif self._config.answer_format != "json":
            text = read_answer(text).text.strip()
        if self._config.answer_format == "text":
            text = text.partition("\n")[0].strip()
        return chosen_option(text, options) if self._config.option_style == "lettered" else text


def _numbers_read(role: Role) -> Role:
    """Let a role that asks for an object, and says no other reading of it, have a number for its answer."""
    return role if role.schema is None or role.accepts is not None else replace(role, accepts=ANSWER_READ)


def _field(value: Mapping[str, Any], role: Role) -> str:
    """Return an answer of any type as text; null does not count as an answer, nor does 0 in A-Mem's and CLAG's code."""
    found = value[_ANSWER]
    return "0" if role.accepts is ANSWER_READ and found == 0 and found is not False else as_text(found, "amem")
