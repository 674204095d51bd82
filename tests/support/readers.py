"""A reader in tests."""

from eval.running.reader import ReaderConfig

#: One greedy prompt for every kind of question, replies of a few tokens.
READER = ReaderConfig(
    name="clag",
    prompt_set="clag",
    roles={"default": {"temperature": 0.0, "max_tokens": 8}},
    default="default",
    by_kind={},
    answer_format="json",
    adversarial_options=False,
    option_style="named",
    abstention="none",
)
