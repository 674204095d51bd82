"""Roles from a preset: their settings checked, their prompts read, and exactly those that the system asks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memsys.errors import ConfigError
from memsys.field_types import declared_types, type_problem
from memsys.llm.contract import Role
from memsys.llm.correction import make_correction
from memsys.llm.prompt import Prompt
from memsys.llm.reading import accepted_schema, make_reading
from memsys.llm.sampling import SAMPLING_FIELDS, check_temperature
from memsys.prompt_packs.local import is_reference, read_text
from memsys.settings import check_minimum, check_optional
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class RoleSettings:
    """Settings of a role.

    Attributes:
        temperature: sampling temperature.
        max_tokens: limit of new tokens.
        prompt: file of the prompt, or a fetched text of the authors (:mod:`memsys.prompt_packs`); null takes the file
            shipped with the system.
        system: system message, or a fetched text of the authors.
        malformed_retries: further attempts when the reply does not parse or validate.
        min_items: lower bound of every list of the schema. Without one a small model closes each list at once. The
            papers set no such bounds.
        max_items: upper bound of every list.
        max_chars: upper bound of every string, which a small model otherwise fills with repetitions to ``max_tokens``.
        raw: see :class:`memsys.llm.contract.Role`.
        field_order: every field of the schema in the order in which constrained decoding is to write them; null keeps
            the shipped order.
        reading: fields of :class:`memsys.llm.reading.ReplyReading`; null reads tolerantly.
        schema: JSON schema that the authors' prompt asks for, where it is not ours.
        system_first: write the system message before the prompt in completion mode, which else leaves it out.
        correction: fields of :class:`memsys.llm.correction.Correction`; null asks again with the same request and
            another seed.
    """

    temperature: float
    max_tokens: int
    prompt: str | None = None
    system: str | None = None
    malformed_retries: int = 1
    min_items: int | None = None
    max_items: int | None = None
    max_chars: int | None = None
    raw: bool = False
    field_order: Sequence[str] | None = None
    reading: Mapping[str, Json] | None = None
    schema: Mapping[str, Json] | None = None
    system_first: bool = False
    correction: Mapping[str, Json] | None = None


def make_role(
    name: str,
    settings: Mapping[str, Json],
    shipped: Path,
    schema: Mapping[str, Json] | None,
    *,
    used: Mapping[str, Json] | None = None,
    loose: bool = False,
) -> Role:
    """Make a role from its YAML settings and the prompt file shipped with the system.

    Args:
        name: role name.
        settings: mapping with the fields of :class:`RoleSettings`.
        shipped: folder of the shipped prompts; the file is ``<name>.txt``.
        schema: JSON schema of the reply.
        used: JSON schema of what the role reads of a reply, for ``reading.check: used``; ``None``: all of ``schema``.
        loose: any object can be read, whatever it lacks, so that ``reading.check: any`` may be chosen.

    Raises:
        ConfigError: an unknown, missing or wrong setting.
    """
    known = _read(settings, f"roles.{name}")
    reading = make_reading(name, known.reading)
    if reading.check == "any" and not loose:
        raise ConfigError(
            f"role {name}: reading.check=any would let replies through that lack what the role reads of them;"
            " choose exact or used"
        )
    schema = schema if schema is None or known.schema is None else known.schema
    fetched_system = known.system if is_reference(known.system) else None
    return Role(
        name=name,
        prompt=_prompt(known.prompt, shipped / f"{name}.txt"),
        temperature=known.temperature,
        max_tokens=known.max_tokens,
        schema=None if schema is None else ordered(name, bounded(schema, known), known.field_order),
        system=None if fetched_system else known.system,
        system_prompt=Prompt.of(read_text(fetched_system), fetched_system) if fetched_system else None,
        system_first=known.system_first,
        malformed_retries=known.malformed_retries,
        raw=known.raw,
        reading=reading,
        accepts=accepted_schema(reading, schema, used),
        correction=make_correction(name, known.correction),
    )


def _read(settings: object, group: str) -> RoleSettings:
    """Return a role's settings, all of them known and none missing that has no default."""
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{group}={settings!r} must be settings by name")
    known = RoleSettings.__slots__
    if unknown := [key for key in settings if key not in known]:
        sampler = [key for key in unknown if key in SAMPLING_FIELDS]
        hint = f"; {', '.join(sampler)} is the backbone's: backbone.sampling.{sampler[0]}" if sampler else ""
        raise ConfigError(f"{group}.{unknown[0]}: a role has no such setting{hint}; there are {', '.join(known)}")
    if missing := [key for key in ("temperature", "max_tokens") if key not in settings]:
        raise ConfigError(f"{group}.{missing[0]} is missing; every role needs it")
    read = RoleSettings(**settings)
    _check_settings(read, group)
    return read


def _check_settings(settings: RoleSettings, group: str) -> None:
    check_minimum(settings, group, temperature=0, max_tokens=1, malformed_retries=0)
    check_temperature(f"{group}.temperature", settings.temperature)
    check_optional(settings, group, min_items=0, max_items=1, max_chars=1)
    for key, declared in declared_types(RoleSettings).items():
        value = getattr(settings, key)
        if problem := type_problem(declared, value):
            raise ConfigError(f"{group}.{key}={value!r} {problem}")
    least, most = settings.min_items, settings.max_items
    if least is not None and most is not None and least > most:
        raise ConfigError(f"{group}.min_items={least} exceeds {group}.max_items={most}; correct one of them")


def _prompt(setting: str | None, shipped: Path) -> Prompt:
    if setting is not None and is_reference(setting):
        return Prompt.of(read_text(setting), setting)
    return Prompt.load(Path(setting) if setting else shipped)


def ordered(name: str, schema: Mapping[str, Json], order: Sequence[str] | None) -> Mapping[str, Json]:
    """Return the schema with its fields in this order: constrained decoding writes them as they are in the schema.

    Raises:
        ConfigError: the order does not name every field once.
    """
    if order is None:
        return schema
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or sorted(order) != sorted(properties):
        fields = ", ".join(properties) if isinstance(properties, Mapping) else "none"
        raise ConfigError(f"role {name}: field_order={list(order)} must name each field of its schema once: {fields}")
    return {**schema, "properties": {field: properties[field] for field in order}}


def bounded(schema: Mapping[str, Json], settings: RoleSettings) -> Mapping[str, Json]:
    """Return the schema with every list and every free string bounded as the role's settings say."""

    def limit(node: Json) -> Json:
        if isinstance(node, list):
            return [limit(part) for part in node]
        if not isinstance(node, Mapping):
            return node
        limited = {key: limit(part) for key, part in node.items()}
        if node.get("type") == "array":
            bounds = {"minItems": settings.min_items, "maxItems": settings.max_items}
        elif _may_be_text(node.get("type")) and "enum" not in node:
            bounds = {"maxLength": settings.max_chars}
        else:
            return limited
        return {**limited, **{key: bound for key, bound in bounds.items() if bound is not None and key not in limited}}

    return {key: limit(part) for key, part in schema.items()}


def _may_be_text(kind: Json) -> bool:
    return "string" in kind if isinstance(kind, list) else bool(kind == "string")


def check_role_names(settings: Mapping[str, Mapping[str, Json]], needed: Collection[str]) -> None:
    """Check that a preset describes exactly the roles that are needed.

    Args:
        settings: the preset's ``roles``.
        needed: names.

    Raises:
        ConfigError: a role is missing or unknown.
    """
    if set(settings) != set(needed):
        raise ConfigError(
            f"memory.roles: {', '.join(settings) or 'none'} were given; exactly these are needed: {', '.join(needed)}"
        )


def roles_by_schema(
    settings: Mapping[str, Mapping[str, Json]],
    schemas: Mapping[str, Mapping[str, Json] | None],
    shipped: Path,
    used: Mapping[str, Mapping[str, Json]] | None = None,
) -> dict[str, Role]:
    """Make one role for each schema.

    Args:
        settings: the preset's ``roles``.
        schemas: JSON schema of each role's reply; ``None`` for free text.
        shipped: folder of the shipped prompts.
        used: what a role reads of a reply, where that is not all of the schema.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    check_role_names(settings, schemas)
    read = used or {}
    return {
        name: make_role(name, settings[name], shipped, schema, used=read.get(name)) for name, schema in schemas.items()
    }
