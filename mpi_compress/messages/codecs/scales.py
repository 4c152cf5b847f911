"""The scales of a message of levels, one for each bucket."""

from collections.abc import Mapping
from typing import Any

from mpi_compress.messages.codecs.base import Bytes, read_floats
from mpi_compress.messages.kinds import Vector


def read_scales(data: Bytes, at: int, dim: int, known: Mapping[str, Any], bits: int) -> tuple[Vector, int, int]:
    """The scales from data[at] on, the coordinates in a bucket (all of them, where no `bucket` is known), where the scales end."""
    bucket = known.get("bucket") or dim
    scales, end = read_floats(data, at, -(-dim // bucket), bits)
    return scales, bucket, end
