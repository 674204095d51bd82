"""The roles of xMemory but the reader's: those of the episodes, one that names themes, one that is only measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from memsys.episodes import roles as episodes
from memsys.episodes.roles import EpisodeRoles, shared_roles
from memsys.llm.contract import Role
from memsys.llm.prompt import Prompt
from memsys.llm.roles import check_role_names, make_role
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json
from memsys.xmemory.rules import Estimator, SemanticMode

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

#: JSON schema of each role's reply; ``None`` for plain text.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {**episodes.SCHEMAS, "theme": None, "probe": None}

#: Alternatives per token that the probe asks for: one where the token's own probability is all that counts.
_ALTERNATIVES: Mapping[Estimator, int] = {"nll": 1, "entropy": 20}


@dataclass(frozen=True, slots=True)
class XMemoryRoles(EpisodeRoles):
    """All roles of xMemory but the reader's.

    Attributes:
        theme: summary of a theme.
        probe: a short answer, of which not the words count but how sure they are.
    """

    theme: Role
    probe: Role


def make_roles(
    settings: Mapping[str, Mapping[str, Json]], estimator: Estimator, semantic: SemanticMode
) -> XMemoryRoles:
    """Make the roles from the config's ``roles``.

    Facts that are asked for directly have a prompt of their own: appendix C keeps their dates, while that of the first
    facts of a prediction, which Nemori shares, leaves them out.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    check_role_names(settings, SCHEMAS)
    shared = shared_roles(settings)
    if semantic == "direct" and settings["extract"].get("prompt") is None:
        shared["extract"] = replace(shared["extract"], prompt=Prompt.load(PROMPTS / "extract.txt"))
    probe = make_role("probe", settings["probe"], PROMPTS, SCHEMAS["probe"])
    return XMemoryRoles(
        **shared,
        theme=make_role("theme", settings["theme"], PROMPTS, SCHEMAS["theme"]),
        probe=replace(probe, top_logprobs=_ALTERNATIVES[estimator]),
    )
