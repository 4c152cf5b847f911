"""CAT's theory beside practice: what each budget T gains at the iterates of a run, and the bounds of table 1 that follow from it.

A job asks for it by `[log] theory = true`; it is evaluated at logged rounds, off the clock.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpi_compress.algorithms.base import Method
from mpi_compress.algorithms.budget_search import Improvement, SignQuantisation, Sparsification, StochasticSparsification, falling
from mpi_compress.kernels.vectors import squared_norm
from mpi_compress.messages.codecs import Codec
from mpi_compress.messages.costs import CostModel
from mpi_compress.messages.kinds import Sparse, Vector, index_bits
from mpi_compress.messages.link import LENGTH_BYTES
from mpi_compress.problem.objective import Objective

if TYPE_CHECKING:
    from mpi_compress.results.reader import Run

_ALL_UP_TO = 10  # budgets T that are each looked at
_PER_DECADE = 12
_SHOWN_LEVELS = 5
COLUMNS = (
    "T", "worst_case", "payload", "alpha_bar", "beta_bar", "omega_bar", "speedup", "predicted_cost", "predicted_payload",
    "table1_gd", "table1", "table1_worst_case", "growth",
)  # fmt: skip


def budgets(dim: int, also: Iterable[int] = ()) -> NDArray[np.int64]:
    """The budgets T that are looked at: few, even in their logarithms, powers of ten and d among them."""
    tens = 10 ** np.arange(math.floor(math.log10(dim)) + 1)
    even = np.geomspace(1, dim, math.ceil(_PER_DECADE * math.log10(dim)) + 1).round().astype(np.int64)
    return np.unique(np.r_[np.arange(1, min(_ALL_UP_TO, dim) + 1), tens, even, dim, np.array(list(also), dtype=np.int64)])


def curve(improvement: Improvement, g: Vector, T: NDArray[np.int64]) -> Vector:
    """improvement(T) of g (d,) for each of T; NaN where g is zero or not finite."""
    top = falling(g)
    return np.full(T.size, np.nan) if top is None else improvement.of(top)[T - 1]


def sparsification(codec: Codec, cost: CostModel, dim: int, T: NDArray[np.int64]) -> tuple[Vector, Vector]:
    """P(T) in bits (CAT eq. 5) and C(T) of T sparse coordinates; C is NaN where T does not decide what is sent."""
    payload = T * (index_bits(dim) * (codec.indices == "counted") + codec.float)
    if not cost.on_wire:
        return payload.astype(float), cost.cost(payload)
    planned = codec.planned_bytes(Sparse, T, dim)
    return payload.astype(float), (
        np.full(T.size, np.nan) if planned is None else cost.cost((8 * (LENGTH_BYTES + planned)).astype(float))
    )


@dataclass(frozen=True)
class Theory:
    """Evaluates, at a point x of a run,

    alpha, beta   α(T), β(T) of ∇f(x)                                        (CAT Lemmas 1, 3)
    omega         the smallest ω(T) of the workers' ∇f_i(x)                  (CAT Lemma 4)
    improvement   what the algorithm's next round gains by its lemma: the smallest over workers
    variance      σ² = (1/n) Σ E‖g_i − ∇f(x)‖², g_i what worker i compresses
    """

    T: NDArray[np.int64]  # (G,)
    payload: Vector  # (G,) P(T) of sparsification
    cost: Vector  # (G,) its C(T)

    @classmethod
    def of(cls, algorithm: Method) -> "Theory":
        """For a run of this algorithm, bound to its setting; a fixed T of its own is among the budgets."""
        setting, own = algorithm.setting, algorithm.fixed_budget
        T = budgets(setting.dim, [] if own is None else [own])
        return cls(T, *sparsification(setting.up.codec, setting.cost, setting.dim, T))

    def attributes(self, algorithm: Method) -> Mapping[str, Any]:
        """Attributes of the result that hold for the whole run."""
        return {"curve": algorithm.curve, "theory_T": self.T, "theory_payload": self.payload, "theory_cost": self.cost}

    @property
    def n_peaks(self) -> int:
        return self.T.size + 1

    def of_worker(self, algorithm: Method, f: Objective, x: Vector, g: Vector) -> tuple[Vector, float]:
        """The report of worker i, g = ∇f_i(x): −ω(T) for all T and −improvement; and E‖g_i‖², for minibatches drawn with
        replacement."""
        omega = curve(StochasticSparsification(), g, self.T)
        noise = 0.0 if algorithm.batch is None else f.noise(x) / algorithm.batch
        return -np.append(omega, algorithm.improvement(g)), squared_norm(g) + noise

    def row(self, gradient: Vector, peaks: Vector, moment: float, mean: float) -> dict[str, Any]:
        """The row of /theory: `peaks` the largest of the workers' reports, `moment` the mean of E‖g_i‖², `mean` ‖(1/n)ΣE g_i‖²."""
        return {
            "alpha": curve(Sparsification(), gradient, self.T),
            "beta": curve(SignQuantisation(), gradient, self.T),
            "omega": -peaks[:-1],
            "improvement": -peaks[-1],
            "variance": max(moment - mean, 0.0),
        }


def columns(run: "Run") -> Mapping[str, NDArray]:
    """Curves over T, as in CAT fig. 1, and bounds on the rounds to each row's accuracy, from a result's /theory."""
    if not run.theory:
        return {}
    T, payload, cost = (run.attrs[f"theory_{name}"] for name in ("T", "payload", "cost"))
    d = run.attrs["dim"]
    found: dict[str, NDArray] = {"T": T, "worst_case": T / d, "payload": payload}
    found |= {f"{name}_bar": least(run.theory[name]) for name in ("alpha", "beta", "omega")}
    found["speedup"] = found["alpha_bar"] * d / T
    found["predicted_cost"] = cost / found["alpha_bar"]
    found["predicted_payload"] = payload / found["alpha_bar"]
    found["growth"] = growth(run)
    table = Table.of(run)
    if table is not None:
        gaps = run.trace["suboptimality"]
        ways = [[b.rounds(way) for way in ("plain", "data", "worst")] for b in map(table.best, gaps)]
        for name, values in zip(("table1_gd", "table1", "table1_worst_case"), np.array(ways).T, strict=True):
            found[name] = values
    return found


def growth(run: "Run") -> NDArray:
    """The ρ that the weak growth condition (AIADE §5) needs at each row: (1/n) Σ E‖g_i‖² / 2L(f − f*), L the largest L_i.

    NaN where f − f* is lost in rounding, or where the algorithm has no use for L_i or f* is not known.
    """
    gap = run.trace["suboptimality"]
    known = gap > 1e-12 * abs(run.attrs["f_star"])
    moment = run.theory["variance"] + run.trace["grad_norm"] ** 2
    return np.divide(moment, 2 * run.attrs.get("L_max", np.nan) * gap, out=np.full(gap.size, np.nan), where=known)


def least(values: NDArray) -> NDArray:
    """The minimum over rounds, rounds where the gradient was zero left out."""
    known = np.where(np.isnan(values), np.inf, values).min(axis=0)
    return np.where(np.isinf(known), np.nan, known)


@dataclass(frozen=True)
class Bound:
    """Rounds that suffice for an accuracy ε: without compression, then divided by ᾱ_T (ω̄_T) or, at worst, times d/T."""

    plain: float
    gain: float
    worst_gain: float

    def rounds(self, way: str) -> float:
        return self.plain / {"plain": 1.0, "data": self.gain, "worst": self.worst_gain}[way]


@dataclass(frozen=True)
class Table:
    """CAT table 1 for one run: its constants, and the rows of bounds."""

    run: "Run"
    stochastic: bool  # the table's right half
    gain: float  # the smallest improvement over the run: ᾱ_T, β̄_T or ω̄_T at the run's own T
    worst_gain: float  # T/d; for S+Q min(1/T, T/d)
    L: float
    mu: float
    start: float  # ε0 = F(x0) − F*, F* taken as 0 where it is not known
    R: float  # the largest ‖x_i − x*‖; NaN where x* is not known
    sigma2: float  # the largest σ²

    @classmethod
    def of(cls, run: "Run") -> "Table | None":
        """None where no lemma of CAT speaks of the run."""
        a, t = run.attrs, run.theory
        gain = least(t["improvement"][:-1]) if len(t.get("improvement", ())) > 1 else math.nan
        if not gain > 0:
            return None
        T, d = _smallest_budget(run), a["dim"]
        worst = min(1 / T, T / d) if a["curve"] == "beta" else T / d
        start = run.trace["loss"][0] - (a["f_star"] if math.isfinite(a["f_star"]) else 0.0)
        R = float(np.max(run.trace["distance"])) if "distance" in run.trace else math.nan
        sigma2 = float(np.max(t["variance"])) if a["curve"] == "omega" else 0.0
        return cls(
            run, a["curve"] == "omega", float(gain), float(worst), a["L"], a["mu"], start, R, sigma2
        )  # fmt: skip

    def bound(self, kind: str, eps: float) -> Bound:
        """Rounds for f − f* ≤ ε, or for ‖∇f‖² ≤ ε where `kind` is "non-convex"."""
        L, mu, noise = self.L, self.mu, 2 * self.sigma2
        if kind == "µ-convex":
            plain, noise = L / mu * math.log(self.start / eps) if mu > 0 else math.inf, noise / (mu * eps * L) if mu > 0 else 0.0
            plain += L / mu * math.log(2) if self.stochastic and mu > 0 else 0.0
        elif kind == "convex":
            plain, noise = 2 * L * self.R**2 / eps, noise / (eps * L)
        else:
            plain, noise = 2 * L * self.start / eps, noise / eps
        return Bound(2 * (1 + noise) * plain if self.stochastic else plain, self.gain, self.worst_gain)

    def best(self, eps: float) -> Bound:
        """The smaller of the two bounds for f − f* ≤ ε; none where the run is as good as exact."""
        if not 0 < eps <= self.start:
            return Bound(0.0 if eps > self.start else math.nan, self.gain, self.worst_gain)
        return min((self.bound(kind, eps) for kind in ("µ-convex", "convex")), key=lambda b: np.nan_to_num(b.plain, nan=math.inf))

    def lines(self) -> Iterator[str]:
        """Bounds beside the rounds that were needed, for some accuracies that were reached."""
        yield f"{'':10s}{'':12s}{'ε':>9s}{'needed':>9s}{'no compression':>16s}{'data-dependent':>16s}{'worst case':>13s}"
        rounds, trace = self.run.trace["round"], self.run.trace
        for kind, reached, first in (
            ("µ-convex", trace["suboptimality"], self.start),
            ("convex", trace["suboptimality"], self.start),
            ("non-convex", trace["grad_norm"] ** 2, trace["grad_norm"][0] ** 2),
        ):
            for eps in _levels(reached, first):
                b = self.bound(kind, eps)
                if math.isfinite(b.plain):
                    needed = rounds[np.flatnonzero(reached <= eps)[0]]
                    counts = (f"{b.rounds(way):.3g}" for way in ("plain", "data", "worst"))
                    yield f"{'':10s}{kind:12s}{eps:9.2g}{needed:9d}" + "{:>16s}{:>16s}{:>13s}".format(*counts)


def _smallest_budget(run: "Run") -> float:
    if "budget" in run.workers:
        return float(run.workers["budget"][1:].min())
    return run.trace["elements_up"][-1] / max(1, run.trace["round"][-1]) / run.attrs["n_workers"]


def _levels(reached: NDArray, first: float) -> list[float]:
    """Powers of ten below `first` that were reached, a few of them."""
    smallest = np.nanmin(reached)
    if not 0 < first < math.inf or not smallest < first / 10:
        return []
    decades = min(12, math.floor(math.log10(first / max(smallest, 1e-300))))
    return [first * 10.0**-k for k in np.unique(np.linspace(1, decades, _SHOWN_LEVELS).round().astype(int))]


def summary(run: "Run") -> Iterator[str]:
    """The theory of a result, for `show`."""
    if not run.theory:
        return
    t, d = columns(run), run.attrs["dim"]
    yield f"  theory    least over {len(run.theory['alpha'])} logged rounds (CAT fig. 1a, 1b); at worst ᾱ_T = ω̄_T = T/d"
    yield f"{'':10s}{'T':>9s}{'ᾱ_T':>11s}{'SpeedUp':>11s}{'C(T)/ᾱ_T':>12s}{'β̄_T':>12s}{'ω̄_T':>12s}"
    for T in np.unique(np.r_[10 ** np.arange(0, math.ceil(math.log10(d))), d]):
        i = int(np.searchsorted(t["T"], T))
        numbers = (t[name][i] for name in ("alpha_bar", "speedup", "predicted_cost", "beta_bar", "omega_bar"))
        yield f"{'':10s}{t['T'][i]:9d}" + "".join(f"{v:11.4g}" for v in numbers)
    if not np.all(np.isnan(needed := t["growth"])):
        shown = f"{np.nanmin(needed):.4g} to {np.nanmax(needed):.4g}"
        yield f"  growth    ρ estimated, E‖g‖²/2L(f − f*), L the largest L_i: from {shown}"
    table = Table.of(run)
    if table is None:
        yield "  table 1   has no bound for this algorithm in this setting"
        return
    symbol = {"alpha": "ᾱ", "beta": "β̄", "omega": "ω̄"}[run.attrs["curve"]]
    noise = f", σ² = {table.sigma2:.4g}" if table.stochastic else ""
    yield (
        f"  table 1   rounds to an accuracy ε, in f − f* or (non-convex) ‖∇f‖²; {symbol} = {table.gain:.4g} at this run's T, "
        f"at worst {table.worst_gain:.4g}; ε0 = {table.start:.4g}, R = {table.R:.4g}{noise}"
    )
    yield from table.lines()
