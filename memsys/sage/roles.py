"""The two roles of SAGE's write path."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memsys.facts.extraction import UserPrompt, extract_role
from memsys.llm.contract import Role
from memsys.llm.roles import check_role_names, make_role
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"

MergePrompt = Literal["short", "lossless"]


@dataclass(frozen=True, slots=True)
class SageRoles:
    """``extract`` lists the facts of a batch (JSON); ``merge`` fuses a stored fact with a new one (plain text)."""

    extract: Role
    merge: Role


def make_roles(
    settings: Mapping[str, Mapping[str, Json]], merge_prompt: MergePrompt, extract_prompt: UserPrompt
) -> SageRoles:
    """Make the roles from the config's ``roles``.

    Args:
        settings: per role its settings.
        merge_prompt: which shipped prompt ``merge`` has, unless its settings name a file.
        extract_prompt: likewise of ``extract``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    check_role_names(settings, SageRoles.__slots__)
    merge = dict(settings["merge"])
    merge["prompt"] = merge.get("prompt") or str(PROMPTS / f"merge_{merge_prompt}.txt")
    return SageRoles(
        extract=extract_role(settings["extract"], extract_prompt),
        merge=make_role("merge", merge, PROMPTS, None),
    )
