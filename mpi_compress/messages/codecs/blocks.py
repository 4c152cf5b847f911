import numpy as np

from mpi_compress.messages.codecs.base import Bytes, FieldCodec, Known, codecs
from mpi_compress.messages.fields import Reader
from mpi_compress.messages.kinds import Blocks, Compressed


@codecs.register("blocks")
class BlockByBlock(FieldCodec):
    """The messages of blocks one after the other, each as its own codec writes it, in this codec's floats."""

    kinds = (Blocks,)

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Blocks)
        codec = codecs[compressed.codec](self.float)
        return np.concatenate([codec.encode(part) for part in compressed.parts])

    def read(self, r: Reader, dim: int, kind: type[Compressed], known: Known) -> Blocks:
        codec, parts = codecs[known["codec"]](self.float), []
        r.room_for(1, 1, "blocks")
        for size, of, beside in known["blocks"]:
            part, r.at = codec.decode(r.data, r.at, size, of, beside)
            parts.append(part)
        return Blocks(tuple(parts), known["codec"])
