"""V of a method on small random problems, round by round, beside the factor that its theorem states."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mpi_compress.algorithms import Method, algorithms
from mpi_compress.algorithms.theorem import stated
from mpi_compress.core.errors import UserError
from mpi_compress.guard.assumptions import assumptions
from mpi_compress.guard.findings import SEED, Finding
from mpi_compress.guard.random_problems import FAMILY, Family, RandomProblem, random_problem
from mpi_compress.messages.compressors import Compressor
from mpi_compress.messages.kinds import Vector
from mpi_compress.results.theorem import factor_text

PROBLEMS, ROUNDS = 100, 50
TOO_LOOSE = 10.0  # times that V falls more than it has to, on every problem
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


def theorem(
    method: Method, problems: int = PROBLEMS, rounds: int = ROUNDS, own: Sequence[Compressor] = (), family: Family = FAMILY
) -> Iterator[Finding]:
    """What a declared method's theorem assumes, and V on random problems, up to the first one where it rises above ρV; by `own`
    compressors up and down."""
    if not stated(method):
        those = ", ".join(name for name, cls in algorithms.items() if stated(object.__new__(cls)))
        raise UserError(f"--theorem: {method.name} states no V, as its theorem may (docs/theorem.md); these do: {those}")
    tried = [random_problem(method, seed, own, family) for seed in range(problems)]
    made = [p for p in tried if not isinstance(p, str)]
    if not made:
        yield Finding("theorem", False, f"no problem of {problems} goes with it: {tried[-1]}")
        return
    yield from assumptions(method, made)
    found: list[tuple[Fall, RandomProblem]] = []
    for p in made:
        found.append((measured(p, rounds), p))
        if found[-1][0].broken:
            yield Finding("theorem", False, f"{found[-1][0].broken} ({p.text})")
            return
    yield _worst("theorem", found, "random problems")
    if lossy := [each for each in found if each[1].is_compressed]:
        yield _worst("compressed", lossy, "of these with several workers and compressed messages")


def _worst(what: str, found: Sequence[tuple[Fall, RandomProblem]], of: str) -> Finding:
    """How V falls on the problem where it comes nearest to what the theorem says."""
    fall, p = min(found, key=lambda each: each[0].slack)
    loose = "too loose to judge: " * (fall.slack > TOO_LOOSE)
    text = f"{loose}on the worst of {len(found)} {of} V goes to {factor_text(fall.measured)} V"
    text += f" in a round; the theorem says {factor_text(fall.stated)} V"
    return Finding(what, True, f"{text} ({p.text})", loose=bool(loose))


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
