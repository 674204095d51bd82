"""Parity with GAM's released code, without that code: the worker on stand-in files, replies, the store, Lucene."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.gam.lucene import LuceneIndex, kept_length, lucene_words
from eval.parity.compare import FoundDifference
from eval.parity.config import backbone_settings, find_counterpart
from eval.parity.explain import explain
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, read_request
from eval.parity.rules import passes
from eval.parity.stores import gam_store
from memsys.assets.paths import ROOT
from memsys.deviations import read_deviations
from tests.support.released import QUESTION, StandIn

CODE = find_counterpart("authors_gam")
BM25 = {"k1": 0.9, "b": 0.4}
BACKBONE = DeterministicBackbone(KnownTexts([]), backbone_settings().words, phrases=CODE.phrases)

#: In place of the authors' files: the names that the worker uses, and imports of what it leaves out.
FILES = {
    "gam_research.__init__": "",
    "gam_research.retriever.__init__": "",
    "gam_research.retriever.bm25": """
import json
import subprocess
from pathlib import Path
from pyserini.search.lucene import LuceneSearcher

def searcher(texts, folder):
    for name in ("documents", "index"):
        Path(folder, name).mkdir(exist_ok=True)
    rows = [json.dumps({"id": str(place), "contents": text}) for place, text in enumerate(texts)]
    Path(folder, "documents", "documents.jsonl").write_text("\\n".join(rows))
    command = ["python", "-m", "pyserini.index.lucene", "--input", f"{folder}/documents", "--index", f"{folder}/index"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return LuceneSearcher(f"{folder}/index")
""",
    "locomo_test": """
import json
from pathlib import Path
from types import SimpleNamespace
import faiss
import requests
import torch
from FlagEmbedding import FlagAutoModel
from openai import OpenAI
from gam_research.retriever.bm25 import searcher

class InMemoryPageStore:
    def __init__(self, dir_path):
        self.file = Path(dir_path) / "pages.json"

    def load(self):
        return [SimpleNamespace(**page) for page in json.loads(self.file.read_text())]

def process_sample(sample, sample_index, outdir, memory_api_key, memory_base_url, memory_model, research_api_key,
                   research_base_url, research_model, working_api_key, working_base_url, working_model):
    home, said = Path(outdir) / sample["sample_id"], sample["conversation"]
    if not home.exists():
        home.mkdir()
        client = OpenAI(api_key=memory_api_key, base_url=memory_base_url)
        asked = [{"role": "user", "content": "A long record is kept page by page"}]
        abstract = client.chat.completions.create(model=memory_model, messages=asked).choices[0].message.content
        (home / "pages.json").write_text(json.dumps([
            {"header": f"[ABSTRACT] {bool(abstract)} {said['s_date_time']}".strip(),
             "content": f"{chat['speaker']} ({chat['dia_id']}): {chat['text']}"} for chat in said["s"]]))
    texts = [page.content for page in InMemoryPageStore(home).load()]
    encoder, results = FlagAutoModel.from_finetuned("a model", devices="cpu"), []
    rows = encoder.encode_corpus(texts, batch_size=32, max_length=512)
    faiss.normalize_L2(rows)
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    for qa in sample["qa"]:
        if qa["category"] == 5:
            continue
        if qa["question"] == "fail":
            results.append({"error": "lost"})
            continue
        sought = encoder.encode_queries([texts[1]], batch_size=32, max_length=512)
        faiss.normalize_L2(sought)
        scores, places = index.search(sought, 9)
        words = [hit.docid for hit in searcher(texts, home).search("T2's", k=5)]
        results.append({"research_summary": f"{places[0].tolist()} {scores[0][0]:.2f} {words}",
                        "summary_answer": f"{qa['question']} {qa['category']}"})
    return results
""",
}


@pytest.mark.parametrize(("category", "asked"), [(3, 3), (5, 4)])
def test_the_worker_drives_the_released_script(
    category: int, asked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = StandIn("authors_gam", FILES, BACKBONE)
    result = stand_in.run(tmp_path, monkeypatch, BM25, replace(QUESTION, category=category))
    assert stand_in.roles() == ["abstract"]
    assert result.store == {
        "pages": [{"text": f"Ann (D1:{n}): t{n}", "abstract": "True noon"} for n in (1, 2)],
    }
    assert result.answers == {"q": Answered("why?", "[1, 0] 1.00 ['1']", f"why? {asked}")}


def test_a_question_that_the_script_gives_up_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memsys.errors import WorkerError

    with pytest.raises(WorkerError, match="the released script failed: lost"):
        StandIn("authors_gam", FILES, BACKBONE).run(tmp_path, monkeypatch, BM25, replace(QUESTION, text="fail"))


def said(role: str, number: int) -> str:
    message = {"role": "user", "content": f"{CODE.phrases[role][1]} zq{number:06x}"}
    return BACKBONE.reply(read_request({"messages": [message]}, CODE.phrases))


def objects(role: str) -> list[dict[str, object]]:
    """What a role's replies hold, thinking and fences aside."""
    found = []
    for number in range(300):
        text = said(role, number).rpartition("</think>")[2]
        found.append(json.loads(text[text.find("{") : text.rfind("}") + 1]))
    return found


def test_replies_of_its_roles_are_varied_as_those_of_small_models() -> None:
    abstracts = [said("abstract", number) for number in range(300)]
    assert "" in abstracts and len(set(abstracts)) < len(abstracts)
    plans = objects("plan")
    assert {"web", "Keyword"} <= {tool for plan in plans for tool in plan.get("tools", [])}  # type: ignore[attr-defined]
    assert any(len(plan.get("page_index", [])) > 5 for plan in plans)  # type: ignore[arg-type]
    assert {type(one.get("content")) for one in objects("integrate")} == {str, list, int, type(None)}
    assert {True, False, "false", "yes"} <= {one.get("enough") for one in objects("check")}
    assert any(len(one["new_requests"]) > 5 for one in objects("requests"))  # type: ignore[arg-type]
    assert said("reply", 0)


def test_either_wording_of_a_role_gets_the_same_reply() -> None:
    for role, phrases in CODE.phrases.items():
        replies = set()
        for phrase in phrases:
            request = read_request({"messages": [{"role": "user", "content": f"{phrase} zq000001"}]}, CODE.phrases)
            assert request.role == role
            replies.add(BACKBONE.reply(request))
        assert len(replies) == 1


def test_every_file_is_named_with_a_checksum_and_our_prompts_have_their_phrases() -> None:
    sources = CODE.sources(CODE.find_pack(ROOT))
    assert "locomo_test" in sources and "gam_research.agents.research_agent" in sources
    assert {len(source.sha256) for source in sources.values()} == {64}
    assert len({(source.repository, source.commit) for source in sources.values()}) == 1
    for role in ("abstract", "plan", "integrate", "check", "requests"):
        assert CODE.phrases[role][1] in (ROOT / "baselines" / "gam" / "prompts" / f"{role}.txt").read_text()


def test_pages_and_evidence_must_be_the_same_whatever_the_words_around_them() -> None:
    ours, theirs = "Pages:\nPage 0: a\nPage 1: b\n\nAsk.", "MEMORY\nPage 0: a\nPage 1: b\n"
    assert passes("same_pages", "plan 1", ours, theirs)
    assert not passes("same_pages", "plan 1", ours, theirs.replace("1: b", "2: b"))
    one, other = "1. [vector](3) x\ny\n2. [keyword](4) z", "2. [keyword](4) z\n1. [vector](3) x\ny"
    assert passes("same_pages", "integrate 1", one, f"Evidence\n{one}") and not passes("same_pages", "", one, other)
    assert not passes("same_pages", "plan 1", "a", "b")


def test_prompts_without_pages_show_the_same_question_turns_and_findings() -> None:
    rule, ours = "same_question_or_turns", "Check.\n\nQuestion: Who?\n\nCollected facts:\nzq000001 sails\n\nReply."
    theirs = "REQUEST:\nWho?\n\nRESULT:\nzq000001 sails\n\nRULES"
    assert passes(rule, "check 1", ours, theirs)
    for change in ("Who?", "zq000001", "sails"):
        assert not passes(rule, "check 1", ours, theirs.replace(change, "z"))
    assert not passes(rule, "check 1", ours, f"{theirs}\nzq000002")
    ours, theirs = ("\n=== SESSION 0 ===\n\nAnn (D1:1): Hi: you\nBob (D1:2): Yes\n".join(each) for each in ("ab", "cd"))
    assert passes(rule, "abstract 1", ours, theirs)
    for change in ("SESSION 0", "Hi", "Bob", "Bob (D1:2): Yes\n"):
        assert not passes(rule, "abstract 1", ours, theirs.replace(change, ""))
    assert not passes(rule, "abstract 1", "a", "b")


def test_prompts_that_show_other_things_are_not_explained_by_wording() -> None:
    deviations = read_deviations(ROOT / "baselines" / "gam" / "deviations.yaml")
    for role in ("abstract", "plan", "integrate", "check", "requests"):
        found = FoundDifference("prompt", f"{role} 1", "wording", "a", "b", role)
        assert explain([found], deviations, "gam_code", "ours")[0].deviation is None


def test_the_state_of_gam_in_the_form_that_is_compared() -> None:
    state = {"pages": [{"page_id": "D1:1", "text": "x", "abstract": "a", "turn_ids": ["D1:1"]}], "counts": {}}
    assert gam_store(state) == {"pages": [{"text": "x", "abstract": "a"}]}


# Lucene, written twice


def stand_in_for_pyserini() -> ModuleType:
    path = ROOT / "baselines" / "packages" / "authors_gam" / "lucene.py"
    spec = importlib.util.spec_from_file_location("stand_in_for_pyserini", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


THEIRS = stand_in_for_pyserini()
#: Porter's own examples, step by step, and what his program does otherwise than his paper.
PORTERS = (
    "caresses ponies ties caress cats feed agreed plastered bled motoring sing conflated troubled sized hopping tanned "
    "falling hissing fizzed failing filing happy sky relational conditional rational valenci hesitanci digitizer "
    "conformabli radicalli differentli vileli analogousli vietnamization predication operator feudalism decisiveness "
    "hopefulness callousness formaliti sensitiviti sensibiliti triplicate formative formalize electriciti electrical "
    "hopeful goodness revival allowance inference airliner gyroscopic adjustable defensible irritant replacement "
    "adjustment dependent adoption homologou communism activate angulariti homologous effective bowdlerize probate "
    "rate cease controll roll archaeology possibly dying news yes oed s is"
)


def test_words_and_stems_are_the_same_in_both() -> None:
    for text in (PORTERS, "Ann's D1:3 at 10:30, 3.5 or 1,000 re:zero don’t U.S.A. naïve_x (it's THE cat’s)"):
        assert THEIRS.analysed(text) == lucene_words(text)
    assert lucene_words("Ann's (D1:3): it is 3.5, don't") == ["ann", "d1", "3", "3.5", "don't"]


@given(st.text(alphabet="abeiglnosty '.:1", max_size=30))
def test_any_words_are_the_same_in_both(text: str) -> None:
    assert THEIRS.analysed(text) == lucene_words(text)


def test_lengths_are_kept_in_a_byte() -> None:
    assert [kept_length(length) for length in (0, 23, 39, 40, 41, 56, 59, 213)] == [0, 23, 39, 40, 40, 56, 56, 200]
    assert all(THEIRS.byte_length(length) == kept_length(length) for length in range(3000))


def test_scores_are_the_same_in_both(tmp_path: Path) -> None:
    texts = ["boat sea boat", "boat sail", "cake oven " * 29 + "boat", "sea sea sail cake", "boat sea boat"]
    assert kept_length(59) == 56  # so that the third document's length is not the one that is kept
    index = LuceneIndex(0.9, 0.4)
    index.add([str(place) for place in range(len(texts))], texts)
    rows = [json.dumps({"id": str(place), "contents": text}) for place, text in enumerate(texts)]
    (tmp_path / "documents.jsonl").write_text("\n".join(rows))
    searcher = THEIRS.LuceneSearcher(str(tmp_path))
    for query in ("boat", "boats boat cake", "sea sail", "nothing"):
        found = {hit.docid: hit.score for hit in searcher.search(query, 9)}
        expected = {str(place): score for place, score in enumerate(index.scores(query)) if score > 0}
        assert found == pytest.approx(expected)
    assert [hit.docid for hit in searcher.search("boat", 2)] == ["0", "4"]
