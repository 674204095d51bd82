"""GAM, General Agentic Memory (2025): verbatim pages with abstracts, and research over them for each question."""
