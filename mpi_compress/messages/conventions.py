"""Conventions by which papers, or their authors' code, count the bits sent up; [log] count adds up the same messages by each.

Where a convention does not speak of a kind of message, such as one of signs or powers, it is the formula of that kind's paper with
this convention's floats, indices counted or not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

from mpi_compress.core.errors import nearest
from mpi_compress.core.sums import added
from mpi_compress.messages.batch import Batch
from mpi_compress.messages.kinds import Accompanied, Blocks, Chained, Dense, Each, Hybrid, SignSparse, Sparse, Vector
from mpi_compress.messages.link import Link


@dataclass(frozen=True)
class Convention:
    """How a source counts a message."""

    column: str  # the column of the trace
    bits: Callable[[Link, Any], Any]  # of what was decoded, one vector or rows
    padded: bool = False  # True if each message of a round counts as much as the one that counts most
    start_is_free: bool = False  # True if whole gradients in round 0 that later messages correct are not counted


def _cheapest(link: Link, c: Any) -> Any:
    """32 bits a value, and for K indices that are not drawn by chance alone min{K log2 d, (d − K) log2 d, d}."""
    if isinstance(c, Accompanied):
        return c.paper_bits(32, False) - c.vector.paper_bits(32, False) + _cheapest(link, c.vector)
    if isinstance(c, Blocks):
        return added(_cheapest(link, part) for part in c.parts)
    placed = c.placed if isinstance(c, Chained) else c
    chosen = isinstance(placed, Sparse | SignSparse | Hybrid) and not link.compressor.draws_indices
    K, d = c.elements, c.dim
    return c.paper_bits(32, False) + (np.minimum(np.minimum(K * log2(d), (d - K) * log2(d)), d) if chosen else 0.0)


def _gspar(link: Link, c: Any) -> Any:
    """GSpar §2.3: its hybrid in the shorter of two forms, the string at its entropy; others as the codec counts them."""
    fpp = link.codec.float_format.bits
    if isinstance(c, Accompanied):
        return c.paper_bits(fpp) - c.vector.paper_bits(fpp) + _gspar(link, c.vector)
    if isinstance(c, Blocks):
        return added(_gspar(link, part) for part in c.parts)
    if not isinstance(c, Hybrid):
        return link.paper_bits(c)
    return c.coded_bits(fpp) if c.rows is None else np.array([c[i].coded_bits(fpp) for i in range(c.rows)])


def _placed(c: Any) -> Any:
    """How many coordinates are sent with a position of their own: all that are sent, but for whole vectors."""
    if isinstance(c, Blocks):
        return sum(_placed(part) for part in c.parts)
    return 0 * c.elements if isinstance(c, Dense) else c.elements


CONVENTIONS: dict[str, Convention] = {
    "cat": Convention("bits_cat", lambda link, c: c.paper_bits(link.codec.float_format.bits, True)),  # CAT eq. 5
    "values-only-32": Convention("bits_values_32", lambda _, c: c.paper_bits(32, False), start_is_free=True),  # EF21, MARINA, DASHA
    "values-only-64": Convention("bits_values_64", lambda _, c: c.paper_bits(64, False), start_is_free=True),  # 3PC, on quadratics
    "values+indices": Convention("bits_values_indices", lambda _, c: c.paper_bits(32, True)),
    "padded": Convention("bits_padded", lambda _, c: c.paper_bits(32, False) + 32 * _placed(c), padded=True),  # HT, on networks
    "min(k log2 d, …)": Convention("bits_cheapest_indices", _cheapest),  # FL_playground
    "gspar": Convention("bits_gspar", _gspar),
}
"""The conventions by the names that jobs use; "..." will do for "…"."""


def conventions_of(names: Sequence[str]) -> dict[str, Convention]:
    """The conventions of these names, each once; ValueError with the nearest right name."""
    found = {}
    for name in names:
        right = name.replace("...", "…")
        if right not in CONVENTIONS:
            raise ValueError(nearest(name, CONVENTIONS, "convention"))
        found[right] = CONVENTIONS[right]
    return found


def bits_by(conventions: Mapping[str, Convention], link: Link, arrived: Batch) -> Vector:
    """(1 + conventions, n): 1 where a message is a whole vector; then its bits by each convention. Silence has zeros."""
    content, found = link.unpack(arrived), np.zeros((1 + len(conventions), len(arrived)))
    rules: list[Any] = [lambda link, c: isinstance(c, Dense) * 1.0, *(each.bits for each in conventions.values())]
    for bits, rule in zip(found, rules, strict=True):
        of_each = [rule(link, c) for c in content.parts] if isinstance(content, Each) else rule(link, content)
        bits[arrived.lengths > 0] = of_each
    return found


def add_by_conventions(
    totals: dict[str, float], conventions: Mapping[str, Convention], counted: Vector, starts_whole: bool
) -> None:
    """Add a round's messages up to the totals, by column.

    Args:
        counted: what `bits_by` gave of the workers' messages, in worker order.
        starts_whole: True in round 0 of a method whose later messages correct the first ones: there some sources count no whole
            gradients.
    """
    for each, bits in zip(conventions.values(), counted[1:], strict=True):
        kept = np.where(counted[0] > 0, 0.0, bits) if starts_whole and each.start_is_free else bits
        totals[each.column] = added((np.full(kept.size, kept.max()) if each.padded else kept).tolist(), totals[each.column])
