"""The backbone: roles and replies, the client, the reply cache, the call ledger and the engines that serve."""
