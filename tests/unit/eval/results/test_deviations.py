"""Deviations of memory systems: one clear error for what is wrong in a file, and who reads them."""

import json
from pathlib import Path

import pytest

from eval.config.recorded_deviations import run_deviations
from eval.export import export_run
from eval.results.papers.deviations import checked, deviations_page, load_deviations, systems
from eval.runs.exports import read_export
from memsys.deviations import Deviation, read_deviations, system_of
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun

ENTRY = {
    "id": "one_change",
    "presets": ["small"],
    "from": "paper",
    "where": "Algorithm 1, line 3",
    "what": "We do this; they do that.",
    "why": "It is better.",
    "option": "memory.k",
    "parity": ["store"],
}


def written(folder: Path, *changes: dict[str, object]) -> Path:
    path = folder / "deviations.yaml"
    path.write_text(json.dumps([{**ENTRY, **change} for change in changes]))
    return path


def presets(folder: Path) -> Path:
    (folder / "memory").mkdir()
    (folder / "memory" / "big.yaml").write_text(
        "_target_: baselines.rag.config.RagConfig\nname: big\nk: 1\nroles: {a: {t: 1}}\n"
    )
    (folder / "memory" / "small.yaml").write_text("defaults: [big, _self_]\nname: small\nfew: 1\n")
    return folder / "memory"


def test_an_entry_is_read_as_it_stands(tmp_path: Path) -> None:
    assert read_deviations(written(tmp_path, {}, {"id": "other", "presets": "all", "option": None})) == (
        Deviation("one_change", ("small",), "paper", "Algorithm 1, line 3", "We do this; they do that.",
                  "It is better.", "memory.k", ("store",)),
        Deviation("other", ("all",), "paper", "Algorithm 1, line 3", "We do this; they do that.",
                  "It is better.", None, ("store",)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, "entry 1 (one_change) has unknown colour; the keys are id, presets, from, where, what"),
        ({"from": "hearsay"}, "from='hearsay'; choose one of paper, release"),
        ({"parity": ["store", "mood"]}, "parity='mood'; choose from prompt, calls, store, context, answer"),
        ({"parity": "store"}, "parity must be a list, not 'store'"),
        ({"presets": []}, "presets is empty; name presets of conf/memory, or all"),
        ({"what": " "}, "what must be a text, not ' '"),
        ({"id": "Two Words"}, "id=Two Words must be words in lower case, joined by underscores"),
        ({"id": 3}, "id must be a text, not 3"),
        ({"option": 3}, "option must be a text, not 3"),
    ],
)
def test_what_is_wrong_in_an_entry_is_one_message(change: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_deviations(written(tmp_path, change))
    assert message in str(caught.value)
    assert "deviations.yaml: entry 1" in str(caught.value)


def test_an_entry_that_lacks_keys_is_told_which(tmp_path: Path) -> None:
    path = tmp_path / "deviations.yaml"
    path.write_text("- {id: x, what: y}\n")
    with pytest.raises(
        ConfigError, match=r"entry 1 \(x\) lacks presets, from, where, why, option, parity; the keys are"
    ):
        read_deviations(path)
    path.write_text("id: x\n")
    with pytest.raises(ConfigError, match="must hold a list of deviations, not dict"):
        read_deviations(path)
    path.write_text("- [")
    with pytest.raises(ConfigError, match="is not YAML"):
        read_deviations(path)
    with pytest.raises(ConfigError, match="does not exist; every memory system states its deviations there"):
        read_deviations(tmp_path / "none.yaml")


def test_an_id_occurs_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="id one_change occurs more than once"):
        read_deviations(written(tmp_path, {}, {}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"presets": ["small", "huge"]}, "one_change: preset huge is unknown; the system's presets are big, small"),
        ({"option": "memory.depth"}, "one_change: option memory.depth is not a setting of these presets"),
        ({"option": "backbone.nothing"}, "option backbone.nothing is not a setting"),
        ({"option": "nowhere.k"}, "option nowhere.k is not a setting"),
        ({"option": "memory.few", "presets": ["big"]}, "option memory.few is not a setting of these presets"),
    ],
)
def test_presets_and_options_must_be_there(change: dict[str, object], message: str, tmp_path: Path) -> None:
    folder, place = presets(tmp_path), written(tmp_path, change)
    with pytest.raises(ConfigError) as caught:
        checked(read_deviations(place), ["big", "small"], place, folder)
    assert message in str(caught.value)


def test_options_of_every_kind_are_found(tmp_path: Path) -> None:
    folder = presets(tmp_path)
    options = (
        "memory.k",
        "memory.roles.a",
        "memory.roles.a.t",
        "backbone.json_repair",
        "backbone.sampling.top_p",
        None,
    )
    place = written(tmp_path, *({"id": f"d{number}", "option": option} for number, option in enumerate(options)))
    assert len(checked(read_deviations(place), ["big", "small"], place, folder)) == 6
    assert systems(folder).keys() == {"rag"}


def test_a_system_is_found_by_its_target() -> None:
    name, place = system_of("baselines.amem.config.AmemConfig")
    assert (name, place.parent.name, place.is_file()) == ("amem", "amem", True)
    name, place = system_of("baselines.full_context.FullContextConfig")
    assert (name, place.name, place.is_file()) == ("full_context", "full_context.deviations.yaml", True)
    assert system_of("json.JSONDecoder")[1].name == "deviations.yaml"
    for target in ("nowhere.at.all.Config", "None"):
        with pytest.raises(ConfigError, match="there is no module"):
            system_of(target)


def test_a_run_names_the_deviations_of_its_preset() -> None:
    def ids(name: str) -> set[str]:
        return {
            one["id"] for one in run_deviations({"_target_": "baselines.amem.config.AmemConfig", "name": name}) or []
        }

    assert "amem_integer_fallback_of_links" in ids("amem_robust") - ids("amem")
    assert "amem_link_cap_per_hit" in ids("amem") - ids("amem_v2")
    assert "amem_own_prompt_wording" in ids("amem") & ids("amem_v1") & ids("amem_robust")
    assert ids("my_own_name") == ids("amem_v1") & ids("amem_robust") & ids("amem")
    assert run_deviations({"_target_": "baselines.references.NoMemoryConfig", "name": "no_memory"}) == []
    assert run_deviations({"_target_": "tests.support.fakes.Anything", "name": "x"}) is None


def test_presets_of_a_release_do_not_name_what_they_follow_it_in() -> None:
    """They read replies, order fields, send the system message and cap links as the released code does."""
    mended = {"malformed_replies_are_retried", "cut_json_is_repaired", "metadata_is_cleaned", "evolve_schema_order",
              "no_system_message", "link_cap_not_k", "robust_focused_keywords", "robust_reading_of_sections",
              "robust_fields_shown"}  # fmt: skip
    for name in ("amem", "amem_v1", "amem_v2", "amem_robust"):
        memory = {"_target_": "baselines.amem.config.AmemConfig", "name": name}
        found = {one["id"] for one in run_deviations(memory) or []} & {f"amem_{each}" for each in mended}
        assert len(found) == (6 if name == "amem" else 0), (name, found)


def test_a_gate_names_its_hosts_deviations_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host = {"_target_": "baselines.amem.config.AmemConfig", "name": "amem"}
    gate = {"_target_": "memsys.gate.config.GatedConfig", "name": "gated_amem", "host": host}
    own = written(tmp_path, {"id": "gate_only", "presets": ["gated"]})
    real = system_of
    monkeypatch.setattr(
        "eval.config.recorded_deviations.system_of", lambda target: ("gate", own) if "gate" in target else real(target)
    )
    found = [one["id"] for one in run_deviations(gate) or []]
    assert found[0] == "gate_only"
    assert found[1:] == [one["id"] for one in run_deviations(host) or []]


def test_the_list_has_every_deviation() -> None:
    loaded = load_deviations()
    text = deviations_page(loaded)
    assert all(f"- **{deviation.id}**: {deviation.what}" in text for one in loaded for deviation in one.deviations)
    assert f"{sum(len(one.deviations) for one in loaded)} deviations of {len(loaded)} memory systems" in text


@pytest.mark.usefixtures("unsigned")
def test_deviations_reach_the_export(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    record = json.loads((path / "run.json").read_text())
    record["departures"] = [{"id": "x", "what": "We do this; they do that."}]
    (path / "run.json").write_text(json.dumps(record))
    kept = read_export(export_run(path, tmp_path / "out")).record
    assert kept["departures"] == record["departures"]
