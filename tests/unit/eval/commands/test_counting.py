"""Progress over a known number of items."""

import pytest

from eval.commands.counting import counted, short


def test_a_log_has_the_beginning_a_line_every_fifteen_seconds_and_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with counted("verdicts", 40, lambda: now[0]) as one_done:
        for _ in range(40):
            now[0] += 1.0
            one_done()
    assert capsys.readouterr().out.splitlines() == [
        "verdicts: 0/40",
        "verdicts: 15/40, 25 s left",
        "verdicts: 30/40, 10 s left",
        "verdicts: 40/40 in 40 s",
    ]


def test_what_failed_has_no_last_line_and_nothing_to_do_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="broken"), counted("verdicts", 2):
        raise ValueError("broken")
    with counted("verdicts", 0) as one_done:
        one_done()
    assert capsys.readouterr().out.splitlines() == ["verdicts: 0/2"]


@pytest.mark.parametrize(
    ("number", "shown"), [(999, "999"), (1000, "1.0 k"), (999_949, "999.9 k"), (999_999, "1.0 M"), (2.5e9, "2.5 G")]
)
def test_a_large_number_has_the_unit_that_it_is_rounded_to(number: float, shown: str) -> None:
    assert short(number) == shown
