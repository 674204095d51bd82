"""A named way to judge (``conf/judge``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from eval.loaders.kinds import ADVERSARIAL
from eval.runs.records import ReferenceRecord
from memsys.errors import ConfigError
from memsys.llm.contract import Role, make_role
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"

#: What a judge may say of an answer.
CORRECT, WRONG = "CORRECT", "WRONG"
#: Category 5: left out, or right when the question is declined. Scoring the trap would ask a judge to call it right.
JudgedAdversarial = Literal["exclude", "abstain"]

#: What a prompt says of the reply's form, by whether a reason is asked for.
FORMS = {True: PROMPTS / "forms" / "reason_and_verdict.txt", False: PROMPTS / "forms" / "verdict.txt"}


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """How a judge asks.

    Attributes:
        name: name of the preset.
        prompt: file of ``eval/judge/prompts``, without suffix; ``role.prompt`` names a file elsewhere.
        reasoning: ask for a sentence before the verdict.
        role: sampling, see :class:`memsys.llm.contract.RoleSettings`.
        repeats: verdicts per answer. Each has a seed of its own; at temperature 0 they tell whether the server repeats
            itself.
        adversarial: treatment of category 5.
        abstention: reference text of category 5 under ``abstain``.
    """

    name: str
    prompt: str
    reasoning: bool
    role: Mapping[str, Json]
    repeats: int
    adversarial: JudgedAdversarial
    abstention: str

    def __post_init__(self) -> None:
        if self.adversarial not in get_args(JudgedAdversarial):
            choices = ", ".join(get_args(JudgedAdversarial))
            raise ConfigError(f"judge.adversarial={self.adversarial!r}; choose one of {choices}")
        if self.repeats < 1:
            raise ConfigError(f"judge.repeats={self.repeats}; it must be at least 1")
        if not (PROMPTS / f"{self.prompt}.txt").is_file():
            known = ", ".join(sorted(path.stem for path in PROMPTS.glob("*.txt")))
            raise ConfigError(
                f"judge.prompt={self.prompt!r} is unknown; choose one of {known}, or set judge.role.prompt"
            )

    def make_role(self) -> Role:
        """The role that asks for one verdict; the ledger knows it by the judge's name."""
        properties: dict[str, Json] = {"verdict": {"enum": [CORRECT, WRONG]}}
        if self.reasoning:
            properties = {"reason": {"type": "string"}, **properties}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        settings = {**self.role, "prompt": self.role.get("prompt") or str(PROMPTS / f"{self.prompt}.txt")}
        return make_role(f"judge_{self.name}", settings, PROMPTS, schema)

    @property
    def form(self) -> str:
        """What the prompt says of the reply's form."""
        return _form(FORMS[self.reasoning])

    def gold(self, reference: ReferenceRecord) -> str | None:
        """Reference text of a question; ``None`` for one that is not judged."""
        if reference.kind == ADVERSARIAL:
            return self.abstention if self.adversarial == "abstain" else None
        return " | ".join(reference.answers) or None


@cache
def _form(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()
