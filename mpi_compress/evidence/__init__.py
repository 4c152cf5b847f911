"""What results say: outcomes, verdicts on claims, comparisons, levels, fewest bits. Values in, values out; nothing is drawn."""
