"""The engine: prepares runs, plays them round by round, evaluates, stops, saves."""
