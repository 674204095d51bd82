"""The backbone: roles and replies, the OpenAI-compatible client, reply cache, call ledger and the engines that serve."""
