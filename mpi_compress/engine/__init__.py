"""The engine: prepares runs, executes them round by round, evaluates, stops, saves."""
