"""Stage II: uncertainty from log-probabilities, and the two gates, step by step."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.episodes.nodes import Episode, Message
from memsys.errors import ConfigError
from memsys.vocabulary import Completion, TokenLogprob
from memsys.xmemory.gate import Admission, Gate
from memsys.xmemory.roles import make_roles
from memsys.xmemory.rules import GateRules
from memsys.xmemory.uncertainty import Coarse, UncertaintyProbe, answer_tokens, estimate
from tests.support.fakes import FakeModel
from tests.support.xmemory import ProbedModel, preset, sensible

COARSE = Coarse("Who sails?", ("On boats.",), ("Ann sails.", "Ben does not."))
ROLES = make_roles(preset().roles, "nll", "direct")
OFFICIAL = preset("xmemory_code").gate_rules
STRICT = preset("xmemory").gate_rules


def tokens(*pairs: tuple[str, float]) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(word, logprob) for word, logprob in pairs)


def episodes(count: int) -> list[Episode]:
    return [
        Episode(f"e{n}", f"T{n}", f"story{n}", "", (Message(f"D1:{n}", "session_1", f"Ann: raw{n}", ""),))
        for n in range(count)
    ]


def shown(values: Mapping[str, str]) -> tuple[str, ...]:
    """What a probe shows: ``0`` for episode 0, ``0*`` where it brings its messages."""
    return tuple(
        f"{n}{'*' if f'raw{n}' in values['episodes'] else ''}"
        for n in range(20)
        if f"story{n}" in values["episodes"].split()
    )


def admit(rules: GateRules, uncertainty: Any, count: int = 12, limit: int = 10) -> tuple[Admission, ProbedModel]:
    """Run a gate; ``uncertainty`` maps what is shown to nats."""
    model = ProbedModel(sensible, lambda values: [uncertainty(shown(values))])
    gate = Gate(rules, UncertaintyProbe(model, ROLES.probe, "nll"))
    return asyncio.run(gate.admit(COARSE, episodes(count), limit)), model


def names(admission: Admission) -> list[str]:
    return [episode.episode_id for episode in admission.admitted]


def alone(gains: Sequence[float]) -> Any:
    """Uncertainty 2 without episodes, 2 minus the episode's gain with it."""
    return lambda seen: 2.0 if not seen else 2.0 - gains[int(seen[-1].rstrip("*"))]


def test_the_mean_negative_log_likelihood_and_the_entropy_by_hand() -> None:
    reply = tokens(("a", math.log(0.5)), ("b", math.log(0.25)))
    assert estimate(reply, "nll") == pytest.approx((math.log(2) + math.log(4)) / 2)
    coin = (TokenLogprob("a", math.log(0.5), {"a": math.log(0.5), "b": math.log(0.5)}),)
    assert estimate(coin, "entropy") == pytest.approx(math.log(2))
    sure = (TokenLogprob("a", 0.0, {"a": 0.0, "b": -9999.0}),)
    assert estimate(sure, "entropy") == pytest.approx(0.0)


@settings(deadline=None)
@given(st.lists(st.floats(-50, 0), min_size=1, max_size=20))
def test_uncertainty_is_finite_and_never_negative(logprobs: list[float]) -> None:
    reply = tuple(TokenLogprob("x", value, {"x": value}) for value in logprobs)
    assert estimate(reply, "nll") == pytest.approx(-sum(logprobs) / len(logprobs))
    assert estimate(reply, "entropy") >= 0


@pytest.mark.parametrize(
    ("listed", "text", "reason", "kept"),
    [
        (["the", " sea", "<eos>"], "the sea", "stop", 2),
        (["the", " sea", ""], "the sea", "stop", 2),
        (["the", " sea"], "the sea", "stop", 2),
        (["the", " sea"], "the sea", "length", 2),
        (["<eos>"], "", "stop", 1),
        (["a", "</think>", "b"], "a</think>b", "length", 1),
        ([], "", "stop", 0),
    ],
)
def test_which_tokens_count(listed: list[str], text: str, reason: str, kept: int) -> None:
    reply = Completion(text, 1, len(listed), 0.0, reason, tokens(*((word, -1.0) for word in listed)))
    assert len(answer_tokens(reply)) == kept


def test_a_probe_shows_themes_facts_and_episodes_and_passes_no_chat_template() -> None:
    model = ProbedModel(sensible)
    probe = UncertaintyProbe(model, ROLES.probe, "nll")
    assert asyncio.run(probe.uncertainty(COARSE, episodes(2), raw=frozenset({"e1"}))) == 1.0
    prompt = model.prompts[0]
    assert "- On boats." in prompt and "- Ann sails.\n- Ben does not." in prompt
    assert "- story0\n- story1\nAnn: raw1" in prompt and "raw0" not in prompt
    assert prompt.rstrip().endswith("Question: Who sails?\nAnswer:")
    asyncio.run(probe.uncertainty(COARSE, []))
    assert "EPISODES\n(none)" in model.prompts[1]
    assert [key.partition(":")[2] for _, key in model.calls] == ["e0+e1*", "none"]
    role = ROLES.probe
    assert role.raw and role.schema is None and (role.temperature, role.max_tokens, role.top_logprobs) == (0.0, 20, 1)


def test_a_backbone_without_log_probabilities_is_refused_by_name() -> None:
    probe = UncertaintyProbe(FakeModel(lambda role, values, key: "the sea"), ROLES.probe, "nll")
    with pytest.raises(ConfigError, match=r"log-probabilities.*xmemory_repsel"):
        asyncio.run(probe.uncertainty(COARSE, []))


def test_official_admits_what_raises_uncertainty_by_less_than_the_threshold() -> None:
    gains = [-0.39, 0.1, 0.26, -0.2]
    admission, model = admit(OFFICIAL, alone(gains), count=4)
    assert names(admission) == ["e0", "e1", "e2", "e3"]
    assert admission.expanded == ["e2"], "only a gain above .25 expands"
    assert [probe["gain"] for probe in admission.probes] == pytest.approx(gains)
    assert [len(shown_now) for shown_now in map(lambda call: call[1].split(":")[1].split("+"), model.calls)] == [1] * 5
    assert admission.before == 2.0


def test_official_stops_at_one_miss_among_the_first_three_and_at_two_among_ten() -> None:
    early, model = admit(OFFICIAL, alone([0.0, -0.41, 0.5] + [0.5] * 9))
    assert (names(early), model.count("probe")) == (["e0"], 3)
    late, model = admit(OFFICIAL, alone([0, 0, 0, -0.5, 0, -0.5, 0, 0, 0, 0, 0, 0]))
    assert (names(late), model.count("probe")) == (["e0", "e1", "e2", "e4"], 7)


def test_official_takes_at_most_the_limit_and_never_nothing() -> None:
    assert names(admit(OFFICIAL, alone([0.0] * 12), limit=4)[0]) == ["e0", "e1", "e2", "e3"]
    assert len(names(admit(OFFICIAL, alone([0.0] * 12))[0])) == 10, "ten probes"
    worse, model = admit(OFFICIAL, alone([-1.0] * 12))
    assert (names(worse), worse.expanded, model.count("probe")) == (["e0"], [], 2)


def test_probes_sent_at_once_give_the_same_result_for_more_tokens() -> None:
    gains = [0.0, 0.3, 0.0, -0.5, 0.0, -0.5] + [0.0] * 6
    one_by_one, few = admit(OFFICIAL, alone(gains))
    at_once, many = admit(replace(OFFICIAL, speculative=True), alone(gains))
    assert one_by_one == at_once
    assert (few.count("probe"), many.count("probe")) == (7, 11)


def test_strict_builds_on_what_is_admitted_and_asks_again_for_the_messages() -> None:
    table = {
        (): 2.0,
        ("0",): 1.5,  # gain .5: admitted
        ("0*",): 1.4,  # messages gain .1 more: expanded
        ("0*", "1"): 1.6,  # worse than 1.4: a miss
        ("0*", "2"): 1.3,
        ("0*", "2*"): 1.35,  # admitted, not expanded
        ("0*", "2", "3"): 1.3,  # no gain is a miss
    }
    rules = replace(STRICT, early=[[10, 2]])
    admission, model = admit(rules, lambda seen: table[seen])
    assert (names(admission), admission.expanded) == (["e0", "e2"], ["e0"])
    assert [probe["gain"] for probe in admission.probes] == pytest.approx([0.5, -0.2, 0.1, 0.0])
    assert [probe.get("raw_gain") for probe in admission.probes] == [
        pytest.approx(0.1),
        None,
        pytest.approx(-0.05),
        None,
    ]
    assert model.count("probe") == 7, "stopped after two misses"


def test_strict_stops_early_and_falls_back_on_the_best_ranked() -> None:
    admission, model = admit(STRICT, lambda seen: 2.0)
    assert (names(admission), admission.expanded, model.count("probe")) == (["e0"], [], 2)


@settings(deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=12, max_size=12), st.sampled_from(["official", "strict"]), st.integers(1, 12)
)
def test_either_gate_admits_a_distinct_few_and_expands_only_those(gains: list[float], mode: str, limit: int) -> None:
    rules = OFFICIAL if mode == "official" else STRICT
    admission, model = admit(rules, lambda seen: 3.0 - sum(gains[int(name.rstrip("*"))] for name in seen), limit=limit)
    assert 1 <= len(names(admission)) <= min(limit, 10)
    assert len(set(names(admission))) == len(names(admission))
    assert set(admission.expanded) <= set(names(admission))
    assert model.count("probe") <= 21
    if mode == "strict":
        lowered = [probe["gain"] > 0 for probe in admission.probes]
        assert sum(lowered) == len(names(admission)) or names(admission) == ["e0"]


@pytest.mark.parametrize("rules", [replace(OFFICIAL, silent=None), STRICT])
@pytest.mark.parametrize("empty", [(), ("0",), ("1",)])
def test_a_probe_without_a_token_skips_the_gate_of_this_question(rules: GateRules, empty: tuple[str, ...]) -> None:
    model = ProbedModel(sensible, lambda values: [] if shown(values)[-1:] == empty[-1:] else [2.0 - len(shown(values))])
    gate = Gate(rules, UncertaintyProbe(model, ROLES.probe, "nll"))
    admission = asyncio.run(gate.admit(COARSE, episodes(5), 3))
    assert (names(admission), admission.expanded, admission.fallback) == (["e0", "e1", "e2"], [], "probe:empty")


@pytest.mark.parametrize("speculative", [False, True])
def test_a_probe_without_a_token_may_count_as_unsure(speculative: bool) -> None:
    model = ProbedModel(sensible, lambda values: [] if shown(values) == ("1",) else [2.0])
    rules = replace(OFFICIAL, silent=5.0, speculative=speculative, early=[])
    admission = asyncio.run(Gate(rules, UncertaintyProbe(model, ROLES.probe, "nll")).admit(COARSE, episodes(3), 3))
    assert (names(admission), admission.fallback) == (["e0", "e2"], None)
    assert [probe["gain"] for probe in admission.probes] == [0.0, -3.0, 0.0]


def test_blank_themes_are_not_shown() -> None:
    model = ProbedModel(sensible, lambda values: [1.0 if "- \n" in f"{values['themes']}\n" else 2.0])
    probe = UncertaintyProbe(model, ROLES.probe, "nll")
    assert asyncio.run(probe.uncertainty(Coarse("Who?", ("", "On boats."), ("Ann sails.",)), [])) == 2.0


def test_without_a_gate_nothing_is_asked() -> None:
    admission, model = admit(replace(STRICT, mode="off"), alone([]), limit=3)
    assert (names(admission), model.calls) == (["e0", "e1", "e2"], [])
    nothing, model = admit(STRICT, alone([]), count=0)
    assert (names(nothing), model.calls) == ([], [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "soft"}, "memory.gate.mode"),
        ({"tau_admit": -0.1}, "at least 0"),
        ({"speculative": True}, "mode=official"),
        ({"early": [[3]]}, "pairs"),
        ({"early": [3, 1]}, "pairs"),
        ({"early": [["three", 1]]}, "pairs"),
        ({"early": 3}, "pairs"),
        ({"probes": 0}, "memory.gate.probes"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(STRICT, **changes)
