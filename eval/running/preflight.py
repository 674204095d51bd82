"""Requirements checked before a run starts: a backbone for a memory that asks one, its key, the file of its model."""

from baselines.external.config import ExternalConfig, ObjectConfig
from eval.loaders.contract import LoadedData
from eval.loaders.shapes import shape_of
from eval.running.plan import Plan
from eval.running.roles import role_names
from memsys.call_model import PlansCalls
from memsys.errors import ConfigError
from memsys.llm.engines.contract import ChecksStart
from memsys.llm.none import no_backbone
from memsys.protocol import CountsTokens


def check_memory_has_model(plan: Plan, data: LoadedData) -> None:
    """Refuse a memory that asks a language model in a run that has none.

    What it expects to ask decides; of a memory that does not say, whether its settings have roles.

    Raises:
        ConfigError: it would ask one.
    """
    if plan.backbone is not None:
        return
    memory = plan.memory
    if isinstance(memory, ExternalConfig) and memory.lends:
        raise _without_models(memory)
    if isinstance(memory, CountsTokens) and memory.counts_tokens:
        raise no_backbone(memory.name, "counts tokens with the backbone's tokenizer")
    expected = memory.expected_calls(shape_of(plan.dataset, data)) if isinstance(memory, PlansCalls) else None
    if expected is None:
        roles = sorted(role_names(plan.settings["memory"]))
    else:
        roles = list(dict.fromkeys(calls.role for calls in expected if calls.calls > 0))
    if roles:
        raise no_backbone(
            memory.name, f"calls the backbone ({'role' if len(roles) == 1 else 'roles'} {', '.join(roles)})"
        )


def _without_models(memory: ExternalConfig) -> ConfigError:
    """Return the error of a memory from outside that asks a model, in the words of Python where an object was given."""
    asks = f"asks a model ({'its parameter ' if isinstance(memory, ObjectConfig) else ''}{memory.asks_by})"
    if isinstance(memory, ObjectConfig) and memory.given is not None:
        return ConfigError(
            f'{memory.name} {asks}: pass backbone="qwen25_coder_05b", another preset, or memsys.endpoint(URL, MODEL)'
        )
    return ConfigError(
        f"memory={memory.name} {asks}, and mode=retrieval_only has none: leave that out; "
        "backbone=NAME chooses the model"
    )


def check_backbones(plan: Plan) -> None:
    """Refuse backbones that could not start, as far as that is known without starting them.

    A server that jobs share has its key and its files where it runs.

    Raises:
        AssetError: the file of a model is missing.
        ConfigError: a key is missing.
    """
    here = (None if plan.serving.shared else plan.backbone, plan.second)
    for backbone in here:
        if backbone is not None and isinstance(backbone.engine, ChecksStart):
            backbone.engine.check_start()
