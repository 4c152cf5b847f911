"""All jobs on one page: a scorecard of claims, figures to explore, and what the runs took. Written from results alone."""
