"""States on disk: how a checkpoint writes them, and how they are read back."""
