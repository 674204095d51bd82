"""Dates that a reader is shown in words, where it is not told how to read time stamps."""

import pytest

from memsys.dates import in_order, in_words, iso, parse_date
from memsys.episodes.context import ContextTexts


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("2023-05-08T13:56:00", "1:56 pm on 8 May, 2023"),
        ("2023-05-08T00:05:00", "12:05 am on 8 May, 2023"),
        ("2023-05-08T12:00:00", "12:00 pm on 8 May, 2023"),
        ("2023-12-31T00:00:00", "31 December, 2023"),
        ("1:56 pm on 8 May, 2023", "1:56 pm on 8 May, 2023"),
        ("2023/05/08 (Mon) 13:56", "1:56 pm on 8 May, 2023"),
        ("Monday, 8th of May 2023", "8 May, 2023"),
        ("5 Sept 2023", "5 September, 2023"),
        ("8 May 2023, in the evening", "8 May 2023, in the evening"),
        ("8 May 2023, 1 pm", "8 May 2023, 1 pm"),
        ("between 3 May 2024 and 7 May 2024", "between 3 May 2024 and 7 May 2024"),
        ("2023-05-08T13:56:00+02:00", "2023-05-08T13:56:00+02:00"),
        ("some day", "some day"),
        ("", ""),
    ],
)
def test_a_date_in_words(written: str, words: str) -> None:
    assert in_words(written) == words
    assert parse_date(words) == parse_date(written), "it is read as the same moment"


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("29.12.2023, 22:42:04", "2023-12-29T22:42:04"),
        ("8.5.2023", "2023-05-08T00:00:00"),
        ("version 1.2.3.2023", None),
        ("31.02.2023", None),
    ],
)
def test_dates_with_dots_begin_with_the_day(written: str, moment: str | None) -> None:
    """REALTALK writes them so: none of its 8,944 messages had a date that a system could compare."""
    found = parse_date(written)
    assert (found and iso(found)) == moment


@pytest.mark.parametrize(
    ("written", "stamp"),
    [
        ("2023-05-08T13:56:00+02:00", "2023-05-08T13:56:00+02:00"),
        ("2023-05-08T13:56:00.123Z", "2023-05-08T13:56:00"),
        ("2023-05-08 13:56 +0530", "2023-05-08T13:56:00+05:30"),
        ("2023-05-08 23:30-05:00", "2023-05-08T23:30:00-05:00"),
        ("2023-05-08T10:00-11:00", "2023-05-08T10:00:00-11:00"),
        ("2023-05-08 10:00-11:00", "2023-05-08T10:00:00"),
        ("2023-05-08 10:00-17:45", "2023-05-08T10:00:00"),
        ("1:56 pm UTC-3 on 8 May, 2023", "2023-05-08T13:56:00-03:00"),
        ("Mon, 8 May 2023 13:56:00 -0700", "2023-05-08T13:56:00-07:00"),
    ],
)
def test_an_offset_is_part_of_the_moment_and_a_span_of_time_is_none(written: str, stamp: str) -> None:
    found = parse_date(written)
    assert found is not None and iso(found) == stamp
    assert parse_date(stamp) == found, "a stamp keeps the moment"


def test_sessions_of_several_offsets_are_in_order() -> None:
    dates = ["2023-05-08T23:30:00-05:00", "2023-05-09T01:00:00+09:00", "soon", "2023-05-08T20:00:00", "later"]
    assert sorted(dates, key=in_order) == [dates[1], dates[3], dates[0], "later", "soon"]


@pytest.mark.parametrize(
    ("written", "stamp"),
    [
        ("2023年5月8日 下午1:56", "2023-05-08T13:56:00"),
        ("2023年5月8日 午前9：05", "2023-05-08T09:05:00"),
        ("2023년 5월 8일 오후 3:20", "2023-05-08T15:20:00"),
        ("２０２３年５月８日", "2023-05-08T00:00:00"),
        ("٢٠٢٣-٠٥-٠٨", "2023-05-08T00:00:00"),
        ("8. Mai 2023", None),
        ("8 мая 2023", None),
    ],
)
def test_dates_of_other_languages_are_read_where_numbers_say_all(written: str, stamp: str | None) -> None:
    found = parse_date(written)
    assert (found and iso(found)) == stamp


@pytest.mark.parametrize(
    ("dated_entry", "line"),
    [
        ("- [{time}] {text}", "- [2023-05-08T13:56:00] Kim sails."),
        ("- [{date}] {text}", "- [1:56 pm on 8 May, 2023] Kim sails."),
    ],
)
def test_an_entry_shows_its_time_as_a_stamp_or_in_words(dated_entry: str, line: str) -> None:
    texts = ContextTexts(facts="", episodes="", nothing="", entry="- {text}", dated_entry=dated_entry)
    assert texts.line("2023-05-08T13:56:00", "Kim sails.") == line
    assert texts.line("", "Kim sails.") == "- Kim sails."
