from mpi_compress.messages.kinds.base import Compressed, Vector


class Accompanied(Compressed):
    """A vector with a number beside it, in one message."""

    vector: Compressed

    @property
    def dim(self) -> int:
        return self.vector.dim

    @property
    def elements(self) -> int:
        return self.vector.elements

    def add_to(self, out: Vector, scale: float = 1.0) -> None:
        self.vector.add_to(out, scale)

    def is_finite(self) -> bool:
        return self.vector.is_finite()
