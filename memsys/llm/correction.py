"""Retry of a malformed reply by more than the same request with another seed."""

from collections.abc import Mapping
from dataclasses import dataclass

from memsys.errors import ConfigError
from memsys.llm.sampling import check_temperature
from memsys.settings import check_minimum, from_settings
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class Correction:
    """A role's ``correction`` block: each further attempt is a dialogue, in which the model sees what it did wrong.

    After the prompt follow the first malformed reply, as the model's own message, and ``text``, as the user's; in
    completion mode both follow the prompt as paragraphs. A reply that is too long to be shown stays malformed.
    Source: xMemory's released code (HU-xiaobai/xMemory, src/utils/llm_client_openllm.py, generate_json_response).

    Attributes:
        text: what the user says to a malformed reply.
        temperature_step: added to the temperature with each further attempt.
        max_temperature: that the steps lead to at most.
    """

    text: str
    temperature_step: float
    max_temperature: float

    def warmer(self, temperature: float) -> float:
        """Return the temperature of the next attempt."""
        return min(self.max_temperature, temperature + self.temperature_step)


def make_correction(role: str, settings: Mapping[str, Json] | None) -> Correction | None:
    """Make a role's correction from its YAML block; ``None`` if there is none.

    Raises:
        ConfigError: an unknown or wrong setting, or no text.
    """
    if settings is None:
        return None
    group = f"roles.{role}.correction"
    correction = from_settings(Correction, settings, group)
    if not isinstance(correction.text, str) or not correction.text.strip():
        raise ConfigError(f"{group}.text={correction.text!r} must say what the model is to do otherwise")
    check_minimum(correction, group, temperature_step=0, max_temperature=0)
    check_temperature(f"{group}.max_temperature", correction.max_temperature)
    return correction
