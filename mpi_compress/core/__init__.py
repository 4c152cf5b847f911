"""What every other package may use: errors, registries of parts, expressions, random streams, progress, signals."""
