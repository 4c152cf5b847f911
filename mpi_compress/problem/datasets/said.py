"""What is said of data before anything else: the set, where it is from, its size, and where that is not what is published."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpi_compress.problem.datasets.known import published_of

Size = tuple[int, int, int]  # N, d, and how many different labels there are; 0: not known


def line(data: Mapping[str, Any], place: object, size: Size | None) -> str:
    """The line of a run's table [data], as it is written, whose samples are in a file, "" for none."""
    substitute = f"substitute for {data['stand_in_for']}" if "stand_in_for" in data else ""
    kind = substitute or ("generated" if "generator" in data else "real")
    shape = "not read yet" if size is None else f"{size[0]} × {size[1]}"
    return ", ".join(filter(None, [f"data: {_title(data)}", kind, str(place), shape, _differs(data, size)]))


def elsewhere(data: Mapping[str, Any], size: Size | None) -> str:
    """What makes a statement about the set that was meant one about other data; "" for nothing."""
    if "stand_in_for" in data:
        return f"{_title(data)} in place of {data['stand_in_for']}"
    differs = _differs(data, size)
    return f"{_title(data)}, {size[0]} × {size[1]}, {differs}" if differs and size else ""


def _title(data: Mapping[str, Any]) -> str:
    return str(data.get("name") or data.get("generator") or Path(str(data["path"])).name)


def _differs(data: Mapping[str, Any], size: Size | None) -> str:
    known = None if "generator" in data else published_of(_title(data))
    return known.differs(*size) if known and size else ""
