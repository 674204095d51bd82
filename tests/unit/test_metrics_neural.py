"""BERTScore against package bert_score, on a tiny RoBERTa with random weights."""

from pathlib import Path
from typing import Any

import pytest

from eval.metrics.neural import BertScorer

PREDICTIONS = ["fox dog", "the lazy cat sat", "a", "quick " * 60, "", "the cat"]
REFERENCES = ["the fox", "lazy dog", "a mat on a cat", "brown " * 70, "cat", "the cat"]


def _tiny_roberta(folder: Path, add_prefix_space: bool) -> str:
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder.mkdir()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = ByteLevelBPETokenizer()
    text = "the quick brown fox jumps over the lazy dog and the cat sat on a mat"
    trained.train_from_iterator([text] * 5, vocab_size=320, special_tokens=special, show_progress=False)
    trained.save_model(str(folder))
    tokenizer: Any = RobertaTokenizerFast.from_pretrained(
        str(folder), model_max_length=40, add_prefix_space=add_prefix_space
    )
    tokenizer.save_pretrained(str(folder))
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=37,
        max_position_embeddings=42,
        initializer_range=0.5,
    )
    RobertaModel(config).save_pretrained(str(folder))
    return str(folder)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_agrees_with_the_package(tmp_path: Path, layers: int) -> None:
    from bert_score import BERTScorer

    # With this setting the tokenizer does what bert_score asks for, under every version of transformers.
    model = _tiny_roberta(tmp_path / "roberta", add_prefix_space=True)
    package = BERTScorer(model_type=model, num_layers=layers, device="cpu")
    pairs = [pair for pair in zip(PREDICTIONS, REFERENCES, strict=True) if pair[0]]  # it fails on empty texts
    expected = package.score([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    ours = BertScorer(model, layers).score([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    for attribute, values in zip(("precision", "recall", "f1"), expected, strict=True):
        assert [getattr(score, attribute) for score in ours] == pytest.approx(values.tolist(), abs=1e-5)
    assert ours[-1].f1 == pytest.approx(1.0)


def test_the_first_word_follows_a_blank_whatever_the_tokenizer_says(tmp_path: Path) -> None:
    scores = [
        BertScorer(_tiny_roberta(tmp_path / str(setting), add_prefix_space=setting), 2).score(PREDICTIONS, REFERENCES)
        for setting in (True, False)
    ]
    for one, other in zip(*scores, strict=True):
        assert one.f1 == pytest.approx(other.f1, abs=1e-6)


def test_scores_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    model = _tiny_roberta(tmp_path / "roberta", add_prefix_space=False)
    whole = BertScorer(model, 2).score(PREDICTIONS, REFERENCES)
    singly = BertScorer(model, 2, batch_size=1).score(PREDICTIONS, REFERENCES)
    assert [score.f1 for score in whole] == pytest.approx([score.f1 for score in singly], abs=1e-5)
    assert whole[4].f1 == 0.0  # the empty prediction
    assert BertScorer(model, 2).score([], []) == []
