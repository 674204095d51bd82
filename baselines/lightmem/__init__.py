"""LightMem (Fang et al., arXiv 2510.18866): compressed turns, topic segments, and facts that are revised afterwards."""

#: Other systems whose code this one imports: LLMLingua-2, which compresses turns here and passages there.
BUILT_ON = ("baselines.pruned",)
