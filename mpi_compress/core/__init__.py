"""What every other room may use: errors, registries of parts, expressions, random streams, progress, signals."""
