"""Schedule of a run's work."""

from dataclasses import dataclass

from memsys.settings import check_minimum


@dataclass(frozen=True, slots=True)
class Schedule:
    """Settings of the schedule, none of which changes a result.

    Attributes:
        conversations_in_flight: conversations worked on at once; 0 for all.
        questions_in_flight: questions of the whole run worked on at once.
        prepare_ahead: units of a conversation whose ``prepare`` may run before their turn to be written.
        checkpoint_every: units between two memory snapshots, more where saving takes long; 0 for a snapshot at the end
            alone.
        latency: one question at a time, with fresh replies. The memory is written as in any run.
        warmup: questions that are asked twice at the start of a latency run, to warm server and embedder. Their
            seconds are not measured: a server with a cache of prefixes knows their prompts by then.
    """

    conversations_in_flight: int = 0
    questions_in_flight: int = 64
    prepare_ahead: int = 32
    checkpoint_every: int = 100
    latency: bool = False
    warmup: int = 3

    def __post_init__(self) -> None:
        """Refuse what is not a count, and 0 where nothing would ever be asked.

        Raises:
            ConfigError: names the setting.
        """
        check_minimum(self, "schedule", conversations_in_flight=0, questions_in_flight=1)
        check_minimum(self, "schedule", prepare_ahead=0, checkpoint_every=0, warmup=0)
