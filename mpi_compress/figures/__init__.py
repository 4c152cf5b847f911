"""Figures: curves and panels of results, and verdicts on the claims of jobs."""
