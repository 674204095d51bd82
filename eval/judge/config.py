"""A named way to judge (``conf/judge``)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from eval.loaders.question_types import ADVERSARIAL
from eval.runs.records import ReferenceRecord
from eval.scoring.verdicts.values import CORRECT, DIFFERENT, PARTIAL, SAME, WRONG
from memsys.errors import ConfigError
from memsys.llm.contract import Role
from memsys.llm.roles import make_role
from memsys.settings import check_choices, check_minimum, check_name
from memsys.vocabulary import RUBRIC, Json

PROMPTS = Path(__file__).parent / "prompts"

#: What becomes of an item that is met in part: it counts half, or nothing.
JudgedHalves = Literal["count", "cut"]
#: Category 5: left out, or right when the question is declined, against one text or against the data set's own
#: explanation. Scoring the trap would ask a judge to call it right.
JudgedAdversarial = Literal["exclude", "abstain", "explained"]
#: What is judged: an answer as a whole, or against each item of its question's rubric.
JudgedUnit = Literal["answer", "rubric"]

#: How a line of an answer is aligned with an event of the reference: by words, or by the judge.
JudgedOrder = Literal["words", "model"]
#: How a judge is asked of two events, unless ``order_role.prompt`` names another file.
ORDER_PROMPT = PROMPTS / "orders" / "same_event.txt"

#: What a prompt says of the reply's form, by what is judged and whether a reason is asked for.
FORMS = {
    ("answer", True): PROMPTS / "forms" / "reason_and_verdict.txt",
    ("answer", False): PROMPTS / "forms" / "verdict.txt",
    ("rubric", True): PROMPTS / "forms" / "reason_and_rubric_verdict.txt",
    ("rubric", False): PROMPTS / "forms" / "rubric_verdict.txt",
}


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """Settings of a judge.

    Attributes:
        name: name of the preset.
        prompt: file of ``eval/judge/prompts``, without suffix; ``role.prompt`` names a file elsewhere.
        reasoning: ask for a sentence before the verdict.
        role: sampling, see :class:`memsys.llm.roles.RoleSettings`.
        repeats: verdicts per answer. Each has a seed of its own; at temperature 0 they tell whether the server repeats
            itself.
        adversarial: treatment of category 5.
        abstention: reference text of category 5 under ``abstain``.
        by_kind: kind of question -> file that takes the place of ``prompt`` for it.
        unit: ``rubric`` asks once per item of the question's rubric, with a verdict between the two; an answer's score
            is the mean of its items. Questions without a rubric are not judged.
        halves: what an item of a rubric counts that is met in part: ``count`` is half, ``cut`` nothing, as in BEAM's
            code, which takes the whole number of its judge's 0.5.
        order: ``model`` lets the judge also say of an answer's lines and the events of an order which are the same
            (:mod:`eval.scoring.verdicts.orders`); verdicts on rubrics are the same with it and without. ``words`` asks
            nothing.
        order_role: sampling for that.
    """

    name: str
    prompt: str
    reasoning: bool
    role: Mapping[str, Json]
    repeats: int
    adversarial: JudgedAdversarial
    abstention: str
    by_kind: Mapping[str, str] = field(default_factory=dict)
    unit: JudgedUnit = "answer"
    halves: JudgedHalves = "count"
    order: JudgedOrder = "words"
    order_role: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("judge.name", self.name)
        check_choices(
            self, "judge", halves=JudgedHalves, order=JudgedOrder, unit=JudgedUnit, adversarial=JudgedAdversarial
        )
        if self.halves == "cut" and self.unit != "rubric":
            raise ConfigError("judge.halves=cut is for rubrics; a whole answer is right or wrong (judge.unit=answer)")
        if self.order == "model" and self.unit != "rubric":
            raise ConfigError("judge.order=model is for rubrics; other judges score no order (judge.unit=answer)")
        if self.adversarial == "abstain" and not str(self.abstention).strip():
            raise ConfigError(f"judge.abstention={self.abstention!r} is what answers are judged by; say it")
        check_minimum(self, "judge", repeats=1)
        named = {"prompt": self.prompt} | {f"by_kind.{kind}": prompt for kind, prompt in self.by_kind.items()}
        for place, prompt in named.items():
            if not (PROMPTS / f"{prompt}.txt").is_file():
                known = ", ".join(sorted(path.stem for path in PROMPTS.glob("*.txt")))
                raise ConfigError(
                    f"judge.{place}={prompt!r} is unknown; choose one of {known}, or set judge.role.prompt"
                )

    def make_role(self, kind: str = "") -> Role:
        """Return the role that asks for one verdict on a kind of question; the ledger knows it by the judge's name."""
        verdicts = [CORRECT, PARTIAL, WRONG] if self.unit == "rubric" else [CORRECT, WRONG]
        properties: dict[str, Json] = {"verdict": {"enum": verdicts}}
        if self.reasoning:
            properties = {"reason": {"type": "string"}, **properties}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        prompt = self.by_kind.get(kind, self.prompt)
        settings = {**self.role, "prompt": self.role.get("prompt") or str(PROMPTS / f"{prompt}.txt")}
        return make_role(f"judge_{self.name}", settings, PROMPTS, schema)

    def make_order_role(self) -> Role:
        """Return the role that asks whether two events are the same."""
        schema = {
            "type": "object",
            "properties": {"verdict": {"enum": [SAME, DIFFERENT]}},
            "required": ["verdict"],
            "additionalProperties": False,
        }
        settings = {**self.order_role, "prompt": self.order_role.get("prompt") or str(ORDER_PROMPT)}
        return make_role(f"judge_{self.name}_order", settings, PROMPTS, schema)

    @property
    def order_prompt_sha256(self) -> str:
        """Checksum of what the judge is asked of two events."""
        return _instructions_sha256(self.make_order_role())

    @property
    def prompt_sha256(self) -> str:
        """Checksum of what the judge is asked: its prompt, and its system message where it has one."""
        return _instructions_sha256(self.make_role())

    @property
    def form(self) -> str:
        """The prompt's description of the reply's form."""
        return _form(FORMS[self.unit, self.reasoning])

    def gold(self, reference: ReferenceRecord) -> str | None:
        """Return the reference text of a question; ``None`` for one that is not judged."""
        if reference.kind == ADVERSARIAL and self.adversarial != "explained":
            return self.abstention if self.adversarial == "abstain" else None
        return " | ".join(reference.answers) or None

    def golds(self, reference: ReferenceRecord) -> list[str]:
        """Return the texts that a question's answer is judged against; none for a question that is not judged."""
        if self.unit == "rubric":
            return [str(item) for item in reference.extra.get(RUBRIC, ())]
        gold = self.gold(reference)
        return [] if gold is None else [gold]


def _instructions_sha256(role: Role) -> str:
    if not role.system:
        return role.prompt.sha256
    return sha256(f"{role.system}\n{role.prompt.sha256}".encode()).hexdigest()


@cache
def _form(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()
