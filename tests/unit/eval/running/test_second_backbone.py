"""A second backbone for some of a memory's roles: who is asked, what the record says, what is refused."""

import asyncio
import json
from pathlib import Path

import pytest

from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from eval.running.plan import Plan, identity_of
from eval.runs.load import load_calls
from memsys.errors import ConfigError
from memsys.llm.delegate import DelegatingModel
from tests.support.backbones import role
from tests.support.fakes import FakeModel
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer

CHATS = ("chat_roles=[probe]",)
SECOND = ("+backbone@second=smollm2_135m_vllm", "second_roles=[probe]")


def delegating(main: StubServer, second: StubServer, root: Path, *more: str) -> Plan:
    """xMemory over two questions of the sample; its probes ask the second server."""
    own = [f"second.{text.removeprefix('backbone.')}" for text in attached(second.url) if text.startswith("backbone.")]
    plan = compose_plan([
        "memory=xmemory_small", "embedder=hashing", "dataset.limit_questions=2", "scoring=minilm", "score=false",
        *attached(main.url), *SECOND, *own, f"runs_dir={root}", f"cache_dir={root / 'cache'}", *more,
    ])  # fmt: skip
    assert isinstance(plan, Plan)
    return plan


def test_delegated_roles_ask_the_second_server(tmp_path: Path) -> None:
    with StubServer() as main, StubServer() as second:
        plan = delegating(main, second, tmp_path)
        result = run_experiment(plan)
        assert result.complete
        calls = load_calls(result.path)
        probes = [call for call in calls if call.role == "probe"]
        asked = len(second.state.requests)
        assert probes
        assert asked == len({call.request_hash for call in probes})
        assert len(main.state.requests) == len({call.request_hash for call in calls if call.role != "probe"})
        record = json.loads((result.path / "run.json").read_text())
        assert record["identity"]["second"]["model"] == plan.second.model
        assert set(record["model"]) > {"second"}
        again = run_experiment(delegating(main, second, tmp_path / "again", f"cache_dir={tmp_path / 'cache'}"))
        assert again.complete
        assert len(second.state.requests) == asked, "replies come from the cache"


def test_other_roles_and_the_window_are_the_main_model_s() -> None:
    main, second = FakeModel(lambda *_: "main"), FakeModel(lambda *_: "second")
    second.context_length = 10
    both = DelegatingModel(main, second, ["probe"])

    async def ask(name: str) -> str:
        return (await both.ask(role(name=name, schema=None), {"text": "x"}, key="q")).text

    assert asyncio.run(ask("probe")) == "second"
    assert asyncio.run(ask("answer")) == "main"
    assert both.context_length == main.context_length
    assert asyncio.run(both.count_tokens("three small words")) == asyncio.run(main.count_tokens("three small words"))


def test_without_delegation_a_run_is_called_as_before() -> None:
    plan = compose_plan(["memory=xmemory_small"])
    assert not {"second", "second_roles"} & set(identity_of(plan, ""))
    with_second = compose_plan(["memory=xmemory_small", *SECOND])
    assert {"second", "second_roles"} <= set(identity_of(with_second, ""))


def test_an_experiment_names_roles_for_whichever_memory_has_them() -> None:
    experiment = "+experiment=xmemory_locomo_gpt5_nano"
    plan = compose_plan([experiment])
    assert (plan.second, plan.second_roles) == (None, ())
    plan = compose_plan([experiment, "memory=xmemory"])
    assert (plan.backbone.name, plan.second.name, plan.second_roles) == ("gpt5_nano", "gpt41_mini", ("probe",))
    gated = compose_plan([experiment, "memory=gated", "memory@memory.host=xmemory"])
    assert gated.second_roles == ("probe",)
    assert gated.settings["memory"]["host"]["roles"]["probe"]["raw"] is False


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("second_roles=[probe]",), "second and second_roles belong together"),
        (SECOND[:1], "second and second_roles belong together"),
        ((SECOND[0], "second_roles=[prob]"), "no memory has a role prob; this one's are boundary"),
    ],
)
def test_what_is_refused(overrides: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        compose_plan(["memory=xmemory_small", *overrides])


def test_a_raw_prompt_for_a_backbone_of_chats_is_refused_before_anything_runs() -> None:
    """The probes of xMemory's cells on GPT-5 nano failed after its memory was written and paid for."""
    hosted = ["memory=xmemory", "backbone=gpt4o"]
    with pytest.raises(ConfigError, match=r"memory\.roles\.probe\.raw=true .* backbone gpt4o serves chats alone"):
        compose_plan(hosted)
    with pytest.raises(ConfigError, match=r"second gpt41_mini serves chats alone .*memory\.host\.roles\.probe\.raw"):
        second = ["+backbone@second=gpt41_mini", "second_roles=[probe]"]
        compose_plan(["memory=gated", "memory@memory.host=xmemory", *second])
    assert compose_plan([*hosted, "mode=retrieval_only"]).backbone is None
    with pytest.raises(ConfigError, match=r"backbone\.prompt_mode .* chat, since backbone\.completions=false"):
        compose_plan(["backbone=gpt4o", "backbone.prompt_mode=completion"])


def test_roles_that_are_to_chat_do_and_the_run_is_that_of_the_setting() -> None:
    hosted = ["memory=xmemory", "backbone=gpt4o"]
    listed, typed = compose_plan([*hosted, *CHATS]), compose_plan([*hosted, "memory.roles.probe.raw=false"])
    assert listed.settings["memory"]["roles"]["probe"]["raw"] is False
    assert identity_of(listed, "") == identity_of(typed, "")
    assert compose_plan(["memory=rag", "backbone=gpt4o", *CHATS]).memory.name == "rag"
    with pytest.raises(ConfigError, match="chat_roles: no memory has a role prob"):
        compose_plan([*hosted, "chat_roles=[prob]"])


def test_what_a_server_completes_does_not_enter_the_identity() -> None:
    plans = [compose_plan([f"backbone.completions={on}"]) for on in ("true", "false")]
    assert identity_of(plans[0], "") == identity_of(plans[1], "")
