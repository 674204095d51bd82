"""Results of finished runs: tables, comparisons, figures, evidence recall, printed numbers, single cells."""
