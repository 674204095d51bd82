"""Settings of parity runs: ``eval/parity/released/NAME.yaml``, one file per released code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.config.presets import find_preset, make_preset, preset_names
from eval.parity.agent_messages import message_tokens
from eval.parity.corrupt_replies import KeptTypes
from eval.parity.endpoint import word_tokens
from eval.parity.fake_replies import Topics
from eval.parity.released_settings import ReleasedSetting
from eval.parity.replies import PHRASE_ROLES
from eval.parity.stores import STORES
from memsys.errors import ConfigError
from memsys.prompt_packs.catalogue import Pack, find_packs
from memsys.prompt_packs.sources import SourceFile

FOLDER = Path(__file__).parent / "released"
BACKBONE = Path(__file__).parent / "backbone.yaml"
#: How tokens are counted: words, or what messages of MemGPT's queue say in either prompt set.
TOKENS: Mapping[str, Callable[[str], int]] = {"words": word_tokens, "messages": message_tokens}


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A released code.

    Attributes:
        system: its name here, as its presets' ``_target_`` has it.
        pack: prompt pack that names its files by repository, commit, path and sha256.
        files: module of the released code -> key of its file in the pack, or repository, commit, path and sha256 of one
            that the pack does not have; in the order of their imports. ``a.b`` is written as ``a/b.py``.
        package: folder in ``baselines/packages`` that holds its worker.
        environment: folder there with the requirements, and in ``.venv-packages`` with the environment.
        store: how our memory's state is written for the comparison (:data:`eval.parity.stores.STORES`).
        settings: names of our settings, and where the release has its own (:class:`ReleasedSetting`).
        overrides: of our run.
        release: repository and commit of the files that name none.
        phrases: role -> texts that its prompts hold, ours or theirs, where no schema of a reply tells the role.
        kept_types: role -> field -> types that its value does not become in spoiled replies, as the release stops there
            or what it does cannot be compared (:mod:`eval.parity.corrupt_replies`).
        texts: file of ours with texts that the worker is told.
        tokens: what the server of both sides counts as tokens (:data:`TOKENS`).
    """

    system: str
    pack: str
    files: Mapping[str, str | Mapping[str, str]]
    package: str
    environment: str
    store: str
    settings: Mapping[str, Mapping[str, Any]]
    overrides: Sequence[str] = field(default_factory=tuple)
    release: Mapping[str, str] = field(default_factory=dict)
    phrases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept_types: Mapping[str, KeptTypes] = field(default_factory=dict)
    tokens: str = "words"
    texts: str = ""

    def __post_init__(self) -> None:
        if self.tokens not in TOKENS:
            raise ConfigError(
                f"eval/parity/released: tokens={self.tokens!r} is unknown; choose one of {', '.join(TOKENS)}"
            )
        if self.store not in STORES:
            raise ConfigError(
                f"eval/parity/released: store={self.store!r} is unknown; choose one of {', '.join(STORES)}"
            )
        unknown = [role for role in self.phrases if role not in PHRASE_ROLES]
        if unknown:
            raise ConfigError(
                f"eval/parity/released: phrases: {', '.join(unknown)}: choose from {', '.join(PHRASE_ROLES)}"
            )

    @property
    def released(self) -> dict[str, ReleasedSetting]:
        """Places of the release's own values, by the names of our settings.

        Raises:
            ConfigError: an entry has an unknown key, or lacks one.
        """
        try:
            return {name: ReleasedSetting(**given) for name, given in self.settings.items()}
        except TypeError as error:
            raise ConfigError(f"eval/parity/released: settings of {self.system}: {error}") from error

    def find_pack(self, root: Path) -> Pack:
        """Return the pack that names its files.

        Raises:
            ConfigError: there is no such name.
        """
        packs = {pack.name: pack for pack in find_packs(root)}
        if self.pack not in packs:
            raise ConfigError(f"eval/parity/released: pack={self.pack!r} is unknown; choose one of {', '.join(packs)}")
        return packs[self.pack]

    def sources(self, pack: Pack) -> dict[str, SourceFile]:
        """Return the files of the released code by module.

        Raises:
            ConfigError: the pack does not name one.
        """
        return {module: self._source(pack, given) for module, given in self.files.items()}

    def _source(self, pack: Pack, given: str | Mapping[str, str]) -> SourceFile:
        if not isinstance(given, str):
            return SourceFile(**{**self.release, **given})
        source = pack.sources.get(given)
        if not isinstance(source, SourceFile):
            raise ConfigError(f"eval/parity/released: {given} is not a file of code in the pack {pack.name}")
        return source


@dataclass(frozen=True, slots=True)
class BackboneSettings:
    """``backbone.yaml``: words of the replies, and overrides of our run."""

    topics: Mapping[str, object]
    overrides: Sequence[str]

    @property
    def words(self) -> Topics:
        """Words of the replies."""
        given = self.topics
        tags = given["tags"]
        assert isinstance(tags, list)
        return Topics(tuple(tags), str(given["unknown_action"]), str(given["unknown_cluster"]))


def counterparts() -> tuple[str, ...]:
    """Return the names of the released codes with a worker."""
    return preset_names(FOLDER)


def find_counterpart(name: str) -> Counterpart:
    """Read the file of a released code.

    Raises:
        ConfigError: there is no such name, or it is wrong.
    """
    if name not in counterparts():
        raise ConfigError(f"against={name!r} is unknown; choose one of {', '.join(counterparts())}")
    return make_preset(Counterpart, find_preset(name, FOLDER, "against"))


def backbone_settings() -> BackboneSettings:
    """Read the settings of the deterministic backbone."""
    return make_preset(BackboneSettings, BACKBONE)


def name_of(override: str) -> str:
    """Return the setting that an override names."""
    return override.partition("=")[0].strip("'\"").lstrip("+")
