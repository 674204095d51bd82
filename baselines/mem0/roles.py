"""The roles of Mem0 and Mem0g."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from memsys.errors import ConfigError
from memsys.facts.extraction import UserPrompt, extract_role
from memsys.llm.contract import Role
from memsys.llm.roles import make_role
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

ExtractPrompt = Literal["user", "user_today", "both", "instructed"]
ExtractContext = Literal["batch", "history"]
Decisions = Literal["batched", "per_fact", "none"]

#: Events of a reply of ``route``; the paper calls the last one NOOP.
EVENTS = ("ADD", "UPDATE", "DELETE", "NONE")
GRAPH_ROLES = ("entities", "relations", "delete")

_TEXT: Json = {"type": "string"}
_TRIPLES: Json = {"type": "array", "items": object_schema(source=_TEXT, relationship=_TEXT, destination=_TEXT)}


def _one_of(words: tuple[str, ...]) -> dict[str, Json]:
    return {"type": "string", "enum": list(words)}


#: JSON schema of each role's reply; ``None`` for plain text. The graph's are the fields of Mem0's tool calls.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {
    "route": object_schema(
        memory={"type": "array", "items": object_schema(id=_TEXT, text=_TEXT, event=_one_of(EVENTS))}
    ),
    "decide": object_schema(event=_one_of((*EVENTS[:3], "NOOP")), id=_TEXT, text=_TEXT),
    "summary": None,
    "entities": object_schema(
        entities={"type": "array", "items": object_schema(entity=_TEXT, entity_type=_TEXT)},
    ),
    "relations": object_schema(entities=_TRIPLES),
    "delete": object_schema(relations=_TRIPLES),
}


def needed_roles(context: ExtractContext, decisions: Decisions, *, graph: bool) -> tuple[str, ...]:
    """Return the roles that a variant asks."""
    deciding = {"batched": ("route",), "per_fact": ("decide",), "none": ()}[decisions]
    return ("extract", *deciding, *(("summary",) if context == "history" else ()), *(GRAPH_ROLES if graph else ()))


def make_roles(
    settings: Mapping[str, Mapping[str, Json]],
    needed: tuple[str, ...],
    *,
    extract_prompt: ExtractPrompt,
    extract_context: ExtractContext,
) -> Mapping[str, Role]:
    """Make the roles that a variant asks from the config's ``roles``, which may describe further ones.

    Args:
        settings: per role its settings.
        needed: names of the roles.
        extract_prompt: which shipped prompt ``extract`` has, unless its settings name a file. Those for the user's
            facts are shared with SAGE, whose extraction is Mem0's: equal requests get equal replies.
        extract_context: what it is shown besides the batch.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    unknown, missing = set(settings) - {"extract", *SCHEMAS}, [name for name in needed if name not in settings]
    if unknown or missing:
        raise ConfigError(
            f"memory.roles: unknown are {', '.join(sorted(unknown)) or 'none'}, missing are "
            f"{', '.join(missing) or 'none'}; these settings need {', '.join(needed)}"
        )
    extract = dict(settings["extract"])
    shared: UserPrompt = "user_today" if extract_prompt == "user_today" else "user"
    if extract_context == "history" or extract_prompt != shared:
        name = "history" if extract_context == "history" else extract_prompt
        extract["prompt"] = extract.get("prompt") or str(PROMPTS / f"extract_{name}.txt")
    made = {"extract": extract_role(extract, shared)}
    return made | {name: make_role(name, settings[name], PROMPTS, SCHEMAS[name]) for name in needed[1:]}
