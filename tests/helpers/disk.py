"""What reaches the disk, and when."""

import os
from pathlib import Path


def order_of_syncs(monkeypatch) -> list[tuple[str, str]]:
    """A list that gets ("sync", name of the file) for each `os.fsync`, and ("name", new name) for each `os.replace`."""
    seen: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def noting_sync(opened: int) -> None:
        seen.append(("sync", Path(os.readlink(f"/proc/self/fd/{opened}")).name))
        fsync(opened)

    def noting_replace(old, new) -> None:
        seen.append(("name", Path(new).name))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", noting_sync)
    monkeypatch.setattr(os, "replace", noting_replace)
    return seen
