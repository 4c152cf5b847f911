"""How many bits messages take: by what a coder sends, by a paper's formula, and by every codec."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from mpi_compress.core.errors import UserError
from mpi_compress.core.tables import plain
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.coders import Coder, Floats, coder
from mpi_compress.messages.from_tables import is_written


@dataclass(frozen=True)
class Size:
    """Means over vectors."""

    bits: float  # of a message
    error: float  # ‖w − v‖²/‖v‖², w what the receiver sees of v


@dataclass(frozen=True)
class Measured:
    """Sizes of messages by name; `print` shows them as a table.

    "sent" is what the coder sends, "paper" what the formula of the compressor's paper says. Then come all codecs that can write
    these messages, by their names, and the vectors themselves, as "dense bf16" and "dense float32".
    """

    dim: int  # d, the coordinates of each vector
    sizes: Mapping[str, Size]
    float: int | str  # of the codecs: 64, 32, 16 or "bf16"

    def __getitem__(self, name: str) -> Size:
        return self.sizes[name]

    def __str__(self) -> str:
        rows = [[name, f"{s.bits:,.0f}", f"{s.bits / self.dim:.3g}", f"{s.error:.1e}"] for name, s in self.sizes.items()]
        table = plain(["message", "bits", "a coordinate", "error"], rows, "lrrr")
        return "\n".join([*table, f"floats of {self.float} bits; d = {self.dim:,}; without the 32 bits of a message's length"])


def measure(compressor: Coder | str | Mapping[str, Any], vectors: Sequence[Floats], *, rng: int = 0, **parameters: Any) -> Measured:
    """Encode vectors (d,), such as the gradients of a training run, and say how many bits their messages take.

    The first vector is that of round 0, the next one that of round 1, and so on.

    Args:
        compressor: a coder, or what `coder` takes, with the same `parameters`.
        rng: the seed of random choices, the same for every codec.

    Raises:
        UserError: there are no vectors, or they differ in size; and where `coder` and `encode` raise it.
    """
    own = compressor if isinstance(compressor, Coder) else coder(compressor, **parameters)
    dims = sorted({v.size for v in vectors})
    if len(dims) != 1:
        raise UserError(f"measure: vectors of {dims or 'no'} coordinates were given; all should have the same number")
    written = [name for name in codecs if is_written(name, own.compressor.makes)]
    by_codec = {name: Coder(own.compressor, codecs.build({"name": name, "float": own.codec.float}, "measure")) for name in written}
    dense = {f"dense {name}": coder("identity", codec="dense", float=held) for name, held in (("bf16", "bf16"), ("float32", 32))}

    def size(each: Coder) -> Size:
        data = [each.encode(v, rng, k=k) for k, v in enumerate(vectors)]
        errors = [_error(each.decode(one, v.size), v) for one, v in zip(data, vectors, strict=True)]
        return Size(8 * fmean(map(len, data)), fmean(errors))

    sent = size(own)
    paper = Size(fmean(own.paper_bits(v, rng, k) for k, v in enumerate(vectors)), sent.error)
    ranked = sorted(((name, size(each)) for name, each in by_codec.items()), key=lambda item: item[1].bits)
    sizes = {"sent": sent, "paper": paper, **dict(ranked), **{name: size(d) for name, d in dense.items()}}
    return Measured(dims[0], sizes, own.codec.float)


def _error(w: Floats, v: Floats) -> float:
    """‖w − v‖²/‖v‖²; 0 for v = 0 that comes back as it is."""
    wrong, all_of_it = (float(np.dot(u, u)) for u in (w - v, v.astype(np.float64)))
    return wrong / all_of_it if all_of_it else wrong
