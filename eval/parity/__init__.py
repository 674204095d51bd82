"""Parity: our preset and the authors' released code on one conversation, both fed by one deterministic backbone."""
