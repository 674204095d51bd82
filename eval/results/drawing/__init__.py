"""Draw figures from their parts: styles, axes, labels, what a figure consists of; nothing here knows a run."""
