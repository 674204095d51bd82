"""MemFly's parts against hand-worked values: gates, phrases, keywords, links, pathways, refinement, evidence."""

import asyncio
import itertools
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.errors import ConfigError, DataError
from memsys.llm.contract import Reply
from memsys.llm.gbnf import COMPACT
from memsys.memfly.config import MemflyConfig
from memsys.memfly.counts import strength_bin
from memsys.memfly.evidence import EvidenceWriter
from memsys.memfly.gating import Judgement, decide, gate, merged_context, scores
from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.links import Link, LinkGraph
from memsys.memfly.note import MemFlyNote, RawItem
from memsys.memfly.pathways import Signals, TriPathway
from memsys.memfly.phrases import (
    digits_differ,
    fallback_phrases,
    is_keyword,
    normalised,
    question_keywords,
    turn_keywords,
)
from memsys.memfly.refinement import read_subquery
from memsys.memfly.roles import SCHEMAS, make_roles, update_for
from memsys.memfly.rules import EvidenceRules
from memsys.memfly.store import NoteLayer
from memsys.memfly.topics import Topics
from memsys.memfly.update import read_judgements
from memsys.vocabulary import Completion
from tests.support.composing import PRESETS, composed
from tests.support.fakes import FakeModel
from tests.support.memfly import in_turn, preset, relation, relations, replying, retrieve, told

RULES = preset().rules()
UPDATE, ABLATE = RULES.update, RULES.ablate
UNIT = np.eye(4, dtype=np.float32)
FAMILY = [name for name in PRESETS if name.startswith("memfly")]

#: What each preset changes against ``memfly``.
CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "memfly": {},
    **{f"memfly_no_{field.name}": {"ablate": {field.name: True}} for field in fields(type(ABLATE))},
}


def judged(kind: str, strength: float, candidate: int = 0, text: str = "") -> Judgement:
    return Judgement(candidate, kind, strength, "", text)  # type: ignore[arg-type]


def reply(text: str, value: Any = None) -> Reply:
    return Reply(value, text, Completion(text, 1, 1, 0.0, "stop"), malformed=value is None)


# Presets


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_preset_changes_what_its_name_says(name: str) -> None:
    assert preset(name) == replace(preset(**CHANGES[name]), name=name)


def test_the_paper_preset_holds_table_5() -> None:
    rules = preset().rules()
    assert (rules.update.tau_merge, rules.update.tau_link) == (0.7, 0.5)
    assert (rules.retrieval.k_topic, rules.retrieval.k_keyword, rules.retrieval.k_final) == (3, 10, 20)
    assert rules.ier.max_rounds == 3
    assert not any(composed("memfly")["ablate"].values())


def test_the_small_preset_bounds_replies_alone() -> None:
    small, paper = preset("memfly_small").rules(), preset().rules()
    assert replace(small.candidates, shown_chars=2000) == paper.candidates
    assert small.evidence == paper.evidence
    assert (small.ablate, small.ingest, small.update, small.topics) == (
        paper.ablate, paper.ingest, paper.update, paper.topics,
    )  # fmt: skip
    assert (small.retrieval, small.ier) == (paper.retrieval, paper.ier)


@pytest.mark.parametrize(
    ("group", "key", "value"),
    [
        ("update", "tau_merge", 1.2),
        ("update", "tau_link", "high"),
        ("update", "constrain_ids", 1),
        ("update", "without_merge", "drop"),
        ("candidates", "kept", 0),
        ("ingest", "reuse_cosine", -0.1),
        ("topics", "max_keywords", 2),
        ("topics", "every_notes", 0),
        ("retrieval", "k_topic", 0),
        ("retrieval", "k_final", 2.5),
        ("topics", "every_notes", 1e2),
        ("ier", "max_rounds", 0),
        ("ier", "conf_stop", 2),
        ("evidence", "order", "random"),
        ("evidence", "max_tokens", 0),
        ("ablate", "merge", "yes"),
        ("ablate", "everything", True),
        ("roles", "router", {}),
    ],
)
def test_a_wrong_setting_is_named(group: str, key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        preset(**{group: {key: value}})


def test_without_either_index_the_ablation_has_to_be_named() -> None:
    preset(candidates={"dense": 0})
    with pytest.raises(ConfigError, match=r"memory\.ablate\.update=true"):
        preset(candidates={"dense": 0, "sparse": 0})


def test_gold_is_never_seen() -> None:
    with pytest.raises(ConfigError, match="uses_gold"):
        preset(uses_gold=True)
    with pytest.raises(ConfigError, match=r"memory\.roles: .* needed"):
        MemflyConfig(**{**{f.name: getattr(preset(), f.name) for f in fields(MemflyConfig)}, "roles": {}})


def test_the_prompt_shows_the_printed_thresholds_only_where_told() -> None:
    plain, printed = (make_roles(preset().roles, thresholds=shown).update.prompt for shown in (False, True))
    assert ("0.8" in plain.text, "0.8" in printed.text) == (False, True)
    assert plain.sha256 != printed.sha256


# Gates


@pytest.mark.parametrize(
    ("kind", "strength", "expected"),
    [
        ("SUPPORTS", 0.9, (0.9, 0.0)),
        ("SUPPORTS", 0.7, (0.7, 0.7)),
        ("SUPPORTS", 0.3, (0.3, 0.3)),
        ("RELATED_TO", 0.9, (0.0, 0.9)),
        ("CONFLICTS", 0.9, (0.0, 0.0)),
    ],
)
def test_one_strength_is_read_as_two_scores(kind: Any, strength: float, expected: tuple[float, float]) -> None:
    found = scores(kind, strength, UPDATE)
    assert (found.redundancy, found.complementarity) == expected


def test_a_related_note_merges_only_as_the_printed_prompt_has_it() -> None:
    pair = judged("RELATED_TO", 0.9)
    assert gate(pair, UPDATE, ABLATE) == "link"
    assert gate(pair, replace(UPDATE, related_can_merge=True), ABLATE) == "merge"
    assert gate(judged("CONFLICTS", 0.9), replace(UPDATE, related_can_merge=True), ABLATE) == "conflict"


def test_of_equally_redundant_notes_the_nearest_then_the_oldest_merges() -> None:
    pairs = [judged("SUPPORTS", 0.8, candidate) for candidate in (4, 2, 3)]
    nearest = decide(pairs, {4: 0.1, 2: 0.5, 3: 0.9}, UPDATE, ABLATE)
    assert nearest.merge is not None and nearest.merge.candidate == 3
    oldest = decide(pairs, {4: 0.5, 2: 0.5, 3: 0.5 + 1e-8}, UPDATE, ABLATE)
    assert oldest.merge is not None and oldest.merge.candidate == 2
    assert [pair.candidate for pair, _ in oldest.links] == [4, 3]


judgements = st.lists(
    st.tuples(st.sampled_from(["SUPPORTS", "CONFLICTS", "RELATED_TO"]), st.floats(0, 1)), min_size=1, max_size=5
).map(lambda drawn: [judged(kind, strength, number) for number, (kind, strength) in enumerate(drawn)])


@given(judgements, st.booleans(), st.booleans())
def test_decisions_keep_their_rules(pairs: list[Judgement], no_merge: bool, no_link: bool) -> None:
    ablate = replace(ABLATE, merge=no_merge, link=no_link)
    decision = decide(pairs, {pair.candidate: 0.0 for pair in pairs}, UPDATE, ablate)
    linked = {pair.candidate for pair, _ in decision.links}
    redundant = [pair for pair in pairs if pair.relation == "SUPPORTS" and pair.strength > 0.7]
    assert (decision.merge is None) is (no_merge or not redundant)
    if decision.merge is not None:
        assert decision.merge.candidate not in linked
        assert decision.merge.strength == max(pair.strength for pair in redundant)
    if no_link:
        assert not linked
    else:
        conflicts = {pair.candidate for pair in pairs if pair.relation == "CONFLICTS"}
        strong = {pair.candidate for pair in pairs if pair.strength > 0.5}
        merged = set() if decision.merge is None else {decision.merge.candidate}
        assert linked == (conflicts | strong) - merged


@pytest.mark.parametrize(
    ("old", "new", "proposed", "expected"),
    [
        ("abcd", "x", "ab", ("ab", True)),  # half of the old length is enough
        ("abcd", "x", "a", ("abcd More precisely: x", False)),
        ("abcd", "x", "", ("abcd More precisely: x", False)),
        ("Ann has a Boat", "a boat", "", ("Ann has a Boat", False)),
        ("", "x", " a  b ", ("a b", True)),
    ],
)
def test_merged_contexts(old: str, new: str, proposed: str, expected: tuple[str, bool]) -> None:
    assert merged_context(old, new, proposed, replace(UPDATE, min_merged_share=0.5)) == expected


def test_strengths_are_binned_by_tenths() -> None:
    bins = [strength_bin(value) for value in (0.0, 0.29, 0.3, 0.7, 0.999, 1.0)]
    assert bins == [f"strength.{tenth}" for tenth in ("0.0", "0.2", "0.3", "0.7", "0.9", "0.9")]


# Replies of update


def test_a_reply_is_read_in_candidate_order() -> None:
    value = relations(relation(2, "SUPPORTS", 0.4, "both", "MERGE"), relation(1, "CONFLICTS", -3))
    found = read_judgements(reply("", value), [10, 20, 30])
    assert found.judgements == (
        Judgement(10, "CONFLICTS", 0.0, "APPEND", ""),
        Judgement(20, "SUPPORTS", 0.4, "MERGE", "both"),
    )
    assert found.counts == {"update.entry_missing": 1, "update.strength_clipped": 1}


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {},
        relation(0),
        relation(4),
        {**relation(), "candidate_id": True},
        {**relation(), "candidate_id": 1.5},
        {**relation(), "relation_type": "LIKES"},
        {**relation(), "connection_strength": "0.9"},
        {**relation(), "connection_strength": True},
        {**relation(), "connection_strength": float("nan")},
    ],
)
def test_an_entry_that_cannot_be_used_is_dropped(entry: Any) -> None:
    found = read_judgements(reply("", {"relations": [entry, relation(2, strength=0.6)]}), [7, 8, 9])
    assert [pair.candidate for pair in found.judgements] == [8]
    assert found.counts["update.entry_dropped"] == 1


@given(
    st.text(max_size=80) | st.just('{"relations": [') | st.just('{"relations": [[], null, {"candidate_id": 1e999}]}')
)
def test_any_text_of_update_is_read_without_an_error(text: str) -> None:
    found = read_judgements(reply(text), [0, 1])
    assert (found.judgements, found.counts["fallback.update"]) == ((), 1)


def test_the_schema_of_update_lists_its_candidates_and_keeps_its_bounds() -> None:
    roles = make_roles(preset("memfly_small").roles, thresholds=False)
    role = update_for(roles.update, 2)
    valid = jsonschema.Draft202012Validator(role.schema or {}).is_valid
    assert valid(relations(relation(1), relation(2)))
    assert not valid(relations(relation(1)))  # the prompt asks for one entry per stored note
    assert not valid(relations())
    assert not valid(relations(relation(3)))
    assert not valid(relations(relation(1), relation(2), relation(2)))
    assert not valid(relations(relation(1, text="x" * 81)))
    for schema in (role.schema, *SCHEMAS.values()):
        assert schema is None or COMPACT.grammar(schema)


def test_only_a_setting_bounds_the_entries_of_update_from_below() -> None:
    role = update_for(make_roles(preset("memfly").roles, thresholds=False).update, 2)
    assert role.schema is not None and "minItems" not in role.schema["properties"]["relations"]
    assert jsonschema.Draft202012Validator(role.schema).is_valid(relations())


# Phrases


@pytest.mark.parametrize(
    ("phrase", "key"),
    [
        ("The  Old-Harbour!", "old harbour"),
        ("an apple", "apple"),
        ("the", "the"),
        ("ＦＵＬＬ width", "full width"),
        ("Anna's_boat", "anna s boat"),
        ("Straße", "strasse"),
        ("!?", ""),
    ],
)
def test_canonical_keys(phrase: str, key: str) -> None:
    assert normalised(phrase) == key


@given(st.text(max_size=40))
def test_canonical_keys_are_stable(text: str) -> None:
    key = normalised(text)
    assert normalised(key.upper()) in (key, normalised(key))
    assert key == key.strip() and "  " not in key


def test_what_cannot_be_a_keyword() -> None:
    assert [is_keyword(key, 3) for key in ("", "user", "the of", "one two three four", "boat", "the boat")] == [
        False, False, False, False, True, True,
    ]  # fmt: skip


def test_keywords_of_a_turn() -> None:
    phrases = ["Melanie", "the Boat", "boat", "a  red kite", "you", "Assistant", "one two three four five six seven"]
    assert turn_keywords(phrases, ["Melanie"], "I have a boat", (5, 6)) == ["the Boat", "a red kite"]
    assert turn_keywords(phrases, ["Melanie"], "They call me Melanie", (2, 6)) == ["Melanie", "the Boat"]
    assert turn_keywords(["System"], ["System"], "The nervous system", (5, 6)) == ["System"], "a passage's word"


def test_numbers_tell_phrases_apart() -> None:
    assert digits_differ("route 66", "route 67")
    assert not digits_differ("route 66", "route 66 sign")
    assert not digits_differ("route", "route 67")


def test_phrases_without_a_model() -> None:
    assert fallback_phrases("We saw Caroline Smith and the Eiffel Tower", 4) == ["Caroline Smith", "Eiffel Tower"]
    assert fallback_phrases("we saw a sailing boat", 4) == ["sailing", "boat"]
    assert fallback_phrases("oh no", 4) == []


def test_keywords_of_a_question() -> None:
    assert question_keywords(["Boat", "the boat", "what", "sea"], 6) == ["Boat", "sea"]


# The keyword layer


def layer(reuse: float = 0.9) -> KeywordLayer:
    return KeywordLayer(4, reuse, 5)


def near(cosine: float) -> np.ndarray[Any, Any]:
    return np.array([cosine, np.sqrt(1 - cosine**2), 0, 0], dtype=np.float32)


def test_equal_keys_and_near_vectors_are_one_keyword() -> None:
    keywords = layer()
    assert keywords.link(["Boat"], UNIT[:1]) == [0]
    assert keywords.link(["the boat", "ship"], np.stack([UNIT[3], near(0.95)])) == [0]
    assert keywords.link(["sea"], near(0.89)[None]) == [1]
    assert [keywords.surface(number) for number in range(len(keywords))] == ["Boat", "sea"]


def test_near_phrases_with_other_numbers_stay_apart() -> None:
    keywords = layer()
    keywords.link(["route 66", "road 67"], np.stack([near(1.0), near(0.93)]))
    assert keywords.link(["street 67"], near(1.0)[None]) == [1], "passes 66 over and takes the next"
    assert keywords.link(["street 68"], near(1.0)[None]) == [2]


def note(name: str, *items: str) -> MemFlyNote:
    raw = [RawItem(turn_id, f"text {turn_id}", "1 May") for turn_id in items or (name,)]
    return MemFlyNote(name, raw, f"context {name}", [])


def test_cooccurrence_counts_notes_that_hold_both() -> None:
    keywords = layer()
    keywords.link(["a1", "b1", "c1"], UNIT[:3])
    one, other = note("n0"), note("n1")
    keywords.attach(one, 0, [0, 1])
    keywords.attach(other, 1, [1, 0, 2])
    assert (keywords.together(0, 1), keywords.together(1, 0), keywords.together(0, 2)) == (2, 2, 1)
    assert keywords.attach(one, 0, [1, 2]) == [2], "merging adds the new pairs alone"
    assert (keywords.together(0, 1), keywords.together(0, 2), keywords.together(1, 2)) == (2, 2, 2)
    pairs, weights = keywords.pairs()
    assert (pairs.tolist(), weights.tolist()) == ([[0, 1], [0, 2], [1, 2]], [2.0, 2.0, 2.0])
    assert keywords.notes(0).tolist() == [0, 1]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 7), max_size=5)), max_size=20))
def test_cooccurrence_does_not_depend_on_the_order_of_merges(writes: list[tuple[int, list[int]]]) -> None:
    keywords = KeywordLayer(8, 0.9, 5)
    keywords.link([f"k{n}" for n in range(8)], np.eye(8, dtype=np.float32))
    notes = [note(f"n{n}") for n in range(5)]
    for position, numbers in writes:
        keywords.attach(notes[position], position, numbers)
    wanted: Counter[tuple[int, int]] = Counter()
    for each in notes:
        assert len(set(each.keywords)) == len(each.keywords)
        wanted.update(itertools.combinations(sorted(each.keywords), 2))
    pairs, weights = keywords.pairs()
    assert dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True)) == wanted
    for number in range(8):
        assert sorted(keywords.notes(number)) == [n for n, each in enumerate(notes) if number in each.keywords]
    restored = KeywordLayer(8, 0.9, 5)
    restored.load_state(keywords.state(), [replace(each, keywords=list(each.keywords)) for each in notes])
    assert [part.tolist() for part in restored.pairs()] == [pairs.tolist(), weights.tolist()]


# Links


def test_links_are_followed_both_ways_and_keep_the_stronger() -> None:
    links = LinkGraph()
    links.add(Link(2, 0, 0.6, "RELATED", 2))
    links.add(Link(2, 0, 0.4, "CONFLICT", 3))
    links.add(Link(0, 2, 0.9, "RELATED", 4))
    assert dict(links.neighbours(0)) == {2: 0.9} and dict(links.neighbours(2)) == {0: 0.9}
    assert dict(links.neighbours(2, "stored")) == {0: 0.6} and dict(links.neighbours(0, "stored")) == {2: 0.9}
    assert links.state() == [[2, 0, 0.6, "CONFLICT", 2], [0, 2, 0.9, "RELATED", 4]]
    assert (links.count("CONFLICT"), links.linked_notes(), dict(links.neighbours(7))) == (1, 2, {})
    with pytest.raises(ValueError, match="itself"):
        links.add(Link(1, 1, 0.6, "RELATED", 5))


# Pathways, by hand: four notes, one keyword each (keyword n along axis n), note n along axis n


def graph(**changes: Any) -> TriPathway:
    keywords = KeywordLayer(4, 0.99, 5)
    notes = NoteLayer(4, RULES.candidates, keywords)
    numbers = keywords.link(["k0", "k1", "k2", "k3"], UNIT)
    for position in range(4):
        notes.append(note(f"n{position}"), [numbers[position]], UNIT[position])
    rules = replace(RULES.retrieval, **{"k_topic": 1, "k_keyword": 2, "k_final": 4, "dense_fill": False, **changes})
    return TriPathway(rules, ABLATE, notes, keywords, LinkGraph())


def halves() -> Topics:
    return Topics.of([np.array([0, 1]), np.array([2, 3])], UNIT)


def vector(*parts: float) -> np.ndarray[Any, Any]:
    made = np.array(parts, dtype=np.float32)
    return made / np.float32(np.linalg.norm(made))


def test_the_nearest_topics_notes_are_ranked_by_the_heading() -> None:
    found = graph().by_topic(vector(1, 2, 0, 0), halves())
    assert (found.ranked, found.reached) == ((1, 0), 2)
    assert graph(k_topic=2).by_topic(vector(1, 2, 0, 0), halves()).ranked == (1, 0, 2, 3)
    capped = graph(k_topic=2, list_cap=1).by_topic(vector(1, 2, 0, 0), halves())
    assert (capped.ranked, capped.reached) == ((1,), 4)


def test_of_equally_near_notes_the_one_on_more_topics_comes_first() -> None:
    paths = graph(k_topic=2)
    paths.keywords.attach(paths.notes[3], 3, [0])
    assert paths.by_topic(vector(1, 1, 0, 0), halves()).ranked == (0, 1, 3, 2)


def test_notes_are_ranked_by_the_sum_of_their_best_keyword_cosines() -> None:
    paths = graph()
    paths.keywords.attach(paths.notes[0], 0, [1])
    # Two keywords of the question: (3, 4, 0, 0) / 5 matches k1 and k0; (0, 0, 1, 0) matches k2, then k0 at cosine 0.
    wanted = np.stack([vector(3, 4, 0, 0), UNIT[2]])
    # n0 holds k0 and k1: 0.8 + 0; n1 holds k1: 0.8 + 0; n2 holds k2: 0 + 1
    found = paths.by_keyword(wanted)
    assert (found.ranked, found.reached) == ((2, 0, 1), 3)
    assert paths.by_keyword(np.zeros((0, 4), dtype=np.float32)).ranked == ()


def test_linked_notes_are_ranked_by_anchor_and_strength() -> None:
    paths = graph()
    paths.links.add(Link(2, 0, 0.6, "RELATED", 0))
    paths.links.add(Link(3, 0, 0.9, "RELATED", 0))
    paths.links.add(Link(3, 1, 1.0, "CONFLICT", 0))
    # From n0 (0.5): n2 0.30, n3 0.45. From n1 (0.4): n3 0.40. Anchors are reached from no other anchor.
    assert paths.by_link([(0, 0.5), (1, 0.4)]).ranked == (3, 2)
    assert paths.by_link([(2, 0.5)]).ranked == (0,)
    stored = graph(link_direction="stored")
    stored.links.add(Link(2, 0, 0.6, "RELATED", 0))
    assert stored.by_link([(0, 0.5)]).ranked == (), "n0 is the older one: nothing leads away from it"
    assert stored.by_link([(2, 0.5)]).ranked == (0,)


def test_links_of_so_many_anchors_are_followed_or_of_all() -> None:
    for expand_from, reached in ((1, 1), (2, 2), (None, 2)):
        paths = graph(k_keyword=1, expand_from=expand_from)
        paths.links.add(Link(1, 2, 0.9, "RELATED", 0))
        paths.links.add(Link(3, 0, 0.9, "RELATED", 0))
        # Anchors: n1 (2/61), then n0 (1/62); n2 hangs on the first, n3 on the second.
        pool = paths.search(Signals(UNIT[3], vector(1, 2, 0, 0), UNIT[1:2]), halves())
        assert pool.pathways["neighbour"].reached == reached


def test_rank_one_on_two_pathways_beats_rank_one_on_one() -> None:
    paths = graph(k_keyword=1)
    signals = Signals(UNIT[3], vector(1, 2, 0, 0), UNIT[1:2])
    pool = paths.search(signals, halves())
    # Topics give n1, n0; keywords give n1; no links: n1 2/61, n0 1/62.
    assert [position for position, _ in pool.ranked] == [1, 0]
    assert [score for _, score in pool.ranked] == pytest.approx([2 / 61, 1 / 62])


def test_all_three_pathways_are_fused_by_hand() -> None:
    paths = graph(k_keyword=1)
    paths.links.add(Link(2, 1, 0.6, "RELATED", 0))
    paths.links.add(Link(1, 0, 0.7, "RELATED", 0))
    # Topics: n1, n0. Keywords: n1. Anchors n1 (2/61), n0 (1/62). Links: n0 from n1 at 2/61 * 0.7, n2 at 2/61 * 0.6,
    # n1 from n0 at 1/62 * 0.7. So n1 = 2/61 + 1/63, n0 = 1/62 + 1/61, n2 = 1/62.
    pool = paths.search(Signals(UNIT[3], vector(1, 2, 0, 0), UNIT[1:2]), halves())
    assert [position for position, _ in pool.ranked] == [1, 0, 2]
    assert [score for _, score in pool.ranked] == pytest.approx([2 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 62])
    assert {name: pathway.reached for name, pathway in pool.pathways.items()} == {
        "topic": 2, "keyword": 1, "neighbour": 3,
    }  # fmt: skip


def test_ties_go_to_the_note_nearest_the_question_then_to_the_newer() -> None:
    # n0 leads the topics, n2 the keywords: 1/61 each.
    def first(question: Any) -> list[int]:
        paths = graph(k_keyword=1)
        topics = Topics.of([np.array([0]), np.array([1, 2, 3])], UNIT)
        return [position for position, _ in paths.search(Signals(question, UNIT[0], UNIT[2:3]), topics).ranked]

    assert first(UNIT[0]) == [0, 2]
    assert first(UNIT[2]) == [2, 0]
    assert first(UNIT[3]) == [2, 0]


def test_what_the_pathways_miss_is_filled_with_the_nearest_notes() -> None:
    signals = Signals(vector(0, 0, 1, 2), UNIT[0], UNIT[:1])
    topics = Topics.of([np.array([0]), np.array([1, 2, 3])], UNIT)
    filled = graph(k_keyword=1, k_final=3, dense_fill=True).search(signals, topics)
    assert ([position for position, _ in filled.ranked], filled.filled) == ([0, 3, 2], 2)
    assert [score for _, score in filled.ranked[1:]] == [0.0, 0.0]
    assert graph(k_keyword=1, k_final=3).search(signals, topics).filled == 0


# Refinement


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("None", None),
        ("none.", None),
        ("", None),
        ("\n \n", None),
        ('"None"', None),
        ("Where is Ann?", "Where is Ann?"),
        ("\nSub-question: Where is Ann?\nAnd more", "Where is Ann?"),
        ('Next question: "Where   is Ann?"', "Where is Ann?"),
        ("None of them went?", "None of them went?"),
    ],
)
def test_sub_queries_are_read(text: str, query: str | None) -> None:
    assert read_subquery(text) == query


LACKING = {"sufficient": False, "missing_info": "the harbour", "confidence": 0.2}
ENOUGH = {"sufficient": True, "missing_info": "", "confidence": 0.9}


def refined(model: FakeModel, **ier: Any) -> dict[str, Any]:
    turns = [f"{word} {n}" for n, word in enumerate(["boat sea", "cake oven", "harbour wall", "guitar song"])]
    config = preset(ier=ier, retrieval={"k_final": 1, "dense_fill": False})
    system = told(*turns, model=model, config=config)
    found = retrieve(system, "boat")
    return {**found.trace, "hits": [hit.memory_id for hit in found.hits]}


def test_the_loop_asks_for_what_is_missing_and_adds_it() -> None:
    model = replying(sufficient=in_turn(LACKING, ENOUGH), subquery="harbour?")
    trace = refined(model)
    assert [each["query"] for each in trace["rounds"]] == ["boat", "harbour?"]
    assert (trace["stop"], trace["hits"], trace["first_pool"], trace["checks"]) == (
        "sufficient", ["D1:0", "D1:2"], ["D1:0"], 2,
    )  # fmt: skip
    asked = next(prompt for (role, _), prompt in zip(model.calls, model.prompts, strict=True) if role == "subquery")
    assert "Q: boat\nA: a draft" in asked and "the harbour" in asked


@pytest.mark.parametrize(
    ("replies", "ier", "stop"),
    [
        ({}, {}, "sufficient"),
        ({"sufficient": "perhaps"}, {}, "malformed"),
        ({"sufficient": LACKING, "subquery": "None"}, {}, "no_subquery"),
        ({"sufficient": LACKING, "subquery": "BOAT"}, {}, "repeated_subquery"),
        ({"sufficient": LACKING, "subquery": in_turn("a1?", "a2?", "a3?")}, {}, "max_rounds"),
        ({"sufficient": {**LACKING, "confidence": 0.8}}, {"conf_stop": 0.8}, "confident"),
    ],
)
def test_the_loop_ends_for_a_reason(replies: dict[str, Any], ier: dict[str, Any], stop: str) -> None:
    assert refined(replying(**replies), **ier)["stop"] == stop


def test_the_union_is_ranked_anew_and_cut_or_kept_as_found() -> None:
    def hits(**ier: Any) -> list[str]:
        model = replying(sufficient=in_turn(LACKING, LACKING, ENOUGH), subquery=in_turn("harbour?", "guitar?"))
        found: list[str] = refined(model, **ier)["hits"]
        return found

    assert hits(cap_union=False) == ["D1:0", "D1:2", "D1:3"]
    assert hits()[0] == "D1:0", "one over 61 each: the nearest to the question first"
    assert hits(k_context=2) == hits()[:2]


def test_checks_see_all_that_was_found_or_what_the_reader_would_get() -> None:
    def seen(**ier: Any) -> list[int]:
        model = replying(sufficient=in_turn(LACKING, LACKING, ENOUGH), subquery=in_turn("harbour?", "guitar?"))
        refined(model, k_context=1, **ier)
        drafts = [prompt for (role, _), prompt in zip(model.calls, model.prompts, strict=True) if role == "draft"]
        words = ("boat sea", "harbour wall", "guitar song")
        return [sum(word in prompt for word in words) for prompt in drafts]

    assert seen() == [1, 2, 3]
    assert seen(judged="shown") == [1, 1, 1]


def test_stand_ins_of_the_read_path_are_named() -> None:
    assert refined(replying(intent="what?"))["fallbacks"] == ["intent:malformed"]
    empty = {"topic_desc": " ", "keywords": ["the"]}
    assert refined(replying(intent=empty, draft=""))["fallbacks"] == [
        "intent:no_topic",
        "intent:no_keywords",
        "draft:empty",
    ]
    assert refined(replying(sufficient="well"))["fallbacks"] == ["sufficient:malformed"]


# Evidence


def written(notes: list[MemFlyNote], ranked: list[int], **rules: Any) -> tuple[str, int]:
    keywords = KeywordLayer(4, 0.9, 5)
    stored = NoteLayer(4, RULES.candidates, keywords)
    for position, each in enumerate(notes):
        stored.append(each, [], UNIT[position])
    writer = EvidenceWriter(replying(), EvidenceRules(**{**composed("memfly")["evidence"], **rules}), stored)
    evidence = asyncio.run(writer.write(ranked))
    return evidence.text, evidence.dropped_lines


def test_notes_are_written_in_order_of_time_or_rank() -> None:
    notes = [note("n0"), note("n1")]
    first, second = "[1 May] context n0\n- text n0\n", "[1 May] context n1\n- text n1\n"
    assert written(notes, [1, 0]) == (first + second, 0)
    assert written(notes, [1, 0], order="rank") == (second + first, 0)
    assert written(notes, []) == ("", 0)


def test_a_merged_note_shows_all_its_dates() -> None:
    merged = MemFlyNote("n0", [RawItem("a", "Ann: x", "1 May"), RawItem("b", "Ben: y", "2 May")], "both", [])
    assert written([merged], [0])[0] == "[1 May; 2 May] both\n- (1 May) Ann: x\n- (2 May) Ben: y\n"
    assert merged.turn_ids == ("a", "b")


def test_the_limit_keeps_the_best_lines() -> None:
    notes = [note("n0"), note("n1"), note("n2")]
    # Counted in words: a head has four, a raw line three.
    text, dropped = written(notes, [2, 0, 1], max_tokens=11)
    assert (text, dropped) == ("[1 May] context n0\n[1 May] context n2\n- text n2\n", 3)
    cut, dropped = written(notes, [0], max_tokens=2)
    assert (len(cut.split()), dropped) == (2, 1)
    # Of n0 the raw line is missing, of n1 all.
    keywords = KeywordLayer(4, 0.9, 5)
    stored = NoteLayer(4, RULES.candidates, keywords)
    for position, each in enumerate(notes):
        stored.append(each, [], UNIT[position])
    writer = EvidenceWriter(replying(), EvidenceRules(**{**composed("memfly")["evidence"], "max_tokens": 11}), stored)
    assert asyncio.run(writer.write([2, 0, 1])).whole == {2}


def test_a_window_without_room_is_an_error() -> None:
    with pytest.raises(ConfigError, match="reserve_tokens"):
        written([note("n0")], [0], reserve_tokens=8192)


def test_a_turn_cannot_be_stored_twice() -> None:
    with pytest.raises(DataError, match="D1:0"):
        system = told("boat sea")
        asyncio.run(system.write(unit_of(system), asyncio.run(system.prepare(unit_of(system)))))


def unit_of(system: Any) -> Any:
    from tests.support.memfly import unit

    return unit(0, "guitar song")
