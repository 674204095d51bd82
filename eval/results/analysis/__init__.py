"""Analyses of finished runs that tables do not hold."""
