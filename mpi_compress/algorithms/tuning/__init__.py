"""Communication-aware tuning: how much of a vector is worth its cost, for the uplink of any method."""
