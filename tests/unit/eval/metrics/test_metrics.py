"""Hand-worked values of the lexical metrics, and where the definitions part."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.loaders.question_types import LIST
from eval.metrics import locomo, ngrams, overlap, resources
from eval.metrics.registry import METRICS, find_metric, groups, select_metrics
from eval.metrics.text import gam_tokens
from eval.scoring.answers import score_answer
from memsys.assets.catalog import asset_path
from memsys.errors import AssetError, ConfigError, ScoringError


@pytest.fixture(scope="module")
def corpora() -> None:
    """Punkt and WordNet."""
    try:
        asset_path("punkt_tab")
        asset_path("wordnet")
    except AssetError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("prediction", "reference", "by_set", "by_word", "squad", "official"),
    [
        ("cat cat cat", "cat", 1.0, 1.0, 0.5, 0.5),  # repetition is free in set F1
        ("self-care", "self care", 0.0, 1.0, 0.0, 0.0),  # the hyphen glues, or joins
        ("1,000", "1000", 0.0, 0.0, 1.0, 1.0),  # a comma is a blank for A-Mem and nothing for SQuAD
        ("the dog and cat", "dog cat", 2 / 3, 2 / 3, 0.8, 1.0),  # LoCoMo drops "and" too
        ("painting", "paints", 0.0, 0.0, 0.0, 1.0),  # only LoCoMo stems
        ("a ; b", "c ; d", 1 / 3, 0.0, 0.0, 0.0),  # a free-standing semicolon is a token for A-Mem
        ("", "x", 0.0, 0.0, 0.0, 0.0),
        (" ", "x", 0.0, 0.0, 0.0, 0.0),
    ],
)
def test_five_f1_definitions_part(
    prediction: str, reference: str, by_set: float, by_word: float, squad: float, official: float
) -> None:
    assert overlap.f1_set(prediction, reference) == pytest.approx(by_set)
    assert overlap.f1_word(prediction, reference) == pytest.approx(by_word)
    assert overlap.f1_squad(prediction, reference) == pytest.approx(squad)
    assert locomo.f1_locomo(prediction, reference) == pytest.approx(official)


def test_both_empty_agree_for_gam_alone() -> None:
    assert overlap.f1_gam("the", "a") == 1.0
    assert overlap.f1_gam("the", "cat") == 0.0
    for metric in (overlap.f1_set, overlap.f1_word, overlap.f1_squad, locomo.f1_locomo, overlap.em_lower):
        assert metric("", "") == 0.0


def test_second_of_two_adjacent_articles_survives() -> None:
    assert gam_tokens("the the cat") == ("the", "cat")


def test_exact_matches() -> None:
    assert overlap.em_lower(" Sweden ", "sweden") == 1.0
    assert overlap.em_lower("Sweden.", "Sweden") == 0.0
    assert overlap.em_squad("The Sweden.", "sweden") == 1.0
    assert locomo.em_set("pottery and camping", "camping, pottery") == 1.0


def test_bleu_by_hand(corpora: None) -> None:
    # "may", "7th", ",", "2023" against "7", "may", "2023": 2 of 4 words, no brevity penalty.
    assert ngrams.bleu1("May 7th, 2023", "7 May 2023") == pytest.approx(0.5)
    # One of one word, reference of three: exp(1 - 3).
    assert ngrams.bleu1("may", "7 may 2023") == pytest.approx(0.1353352832)
    assert ngrams.bleu1("x", "y") == 0.0
    assert ngrams.bleu1("", "y") == 0.0
    assert ngrams.bleu1_gam("paris", "paris, france") == pytest.approx(0.3678794412)


def test_meteor_traps(corpora: None) -> None:
    assert ngrams.meteor("sweden", "Sweden") == pytest.approx(0.5)
    assert ngrams.meteor("a b c", "a b c") == pytest.approx(1 - 0.5 / 27)
    assert ngrams.meteor("physician", "doctor") == pytest.approx(0.5)
    assert ngrams.meteor("automobile", "car") == 0.0  # its stem is not a word
    assert ngrams.meteor("cat.", "cat") == 0.0
    assert ngrams.meteor_tokenized("cat.", "cat") == pytest.approx(0.5 / 0.55 * 0.5)


def test_rouge_drops_other_scripts() -> None:
    assert ngrams.rouge1("北京", "北京") == 0.0
    assert ngrams.rouge_l("a b c d", "a c d") == pytest.approx(6 / 7)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("mother's necklace—a gift", ("mother", "'s", "necklace—a", "gift")),
        ("'twas fun", ("'t", "was", "fun")),
        ("o'neil 'cat' said", ("o'neil", "'cat", "'", "said")),
        ("she said “hi.” then left.", ("she", "said", "“", "hi.", "”", "then", "left", ".")),
    ],
)
def test_words_as_of_nltk_3_9(corpora: None, text: str, tokens: tuple[str, ...]) -> None:
    """NLTK 3.10 cuts all four differently; the papers' BLEU was made before."""
    assert ngrams.punkt_tokens(text) == tokens


def test_official_rule_by_category() -> None:
    # Category 1, per reference item: "pottery" is found (1), "camping trips" half (P 1, R 1/2: F 2/3).
    assert locomo.locomo_official("camping, pottery", "pottery, camping trips", 1) == pytest.approx((1 + 2 / 3) / 2)
    assert locomo.locomo_official("likely no", "Likely no; she prefers music", 3) == 1.0
    assert locomo.locomo_official("likely no", "Likely no; she prefers music", 4) == pytest.approx(4 / 7)
    assert locomo.locomo_official("There is No Information Available.", "trap", 5) == 1.0
    assert locomo.locomo_official("trap", "trap", 5) == 0.0
    assert locomo.locomo_official("x", "x", 6) is None


def test_letters_name_options() -> None:
    options = ("Not mentioned in the conversation", "a red car")
    assert locomo.chosen_option("(a)", options) == options[0]
    assert locomo.chosen_option(" B ", options) == options[1]
    assert locomo.chosen_option("a red car", options) == "a red car"
    assert locomo.chosen_option("a", ()) == "a"


def test_trapped_means_giving_the_false_answer() -> None:
    assert locomo.is_trapped("It was a red car.", "red car")
    assert not locomo.is_trapped("It was a redder car.", "red car")
    assert not locomo.is_trapped("A red car is not mentioned.", "red car")
    assert not locomo.is_trapped("anything", "")


def test_the_answers_to_a_question_for_a_list_are_joined_or_the_best_is_taken() -> None:
    answers = ("BRCA1", "BRCA2")
    assert score_answer(METRICS["f1_set"], "BRCA1 ; BRCA2", answers, 6, LIST) == 1.0
    assert score_answer(METRICS["f1_set"], "BRCA1", answers, 6, LIST) == pytest.approx(0.5)
    assert score_answer(METRICS["f1_squad"], "BRCA1", answers, 6, LIST) == 1.0


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.lexical])
@pytest.mark.parametrize("answer", ["19 March 2024", "2024-03-19"])
def test_each_alternative_of_an_answer_is_right(name: str, answer: str) -> None:
    """They were joined: whoever gave one of them in full had 33 or 75 percent of F1."""
    alone = score_answer(METRICS[name], answer, (answer,), 4)
    assert score_answer(METRICS[name], answer, ("19 March 2024", "2024-03-19"), 4) == alone


def test_unknown_metric_names_the_close_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean f1_set"):
        find_metric("f1_sets")
    with pytest.raises(ConfigError, match="`memsys score --list` shows them all"):
        select_metrics(["lexical", "zzz"])


def test_groups_cover_the_registry() -> None:
    grouped = {name for group in ("lexical", "mixed", "neural", "evidence") for name in groups()[group]}
    alone = {name for name, metric in METRICS.items() if "ordered_items" in metric.needs}  # of one data set only
    assert grouped | alone == set(METRICS) and not grouped & alone
    assert [metric.name for metric in select_metrics(["bleu1", "f1_set", "bleu1"])] == ["f1_set", "bleu1"]
    assert all(metric.source for metric in METRICS.values())


def test_missing_corpora_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    from eval.metrics.resources import PunktWords, WordNet

    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path))
    for resource in (PunktWords, WordNet):
        with pytest.raises(ScoringError, match="memsys models"):
            resource()


#: Words with synonyms, common stems, capitals, punctuation, digits and another script.
_ORACLE_WORDS = st.sampled_from(
    [
        "doctor",
        "physician",
        "car",
        "auto",
        "Cats",
        "running",
        "runs",
        "buy",
        "purchase",
        "large,",
        "The",
        "2023",
        "北京",
    ]
)
_ORACLE_TEXTS = st.lists(_ORACLE_WORDS, max_size=9).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(_ORACLE_TEXTS, _ORACLE_TEXTS)
def test_fast_metrics_are_those_of_the_packages(corpora: None, prediction: str, reference: str) -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
    from nltk.translate.meteor_score import single_meteor_score
    from rouge_score.rouge_scorer import RougeScorer

    tokens, expected = ngrams.punkt_tokens(prediction), ngrams.punkt_tokens(reference)
    if tokens and expected:
        smoothing = SmoothingFunction().method1
        bleu = sentence_bleu([expected], tokens, weights=(1, 0, 0, 0), smoothing_function=smoothing)
        assert ngrams.bleu1(prediction, reference) == float(bleu)
    rouge = RougeScorer(["rougeL"], use_stemmer=True).score(reference, prediction)["rougeL"].fmeasure
    assert ngrams.rouge_l(prediction, reference) == rouge
    meteor = single_meteor_score(reference.split(), prediction.split(), wordnet=resources.wordnet().reader)
    assert ngrams.meteor(prediction, reference) == meteor
