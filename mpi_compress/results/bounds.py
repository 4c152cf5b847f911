"""CAT's bounds from a result's /theory: curves over budgets T, and table 1 beside the rounds that were needed."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpi_compress.core.tables import plain
from mpi_compress.results.columns import Result
from mpi_compress.results.targets import entry_at

HEADS = ("upper bound", "ε", "needed", "no compression", "data-dependent", "worst case")  # of table 1
Rounds = tuple[float, float, float]
"""Without compression; by the data-dependent bound, divided by ᾱ_T (ω̄_T); and at worst, times d/T."""

_SHOWN_LEVELS = 5


def columns(run: Result) -> Mapping[str, NDArray]:
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
    messages = run.trace["round"][-1] * run.attrs["n_workers"] or np.nan
    for name, sent in (("payload_sent", "paper_bits_up"), ("cost_sent", "cost_up")):
        found[name] = np.full(T.size, run.trace[sent][-1] / messages)
    found["growth"] = growth(run)
    if (table := BoundsTable.of(run)) is not None:
        ways = np.array([table.best(gap) for gap in run.trace["suboptimality"]]).T
        found |= zip(("table1_gd", "table1", "table1_worst_case"), ways, strict=True)
    return found


def growth(run: Result) -> NDArray:
    """The ρ that the weak growth condition (AIADE §5) needs at each row: (1/n) Σ E‖g_i‖² / 2L(f − f*), L the largest L_i. NaN where
    f − f* is lost in rounding, or where the algorithm has no use for L_i or f* is not known."""
    gap = run.trace["suboptimality"]
    known = gap > 1e-12 * abs(run.attrs["f_star"])
    moment = run.theory["variance"] + run.trace["grad_norm"] ** 2
    return np.divide(moment, 2 * run.attrs.get("L_max", np.nan) * gap, out=np.full(gap.size, np.nan), where=known)


def least(values: NDArray) -> NDArray:
    """The minimum over rounds, rounds where the gradient was zero left out."""
    known = np.where(np.isnan(values), np.inf, values).min(axis=0)
    return np.where(np.isinf(known), np.nan, known)


class TableRow(NamedTuple):
    """A row of CAT table 1."""

    kind: str  # "µ-convex", "convex" or "non-convex"
    eps: float  # ε
    needed: int  # rounds to come within ε
    rounds: Rounds  # that suffice


@dataclass(frozen=True)
class BoundsTable:
    """CAT table 1 for one run: its constants, and the rows of bounds."""

    run: Result
    stochastic: bool  # the table's right half
    gain: float  # the smallest improvement over the run: ᾱ_T, β̄_T or ω̄_T at the run's own T
    worst_gain: float  # T/d; for S+Q min(1/T, T/d)
    start: float  # ε0 = F(x0) − F*, F* taken as 0 where it is not known
    R: float  # the largest ‖x_i − x*‖; NaN where x* is not known
    sigma2: float  # the largest σ²

    @classmethod
    def of(cls, run: Result) -> "BoundsTable | None":
        """The table of a run; None where no lemma of CAT covers it."""
        a, t = run.attrs, run.theory
        gain = least(t["improvement"][:-1]) if len(t.get("improvement", ())) > 1 else math.nan
        if not gain > 0:
            return None
        T, d = run.trace["elements_up"][-1] / max(1, run.trace["round"][-1]) / a["n_workers"], a["dim"]
        if "budget" in run.workers:  # the smallest
            T = float(run.workers["budget"][1:].min())
        worst = min(1 / T, T / d) if a["curve"] == "beta" else T / d
        start = run.trace["loss"][0] - (a["f_star"] if math.isfinite(a["f_star"]) else 0.0)
        R = float(np.max(run.trace.get("distance", math.nan)))
        sigma2 = float(np.max(t["variance"])) if a["curve"] == "omega" else 0.0
        return cls(run, a["curve"] == "omega", float(gain), float(worst), start, R, sigma2)

    def bound(self, kind: str, eps: float) -> Rounds:
        """Rounds that suffice for f − f* ≤ ε, or for ‖∇f‖² ≤ ε where `kind` is "non-convex"."""
        L, mu, noise = self.run.attrs["L"], self.run.attrs["mu"], 2 * self.sigma2
        if kind == "µ-convex" and mu == 0:
            plain, noise = math.inf, 0.0
        elif kind == "µ-convex":
            plain, noise = L / mu * math.log(self.start / eps), noise / (mu * eps * L)
            plain += L / mu * math.log(2) if self.stochastic else 0.0
        elif kind == "convex":
            plain, noise = 2 * L * self.R**2 / eps, noise / (eps * L)
        else:
            plain, noise = 2 * L * self.start / eps, noise / eps
        return self._rounds(2 * (1 + noise) * plain if self.stochastic else plain)

    def _rounds(self, plain: float) -> Rounds:
        return plain, plain / self.gain, plain / self.worst_gain

    def best(self, eps: float) -> Rounds:
        """The smaller of the two bounds for f − f* ≤ ε; 0 rounds where ε > ε0, NaN where ε ≤ 0."""
        if not 0 < eps <= self.start:
            return self._rounds(0.0 if eps > self.start else math.nan)
        return min(self.bound("µ-convex", eps), self.bound("convex", eps), key=lambda each: np.nan_to_num(each[0], nan=math.inf))

    def cells(self) -> list[list[str]]:
        """The rows as text, under `HEADS`."""
        return [[r.kind, f"{r.eps:.2g}", f"{r.needed}", *(f"{n:.3g}" for n in r.rounds)] for r in self.rows()]

    def rows(self) -> Iterator[TableRow]:
        """Bounds beside the rounds that were needed, for some accuracies that were reached."""
        trace = self.run.trace
        gap, squares = (trace["suboptimality"], self.start), (trace["grad_norm"] ** 2, trace["grad_norm"][0] ** 2)
        for kind, (reached, first) in {"µ-convex": gap, "convex": gap, "non-convex": squares}.items():
            for eps in _levels(reached, first):
                if math.isfinite((enough := self.bound(kind, eps))[0]):
                    yield TableRow(kind, eps, int(entry_at(trace["round"], reached, eps)), enough)


def _levels(reached: NDArray, first: float) -> list[float]:
    """Powers of ten below `first` that were reached, a few of them."""
    smallest = np.nanmin(reached)
    if not 0 < first < math.inf or not smallest < first / 10:
        return []
    decades = min(12, math.floor(math.log10(first / max(smallest, 1e-300))))
    return [first * 10.0**-k for k in np.unique(np.linspace(1, decades, _SHOWN_LEVELS).round().astype(int))]


def summary(run: Result) -> Iterator[str]:
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
    table = BoundsTable.of(run)
    if table is None:
        yield "  table 1   has no bound for this algorithm in this setting"
        return
    symbol = {"alpha": "ᾱ", "beta": "β̄", "omega": "ω̄"}[run.attrs["curve"]]
    noise = f", σ² = {table.sigma2:.4g}" if table.stochastic else ""
    yield (
        f"  table 1   rounds to an accuracy ε, in f − f* or (non-convex) ‖∇f‖²; {symbol} = {table.gain:.4g} at this run's T, "
        f"at worst {table.worst_gain:.4g}; ε0 = {table.start:.4g}, R = {table.R:.4g}{noise}"
    )
    yield from plain(("", *HEADS[1:]), table.cells(), "lr", (12, 7, 7, 14, 14, 11), " " * 10)
