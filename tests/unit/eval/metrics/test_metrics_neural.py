"""BERTScore on a tiny RoBERTa with random weights: layers, first words, long texts, the baseline."""

from pathlib import Path
from typing import Any

import pytest

from eval.metrics.neural import BertScorer

PREDICTIONS = ["fox dog", "the lazy cat sat", "a", "quick " * 60, "the cat"]
REFERENCES = ["the fox", "lazy dog", "a mat on a cat", "brown " * 70, "the cat"]


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


def test_one_layer_by_hand(tmp_path: Path) -> None:
    """Greedy matching of unit vectors, where the first and last token have weight 0 but may be matched."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = _tiny_roberta(tmp_path / "roberta", add_prefix_space=True)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def vectors(text: str) -> Any:
        with torch.inference_mode():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[2][0]
        return torch.nn.functional.normalize(states, dim=1)

    for prediction, reference in zip(PREDICTIONS[:3], REFERENCES[:3], strict=True):
        similarity = vectors(prediction) @ vectors(reference).T
        precision, recall = (float(similarity.max(dim=axis).values[1:-1].mean()) for axis in (1, 0))
        (ours,) = BertScorer(folder, 2).score([prediction], [reference])
        expected = (precision, recall, 2 * precision * recall / (precision + recall))
        assert (ours.precision, ours.recall, ours.f1) == pytest.approx(expected, abs=1e-5)


def test_the_first_word_follows_a_space_whatever_the_tokenizer_says(tmp_path: Path) -> None:
    scores = [
        BertScorer(_tiny_roberta(tmp_path / str(setting), add_prefix_space=setting), 2).score(PREDICTIONS, REFERENCES)
        for setting in (True, False)
    ]
    for one, other in zip(*scores, strict=True):
        assert one.f1 == pytest.approx(other.f1, abs=1e-6)


def test_scores_do_not_depend_on_the_batch_and_long_texts_are_counted(tmp_path: Path) -> None:
    model = _tiny_roberta(tmp_path / "roberta", add_prefix_space=False)
    together, singly = BertScorer(model, 2), BertScorer(model, 2, batch_size=1)
    whole = together.score(PREDICTIONS, REFERENCES)
    assert [score.f1 for score in whole] == pytest.approx(
        [score.f1 for score in singly.score(PREDICTIONS, REFERENCES)], abs=1e-5
    )
    assert whole[-1].f1 == pytest.approx(1.0)
    assert together.cut == 2
    assert BertScorer(model, 2).score([], []) == []


def test_the_baseline_is_the_packages(tmp_path: Path) -> None:
    folder = tmp_path / "roberta-large"
    _tiny_roberta(folder, add_prefix_space=True)
    plain, rescaled = (BertScorer(str(folder), 2, rescaled=choice) for choice in (False, True))
    (raw,), (score,) = (scorer.score(["fox dog"], ["the fox"]) for scorer in (plain, rescaled))
    baseline = 0.69969934  # F1 of layer 2 in the package's file
    assert score.f1 == pytest.approx((raw.f1 - baseline) / (1 - baseline), abs=1e-4)
