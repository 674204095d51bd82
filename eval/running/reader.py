"""The reader: turns a question and the retrieved context into a prediction, the same way for every memory system.

Category 5 of LoCoMo is answered by choosing between two options, one of which is the data set's false answer: the only
gold a reader ever sees, and only where the config says ``adversarial_options``. Which option stands first comes from a
hash of run seed and question id, so it is the same for every system.

Category numbers mean the same in every data set, so they choose the prompt. A reader without a prompt for a category
that is asked is refused before any model is loaded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from eval.configs.presets import CONF, preset_names, read_settings
from eval.metrics.locomo import chosen_option
from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel, Reply, Role, make_role
from memsys.llm.reading import unfenced_object
from memsys.seeding import stable_seed
from memsys.vocabulary import Json, Question, Reference

PROMPTS = Path(__file__).parent / "prompts"
FOLDER = CONF / "reader"

AnswerFormat = Literal["json", "text", "whole", "whole_or_json"]
OptionStyle = Literal["named", "lettered"]

ANSWER_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}

#: What is read of a reply where ``reading.check: used``: an answer of any type, as text.
ANSWER_USED: Mapping[str, Json] = {"type": "object", "required": ["answer"]}

#: What a prompt may show; the options only in category 5.
PLACEHOLDERS = ("context", "question", "option_a", "option_b")


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """A named way to ask for answers (``conf/reader``).

    Attributes:
        name: name of the preset.
        prompt_set: folder under ``eval/running/prompts`` that holds one file per role.
        roles: role name -> sampling (see :class:`memsys.llm.contract.RoleSettings`).
        by_category: category number -> role name; the data set's numbers, as strings, because YAML keys are.
        answer_format: ``json`` asks for ``{"answer": ...}`` by schema and takes the raw text when that fails (what
            counts as failing, and whether it is asked again, the roles' ``reading`` and ``malformed_retries`` say);
            ``text`` takes the first line of the reply, ``whole`` all of it without white space around it;
            ``whole_or_json`` does too, but of a reply that is one JSON object (code fences aside) takes its ``answer``.
        adversarial_options: offer category 5's false answer beside the abstention; off asks the plain question.
        option_style: ``named`` shows the texts, ``lettered`` shows (a) and (b) and maps a reply that is only a
            letter back (:func:`eval.metrics.locomo.chosen_option`).
        abstention: wording of the abstaining option.
    """

    name: str
    prompt_set: str
    roles: Mapping[str, Mapping[str, Json]]
    by_category: Mapping[str, str]
    answer_format: AnswerFormat
    adversarial_options: bool
    option_style: OptionStyle
    abstention: str

    def __post_init__(self) -> None:
        for field, literal in (("answer_format", AnswerFormat), ("option_style", OptionStyle)):
            choices = get_args(literal)
            if getattr(self, field) not in choices:
                raise ConfigError(f"reader.{field}={getattr(self, field)!r}; choose one of {', '.join(choices)}")
        unknown = sorted(set(self.by_category.values()) - set(self.roles))
        if unknown:
            raise ConfigError(f"reader.by_category names roles that reader.roles lacks: {', '.join(unknown)}")

    def build(self, seed: int) -> "Reader":
        """Make the reader of a run.

        Raises:
            ConfigError: a prompt file is missing or has an unknown placeholder, or a role has an unknown setting.
        """
        return Reader(self, seed)

    def check(self, dataset: str, asked: Mapping[int, str]) -> None:
        """Refuse a data set that asks what this reader has no prompt for.

        Args:
            dataset: name of the data set.
            asked: category number -> its name, of every category that has questions.

        Raises:
            ConfigError: names reader, category and what to choose.
        """
        lacking = [number for number in asked if str(number) not in self.by_category]
        if not lacking:
            return
        left = [number for number in asked if number not in lacking]
        ways = [f"choose reader={' or reader='.join(fitting)}"] if (fitting := readers_for(asked)) else []
        ways += [f"leave these questions out (dataset.categories={left})"] if left else []
        ways += ["give the category a role in reader.by_category"]
        named = ", ".join(f"{number} ({asked[number]})" for number in lacking)
        raise ConfigError(
            f"reader {self.name} has no prompt for category {named} of data set {dataset}; {', or '.join(ways)}"
        )


def readers_for(categories: Iterable[int], folder: Path = FOLDER) -> list[str]:
    """Names of the readers in ``conf/reader`` that have a prompt for all these categories, sorted."""
    wanted = {str(number) for number in categories}
    settings = {name: read_settings(folder / f"{name}.yaml") for name in preset_names(folder)}
    return [name for name, reader in settings.items() if wanted <= set(reader.get("by_category", ()))]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the reader made of one question."""

    prediction: str
    raw: str
    malformed: bool
    options: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int


class Reader:
    """Asks the backbone for one answer per question."""

    def __init__(self, config: ReaderConfig, seed: int) -> None:
        self._config = config
        self._seed = seed
        schema = ANSWER_SCHEMA if config.answer_format == "json" else None
        folder = PROMPTS / config.prompt_set
        self._roles: dict[str, Role] = {
            name: make_role(name, settings, folder, schema, used=ANSWER_USED) for name, settings in config.roles.items()
        }
        for role in self._roles.values():
            role.prompt.render(dict.fromkeys(PLACEHOLDERS, ""))

    def options(self, question: Question, reference: Reference) -> tuple[str, ...]:
        """The two options of an adversarial question in the order shown; empty for every other question."""
        false_answer = reference.adversarial_answer
        if question.category != 5 or not self._config.adversarial_options or false_answer is None:
            return ()
        pair = (self._config.abstention, false_answer)
        return pair if stable_seed(self._seed, "options", question.question_id) % 2 == 0 else pair[::-1]

    def _role(self, question: Question, options: tuple[str, ...]) -> Role:
        name = self._config.by_category.get(str(question.category))
        if name is None:
            known = ", ".join(sorted(self._config.by_category))
            raise ConfigError(
                f"reader {self._config.name} has no prompt for category {question.category} of question "
                f"{question.question_id}; it knows {known}"
            )
        if question.category == 5 and not options:
            name = self._config.by_category.get("4", name)
        return self._roles[name]

    async def answer(self, llm: LanguageModel, question: Question, reference: Reference, context: str) -> Answer:
        """Answer one question.

        Args:
            llm: the backbone, bound to the question's conversation.
            question: what is asked.
            reference: only its ``adversarial_answer`` is read, for category 5's options.
            context: the memory's text, exactly as the reader shows it.

        Raises:
            BackboneError: the backbone gave no completion; nothing is recorded for the question.
        """
        options = self.options(question, reference)
        values = {"context": context, "question": question.text}
        if options:
            values |= {"option_a": options[0], "option_b": options[1]}
        reply = await llm.ask(self._role(question, options), values, key=question.question_id)
        return Answer(
            prediction=self._prediction(reply, options),
            raw=reply.text,
            malformed=reply.malformed,
            options=options,
            prompt_tokens=reply.completion.prompt_tokens,
            completion_tokens=reply.completion.completion_tokens,
        )

    def _prediction(self, reply: Reply, options: tuple[str, ...]) -> str:
        text = _field(reply.value) if reply.value is not None else reply.text
        if self._config.answer_format == "whole_or_json":
            found = unfenced_object(text) or {}
            text = _field(found) if "answer" in found else text.strip()
        elif self._config.answer_format != "json":
            text = text.strip()
        if self._config.answer_format == "text":
            text = text.partition("\n")[0].strip()
        return chosen_option(text, options) if self._config.option_style == "lettered" else text


def _field(value: Mapping[str, Any]) -> str:
    return str(value["answer"])
