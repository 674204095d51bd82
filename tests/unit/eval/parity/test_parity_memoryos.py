"""Parity with MemoryOS's released evaluation, without that code: the worker on stand-ins, replies, store, rules."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eval.parity.compare import FoundDifference
from eval.parity.config import backbone_settings, find_counterpart
from eval.parity.explain import explain
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, read_request
from eval.parity.rules import passes
from eval.parity.stores import memoryos_store
from memsys.assets.paths import ROOT
from memsys.deviations import read_deviations
from tests.support.released import StandIn

CODE = find_counterpart("authors_memoryos")
WORDS = backbone_settings().words
BACKBONE = DeterministicBackbone(KnownTexts([]), WORDS, phrases=CODE.phrases)

#: In place of the authors' files: the names that the worker uses, and imports of what it replaces.
FILES = {
    "utils": """
import time, uuid
from sentence_transformers import SentenceTransformer
gpt_client = "none"

def get_timestamp():
    raise RuntimeError("the clock")

def generate_id(prefix):
    return f"{prefix}_{uuid.uuid4().hex[:8]}"

def ask(text):
    said = gpt_client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
    return said.choices[0].message.content

def get_embedding(text):
    return SentenceTransformer("any").encode([text], convert_to_numpy=True)[0]
""",
    "short_term_memory": """
class ShortTermMemory:
    def __init__(self, max_capacity, file_path):
        self.memory = []

    def save(self):
        raise RuntimeError("saved")

    def get_all(self):
        self.save()
        return self.memory
""",
    "long_term_memory": """
from utils import get_timestamp

class LongTermMemory:
    def __init__(self, file_path):
        self.facts = [{"knowledge": "- a", "timestamp": get_timestamp()}]

    def get_raw_user_profile(self, user_id):
        return f"of {user_id}"

    def get_knowledge(self):
        return self.facts

    def get_assistant_knowledge(self):
        return []
""",
    "mid_term_memory": """
import faiss
import numpy as np
from utils import generate_id, get_embedding

class MidTermMemory:
    def __init__(self, max_capacity, file_path):
        self.sessions = {}

    def write(self, dialogs):
        pages = [
            {"page_id": generate_id("page"), "user_input": said["text"], "agent_response": "yes",
             "timestamp": said["time"], "meta_info": "chain", "analyzed": number == 0}
            for number, said in enumerate(dialogs)
        ]
        self.sessions["s"] = {"summary": "both", "summary_keywords": ["b", "a", "b"], "details": pages[::-1],
                              "L_interaction": 2}

    def nearest(self, query, most):
        pages = sorted(self.sessions["s"]["details"], key=lambda page: page["page_id"])
        index = faiss.IndexFlatIP(8)
        index.add(np.array([get_embedding(page["user_input"]) for page in pages]))
        return [pages[place] for place in index.search(np.array([get_embedding(query)]), most)[1][0]]
""",
    "dynamic_update": "",
    "retrieval_and_answer": """
class RetrievalAndAnswer:
    def __init__(self, short, mid, long):
        self.mid, self.queue_capacity = mid, 10

    def retrieve(self, query, segment_threshold, page_threshold, knowledge_threshold, client):
        assert {segment_threshold, page_threshold, knowledge_threshold} == {0.1}
        return {"retrieval_queue": self.mid.nearest(query, self.queue_capacity), "long_term_knowledge": []}
""",
    "main_loco_parse": """
import json
import tiktoken
from long_term_memory import LongTermMemory
from mid_term_memory import MidTermMemory
from retrieval_and_answer import RetrievalAndAnswer
from short_term_memory import ShortTermMemory
from utils import ask
H_THRESHOLD = 5.0
client = "client"

def generate_system_response_with_meta(query, short, long, queue, facts, client, sample, speaker_a, speaker_b, meta):
    known = f"【Assistant Knowledge】\\n- {len(short.get_all())}\\n"
    system = f"{speaker_b}, traits and knowledge:\\n{known}Any content referring to"
    prompt = f"<MEMORY>\\n{[page['user_input'] for page in queue]}\\nthe question is: {query} of {speaker_a}"
    return query.upper(), system, prompt

def main():
    said = json.load(open("locomo10.json"))[0]
    assert H_THRESHOLD == 2.0 and said["qa"] == []
    talk = said["conversation"]
    short, mid, long = ShortTermMemory(1, "s"), MidTermMemory(2000, "m"), LongTermMemory("l")
    RetrievalAndAnswer(short, mid, long)
    ask("Profile Merge Task")
    mid.write([{"text": turn["text"], "time": talk["session_s_date_time"]} for turn in talk["session_s"]])
""",
}


def test_the_worker_drives_the_released_main_and_its_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = StandIn("authors_memoryos", FILES, BACKBONE)
    result = stand_in.run(tmp_path, monkeypatch, {"attributes": {"H_THRESHOLD": 2.0}, "retrieve_k": 1})
    assert stand_in.roles() == ["merge_profile"]
    page = {"agent": "yes", "date": "noon", "chain": "chain"}
    assert result.store == {
        "queue": [],
        "pages": [{**page, "user": "t1", "read": True}, {**page, "user": "t2", "read": False}],
        "segments": [{"summary": "both", "keywords": ["a", "b"], "pages": [1, 0], "interactions": 2}],
        "profile": {"profile": {"text": "of conversation"}},
        "user_facts": [{"text": "- a", "date": "2000-01-01 00:00:00"}],
        "agent_facts": [],
    }
    answered = result.answers["q"]
    assert (answered.question, answered.prediction) == ("why?", "WHY?")
    assert re.fullmatch(r"<MEMORY>\n\['t[12]'\]\n\n- 0", answered.context)
    assert answered == Answered("why?", answered.context, "WHY?")


def said(text: str, number: int = 0) -> str:
    return BACKBONE.reply(
        read_request({"messages": [{"role": "user", "content": f"{text} zq{number:06x}"}]}, CODE.phrases)
    )


#: A phrase of the authors' prompts and one of ours, by role.
ASKED = {role: phrases for role, phrases in CODE.phrases.items() if role != "reply"}


#: Headings that the authors' prompts ask for, and those of ours.
HEADINGS = {"【User Profile】": "PROFILE:", "【User Data】": "FACTS:", "【Assistant Knowledge】\n": ""}


@pytest.mark.parametrize("role", sorted(ASKED))
def test_both_wordings_of_a_role_get_one_reply_but_for_its_headings(role: str) -> None:
    theirs, ours = ASKED[role]
    headings = {"persona": " 【User Data】", "agent_facts": " 【Assistant Knowledge】"}.get(role, "")
    for number in range(40):
        one, other = said(theirs + headings, number), said(ours, number)
        for mark, plain in HEADINGS.items():
            one = one.replace(mark, plain)
        assert one == other


def test_replies_are_what_the_prompts_ask_for_and_now_and_then_not() -> None:
    replies = {role: [said(phrases[1], number) for number in range(200)] for role, phrases in ASKED.items()}
    assert {"true", "false", "true."} <= set(replies["continues"]) and "" in replies["chain"]
    lists = []
    for text in replies["topics"]:
        try:
            lists.append(json.loads(text))
        except ValueError:
            continue
    assert 150 < len(lists) < 200 and {len(topics) for topics in lists} == {0, 1, 2}
    assert any(topic.get("content") == "" for topics in lists for topic in topics)
    assert any("keywords" not in topic for topics in lists for topic in topics)
    assert any("FACTS:" not in text for text in replies["persona"]) and any("- None" in t for t in replies["persona"])
    assert any(text.count(",") > 2 for text in replies["topic_keywords"]) and "" in replies["topic_keywords"]
    assert {"", "None", "None."} <= set(replies["agent_facts"]) and "None" in replies["merge_profile"]


def test_of_the_system_message_the_marks_are_shown_alone() -> None:
    """The release's answer prompt quotes a question of the data set there, and tells the second speaker's facts."""
    known = KnownTexts(["Who sails?"])
    messages = [{"role": "system", "content": "As in: Who sails? zq000001"}, {"role": "user", "content": "Say it"}]
    shown = known.facts(read_request({"messages": messages}).shown)
    assert (shown.texts, shown.marks) == ((), ("zq000001",))


def test_the_state_of_memoryos_in_the_form_that_is_compared() -> None:
    def page(name: str) -> dict[str, Any]:
        return {"page_id": name, "user": f"u{name}", "agent": "a", "date": "noon", "session_id": "s", "turn_ids": []}

    fact = {"fact_id": "f", "text": "- x", "date": "noon", "turn_ids": []}
    state = {
        "queue": [{"page": page("r")}],
        "pages": [page("p"), page("q")],
        "chain_of": {"p": 1, "q": 1},
        "chains": ["one", "two"],
        "read": ["q"],
        "mid_term": {
            "segments": [{"summary": "s", "keywords": ["b", "a"], "pages": ["q", "q", "p"], "interactions": 3}]
        },
        "long_term": {"profile": "kind", "user": {"facts": [fact]}, "agent": {"facts": []}},
    }
    shown = {"agent": "a", "date": "noon"}
    expected = {
        "queue": [{**shown, "user": "ur"}],
        "pages": [
            {**shown, "user": "up", "chain": "two", "read": False},
            {**shown, "user": "uq", "chain": "two", "read": True},
        ],
        "segments": [{"summary": "s", "keywords": ["a", "b"], "pages": [1, 1, 0], "interactions": 3}],
        "profile": {"profile": {"text": "kind"}},
        "user_facts": [{"text": "- x", "date": "noon"}],
        "agent_facts": [],
    }
    assert memoryos_store(state) == expected
    released = {"chain_starts": [0], "chain_pages": ["p", "q"]}
    assert memoryos_store({**state, **released}) == expected


def test_lines_of_a_context_stand_in_the_other_whatever_stands_around_them() -> None:
    ours = "Earlier pieces:\n[noon]\nhi\nyes (no)\n(about: alpha\nbeta)\n\nFacts:\n- - sail\n- yacht (said on noon)"
    theirs = "<MEMORY>\nAnn: hi\nBob: yes (no)\nTime:(noon)\noverview:(alpha\nbeta)\n- sail\n- yacht"
    assert passes("lines_shown", "q", ours, theirs)
    for change in ("Ann: hi", "yes", "noon", "alpha", "yacht"):
        assert not passes("lines_shown", "q", ours, theirs.replace(change, "z"))


def test_a_context_that_lacks_memories_has_not_another_layout() -> None:
    assert not passes("lines_shown", "q", "", "anything") and not passes("lines_shown", "q", "Facts:\n\n", "- sail")
    ours, theirs = "Facts:\n- zq000001 sail", "<MEMORY>\n- zq000001 sail"
    assert passes("lines_shown", "q", ours, theirs)
    for more in ("zq000001", "zq000002"):
        assert not passes("lines_shown", "q", ours, f"{theirs}\n- {more} yacht")


def test_what_differs_from_the_release_is_explained_by_name_and_nothing_else_is() -> None:
    deviations = read_deviations(ROOT / "baselines" / "memoryos" / "deviations.yaml")
    page = "[system] s\nwords:\nUser: hi\nyou Assiant: yes"

    def explained(*found: FoundDifference, prompts: str = "authors") -> list[str | None]:
        by = [one.deviation for one in explain(found, deviations, "memoryos_code", prompts)]
        return [None if one is None else one.id for one in by]

    assert explained(
        FoundDifference("calls", "topic_keywords 3", "content", None, page, "topic_keywords"),
        FoundDifference("store", "user_facts.0.date", "content", "noon", "2000"),
        FoundDifference("context", "q", "wording", "hi", "Ann: hi"),
        FoundDifference("prompt", "reply 1 q", "wording", "a", "b", "reply"),
    ) == [
        "memoryos_no_keywords_of_pages",
        "memoryos_facts_dated_by_the_conversation",
        "memoryos_own_layout_of_memories",
        "memoryos_shared_reader",
    ]
    chain = FoundDifference("prompt", "chain 1", "wording", "a", "b", "chain")
    assert explained(chain, prompts="ours") == ["memoryos_own_prompt_wording"] and explained(chain) == [None]
    unknown = (
        FoundDifference("calls", "topic_keywords 3", "content", None, "words:\nOften sails", "topic_keywords"),
        FoundDifference("calls", "topic_keywords 3", "content", page, None, "topic_keywords"),
        FoundDifference("calls", "chain 3", "content", None, page, "chain"),
        FoundDifference("store", "pages.0.chain", "content", "a", "b"),
        FoundDifference("store", "segments.0.keywords", "order", ["a", "b"], ["b", "a"]),
        FoundDifference("store", "user_facts.0.text", "wording", "a", "b"),
        FoundDifference("context", "q", "wording", "hi there", "hi"),
        FoundDifference("context", "q", "content", "hi", "hi"),
        FoundDifference("answer", "q", "content", "a", "b"),
        FoundDifference("prompt", "reply 1 q", "content", "a", "b", "reply"),
    )
    assert explained(*unknown) == [None] * len(unknown)
