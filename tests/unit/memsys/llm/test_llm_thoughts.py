"""Thoughts and fences are cut from replies by the marks of each kind of model; what only mentions a mark stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.llm.thoughts import RULES, ReplyText, read_answer, read_text

HARMONY = "<|channel|>analysis<|message|>Rex? No.<|end|><|start|>assistant<|channel|>final<|message|>Pixel"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("<think>\nRex? No.\n</think>\n\nPixel", "think"),
        ("<THINK>Rex?</THINK>Pixel", "think"),
        ("<think>a <think>b</think> c</think> Pixel", "think"),
        ("<thinking>Rex?</thinking> Pixel", "thinking"),
        ("<thought>\nRex?\n</thought>\n\nPixel", "thought"),
        ("<reasoning>Rex?</reasoning>\nPixel", "reasoning"),
        ("[THINK]Rex? No.[/THINK]Pixel", "bracket_think"),
        ("◁think▷Rex?◁/think▷Pixel", "kimi"),
        ("<|START_THINKING|>Rex?<|END_THINKING|><|START_RESPONSE|>Pixel<|END_RESPONSE|>", "start_thinking"),
        (
            "<|begin_of_thought|>\nRex?\n<|end_of_thought|>\n\n<|begin_of_solution|>\nPixel\n<|end_of_solution|>",
            "begin_of_thought",
        ),
        ("<seed:think>Rex?</seed:think>Pixel", "seed_think"),
        ("<|channel>thought\nRex?<channel|>Pixel", "gemma_channel"),
        ("Rex?<channel|>Pixel", "gemma_channel"),
        ("<think>Rex?</think><answer>Pixel</answer>", "think"),
        ("The cat... maybe Rex?\n</think>\n\nPixel", "think"),  # the template wrote the opening mark
        ("maybe Rex? </think> Pixel", "think"),
        ("It may be Rex.[/THINK]Pixel", "bracket_think"),
        (HARMONY, "harmony"),
        ("<|start|>assistant" + HARMONY + "<|return|>", "harmony"),
        (HARMONY.removeprefix("<|channel|>analysis<|message|>"), "harmony"),
        ("<|channel|>final <|constrain|>json<|message|>Pixel<|return|>", "harmony"),
        ("analysisRex? No.assistantfinalPixel", "harmony_without_marks"),
        ("```\nPixel\n```", "code_fence"),
        ("```text\nPixel\n```\n", "code_fence"),
        ("```\n<think>Rex?</think>\nPixel\n```", "think"),
    ],
)
def test_what_is_said_is_left(text: str, rule: str) -> None:
    assert read_answer(text) == ReplyText("Pixel", rule) and rule in RULES


@pytest.mark.parametrize(
    "text",
    [
        "<think>Rex? No",
        "Okay.\n<think>\nRex? No"[6:],
        "[THINK]Rex",
        "<|channel|>analysis<|message|>Rex? No",
        "<|begin_of_thought|>Rex",
    ],
)
def test_a_thought_that_was_cut_at_the_limit_says_nothing(text: str) -> None:
    said = read_text(text)
    assert said.text == "" and said.rule and not said.closed


@pytest.mark.parametrize(
    "text",
    [
        "The tag `</think>` closes it.",
        'He types "<think>" first.',
        "Wrap it in <think> and </think> tags.",
        "He wrote `<think>hm</think>` there.",
        "She uses [THINK] twice.",
        "Use <think>.",
        '{"answer": "a <think>b</think>"}',
        "Run ```ls``` twice.",
        "```\na\n```\nand\n```\nb\n```",
        "An analysis of the final.",
        "<th\u0131nk>hm</THIN\u212a>",  # letters that are i and k in another case, and not of ASCII
        "  Bob ",
    ],
)
def test_an_answer_that_mentions_a_mark_is_not_damaged(text: str) -> None:
    assert read_answer(text) == ReplyText(text)


def test_a_mention_after_a_thought_stays() -> None:
    assert read_text("<think>hm</think>The tag `</think>` closes it.").text == "The tag `</think>` closes it."


@given(st.lists(st.sampled_from(["<think>", "</think>", "[THINK]", "`", " ", "\n", "a", "<|channel|>", "```"])))
def test_reading_twice_is_reading_once_or_less(pieces: list[str]) -> None:
    said = read_text("".join(pieces))
    assert len(said.text) <= len("".join(pieces)) and (said.rule or said.text == "".join(pieces))
