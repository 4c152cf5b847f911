"""What `show` says of V: the factors of a run's rounds, or their means over seeds, beside those of the theorem."""

from collections.abc import Iterator, Sequence

import numpy as np

from mpi_compress.results.reader import Run

_COLUMNS = ("lyapunov", "lyapunov_rate", "lyapunov_bound", "round")


def factor_text(factor: float) -> str:
    """A factor of V; as 1 − 4e-08 where its first digits do not tell it from 1."""
    return f"1 − {1 - factor:.3g}" if f"{factor:.6g}" == "1" and factor < 1 else f"{factor:.6g}"


def summary(runs: Sequence[Run]) -> Iterator[str]:
    """A line on one run, or on runs that differ in their seed alone."""
    if why := runs[0].attrs.get("lyapunov_unknown"):
        yield f"not evaluated: {why}"
    length, seeds = min(run.rows for run in runs) - 1, len(runs)
    if "lyapunov" not in runs[0].trace or length < 1:
        return
    V, rate, bound, rounds = (np.array([r.trace[c][: length + 1] for r in runs]) for c in _COLUMNS)
    if np.isnan(V[:, 1:]).all():
        yield "not evaluated: the theorem is local, and covers no record of this run"
        return
    with np.errstate(all="ignore"):
        ρ = ((bound[:, 1:] / bound[:, :-1]) ** (1 / np.diff(rounds))).mean(axis=0)
        seen = V[:, 1:] > 1e-12 * np.fmax.reduce(V, axis=1, keepdims=True)  # and not lost in rounding
        factors = np.where(seen & ~np.isnan(ρ), np.nan_to_num(rate[:, 1:]), 0.0)
    if not factors.any():
        yield "not judged: V is 0 in every record, up to rounding"
        return
    usual = np.exp(np.log(factors[factors > 0]).mean())
    worst, error = factors.mean(axis=0), factors.std(axis=0) / np.sqrt(seeds)
    k, over = int(np.argmax(worst)), worst - 4.0 * error > ρ * (1 + 1e-9)
    interval = f" ± {1.96 * error[k]:.2g} (mean of {seeds} seeds)" if seeds > 1 else ""
    found = f"worst factor of a round {factor_text(worst[k])}{interval}, geometric mean {usual:.6g}"
    said = f"{found}, the theorem's {factor_text(ρ[k])}"
    judged = f": exceeded in {over.sum()} of {length} records" if over.any() else ": holds"
    yield said + (", which is about the mean over seeds" if runs[0].attrs["lyapunov_in_mean"] and seeds == 1 else judged)
