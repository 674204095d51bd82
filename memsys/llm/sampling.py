"""Sampler settings: the request fields of a backbone, and the bounds of their numbers."""

from collections.abc import Mapping

from memsys.errors import ConfigError
from memsys.field_types import type_problem
from memsys.settings import check_between

#: Request fields of the sampler. ``None`` leaves the server's default, and the field is not sent.
SAMPLING_FIELDS = (
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
#: Largest temperature that OpenAI's protocol takes.
MAX_TEMPERATURE = 2
#: Least and largest value of the fields that have both: those of OpenAI's protocol, and for the fields that it lacks
#: those that vLLM and llama.cpp both take.
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "top_p": (0, 1),
    "min_p": (0, 1),
    "repetition_penalty": (0, 2),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
#: Of these the least value itself is none that a sampler takes.
_ABOVE = ("top_p", "repetition_penalty")


def check_sampling(sampling: Mapping[str, float | int | None], group: str) -> None:
    """Refuse numbers that no sampler can use.

    Args:
        sampling: one value for each of :data:`SAMPLING_FIELDS`; ``None`` is not checked.
        group: dotted name of the settings.

    Raises:
        ConfigError: a value of a wrong type, or out of its bounds.
    """
    for key, value in sampling.items():
        if problem := type_problem(int | None if key == "top_k" else float | None, value):
            raise ConfigError(f"{group}.{key}={value!r} {problem}")
        if value is not None and key in _BOUNDS:
            check_between(f"{group}.{key}", value, *_BOUNDS[key], above=key in _ABOVE)
    top_k = sampling["top_k"]
    if top_k is not None and top_k < -1:  # 0 and -1 keep all tokens
        raise ConfigError(f"{group}.top_k={top_k} must be at least 1, or 0 for all tokens")


def check_temperature(key: str, value: float) -> None:
    """Refuse a temperature that OpenAI's protocol does not take.

    Raises:
        ConfigError: it is below 0 or too high.
    """
    check_between(key, value, 0, MAX_TEMPERATURE)
