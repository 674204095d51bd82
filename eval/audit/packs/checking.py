"""Checking a pack: what can be computed again is, and everything else is said to be a claim.

Rows are scored by :func:`eval.scoring.score_run.score_run`, the way of every run, over gold that the data set gives
and not the pack.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from eval.audit.packs.files import OpenPack, opened_pack
from eval.audit.packs.questions import PackedQuestion, digest_of, gold_digest, terms
from eval.inspect_data import read_config
from eval.loaders.contract import LoadedData
from eval.loaders.label_problems import DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE
from eval.metrics.budgets import BUDGET_AREA, BUDGET_RECALL, TOKEN_PRECISION
from eval.metrics.evidence import STORED_RECALL, SUBSTRING
from eval.metrics.kept import KEPT_DATES, KEPT_WORDS
from eval.metrics.registry import METRICS
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.runs.files import write_json, write_rows
from eval.runs.load import load_answers, load_retrievals
from eval.runs.manifest import RUN
from eval.runs.records import ConversationRecord, ReferenceRecord, ScoreRow
from eval.runs.signing import sign_folder
from eval.scoring.call_costs import calls_by_role, cost_per_unit
from eval.scoring.config import STORED_DECIMALS, lexical_config
from eval.scoring.score_run import score_run
from eval.scoring.shown import CONTEXT_ESTIMATE, SHOWN_CHARS
from eval.scoring.summary import with_means
from memsys.errors import ConfigError, DataError, RunDirectoryError
from memsys.vocabulary import Json

State = Literal["checked", "claimed", "does not fit"]

#: Scores that the memories' snapshots decide, which no pack holds.
_OF_SNAPSHOTS = (STORED_RECALL, "newest_stored", KEPT_WORDS, KEPT_DATES)
#: Scores that the texts of memories decide.
_OF_TEXTS = ("hit_chars", SHOWN_CHARS, CONTEXT_ESTIMATE, *BUDGET_RECALL.values(), BUDGET_AREA, TOKEN_PRECISION)
#: Sizes that a run counted itself.
_COUNTED = ("context_chars", "context_tokens")
#: Values that the retrieval or the data set decides and that are no metric of the registry.
_OF_DATA = ("hits", DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE)
#: Scores of answers that are no metric of the registry.
_OF_ANSWERS = ("abstained", "trapped")
#: A score, and a mean of rounded scores, may differ by so much.
_SCORE, _MEAN = 1.5 * 10**-STORED_DECIMALS, 2 * 10**-STORED_DECIMALS
#: Differences of one kind that are named.
_NAMED = 10
#: Ends of the settings of a data set that name files of a machine.
_PLACES = ("path", "file", "data_dir")
#: Counts of calls that are compared; seconds are rounded in a pack.
_CALLS = ("calls", "cache_hits", "prompt_tokens", "completion_tokens", "malformed", "repaired", "second_attempts")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found about a pack.

    Attributes:
        state: whether it was computed again, is only claimed, or differs.
        what: part of the pack.
        text: what was done or found.
        count: how many things it says of.
    """

    state: State
    what: str
    text: str
    count: int = 1


def check_pack(path: Path, run: Path | None = None) -> list[Finding]:
    """Say what of a pack holds.

    Args:
        path: of the file.
        run: run folder that the pack was made of; its texts are taken for those that the pack withholds, where their
            digests are the pack's.

    Returns:
        What was checked, what is only claimed, and what does not fit.

    Raises:
        DataError: it is not a whole archive.
        RunDirectoryError: it is not a pack of this version, or ``run`` is not a run folder.
        ScoringError: a row is malformed, or a corpus that a metric needs is missing.
    """
    with opened_pack(path) as pack:
        return check_opened(pack, run)


def check_opened(pack: OpenPack, run: Path | None = None) -> list[Finding]:
    """Say what of an opened pack holds; see :func:`check_pack`.

    Raises:
        RunDirectoryError: it is not a pack of this version, or ``run`` is not a run folder.
        ScoringError: a row is malformed, or a corpus that a metric needs is missing.
    """
    try:
        found = read_run(pack.run)
        if isinstance(found, Skipped):
            raise RunDirectoryError(f"{pack.path}: {found.reason}")
        return _Check(pack, found, run).findings()
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise RunDirectoryError(
            f"{pack.path}: a field is missing or of another type than in a pack of this version "
            f"({type(error).__name__}: {error}); pack the run again (`memsys pack RUN`)"
        ) from error


class _Check:
    """Checks one pack.

    Args:
        pack: opened.
        claimed: its run with the scores as they are printed.
        folder: run folder that it was made of; ``None`` where it is not at hand.
    """

    def __init__(self, pack: OpenPack, claimed: StoredRun, folder: Path | None) -> None:
        self._pack, self._claimed = pack, claimed
        self._found: list[Finding] = []
        self._questions = pack.questions()
        self._answers, self._retrievals = pack.answers(), pack.retrievals()
        self._texts = self._memories = pack.manifest.texts
        self._licence()
        if folder is not None:
            self._take_texts(folder)

    def _say(self, state: State, what: str, text: str) -> None:
        self._found.append(Finding(state, what, text))

    def _differences(self, what: str, texts: Iterable[str]) -> bool:
        """Note what differs; returns whether anything does."""
        found = list(texts)
        for text in found[:_NAMED]:
            self._say("does not fit", what, text)
        if len(found) > _NAMED:
            more = len(found) - _NAMED
            self._found.append(Finding("does not fit", what, f"and {more} more", more))
        return bool(found)

    def findings(self) -> list[Finding]:
        """Return everything that was found."""
        altered = (f"{name} was changed after packing: its sha256 differs" for name in self._pack.altered)
        self._differences("file", altered)
        self._texts_within()
        data = self._data()
        if data is not None:
            self._gold(data)
            self._scores(data)
        self._means()
        self._costs()
        self._say(
            "claimed",
            "origin",
            "that this memory, model and code gave these answers and retrievals, on this hardware and in this time: "
            "a list of retrieved turns that was altered together with its scores fits",
        )
        return self._found

    def _licence(self) -> None:
        """Check that no text is included that may not be passed on."""
        allowed, licence = terms(self._claimed.record)
        texts = [text for one in self._questions.values() for text in (one.text, *one.answers)]
        texts += [
            text for one in self._answers.values() for text in (one.question, one.prediction, one.raw, *one.options)
        ]
        texts += [one.context for one in self._retrievals.values()]
        texts += [hit.text for one in self._retrievals.values() for hit in one.hits]
        if not allowed and any(texts):
            self._say("does not fit", "licence", f"texts are included that may not be passed on ({licence})")

    def _texts_within(self) -> None:
        """Check that the answers and contexts that are included are those whose digests the questions have."""
        if not self._pack.manifest.texts:
            return
        answers, retrievals = self._pack.answers(), self._pack.retrievals()
        wrong = [
            f"{name}: the answer is not the one that was packed"
            for name, row in answers.items()
            if name in self._questions and digest_of(name, row.prediction) != self._questions[name].answer
        ]
        wrong += [
            f"{name}: the context is not the one that was packed"
            for name, row in retrievals.items()
            if name in self._questions and digest_of(name, row.context) != self._questions[name].context
        ]
        self._differences("texts", wrong)

    def _take_texts(self, folder: Path) -> None:
        """Take answers and memories from the run folder where their digests are those of the pack."""
        answers, retrievals = load_answers(folder), load_retrievals(folder)
        wrong = [
            f"{name}: the answer in {folder} is not the one that was packed"
            for name, one in self._questions.items()
            if one.answer and (name not in answers or digest_of(name, answers[name].prediction) != one.answer)
        ]
        wrong += [
            f"{name}: the context in {folder} is not the one that was packed"
            for name, one in self._questions.items()
            if one.context and (name not in retrievals or digest_of(name, retrievals[name].context) != one.context)
        ]
        if self._differences("run folder", wrong):
            return
        whole = len(self._questions)
        self._say("checked", "run folder", f"its answers and contexts are those of the pack, {whole} questions")
        self._answers, self._texts = answers, True
        hits = {name: [list(hit.turn_ids) for hit in row.hits] for name, row in retrievals.items()}
        packed = {name: [list(hit.turn_ids) for hit in row.hits] for name, row in self._retrievals.items()}
        other = [f"{name}: other turns were retrieved in {folder}" for name in packed if hits.get(name) != packed[name]]
        if not self._differences("run folder", other):
            self._retrievals, self._memories = retrievals, True

    def _data(self) -> LoadedData | None:
        """Return the data set as the run selected it; ``None`` where it is not here."""
        settings = dict(self._claimed.record["config"].get("dataset") or {})
        name = str(settings.pop("name", ""))
        kept = {key: value for key, value in settings.items() if key != "_target_" and not key.endswith(_PLACES)}
        claimed = str(self._claimed.record["data"].get("sha256"))
        try:
            data = read_config(name, kept).load()
        except (ConfigError, DataError) as error:
            self._say("claimed", "scores", f"the data set {name} is not here: {error}")
            return None
        if data.sha256 != claimed:
            self._say("claimed", "scores", f"{name} here has sha256 {data.sha256[:12]}, the run's had {claimed[:12]}")
            return None
        return data

    def _gold(self, data: LoadedData) -> None:
        """Check that the pack's questions and gold answers are those of the data set."""
        references, held = _references(data), self._questions
        asked = {question.question_id: question.text for sample in data.samples for question in sample.questions}
        name_of = self._claimed.dataset
        wrong = [f"{name} is not a question of {name_of}" for name in held if name not in references]
        wrong += [f"{name} is in {name_of} and not in the pack" for name in references if name not in held]
        for name in (name for name in held if name in references):
            wrong += _other_question(held[name], references[name], asked[name])
        if not self._differences("data", wrong):
            found = f"{len(references)} questions with gold are those of {name_of} (sha256 {data.sha256[:12]})"
            self._say("checked", "data", found)

    def _scores(self, data: LoadedData) -> None:
        """Score the rows again and compare."""
        rows = {row.question_id: row for row in self._claimed.rows}
        names = {name for row in rows.values() for name, value in row.metrics.items() if value is not None}
        kinds = _by_state(names, texts=self._texts, memories=self._memories)
        again = {row.question_id: row for row in self._scored_again(data)}
        wrong = [f"{name} has scores and is neither answered nor retrieved" for name in rows if name not in again]
        wrong += [f"{name} is answered or retrieved and has no scores" for name in again if name not in rows]
        compared = sorted({*kinds["answers"], *kinds["evidence"]})
        for name in (name for name in rows if name in again):
            wrong += _other_scores(rows[name], again[name], compared)
        self._differences("score", wrong)
        for part, source in (("answers", "against gold"), ("evidence", "from turn ids")):
            if kinds[part]:
                text = f"scored again {source}: {', '.join(kinds[part])}, {len(rows)} questions"
                self._say("checked", part, text)
        for reason in (_WITHHELD, _MEMORIES, _SNAPSHOTS, _OWN_COUNTS, _MODELS):
            if kinds[reason]:
                self._say("claimed", "scores", f"{', '.join(kinds[reason])}: {reason}")

    def _scored_again(self, data: LoadedData) -> Sequence[ScoreRow]:
        from eval.running.recording import reference_records, updates_records

        with TemporaryDirectory(prefix="memsys-verify-") as place:
            folder = Path(place) / "run"
            folder.mkdir()
            write_json(folder / RUN, {"identity": {}, "prompts": {}, "resumed": 0, **self._claimed.record})
            rows: dict[str, Iterable[Any]] = {
                "references.jsonl": reference_records(data.samples),
                "updates.jsonl": updates_records(data.samples),
                "conversations.jsonl": self._conversations(data),
                "answers.jsonl": self._answers.values(),
                "retrievals.jsonl": self._retrievals.values(),
            }
            for name, found in rows.items():
                write_rows(folder / name, map(asdict, found))
            settled = self._pack.rows / "settled.jsonl"
            if settled.is_file():
                (folder / settled.name).write_bytes(settled.read_bytes())
            sign_folder(folder)
            return score_run(folder, lexical_config(self._claimed.meta))

    def _conversations(self, data: LoadedData) -> list[ConversationRecord]:
        """Return the conversations of the pack, of as many turns as the data set says."""
        turns = {one.conversation.conversation_id: len(one.conversation.turns) for one in data.samples}
        rows = self._pack.conversations()
        return [replace(row, turns=turns.get(row.conversation_id, row.turns)) for row in rows]

    def _means(self) -> None:
        """Compute the means of the summary again from the printed scores."""
        printed = self._claimed.summary
        again = with_means(printed, self._claimed.rows)
        parts = ("protocols", "metrics", "adversarial", "evidence")  # packs of earlier versions have all of them
        wrong = [text for key in parts if key in printed for text in _unlike(printed[key], again[key], key)]
        if not self._differences("mean", wrong):
            text = "those of the summary follow from the printed scores, and intervals and tests are made of these"
            self._say("checked", "means", text)

    def _costs(self) -> None:
        """Add up the calls again."""
        printed = self._claimed.summary
        if printed.get("calls") is None:  # externally recorded answers
            return
        calls = self._pack.calls()
        conversations = len(self._pack.conversations())
        cost = cost_per_unit(calls, len(self._answers) or len(self._retrievals), conversations)
        wrong = _unlike(_counts(printed["calls"]), _counts(calls_by_role(calls)), "calls")
        wrong += _unlike(printed.get("cost"), cost, "cost")
        if not self._differences("cost", wrong) and calls:
            self._say("checked", "cost", f"calls and tokens are the sums of the {len(calls)} calls in the pack")
            self._say("claimed", "cost", "what each call took, and that there were no others")


_WITHHELD = "the answers' texts are withheld for the licence of the data; --run names the folder that has them"
_MEMORIES = "the memories' texts are withheld for the licence of the data; --run names the folder that has them"
_SNAPSHOTS = "a memory's content is in no pack"
_OWN_COUNTS = "sizes that the run counted itself"
_MODELS = "a model or a judge gave them, or a clock"


def _by_state(names: Iterable[str], *, texts: bool, memories: bool) -> dict[str, list[str]]:
    """Sort scores by how they are checked, or why they cannot be."""
    found: dict[str, list[str]] = {
        key: [] for key in ("answers", "evidence", _WITHHELD, _MEMORIES, _SNAPSHOTS, _OWN_COUNTS, _MODELS)
    }
    for name in sorted(names):
        found[_state(name, texts=texts, memories=memories)].append(name)
    return found


def _state(name: str, *, texts: bool, memories: bool) -> str:
    metric = METRICS.get(name.partition("@corrected")[0])
    if name in _OF_SNAPSHOTS:
        return _SNAPSHOTS
    if name in _COUNTED:
        return _OWN_COUNTS
    if name in _OF_TEXTS or name.endswith(SUBSTRING):
        return "evidence" if memories else _MEMORIES
    if name in _OF_ANSWERS or (metric is not None and (metric.lexical or metric.needs == ("ordered_items",))):
        return "answers" if texts else _WITHHELD
    if name in _OF_DATA or (metric is not None and metric.needs == ("retrievals",)):
        return "evidence"
    return _MODELS


def _references(data: LoadedData) -> Mapping[str, ReferenceRecord]:
    from eval.running.recording import reference_records

    return {one.question_id: one for one in reference_records(data.samples)}


def _other_question(packed: PackedQuestion, reference: ReferenceRecord, text: str) -> list[str]:
    """Say in what a packed question is not that of the data set."""
    name, found = packed.question_id, []
    if packed.gold != gold_digest(reference) or (packed.answers and list(packed.answers) != list(reference.answers)):
        found.append(f"{name}: gold answer or evidence is not that of the data set")
    if packed.question not in ("", digest_of(name, text)) or packed.text not in ("", text):
        found.append(f"{name}: the question is not that of the data set")
    return found


def _other_scores(printed: ScoreRow, again: ScoreRow, metrics: Sequence[str]) -> Iterator[str]:
    """Yield the scores of a question that are not those of its answer and retrieval."""
    for metric in metrics:
        one, other = printed.metrics.get(metric), again.metrics.get(metric)
        if not _same(one, other, _SCORE):
            yield f"{printed.question_id}: {metric} is printed as {_figure(one)}, recomputed {_figure(other)}"


def _same(one: Json, other: Json, tolerance: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return isclose(one, other, rel_tol=1e-9, abs_tol=tolerance)
    return bool(one == other)


def _unlike(printed: Json, again: Json, place: str) -> list[str]:
    """Return the places of a tree whose figures differ; what was not printed is not missed."""
    if isinstance(printed, Mapping) and isinstance(again, Mapping):
        return [text for key in printed if key in again for text in _unlike(printed[key], again[key], f"{place}.{key}")]
    if isinstance(printed, Mapping) or isinstance(again, Mapping):
        return [f"{place} is not what the printed scores give"]
    if isinstance(printed, list) or _same(printed, again, _MEAN):
        return []
    return [f"{place} is printed as {_figure(printed)}, recomputed {_figure(again)}"]


def _counts(calls: Json) -> Json:
    """Return the counts of calls that are compared, by phase and role."""
    if not isinstance(calls, Mapping):
        return calls
    return {key: _counts(value) for key, value in calls.items() if isinstance(value, Mapping) or key in _CALLS}


def _figure(value: Json) -> str:
    if value is None:
        return "nothing"
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)
