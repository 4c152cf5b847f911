"""The scales of a message of levels, one for each bucket."""

from collections.abc import Mapping
from typing import Any

from mpi_compress.messages.codecs.base import Bytes, read_floats
from mpi_compress.messages.kinds import Vector


def read_scales(data: Bytes, at: int, dim: int, known: Mapping[str, Any], bits: int) -> tuple[Vector, int, int]:
    """Read the scales from data[at] on: the scales, the coordinates in a bucket (all if no `bucket` is known), where they end."""
    bucket = known.get("bucket") or dim
    scales, end = read_floats(data, at, -(-dim // bucket), bits)
    return scales, bucket, end
