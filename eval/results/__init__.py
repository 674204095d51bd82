"""What finished runs say: tables, comparisons, figures, evidence recall, the papers' printed numbers, single cells."""
