"""Measures the link: round trips of many sizes over the real exchange, and cost models fitted to them.

CAT's experiment 1: measure, fit, then tune for the link by `[cost] model = "table"`.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import tomli_w

from mpi_compress.core.arrays import Vector
from mpi_compress.core.errors import UserError, writing
from mpi_compress.exchange.ranks import Ranks
from mpi_compress.messages.batch import batch_of, together
from mpi_compress.problem.datasets.cache import replace
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective
from mpi_compress.problem.rows import Rows

_PACKET_PAYLOADS = np.unique(np.r_[2 ** np.arange(6, 21), 1448, 1460, 1472, 8948, 8960, 8972]) * 8.0  # bits
_GRADIENTS = 20  # that are timed
_FAR_OUT = 5.0  # robust standard deviations from the median of its size


@dataclass(frozen=True)
class Fit:
    """A cost model fitted to medians, in seconds and bits; `r2` of the logarithms, `error` the median relative error."""

    values: Mapping[str, float]
    r2: float
    error: float

    def __str__(self) -> str:
        return f"R² {self.r2:.4f}, median error {self.error:.1%}"


@dataclass(frozen=True)
class LinkTimes:
    """The measured times, and the cost models fitted to them."""

    bits: Vector  # (m,) sizes of messages up
    seconds: Vector  # (m,) median time of one message up
    spread: Vector  # (m,) robust standard deviation of a single time
    outliers: list[tuple[float, float]]  # (bits, seconds) of single messages far from their median
    fits: Mapping[str, Fit]  # "affine" and "packet"

    def toml(self, remark: str, compute: Mapping[str, float]) -> str:
        fits = {name: {**fit.values, "r2": fit.r2, "median_relative_error": fit.error} for name, fit in self.fits.items()}
        points = {name: getattr(self, name).tolist() for name in ("bits", "seconds", "spread")}
        outliers = {"bits": [b for b, _ in self.outliers], "seconds": [s for _, s in self.outliers]}
        head = {"unit": "seconds, bits", "remark": remark}
        return tomli_w.dumps({**head, **fits, "compute": compute, "points": points, "outliers": outliers})


def measure(ranks: Ranks, repeats: int, largest: float) -> LinkTimes | None:
    """Time messages from a worker on rank 1 to the master on rank 0, and fit; the result is at rank 0.

    A trip is a message of 8 bytes down, and one of P bits up once that is there. The time of the message up is the trip's time less
    half of the smallest trip's, whose message up has 8 bytes too.

    Args:
        repeats: round trips for each size, taken in shuffled order, so that a slow minute does not fall on one size.
        largest: the largest size, in bits.

    Raises:
        UserError: fewer than two ranks: there is no link.
    """
    if ranks.size < 2:
        raise UserError("calibrate times a link between two ranks: mpiexec -n 2 mpi-compress calibrate -o link.toml")
    sizes = np.unique(np.geomspace(8, largest / 8, 25).round().astype(int))
    order = np.random.default_rng(0).permutation(np.tile(np.arange(sizes.size), repeats))
    exchange = ranks.exchange(1, "p2p", "dedicated")
    call = batch_of(np.zeros(8, dtype=np.uint8))
    times: list[list[float]] = [[] for _ in sizes]
    for trip, which in enumerate(np.r_[np.arange(sizes.size), order]):  # the first of each size warms up
        ups = together([batch_of(np.zeros(sizes[which], dtype=np.uint8)) for _ in exchange.mine])
        start = time.perf_counter()
        exchange.broadcast(call if exchange.is_root else None)
        exchange.gather(ups)
        if trip >= sizes.size:
            times[which].append(time.perf_counter() - start)
    exchange.close()
    return fitted(sizes * 8.0, [np.array(t) for t in times]) if ranks.is_root else None


def seconds_a_nonzero() -> float:
    """The time of a gradient of the logistic loss on sparse rows, a nonzero of them: the median of some, in this process."""
    rows, columns, each = 2000, 5000, 50
    places = np.sort(np.random.default_rng(0).integers(0, columns, (rows, each)), axis=1)
    starts = np.arange(0, rows * each + 1, each, dtype=np.uint64)
    held = (starts, places.ravel().astype(np.uint32), np.full(rows * each, each**-0.5))
    f = Objective(Rows(held, np.where(np.arange(rows) % 2, 1.0, -1.0), columns), losses["logistic"](), 1.0 / rows, 0.0)
    times = []
    for k in range(_GRADIENTS + 1):  # the first one compiles
        start = time.perf_counter()
        f.gradient(np.full(columns, 1e-3 * k))
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:])) / f.rows.nonzeros


def fitted(bits: Vector, times: list[Vector]) -> LinkTimes:
    """Fit cost models to measured times of messages of these sizes (with the same fixed time in each)."""
    medians = np.array([np.median(t) for t in times])
    spread = np.array([1.4826 * np.median(np.abs(t - np.median(t))) for t in times])
    outliers = []
    for size, ts, median, width in zip(bits, times, medians, np.maximum(spread, 0.02 * medians), strict=True):
        outliers += [(float(size), float(t)) for t in ts[np.abs(ts - median) > _FAR_OUT * width]]
    trip = medians[0]  # two small messages, one after the other
    seconds = np.maximum(medians - trip / 2, 1e-9)
    fits = {"affine": affine_fit(bits, seconds), "packet": packet_fit(bits, seconds)}
    return LinkTimes(bits, seconds, spread, outliers, fits)


def affine_fit(bits: Vector, seconds: Vector) -> Fit:
    """c1·P + c0 by least squares of relative errors; a soft L1 loss keeps outliers from deciding."""

    def residuals(logs: Vector) -> Vector:
        c0, c1 = np.exp(logs)
        return np.log(c1 * bits + c0) - np.log(seconds)

    slope = (seconds[-1] - seconds[0]) / (bits[-1] - bits[0])
    start = np.log([max(seconds[0], 1e-12), max(slope, 1e-18)])
    c0, c1 = np.exp(scipy.optimize.least_squares(residuals, start, loss="soft_l1", f_scale=0.1).x)
    return _judged({"c0": float(c0), "c1": float(c1)}, c1 * bits + c0, seconds)


def packet_fit(bits: Vector, seconds: Vector) -> Fit:
    """c1·⌈P/Pmax⌉ + c0, for the usual Pmax that fits best."""
    fits = []
    for pmax in _PACKET_PAYLOADS[bits[-1] >= _PACKET_PAYLOADS]:
        packets = np.ceil(bits / pmax)
        c, _ = scipy.optimize.nnls(np.stack([packets, np.ones_like(packets)], axis=1) / seconds[:, None], np.ones_like(packets))
        fits.append(_judged({"c0": float(c[1]), "c1": float(c[0]), "pmax": float(pmax)}, c[0] * packets + c[1], seconds))
    return max(fits, key=lambda fit: fit.r2)


def _judged(values: Mapping[str, float], model: Vector, seconds: Vector) -> Fit:
    logs, wanted = np.log(np.maximum(model, 1e-30)), np.log(seconds)
    r2 = 1.0 - np.sum((wanted - logs) ** 2) / max(np.sum((wanted - wanted.mean()) ** 2), 1e-30)
    return Fit(values, float(r2), float(np.median(np.abs(model / seconds - 1.0))))


def lines_about(link: LinkTimes, compute: Mapping[str, float]) -> list[str]:
    """The fits and the outliers, for the user."""
    affine, packet = link.fits["affine"], link.fits["packet"]
    a, p = affine.values, packet.values
    return [
        f"affine   {a['c0'] * 1e6:.4g} µs a message, {a['c1'] * 8e6:.4g} s a megabyte ({affine})",
        f"packets  {p['c0'] * 1e6:.4g} µs a message, {p['c1'] * 1e6:.4g} µs a packet of {p['pmax'] / 8:.0f} bytes ({packet})",
        *(f"outlier  {bits / 8:.0f} bytes took {seconds * 1e3:.3g} ms" for bits, seconds in link.outliers[:5]),
        f"compute  {compute['nonzero'] * 1e9:.3g} ns a nonzero of a gradient",
        f"message  {compute['message'] * 1e6:.3g} µs of a processor to send and receive a small one",
        *[f"outliers {len(link.outliers) - 5} more"] * (len(link.outliers) > 5),
    ]


def calibrate(ranks: Ranks, file: Path, repeats: int, largest: float) -> list[Any]:
    """Measure between ranks 0 and 1, fit and write at rank 0, whole or not at all; lines about the fits, then the file."""
    pair = ranks.pair()
    link = measure(pair, repeats, largest) if pair is not None else None

    def finish() -> list[Any]:
        assert link is not None
        compute = {"nonzero": seconds_a_nonzero(), "message": ranks.seconds_a_message()}
        text = link.toml(f"between ranks 0 and 1 of {ranks.size}, by {ranks.library}", compute)
        with writing(file):
            replace(file, lambda part: part.write_text(text))
        return [*lines_about(link, compute), file]

    return ranks.on_root(finish)
