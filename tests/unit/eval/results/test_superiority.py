"""Claims of superiority are data, and each gets the verdict that its paper's own tables give."""

from pathlib import Path

import pytest

from eval.results.papers.printed import load_printed
from eval.results.papers.superiority import check_claim, check_marks, load_superiority
from memsys.errors import ConfigError

EXPECTED = {
    "at most 0.5 % change of token F1 behind the gate": ("does not hold", ("-1.27", "-1.44", "-0.53")),
    "best results on LoCoMo with Qwen3-8B": ("does not hold", ("17.94, A-mem 18.35",)),
    "consistently retrieves more relevant evidence": ("does not hold", ("2.07, GAM 3.01", "9.86, MemoryOS 19.10")),
    "bold nDCG@10 of CLAG on LoCoMo": ("does not hold", ("6.89, GAM 6.93",)),
    "the baselines' METEOR on BioASQ stays below 3.03": ("does not hold", ("A-mem 3.03",)),
    "global evolution lowers the scores": ("does not hold", ("17.25, CLAG (full) 17.23",)),
    "highest BLEU on all four backbones": ("ties", ("38.70",)),
    "largest gains on Open Domain": ("does not hold", ("-5.20", "+6.82")),
    "pruning reduces F1": ("does not hold", ("23.33, Naive RAG 21.18",)),
    "the full system is best in all categories": ("does not hold", ("29.58, w/o merge 29.68",)),
}


@pytest.mark.parametrize("claim", load_superiority(), ids=lambda claim: claim.says)
def test_a_printed_claim_has_its_verdict(claim) -> None:  # type: ignore[no-untyped-def]
    finding, figures = EXPECTED[claim.says]
    found = check_claim(claim, load_printed(claim.paper))
    assert found.finding == finding
    assert all(any(figure in text for text in found.against) for figure in figures), found.against


def test_a_claim_whose_cells_are_not_measured_cannot_be_checked() -> None:
    claim = load_superiority()[0]
    assert check_claim(claim, load_printed(claim.paper), lambda number: None).finding == "cannot say"


def test_underlines_that_are_not_second_are_found() -> None:
    found = {(number.row, number.column) for number, _ in check_marks(load_printed("memfly")) if number.table == 3}
    assert {("w/o Topic", "Recall"), ("w/o Topic", "Hit Rate")} <= found


def test_a_claim_of_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text("- {paper: clag, where: here, says: it is nice, kind: nice}\n")
    with pytest.raises(ConfigError, match="choose one of best"):
        load_superiority(tmp_path / "claims.yaml")
