"""Text in any script: words and characters, the metrics that split them, and the warnings where none is split."""

import json
import logging
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.gam.lucene import lucene_words
from baselines.memorybank.summaries import first_sentences
from baselines.readagent.paragraphs import paragraphs_of
from eval.metrics.evidence import normalise
from eval.metrics.locomo import is_trapped
from eval.metrics.mixed import bleu1_mixed, f1_mixed, mixed_tokens, rouge_l_mixed
from eval.metrics.registry import METRICS, groups
from eval.results.compare.model import make_report
from eval.results.frame import read_run
from eval.results.stored_run import StoredRun
from eval.runs.records import ReferenceRecord
from eval.scoring.config import ScoringConfig
from eval.scoring.protocols import load_protocol
from eval.scoring.score_run import score_run
from memsys.embedding.windows import cut_by_chars
from memsys.index.words import STOP_WORDS, warn_of_joined_words, words
from memsys.scripts import (
    all_words,
    count_words,
    first_words,
    has_joined_words,
    has_marks,
    is_mostly_latin,
    without_punctuation,
)
from memsys.turns import TurnFormat
from memsys.vocabulary import Turn
from tests.support.composing import memory_config
from tests.support.fake_run import FakeRun


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我在杭州。", ["我", "在", "杭", "州"]),
        ("京都へ行った！", ["京", "都", "へ", "行", "っ", "た"]),
        ("ｶﾞｷﾞ", ["ガ", "ギ"]),
        ("부산에서", ["부", "산", "에", "서"]),
        ("กินข้าว", ["กิ", "น", "ข้", "า", "ว"]),
        ("ខ្មែរ", ["ខ្", "មែ", "រ"]),
        ("كَتَبَ؟", ["كتب"]),
        ("שָׁלוֹם, עולם", ["שלום", "עולם"]),
        ("हिन्दी में।", ["हिन्दी", "में"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("Привет, мир", ["привет", "мир"]),
        ("Αθήνα", ["αθήνα"]),
        ("Größe", ["größe"]),
        ("İSTANBUL ılık", ["istanbul", "ilik"]),
        ("cafe\u0301", ["café"]),
        ("Ｈｅｌｌｏ，１２３", ["hello", "123"]),
        ("我用iPhone 15", ["我", "用", "iphone", "15"]),
        ("好👍🏽❤\ufe0f", ["好", "👍", "❤"]),
    ],
)
def test_mixed_tokens_are_characters_of_scripts_without_spaces_and_words_of_others(
    text: str, expected: list[str]
) -> None:
    assert list(mixed_tokens(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我在杭州。猫", ["我在", "在杭", "杭州", "猫"]),
        ("iPhone手机", ["iphone", "手机"]),
        ("बात करो।", ["बात", "करो"]),
        ("İstanbul'da", ["istanbul", "da"]),
    ],
)
def test_words_of_a_search_are_bigrams_where_no_space_separates_them(text: str, expected: list[str]) -> None:
    assert words(text) == all_words(text) == expected


@given(
    st.text(alphabet=st.characters(max_codepoint=0x2FF, exclude_characters="İı"))
    | st.text(alphabet="Aé’🎉\ufe0f\u200d ½ß")
    | st.text(alphabet="aσΟςЖй ’")
)
def test_words_of_latin_greek_and_cyrillic_are_what_they_were(text: str) -> None:
    before = [word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]
    assert words(text) == before
    assert without_punctuation(text) == re.sub(r"[^\w\s]", " ", text)


def test_marks_are_no_punctuation() -> None:
    assert normalise("दिल्ली की ओर!") == "दिल्ली की ओर" != normalise("दिल्ली का ओर")
    assert has_marks("हिन्दी") and not has_marks("❤\ufe0f 1\ufe0f\u20e3 é")


@pytest.mark.parametrize(
    ("prediction", "reference", "score"),
    [
        ("杭州。", "杭州", 1.0),
        ("她的猫叫芝麻。", "芝麻", 2 * (2 / 6) / (2 / 6 + 1)),
        ("북경이에요", "북경", 2 * (2 / 5) / (2 / 5 + 1)),
        ("ｉＰｈｏｎｅ 十五", "iphone 十五", 1.0),
        ("Kazan", "Казань", 0.0),
        ("？！", "杭州", 0.0),
    ],
)
def test_mixed_f1(prediction: str, reference: str, score: float) -> None:
    assert f1_mixed(prediction, reference) == pytest.approx(score)


def test_the_other_mixed_metrics_count_the_same_tokens() -> None:
    assert rouge_l_mixed("杭州，西湖", "西湖杭州") == pytest.approx(0.5)  # order counts
    assert bleu1_mixed("杭州西湖", "杭州") == pytest.approx(0.5)
    assert bleu1_mixed("杭", "杭州") == pytest.approx(2.718281828 ** (1 - 2))
    assert all(METRICS[name].function("Казань", "казань") > 0 for name in groups()["mixed"] if name != "meteor_mixed")


def test_mixed_metrics_equal_the_published_ones_on_plain_english_words() -> None:
    for prediction, reference in (("red car", "blue car"), ("a dog", "dog"), ("car", "")):
        assert f1_mixed(prediction, reference) == METRICS["f1_set"].function(prediction, reference)


@pytest.mark.parametrize(
    ("text", "joined", "latin"),
    [
        ("杭州", True, False), ("東京タワー", True, False), ("서울", True, False), ("ไทย", True, False),
        ("مرحبا", False, False), ("हिन्दी", False, False), ("Казань", False, False), ("Αθήνα", False, False),
        ("Köln", False, True), ("Iğdır", False, True), ("2024", False, True), ("β-Carotene", False, True),
    ],
)  # fmt: skip
def test_what_published_definitions_can_split(text: str, joined: bool, latin: bool) -> None:
    assert (has_joined_words(text), is_mostly_latin(text)) == (joined, latin)


def scored(root: Path, gold: str, caplog: pytest.LogCaptureFixture, metrics: tuple[str, ...]) -> tuple[Path, list[str]]:
    """Score a run whose first gold answer is another, and return what was warned of."""
    run = FakeRun(questions_each=2).write(root)
    rows = [json.loads(line) for line in (run / "references.jsonl").read_text().splitlines()]
    first = ReferenceRecord(**{**{key: value for key, value in rows[0].items() if key != "crc32"}, "answers": [gold]})
    lines = [json.dumps(row) for row in (asdict(first), *rows[1:])]
    (run / "references.jsonl").write_text("\n".join(lines) + "\n")
    with caplog.at_level(logging.WARNING):
        score_run(run, ScoringConfig(metrics=metrics))
    return run, [record.getMessage() for record in caplog.records]


@pytest.mark.usefixtures("unsigned")
@pytest.mark.parametrize(
    ("gold", "named", "silent"),
    [
        ("杭州", "f1_set, f1_word, rougeL (1 of 4)", ""),
        ("हिन्दी", "f1_word, rougeL (1 of 4)", "f1_set"),
        ("Казань", "rougeL (1 of 4)", "f1_"),
    ],
)
def test_scoring_warns_once_which_metrics_do_not_split_and_adds_those_that_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, gold: str, named: str, silent: str
) -> None:
    run, messages = scored(tmp_path, gold, caplog, ("f1_set", "f1_word", "rougeL", "em_lower"))
    (message,) = messages
    assert named in message and "read f1_mixed" in message
    assert not silent or silent not in message.split(";")[0]
    meta = json.loads((run / "scores_meta.json").read_text())
    assert set(named.split(" (")[0].split(", ")) == set(meta["unsplit"])
    assert {"f1_mixed", "rougeL_mixed", "bleu1_mixed"} < set(meta["metrics"]) and "meteor_mixed" not in meta["metrics"]


@pytest.mark.usefixtures("unsigned")
def test_english_is_scored_as_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run, messages = scored(tmp_path, "the café in Köln", caplog, ("lexical",))
    meta = json.loads((run / "scores_meta.json").read_text())
    assert messages == [] and "unsplit" not in meta and not set(groups()["mixed"]) & set(meta["metrics"])


@pytest.mark.usefixtures("unsigned")
def test_a_comparison_says_which_columns_to_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run, _ = scored(tmp_path, "杭州", caplog, ("lexical",))
    stored = read_run(run)
    assert isinstance(stored, StoredRun)
    report = make_report([stored], load_protocol("clag"))
    assert any("that end in mixed" in line for line in report.warnings)
    assert {"F1 mixed", "ROUGE-L mixed"} <= report.rows[0].estimates.keys()


def test_published_tokenizers_are_kept_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    assert lucene_words("我在杭州 running") == ["我", "在", "杭", "州", "run"]  # as Unicode's rules cut it
    with caplog.at_level(logging.WARNING):
        for text in ("plain words", "แมว", "แมว"):
            warn_of_joined_words("a published search", text)
    (message,) = [record.getMessage() for record in caplog.records if "a published search" in record.getMessage()]
    assert "Thai" in message


def test_lengths_in_words_count_characters_where_no_space_separates_words() -> None:
    assert count_words("two words, 3") == 3 and first_words("two  words, 3", 2) == "two words,"
    assert count_words("我在杭州，Ann 也在。") == 7 and first_words("我在杭州，Ann 也在。", 5) == "我在杭州，Ann"
    assert first_words("，。猫", 0) == "" and first_words("猫，", 3) == "猫"


def test_long_chinese_texts_are_cut_by_systems_that_count_words() -> None:
    text = "她去了西湖。她买了茶叶！天气很好？"
    turn = Turn("t", "s", "", text, "")
    rules = replace(memory_config("readagent").rules().pages, split_words=6)
    sentences = ["她去了西湖。", "她买了茶叶！", "天气很好？"]
    paragraphs = [part.text for part in paragraphs_of([turn], TurnFormat("bare", "none"), rules)]
    assert [part.removeprefix(": ") for part in paragraphs] == sentences
    assert first_sentences(text, 2) == "她去了西湖。 她买了茶叶！"
    assert cut_by_chars(text, 6) == sentences
    assert cut_by_chars("a sentence of words", 11) == ["a sentence", "of words"]


def test_a_false_answer_is_found_in_a_chinese_reply() -> None:
    assert is_trapped("她搬到了杭州。", "杭州") and not is_trapped("她搬到了广州。", "杭州")
