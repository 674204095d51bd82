"""GAM's released code as a worker: their script for LoCoMo writes a conversation and answers its questions.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    speakers: of the conversation, in the data set's order.
    k1, b: of BM25, Pyserini's defaults.

Replaced are Pyserini, which needs Java (``lucene.py`` has Lucene's words, stems, lengths and scores), FAISS (exact
inner products) and the encoder, BGE-M3 (vectors come from the embedder's address). Category 5, which the script leaves
out, is asked as category 4 is.
"""

import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from released_code import ConversationWorker, EndpointEmbedder, ExactIndex, load, prepare

#: Imported by the released files, called by nothing that runs here.
UNUSED = ("torch", "requests")
#: Their script's place of the conversation in the data set, and its name.
PLACE, SAMPLE = 0, "sample"
#: Categories of LoCoMo: without an answer, and an ordinary one.
ADVERSARIAL, ORDINARY = 5, 4
_HEADER = "[ABSTRACT]"


class _Encoder:
    """A ``FlagAutoModel`` that asks the endpoint."""

    embedder: EndpointEmbedder

    @classmethod
    def from_finetuned(cls, *given: Any, **named: Any) -> "_Encoder":
        return cls()

    def encode_corpus(self, texts: Sequence[str], **named: Any) -> Any:
        import numpy as np

        return np.array(self.embedder.embed(texts), dtype=np.float32)

    encode_queries = encode_corpus


class Worker(ConversationWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        _Encoder.embedder = EndpointEmbedder(opening)
        _replace_packages(settings["k1"], settings["b"])
        files = settings["files"]
        sys.path.insert(0, str(Path(files["locomo_test"]).parent))
        self._script = load("locomo_test", files["locomo_test"])
        sys.modules["gam_research.retriever.bm25"].__dict__["subprocess"] = _indexing()
        self._folder = Path(opening["folder"])
        self._access = {
            f"{agent}_{name}": opening["llm"][name]
            for agent in ("memory", "research", "working")
            for name in ("api_key", "base_url", "model")
        }

    def conversation(self) -> dict[str, Any]:
        """Return the turns in the shape of LoCoMo's file, with their ids."""
        found: dict[str, Any] = {}
        for turn in self._turns:
            session = turn["session"]
            found.setdefault(f"{session}_date_time", turn["date"])
            line = {"speaker": turn["speaker"], "dia_id": turn["turn_id"], "text": turn["text"]}
            found.setdefault(session, []).append(line)
        return found

    def finish(self) -> list[dict[str, str]]:
        """Let their script write the conversation, session by session; it is asked no question yet."""
        self._process([])
        return []

    def export(self) -> list[dict[str, str]]:
        """Return the pages in the order they were stored."""
        return [{"memory_id": str(place), "text": page.content} for place, page in enumerate(self._pages())]

    def store(self) -> dict[str, Any]:
        """Return the pages in the form that parity runs compare."""
        return {
            "pages": [
                {"text": page.content, "abstract": page.header.removeprefix(_HEADER).strip()} for page in self._pages()
            ]
        }

    def _pages(self) -> list[Any]:
        return list(self._script.InMemoryPageStore(dir_path=str(self._folder / SAMPLE)).load())

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as their script does, over the stored conversation; the context is the integrated text."""
        category = ORDINARY if question["category"] == ADVERSARIAL else question["category"]
        asked = {"question": question["text"], "answer": question["answer"], "category": category}
        (result,) = self._process([asked])
        if "error" in result:
            raise RuntimeError(f"the released script failed: {result['error']}")
        return {"prediction": result["summary_answer"], "context": result["research_summary"]}

    def _process(self, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run the authors' script over the conversation; it finds the files that it wrote before."""
        sample = {"sample_id": SAMPLE, "conversation": self.conversation(), "qa": questions}
        return list(self._script.process_sample(sample, PLACE, str(self._folder), **self._access))


def _replace_packages(k1: float, b: float) -> None:
    searching = load("lucene", str(Path(__file__).with_name("lucene.py")))
    searching.K1, searching.B = k1, b
    encoders: Any = types.ModuleType("FlagEmbedding")
    encoders.FlagAutoModel = _Encoder
    faiss: Any = types.ModuleType("faiss")
    faiss.IndexFlatIP = faiss.Index = ExactIndex
    faiss.normalize_L2 = _normalise
    lucene: Any = types.ModuleType("pyserini.search.lucene")
    lucene.LuceneSearcher = searching.LuceneSearcher
    sys.modules |= {"FlagEmbedding": encoders, "faiss": faiss, lucene.__name__: lucene}
    for name in ("pyserini", "pyserini.search"):
        sys.modules[name] = types.ModuleType(name)


def _indexing() -> Any:
    """Return a replacement of the module ``subprocess`` that indexes in this process."""
    return types.SimpleNamespace(run=sys.modules["lucene"].run, CalledProcessError=OSError)


def _normalise(rows: Any) -> None:
    """Normalise each row to length 1 in place, as FAISS does; rows of zeros stay."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
