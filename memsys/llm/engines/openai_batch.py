"""Hosted models whose provider takes batches: answers and verdicts at a lower price, within a day."""

from dataclasses import dataclass
from typing import ClassVar

from memsys.llm.engines.contract import BatchTimes, Engine
from memsys.llm.engines.openai import OpenAIEngine, OpenAIEngineConfig
from memsys.settings import check_minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIBatchEngineConfig(OpenAIEngineConfig):
    """Settings of a hosted model that is asked in batches.

    Attributes:
        quiet_s: seconds without a further request after which a batch is sent.
        poll_s: seconds between two questions whether a batch is done.
    """

    #: Fields that cannot change a reply.
    RUNTIME_FIELDS: ClassVar[frozenset[str]] = OpenAIEngineConfig.RUNTIME_FIELDS | {"quiet_s", "poll_s"}

    quiet_s: float
    poll_s: float

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names key and value.
        """
        OpenAIEngineConfig.__post_init__(self)
        check_minimum(self, "backbone.engine", quiet_s=0, poll_s=0)

    @property
    def batch_times(self) -> BatchTimes:
        """See :class:`~memsys.llm.engines.contract.SendsBatches`."""
        return BatchTimes(self.quiet_s, self.poll_s)

    def build(self) -> Engine:
        """Make the engine."""
        return OpenAIBatchEngine(self)


class OpenAIBatchEngine(OpenAIEngine):
    """The hosted model, whose replies are the same as those that are asked for one by one."""

    def __init__(self, config: OpenAIBatchEngineConfig) -> None:
        super().__init__(config)
        self.batch_times = config.batch_times
