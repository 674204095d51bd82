"""``memsys proxy``: a backbone and an embedder for any program that speaks OpenAI's protocol, with a ledger."""
