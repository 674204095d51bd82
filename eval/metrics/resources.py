"""NLTK's corpora, loaded once, from the harness's own folder; what is missing is an error, never a zero."""

import re
import warnings
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from io import BytesIO, TextIOWrapper
from typing import ClassVar

from memsys.assets.catalog import asset_path, nltk_data_dir
from memsys.errors import AssetError, ScoringError


def _use_corpora(asset: str, metric: str) -> None:
    """Check that a corpus is there and let NLTK read it: NLTK refuses paths outside ``nltk.data.path``."""
    import nltk

    try:
        asset_path(asset)
    except AssetError as error:
        raise ScoringError(f"{metric} needs {asset}, which is not installed: {error}") from error
    folder = str(nltk_data_dir())
    if folder not in nltk.data.path:
        nltk.data.path.insert(0, folder)


class PunktWords:
    """NLTK's ``word_tokenize`` as of NLTK 3.9.1: Punkt cuts sentences, a Treebank tokenizer cuts them into words.

    NLTK 3.10 changed three rules (dashes, leading apostrophes, closing curly quotes). The papers' numbers were made
    with the older ones, so these are put back; the result is the same under every NLTK that the project allows.
    """

    def __init__(self) -> None:
        _use_corpora("punkt_tab", "BLEU")
        import nltk
        from nltk.tokenize import NLTKWordTokenizer
        from nltk.tokenize.punkt import PunktLanguageVars, PunktSentenceTokenizer, load_punkt_params

        class LanguageVars(PunktLanguageVars):  # type: ignore[misc]
            re_boundary_realignment = re.compile(r"""["')\]}]+?(?:\s+|(?=--)|$)""", re.MULTILINE)
            _re_non_word_chars = r"""(?:[)";}\]*:@'({\[!?])"""

        class WordTokenizer(NLTKWordTokenizer):  # type: ignore[misc]
            STARTING_QUOTES: ClassVar = [
                *NLTKWordTokenizer.STARTING_QUOTES[:-1],
                (re.compile(r"(?i)(')(?!re|ve|ll|m|t|s|d|n)(\w)\b"), r"\1 \2"),
            ]
            PUNCTUATION: ClassVar = [rule for rule in NLTKWordTokenizer.PUNCTUATION if "2012" not in rule[0].pattern]

        params = load_punkt_params(nltk.data.find("tokenizers/punkt_tab/english/"))
        self._sentences = PunktSentenceTokenizer(params, lang_vars=LanguageVars())
        self._words = WordTokenizer()

    def tokenize(self, text: str) -> tuple[str, ...]:
        """Cut a text into words and punctuation marks."""
        return tuple(word for sentence in self._sentences.tokenize(text) for word in self._words.tokenize(sentence))


class WordName:
    """One synonym in NLTK's form of a lemma."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """Return the word."""
        return self._name


class Synonyms:
    """All synonyms of a word in NLTK's form of a synset: each once, without names of several words.

    METEOR takes the union over a word's synsets and leaves out names with an underscore, so one set of what is left
    gives the same alignment with far fewer look-ups.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._lemmas = tuple(map(WordName, sorted(names)))

    def lemmas(self) -> tuple[WordName, ...]:
        """Return the synonyms."""
        return self._lemmas


class SynonymsAmong:
    """The part of a WordNet reader that METEOR uses, cut to the words that can match."""

    def __init__(self, synonyms: Callable[[str], frozenset[str]], words: frozenset[str]) -> None:
        self._synonyms, self._words = synonyms, words

    def synsets(self, word: str) -> tuple[Synonyms, ...]:
        """Return one synset with the synonyms of a word that are wanted; none where no synonym is."""
        found = self._synonyms(word) & self._words
        return (Synonyms(found),) if found else ()


class WordNet:
    """Synonyms of single words, with cached look-ups."""

    def __init__(self) -> None:
        _use_corpora("wordnet", "METEOR")
        import nltk
        from nltk.corpus.reader.wordnet import WordNetCorpusReader

        class EnglishReader(WordNetCorpusReader):  # type: ignore[misc]
            def map_wn(self, version: str = "wordnet") -> None:
                """Leave out the map to other versions, which only other languages need."""

            def open(self, file: str) -> TextIOWrapper:
                """Read a file whole: NLTK's own reader takes most of the time of loading and of every look-up."""
                with self.abspath(file).open() as source:
                    return TextIOWrapper(BytesIO(source.read()), encoding="utf-8", newline="\n")

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The multilingual functions are not available")
            self.reader = EnglishReader(nltk.data.find("corpora/wordnet"), None)
        self.synonyms = lru_cache(maxsize=1 << 16)(self._synonyms)
        self._check()

    def _synonyms(self, word: str) -> frozenset[str]:
        names = {lemma.name() for synset in self.reader.synsets(word) for lemma in synset.lemmas()}
        return frozenset(name for name in names if "_" not in name)

    def among(self, words: frozenset[str]) -> "SynonymsAmong":
        """Return the synonyms among some words, since METEOR uses those in the reference alone."""
        return SynonymsAmong(self.synonyms, words)

    def _check(self) -> None:
        """Fail on a WordNet that loads but finds nothing, e.g. files with CRLF, whose byte offsets are wrong."""
        if "doctor" not in self.synonyms("physician"):
            raise ScoringError("METEOR: the installed WordNet knows no synonyms; delete it and run `memsys models`")


class Stemmer:
    """NLTK's Porter stemmer with a cache, the interface that NLTK and rouge_score expect."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer

        self.stem = lru_cache(maxsize=1 << 16)(PorterStemmer().stem)


@cache
def punkt_words() -> PunktWords:
    """Return BLEU's tokenizer.

    Raises:
        ScoringError: Punkt is not installed.
    """
    return PunktWords()


@cache
def wordnet() -> WordNet:
    """Return METEOR's WordNet.

    Raises:
        ScoringError: WordNet is not installed or broken.
    """
    return WordNet()


@cache
def stemmer() -> Stemmer:
    """Return the shared Porter stemmer."""
    return Stemmer()
