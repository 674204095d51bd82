"""Figures of single papers: ``NEEDED`` names the tables that they are made from, ``sheets(source)`` makes them."""
