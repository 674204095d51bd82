"""Nemori (Nan et al., arXiv 2508.03341): topic-aligned episodes, and facts learnt from what a prediction missed."""
