"""From stored answers to scores, means and intervals; needs no model."""
