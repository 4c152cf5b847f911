"""Checksums of a result, in an attribute: of every dataset and every other attribute. They hold also after a user has added some.

A finished result is sealed too. The seal is looked at first, since a damaged structure can crash HDF5.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ATTRIBUTE = "checksums"
SLOTS = ATTRIBUTE, "checksums of the other flush"  # an unfinished result has two: a kill may damage the one that is written


def of_file(columns: Mapping[str, Any], sums: Mapping[str, int], arrays: Mapping[str, str], attributes: Mapping[str, str]) -> str:
    """The checksums of a result as JSON text.

    Args:
        columns: by "group/name", of which `sums` has a CRC-32 of the bytes, as they were when they were written.
        arrays: the checksums of the other datasets; `attributes`: those of the attributes.
    """
    texts = {name: _text(columns[name].dtype, columns[name].shape, crc) for name, crc in sums.items()}
    return json.dumps({"datasets": {**texts, **arrays}, "attributes": attributes})


def rows_in(checksums: str) -> dict[str, int]:
    """How many rows each dataset has by its checksum, by "group/name"; a scalar has one.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the text is damaged.
    """
    datasets: dict[str, str] = json.loads(checksums)["datasets"]
    return {name: int(text.split(" ")[1].partition("x")[0] or 1) for name, text in datasets.items()}


def of_each(held: Mapping[str, Any]) -> dict[str, str]:
    """The checksum of each dataset, or attribute."""
    return {name: _of(value) for name, value in held.items()}


def damage(attributes: Mapping[str, Any], datasets: Mapping[str, NDArray], checksums: str) -> str:
    """What of a result is not as it was written, "" if all of it is.

    Args:
        datasets: the arrays by "group/name"; those that a user added have no checksum, and count as whole.
        checksums: the text of `of_file`.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the text is damaged.
    """
    stored = json.loads(checksums)
    for kind, what, held in (("datasets", "dataset /", datasets), ("attributes", "attribute ", attributes)):
        for name, expected in stored[kind].items():
            if name not in held:
                return f"its {what}{name} is missing"
            if _of(held[name]) != expected:
                return f"its {what}{name} is not as it was written"
    return ""


def _text(dtype: np.dtype[Any], shape: tuple[int, ...], crc: int) -> str:
    """Type and shape belong to the checksum: they say how the bytes are read."""
    return f"{dtype.str} {'x'.join(map(str, shape))} {crc:08x}"


def _of(value: Any) -> str:
    if isinstance(value, str):
        return _text(np.dtype("U"), (len(value),), zlib.crc32(value.encode("utf-8", "surrogateescape")))
    array = np.asarray(value)
    return _text(array.dtype, array.shape, zlib.crc32(np.ascontiguousarray(array).data))
