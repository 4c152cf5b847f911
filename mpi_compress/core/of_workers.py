"""CSV files whose rows are about workers."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def rows_of_workers(file: str, columns: Sequence[str], what: str) -> list[list[list[str]]]:
    """The rows of each worker 0, 1, … in some columns of a file; without a column `worker` they are worker 0's. ValueError if it
    lacks a column, or a worker between others."""
    found: dict[int, list[list[str]]] = {}
    try:
        with Path(file).open(encoding="utf-8-sig", newline="") as text:
            for line in csv.DictReader(text, skipinitialspace=True):
                row: list[Any] = [line[name].strip() for name in columns]
                found.setdefault(int(line.get("worker") or 0), []).append(row)
    except KeyError as missing:
        raise ValueError(f"file = '{file}' has no column {missing}; its first line names {', '.join(columns)}") from None
    except (OSError, ValueError, AttributeError, csv.Error) as error:
        raise ValueError(f"file = '{file}' is no table of {what}: {error}") from None
    if sorted(found) != list(range(len(found))) or not found:
        raise ValueError(f"file = '{file}' should have rows of the workers 0, 1, …, and has those of {sorted(found) or 'none'}")
    return [found[i] for i in sorted(found)]
