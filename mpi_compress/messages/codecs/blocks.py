from dataclasses import dataclass

import numpy as np

from mpi_compress.core.errors import CorruptMessage
from mpi_compress.messages.codecs.base import NOTHING, Bytes, Codec, Decoded, Known, codecs
from mpi_compress.messages.kinds import Blocks, Compressed


@codecs.register("blocks")
@dataclass(frozen=True)
class BlockByBlock(Codec):
    """The messages of blocks one after the other, each as its own codec writes it, in this codec's floats."""

    def writes(self, kind: type[Compressed]) -> bool:
        return kind is Blocks

    def encode(self, compressed: Compressed) -> Bytes:
        assert isinstance(compressed, Blocks)
        codec = codecs[compressed.codec](self.float)
        return np.concatenate([codec.encode(part) for part in compressed.parts])

    def decode(self, data: Bytes, at: int, dim: int, kind: type[Compressed], known: Known = NOTHING) -> Decoded:
        codec, parts = codecs[known["codec"]](self.float), []
        if at >= data.size:
            raise CorruptMessage(f"no block begins at byte {at} of {data.size}")
        for size, of, beside in known["blocks"]:
            part, at = codec.decode(data, at, size, of, beside)
            parts.append(part)
        return Blocks(tuple(parts), known["codec"]), at
