"""Members of replies as the released codes of Nemori and xMemory take them, which check no type."""

import pytest

from memsys.episodes.recovery import flag_of, text_of, texts_of
from memsys.llm.reading import ReplyReading

AS_RELEASED = ReplyReading(check="any")


@pytest.mark.parametrize(
    ("value", "released", "tolerant"),
    [("false", True, False), ("", False, None), (0, False, False), (None, False, None), (True, True, True)],
)
def test_a_flag_is_what_python_takes_it_for(value: object, released: bool, tolerant: bool | None) -> None:
    found = {"should_end": value}
    assert flag_of(found, "should_end", AS_RELEASED) is released
    assert flag_of(found, "should_end") is tolerant
    assert flag_of({}, "should_end", AS_RELEASED) is None


def test_a_text_is_what_python_writes() -> None:
    found = {"title": 7, "content": " a "}
    assert (text_of(found, "title", AS_RELEASED), text_of(found, "content", AS_RELEASED)) == ("7", "a")
    assert (text_of(found, "title"), text_of({}, "title", AS_RELEASED)) == ("", "")


@pytest.mark.parametrize(
    ("value", "released", "tolerant"),
    [
        ([" a ", "", " ", None], [" a "], ["a"]),
        (["a", 7], [], ["a"]),
        (["a", ["b"]], [], ["a"]),
        (None, [], []),
    ],
)
def test_an_item_of_another_type_costs_the_list_in_the_released_codes(
    value: object, released: list[str], tolerant: list[str]
) -> None:
    found = {"statements": value}
    assert texts_of(found, "statements", AS_RELEASED) == released
    assert texts_of(found, "statements") == tolerant
