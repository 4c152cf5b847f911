"""A compressor and its codec from the tables of a job."""

from collections.abc import Mapping
from typing import Any

from mpi_compress.core.errors import UserError
from mpi_compress.messages.codecs import Codec, codecs
from mpi_compress.messages.compressors import Compressor, compressors
from mpi_compress.messages.kinds import Compressed


def parts_of(compressor: Any, codec: Any, where: str) -> tuple[Compressor, Codec]:
    """A compressor and a codec from their tables; without a name, or as None, the codec is the compressor's own.

    Raises:
        UserError: with the place `where` in the job: a part that cannot be built, or a codec that cannot write what the compressor
            makes.
    """
    built = compressors.build(compressor, f"{where}.compressor")
    spec = built.codec if codec is None else codec
    if isinstance(spec, Mapping) and "name" not in spec:
        spec = {"name": built.codec, **spec}
    writer = codecs.build(spec, f"{where}.codec")
    if not writer.writes(built.makes):
        can = ", ".join(name for name in codecs if is_written(name, built.makes))
        raise UserError(f"{where}.codec: '{writer.name}' cannot write what '{built.name}' makes; these can: {can}")
    return built, writer


def is_written(name: str, kind: type[Compressed]) -> bool:
    """True if a codec, without parameters, writes messages of a kind."""
    try:
        return codecs[name]().writes(kind)
    except TypeError:  # a codec of the user's own that needs parameters
        return False
