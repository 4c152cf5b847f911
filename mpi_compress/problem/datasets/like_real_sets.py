"""Generated sets of the size, sparsity and scale of real ones, which papers use.

`python docs/generated_table.py` measures generated rows and real ones side by side.
"""

import tomllib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy  # which loads what is used of it when it is used, and that takes a second

from mpi_compress.core.fields import AtLeastOne, NotNegative
from mpi_compress.kernels.text import unit_rows
from mpi_compress.problem.datasets.generators import Chunk, Generator, Rng, Samples, Vector, generators, within
from mpi_compress.problem.rows import Integers, distinct


@dataclass(frozen=True)
class Popularity:
    """What was measured on some rows of a real set, features in the order of their popularity."""

    shares: Sequence[tuple[int, float]]  # a feature's rank, from 1, and the share of samples with it; between them in logarithms
    spread: float  # shape of the gamma distribution of samples' lengths: their variance is the squared mean over it
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

    begin: Integers  # (units,)
    keep: Vector  # (d,) the probability of a feature where its unit is drawn
    rates: Vector  # (units,) how often a unit is drawn by a sample of mean length
    spread: float
    shares: Vector  # (d,) of samples, expected

    @cached_property
    def _sums(self) -> Vector:
        return np.cumsum(self.rates)

    def draw(self, rng: Rng, rows: int) -> Integers:
        """The features of so many rows, as row · d + feature, increasing."""
        dim, total = self.keep.size, self._sums[-1]
        draws = rng.poisson(total * rng.gamma(self.spread, 1 / self.spread, rows))
        row = np.repeat(np.arange(rows), draws)
        unit = np.minimum(np.searchsorted(self._sums, total * rng.random(row.size), side="right"), self.rates.size - 1)
        drawn = distinct(row * self.rates.size + unit)  # a unit comes once to a row
        row, unit = np.divmod(drawn, self.rates.size)
        sizes = np.diff(self.begin, append=dim)[unit]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        feature = np.repeat(self.begin[unit], sizes) + within
        kept = rng.random(feature.size) < self.keep[feature]
        return (np.repeat(row, sizes) * dim + feature)[kept]


_MEASURED = tomllib.loads(Path(__file__).with_name("popularity.toml").read_text(encoding="utf-8"))
RCV1, URL = Popularity(**_MEASURED["rcv1"]), Popularity(**_MEASURED["url"])


@dataclass(frozen=True)
class _Words(Generator):
    """Rows whose features are as popular, come together as often, and are as many, as in rows of the real set (docs/reproduces.md).

    A row has about `nonzeros` features in the mean. Labels are y = sign(a·w̄ − b + noise·σ) for w̄ ~ N(0, I), σ ~ N(0, 1); b, about
    the mean of a·w̄, keeps the two classes alike in size where some features are in nearly all rows.
    """

    real: ClassVar[Popularity]
    unit_rows: ClassVar[bool] = True  # samples are scaled to unit norm

    samples: Samples = 2  # N, the number of samples
    dim: AtLeastOne = 1  # d, the number of features
    nonzeros: float = 1.0  # nonzeros of a sample, in the mean
    noise: NotNegative = 0.1  # standard deviation of the Gaussian noise on the margins whose signs are the labels
    law: Literal["measured"] = "measured"  # how popular features are: as in samples of the real set

    _ROWS = 4096  # of a chunk

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.nonzeros <= self.dim / 2:
            raise ValueError(f"nonzeros = {self.nonzeros} must be from 1 to half of dim = {self.dim}")

    def size(self) -> tuple[int, int, float]:
        return self.samples, self.dim, self.samples * self.nonzeros

    def make(self) -> Iterator[Chunk]:
        whole, units = self.stream(0), self._units
        w = whole.standard_normal(self.dim)
        names = self.names(whole)
        mean_weight = float(units.shares @ w[names]) / self.nonzeros
        for rng, rows in self.blocks(self.samples, self._ROWS):
            row, rank = np.divmod(units.draw(rng, rows), self.dim)
            indptr, values = np.searchsorted(row, np.arange(rows + 1)), self.values(rng, rank)
            if self.unit_rows:
                unit_rows(indptr, values)
            a = scipy.sparse.csr_matrix((values, names[rank], indptr), shape=(rows, self.dim))
            a.sort_indices()
            margins = a @ w - values.sum() / max(rows, 1) * mean_weight  # less b
            yield a, np.where(margins + self.noise * rng.standard_normal(rows) >= 0, 1.0, -1.0)

    def names(self, rng: Rng) -> Integers:
        """The index (d,) of the j-th most frequent feature."""
        return np.arange(self.dim)

    @abstractmethod
    def values(self, rng: Rng, ranks: Integers) -> Vector:
        """A value for every drawn feature, by its rank in frequency."""

    @cached_property
    def _units(self) -> Units:
        return self.real.units(self.dim, self.nonzeros)


@generators.register("rcv1-like")
class RCV1Like(_Words):
    """Like rcv1: unit-norm rows of 73 nonzeros, words as popular as in 1500 rows of it, tf-idf values."""

    paper = "CAT §5, on the real set"
    real = RCV1
    samples: Samples = 697641  # N, the number of samples
    dim: AtLeastOne = 47236  # d, the number of features
    nonzeros: float = 73.0  # nonzeros of a sample, in the mean

    def names(self, rng: Rng) -> Integers:
        return rng.permutation(self.dim)

    def values(self, rng: Rng, ranks: Integers) -> Vector:
        return (1.0 + rng.exponential(0.5, ranks.size)) * (1.0 - np.log(self._units.shares[ranks]))


@generators.register("url-like")
class URLLike(_Words):
    """Like url: rows of 116 nonzeros, features as popular as in 2000 rows of it, nine in ten of value 1, in groups."""

    paper = "CAT §5, on the real set"
    real = URL
    unit_rows = False
    samples: Samples = 2396130  # N, the number of samples
    dim: AtLeastOne = 3231961  # d, the number of features
    nonzeros: float = 116.0  # nonzeros of a sample, in the mean

    def values(self, rng: Rng, ranks: Integers) -> Vector:
        return np.where(ranks % 10 == 9, rng.random(ranks.size), 1.0)


@generators.register("gisette-like")
class GisetteLike(Generator):
    """Like gisette scaled to [−1, 1]: dense, two classes, a feature −1 with probability `empty` in the mean.

    Feature j of a row of class c = ±1 is −1 with probability `empty` − `separation`·c·w_j, w ~ N(0, I), else 2B − 1 with
    B ~ Beta(1.125, 0.511). y = sign(c + noise·σ), σ ~ N(0, 1). The law of B and the separation are such that the logistic loss has
    the constants that HT's authors print of gisette: L, the mean L_i of samples, and f* with µ = 1e-4 L (docs/reproduces.md).
    """

    paper = "HT §5, on the real set"
    samples: Samples = 6000  # N, the number of samples
    dim: AtLeastOne = 5000  # d, the number of features
    empty: Annotated[float, within("[0, 1]")] = 0.87  # probability that a feature is −1, in the mean
    separation: NotNegative = 0.0221  # standard deviation over features of how much the class moves that probability
    noise: NotNegative = 0.1  # standard deviation of the Gaussian noise on the classes whose signs are the labels

    _ROWS = 512

    def make(self) -> Iterator[Chunk]:
        w = self.stream(0).standard_normal(self.dim)
        for rng, rows in self.blocks(self.samples, self._ROWS):
            c = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
            a = 2.0 * rng.beta(1.125, 0.511, (rows, self.dim)) - 1.0
            a[rng.random(a.shape) < self.empty - self.separation * np.outer(c, w)] = -1.0
            yield a, np.where(c + self.noise * rng.standard_normal(rows) >= 0, 1.0, -1.0)
