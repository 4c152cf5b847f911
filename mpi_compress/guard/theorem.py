"""V of a method on small random problems, round by round, beside the factor that its theorem states."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms import Method, algorithms
from mpi_compress.algorithms.theorem import stated
from mpi_compress.core.errors import UserError
from mpi_compress.guard.findings import SEED, Finding
from mpi_compress.guard.random_problems import RandomProblem, random_problem
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Vector

PROBLEMS, ROUNDS = 100, 50
_SEEDS, _MORE = 8, 64  # of a theorem about the mean, and further ones where these leave doubt
_DOUBTFUL, _SURE = 0.0, 5.0  # standard errors above ρ: where more seeds are asked, and where chance is no excuse


@dataclass(frozen=True)
class Fall:
    """How V falls on a problem."""

    measured: float  # the worst factor of a round; of a theorem about the mean, the mean over rounds and seeds
    stated: float  # ρ there
    broken: str = ""  # where V rose above ρV

    @property
    def slack(self) -> float:
        """By how much more V falls than it has to."""
        return (1 - self.measured) / max(1 - self.stated, 1e-300)


def theorem(method: Method, problems: int = PROBLEMS, rounds: int = ROUNDS, own: Sequence[Compressor] = ()) -> Iterator[Finding]:
    """V of a declared method on random problems, up to the first one where it rises above ρV; by `own` compressors up and down."""
    if not stated(method):
        those = ", ".join(name for name, cls in algorithms.items() if stated(object.__new__(cls)))
        raise UserError(f"--theorem: {method.name} states no V, as its theorem may (docs/theorem.md); these do: {those}")
    found: list[tuple[Fall, str]] = []
    why, seed = "", 0
    while seed < problems and not (found and found[-1][0].broken):
        p, seed = random_problem(method, seed, own), seed + 1
        why = p if isinstance(p, str) else why
        found += [] if isinstance(p, str) else [(measured(p, rounds), p.text)]
    if not found:
        yield Finding("theorem", False, f"no problem of {problems} goes with it: {why}")
        return
    fall, text = found[-1] if found[-1][0].broken else min(found, key=lambda each: each[0].slack)
    worst = f"on the worst of {len(found)} random problems V goes to {fall.measured:.6g} V in a round"
    yield Finding("theorem", not fall.broken, f"{fall.broken or f'{worst}; the theorem says {fall.stated:.6g} V'} ({text})")


def measured(p: RandomProblem, rounds: int) -> Fall:
    """How V falls on a problem."""
    with np.errstate(all="ignore"):
        V, ρ = p.fall(SEED, rounds)
        again = p.fall(SEED + 1, rounds)
        if np.array_equal(V, again[0]):  # chance takes no part
            return _exact(V, ρ)
        found = _in_mean([(V, ρ), again, *(p.fall(SEED + s, rounds) for s in range(2, _SEEDS))], _DOUBTFUL)
        return _in_mean([p.fall(SEED + s, rounds) for s in range(_SEEDS, _MORE)], _SURE) if found.broken else found


def _exact(V: Vector, ρ: Vector) -> Fall:
    factors, within = V[1:] / V[:-1], V[1:] <= ρ * V[:-1] + 1e-9 * V[:-1] + 1e-12 * V[0]
    if within.all():
        k = int(np.argmax(factors - ρ)) if ρ.size else 0
        return Fall(float(factors[k]), float(ρ[k])) if ρ.size else Fall(0.0, 1.0)
    k = int(np.argmin(within))  # NaN, too
    said = f"V goes to {factors[k]:.6g} V in round {k}; the theorem says {ρ[k]:.6g} V"
    return Fall(float(factors[k]), float(ρ[k]), said)


def _in_mean(runs: Sequence[tuple[Vector, Vector]], sure: float) -> Fall:
    """By the mean over seeds and rounds up to each round, with its standard error."""
    length = min(len(ρ) for _, ρ in runs)
    factors, ρ = (np.array([each[:length] for each in of]) for of in ([V[1:] / V[:-1] for V, _ in runs], [ρ for _, ρ in runs]))
    for k in range(1, length + 1):
        over, mean, limit = (factors - ρ)[:, :k], float(factors[:, :k].mean()), float(ρ[:, :k].mean())
        error = float(over.std()) / math.sqrt(over.size)
        if not over.mean() <= sure * error + 1e-9:
            said = f"V goes to {mean:.6g} ± {error:.2g} V in the mean of rounds 0 to {k - 1}; the theorem says {limit:.6g} V"
            return Fall(mean, limit, said)
    return Fall(float(factors.mean()), float(ρ.mean()))
