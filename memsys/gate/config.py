"""Settings of the gate; the presets are ``conf/memory/gated*.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from memsys.assets.hints import of_source
from memsys.errors import ConfigError
from memsys.gate.decisions import GateRule
from memsys.gate.vmf import KappaRule
from memsys.protocol import CountsTokens, MayAnswer, MemoryConfig, NeedsAssets
from memsys.settings import check_choices, check_cosines, check_minimum
from memsys.system_config import SystemConfig
from memsys.turns import TurnFormat
from memsys.vocabulary import Json

UnitText = Literal["rendered", "bare"]

#: What writes a calibration.
_SCRIPT = of_source("scripts/calibrate_gate.py")
#: What a calibrated threshold holds for; the calibration names each.
CALIBRATED_FOR = ("embedder", "text", "kappa_cap", "kappa_floor", "min_scope")


@dataclass(frozen=True)
class GatedConfig(SystemConfig):
    """A memory system behind the gate.

    Attributes:
        name: of the preset, with the host's.
        uses_gold: as the host's.
        host: config of the system behind the gate; in YAML a choice of ``memory`` at ``host``.
        tau_noop: a unit whose score is above this is dropped (paper: 0.572, on its own embedder).
        min_scope: units that must have passed before any is scored; 1 for the paper's text, 10 fits its table 5.
        kappa_cap: upper bound of kappa; null for the printed formula, 50 in the official code.
        kappa_floor: lower bound of kappa.
        text: the text of a unit: its turns as the run writes them, or their bare words without speaker.
        calibration: how ``tau_noop`` was found, as ``scripts/calibrate_gate.py`` writes it; null for a given value.
            It records what the threshold was calibrated with; anything else is refused.
    """

    name: str
    uses_gold: bool
    host: MemoryConfig
    tau_noop: float
    min_scope: int
    kappa_cap: float | None
    kappa_floor: float
    text: UnitText
    calibration: Mapping[str, Json] | None

    def __post_init__(self) -> None:
        check_choices(self, "memory", text=UnitText)
        check_minimum(self, "memory", min_scope=1)
        check_cosines(self, "memory", "tau_noop")
        check_kappa(self.kappa_cap, self.kappa_floor)
        if not hasattr(self.host, "build"):
            raise ConfigError(f"memory.host={self.host!r} must name a preset of conf/memory")
        if isinstance(self.host, GatedConfig):
            raise ConfigError(f"memory.host={self.host.name} is a gate already; name the system behind it")
        if self.uses_gold != self.host.uses_gold:
            raise ConfigError(
                f"memory.uses_gold={self.uses_gold} but that of the host {self.host.name} is {self.host.uses_gold}; "
                "set memory.uses_gold to the same"
            )
        self._check_calibration()

    def _check_calibration(self) -> None:
        known = self.calibration
        if known is None:
            return
        missing = [key for key in ("tau_noop", *CALIBRATED_FOR) if key not in known]
        if missing:
            raise ConfigError(f"memory.calibration lacks {', '.join(missing)}; write it with {_SCRIPT}, or give null")
        for key in CALIBRATED_FOR[1:]:
            if getattr(self, key) != known[key]:
                raise ConfigError(
                    f"memory.{key}={getattr(self, key)} but tau_noop was calibrated with {known[key]}; calibrate again "
                    f"with {_SCRIPT}, or set memory.calibration to null"
                )
        if self.tau_noop != known["tau_noop"]:
            raise ConfigError(
                f"memory.tau_noop={self.tau_noop} but the calibration gave {known['tau_noop']}; set memory.calibration "
                "to null for a value of your own"
            )

    @property
    def rule(self) -> GateRule:
        """When a unit is dropped."""
        return GateRule(self.tau_noop, self.min_scope, KappaRule(self.kappa_cap, self.kappa_floor))

    def check_assets(self) -> None:
        """Check what the host needs; see :class:`memsys.protocol.NeedsAssets`."""
        if isinstance(self.host, NeedsAssets):
            self.host.check_assets()

    @property
    def answers(self) -> bool:
        """Whether the host answers questions itself; see :class:`memsys.protocol.MayAnswer`."""
        return isinstance(self.host, MayAnswer) and self.host.answers

    @property
    def counts_tokens(self) -> bool:
        """Whether the host counts tokens; see :class:`memsys.protocol.CountsTokens`."""
        return isinstance(self.host, CountsTokens) and self.host.counts_tokens

    def check_embedder(self, embedder: str) -> None:
        """Check that the threshold was calibrated with the embedder of this name, if with any.

        Raises:
            ConfigError: it was calibrated with another.
        """
        known = None if self.calibration is None else self.calibration["embedder"]
        if known is not None and known != embedder:
            raise ConfigError(
                f"memory.tau_noop={self.tau_noop} was calibrated with the embedder {known}, this run's is "
                f"{embedder}; calibrate again with {_SCRIPT}"
            )


def gate_format(turn_format: TurnFormat, text: UnitText) -> TurnFormat:
    """Return how the gate writes a turn: as the run does, or without the speaker. Captions are the run's."""
    return turn_format if text == "rendered" else replace(turn_format, style="bare")


def check_kappa(cap: float | None, floor: float) -> None:
    """Check the bounds of kappa.

    Raises:
        ConfigError: the floor is not above 0, or the cap below the floor.
    """
    if isinstance(floor, bool) or not isinstance(floor, int | float) or floor <= 0:
        raise ConfigError(f"memory.kappa_floor={floor!r} must be a number above 0")
    if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int | float) or cap < floor):
        raise ConfigError(f"memory.kappa_cap={cap!r} must be null or a number, at least kappa_floor={floor}")
