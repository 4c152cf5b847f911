"""The link of a user's own parts: whatever they return is checked before kernels take it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mpi_compress.core import arrays
from mpi_compress.core.blame import place_of
from mpi_compress.core.errors import UserError
from mpi_compress.core.global_draws import FIRST_ROUNDS, refusing
from mpi_compress.core.registry import is_ours
from mpi_compress.core.streams import Round
from mpi_compress.messages.kinds import Bytes, Compressed, Vector
from mpi_compress.messages.link import Link, Message


class GuardedLink(Link):
    """A link whose compressor, codec or algorithm is a user's. Its methods raise UserError, which names the part and its method,
    where the part returns something that kernels cannot take."""

    in_bulk = False  # each vector is checked

    def compress(self, v: Vector, t: Round) -> Compressed:
        with self._naming("pack"):
            v = arrays.read_only(v, self.dim)
        compressor = self.compressor
        if is_ours(compressor) or getattr(t, "k", 0) >= FIRST_ROUNDS:
            compressed = (super().compress if is_ours(compressor) else compressor.applied)(v, t)
        else:
            compressed = refusing(f"{compressor.name}, compress{place_of(compressor.compress)}", compressor.applied, v, t)
        with self._naming("compress", self.compressor):
            return checked(compressed, self.dim)

    def encode(self, compressed: Compressed) -> Message:
        with self._naming("compress", self.compressor):
            compressed = checked(compressed, self.dim)
            kind, wanted = type(compressed), self.compressor.makes
            if not (issubclass(kind, wanted) or (self.codec.tells_kind and self.codec.writes(kind))):
                hint = f"; makes = {kind.__name__} in the class says otherwise" * (not is_ours(self.compressor))
                raise ValueError(f"a {kind.__name__} was given, and receivers read a {wanted.__name__}{hint}")
        return super().encode(compressed)

    def write(self, compressed: Compressed) -> Bytes:
        data = super().write(compressed)
        with self._naming("encode", self.codec):
            return arrays.raw(data)

    def read(self, data: Bytes, at: int = 0) -> tuple[Compressed, int]:
        try:
            read = super().read(data, at)
        except KeyError as missing:
            part, makes = self.compressor.name, self.compressor.makes.__name__
            raise UserError(f"{part}, known: {missing} is missing, and receivers need it to read a {makes}") from None
        with self._naming("decode", self.codec):
            if not (isinstance(read, tuple) and len(read) == 2):
                raise ValueError(f"{arrays.shown(read)} was given; it should be the vector, and where its bytes end")
            return checked(read[0], self.dim), int(read[1])

    @contextmanager
    def _naming(self, method: str, part: Any = None) -> Iterator[None]:
        """Turn a ValueError into a UserError that names the user's part and its method."""
        try:
            yield
        except ValueError as error:
            if part is None or is_ours(part):
                raise UserError(f"{method}: {error}") from error
            raise UserError(f"{part.name}, {method}: {error}{place_of(getattr(part, method, None))}") from None


def checked(given: Any, dim: int) -> Compressed:
    """The vector of `dim` coordinates that a user's compressor or codec returned; raises ValueError if it is none."""
    if not isinstance(given, Compressed):
        such = "such as Sparse(v.size, indices, v[indices]) or Dense(v)"
        raise ValueError(f"{arrays.shown(given)} was given; it should be a Compressed, {such}")
    return given.checked(dim)
