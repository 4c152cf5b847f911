"""How popular the features of real sets are, measured on rows of them, and rows whose features are as popular.

`python docs/stand_ins_table.py` measures generated rows and real ones side by side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # which loads optimize where it is first used
from numpy.typing import NDArray

from mpi_compress.messages.kinds import Vector


@dataclass(frozen=True)
class Popularity:
    """What was measured on some rows of a real set, features in the order of their popularity."""

    shares: Sequence[tuple[int, float]]  # a feature's rank, from 1, and the share of rows that have it; between them in logarithms
    spread: float  # shape of the gamma distribution of rows' lengths: their variance is the squared mean over it
    singles: int  # the most popular features, each of which comes on its own
    together: int  # the others come in groups of so many
    kept: tuple[float, float]  # with what probability a member comes with its group, in each of two kinds of groups
    first: float  # the share of groups of the first kind

    def units(self, dim: int, nonzeros: float) -> "Units":
        """The features 0 … dim − 1 in units that are drawn together, so that rows have `nonzeros` of them in the mean."""
        ranks, shares = np.log(np.array(self.shares, dtype=float)).T
        at = np.log(np.arange(1.0, dim + 1))
        slope = (shares[-1] - shares[-2]) / (ranks[-1] - ranks[-2])  # beyond what was measured
        share = np.exp(np.where(at > ranks[-1], shares[-1] + slope * (at - ranks[-1]), np.interp(at, ranks, shares)))
        index = np.arange(dim)
        unit = np.where(index < self.singles, index, self.singles + (index - self.singles) // self.together)
        kind = (unit * 0.6180339887) % 1.0 < self.first  # spread evenly over the ranks
        keep = np.where(index < self.singles, 1.0, np.where(kind, *self.kept))
        begin = np.flatnonzero(np.diff(unit, prepend=-1))
        wanted = np.minimum((share / keep)[begin], 0.9995)
        rate = self.spread * ((1 - wanted) ** (-1 / self.spread) - 1)

        def expected(factor: float) -> Vector:
            return keep * (1 - (1 + factor * rate / self.spread) ** -self.spread)[unit]

        upper = 1.0
        while expected(upper).sum() < nonzeros:
            upper *= 2
        factor = float(scipy.optimize.brentq(lambda f: expected(f).sum() - nonzeros, 0.0, upper, rtol=1e-6))
        return Units(begin, keep, factor * rate, self.spread, expected(factor))


@dataclass(frozen=True, eq=False)
class Units:
    """Features in units that are drawn together: unit u is features begin[u] … begin[u + 1] − 1."""

    begin: NDArray[np.int64]  # (units,)
    keep: Vector  # (d,) the probability of a feature where its unit is drawn
    rates: Vector  # (units,) how often a unit is drawn by a row of mean length
    spread: float
    shares: Vector  # (d,) of rows, expected

    @cached_property
    def _sums(self) -> Vector:
        return np.cumsum(self.rates)

    def draw(self, rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
        """The features of so many rows, as row · d + feature, increasing."""
        dim, total = self.keep.size, self._sums[-1]
        draws = rng.poisson(total * rng.gamma(self.spread, 1 / self.spread, rows))
        row = np.repeat(np.arange(rows), draws)
        unit = np.minimum(np.searchsorted(self._sums, total * rng.random(row.size), side="right"), self.rates.size - 1)
        drawn = np.unique(row * self.rates.size + unit)  # a unit comes once to a row
        row, unit = np.divmod(drawn, self.rates.size)
        sizes = np.diff(self.begin, append=dim)[unit]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        feature = np.repeat(self.begin[unit], sizes) + within
        kept = rng.random(feature.size) < self.keep[feature]
        return (np.repeat(row, sizes) * dim + feature)[kept]


# 1500 rows of RCV1 (rcv1_vw1000 and rcv1_vw500.t). No pair of its 400 most popular words has a Jaccard index over ½.
RCV1 = Popularity(
    shares=(
        (1, 0.442), (2, 0.349), (3, 0.339), (6, 0.307), (11, 0.24), (21, 0.215), (31, 0.191), (51, 0.15), (76, 0.124), (101, 0.111),
        (151, 0.0847), (201, 0.07), (301, 0.0553), (501, 0.0347), (1001, 0.0167), (2001, 0.00667), (5001, 0.00133),
    ),
    spread=2.0, singles=1, together=1, kept=(1.0, 1.0), first=1.0,
)  # fmt: skip
# url_sub2000. Of its features of rank 100 to 1000 six in seven have a partner with a Jaccard index over ½, and four over 0.9.
URL = Popularity(
    shares=(
        (1, 0.9995), (11, 0.994), (21, 0.993), (31, 0.9885), (51, 0.971), (76, 0.7005), (101, 0.286), (151, 0.082), (201, 0.0535),
        (301, 0.0255), (501, 0.013), (1001, 0.005), (2001, 0.002),
    ),
    spread=40.0, singles=100, together=5, kept=(1.0, 0.75), first=0.65,
)  # fmt: skip
