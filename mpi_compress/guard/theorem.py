"""V of a method on small random problems, round by round, beside the factor that its theorem states; and what it assumes: δ and ω,
workers that draw independently, a coin's chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from mpi_compress.algorithms.steps import named_by
from mpi_compress.algorithms.theorem import in_mean, names_of_theorem, stated
from mpi_compress.algorithms.vocabulary import Link, Method, Shards, Vector, algorithms, has_state, triangle
from mpi_compress.core.errors import UserError
from mpi_compress.guard import of_messages
from mpi_compress.guard.findings import SEED, Finding, Findings, worst
from mpi_compress.guard.of_algorithms import CheckedRounds
from mpi_compress.guard.of_messages import applied, of_two_levels, states_something, vectors
from mpi_compress.guard.random_problems import RandomProblem, links_of, loses_much, random_problem
from mpi_compress.messages.compressors import Compressor
from mpi_compress.results.theorem import factor_text

PROBLEMS, ROUNDS = 100, 50
TOO_LOOSE = 10.0  # times that V falls more than it has to, on every problem
_SEEDS, _MORE = 8, 64  # of a theorem about the mean, and further ones where these leave doubt
_DOUBTFUL, _SURE = 0.0, 5.0  # standard errors above ρ: where more seeds are asked, and where chance is no excuse
_DRAWS = 400  # of C(v), of each vector
_PLAYED, _PLAYS, _TOSSES = 7, 4, 1000  # rounds and seeds in which the messages of workers alike are compared; tosses of a coin


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
    method: Method, problems: int = PROBLEMS, rounds: int = ROUNDS, own: Sequence[Compressor] = ()
) -> Findings:
    """What a declared method's theorem assumes, and, if that holds, V on random problems, up to the first one where it rises above
    ρV; by `own` compressors up and down."""
    if not stated(method):
        those = ", ".join(name for name, cls in algorithms.items() if stated(object.__new__(cls)))
        raise UserError(f"--theorem: {method.name} states no V, as its theorem may (docs/own-algorithm.md); these do: {those}")
    tried = [random_problem(method, seed, own) for seed in range(problems)]
    made = [p for p in tried if not isinstance(p, str)]
    if not made:
        yield Finding("theorem", False, f"no problem of {problems} goes with it: {tried[-1]}")
        return
    assumed = [*assumptions(method, made)]
    yield from assumed
    if wrong := [each.what for each in assumed if not each.holds]:
        yield Finding("theorem", False, f"V is not measured, as what the theorem assumes is wrong: {', '.join(wrong)}")
        return
    found: list[tuple[Fall, RandomProblem]] = []
    for p in made:
        fall = measured(p, rounds)
        if fall.broken:
            yield Finding("theorem", False, f"{fall.broken} ({p.text})")
            return
        found.append((fall, p))
    yield _worst("theorem", found, "random problems")
    if lossy := [each for each in found if each[1].is_compressed]:
        yield _worst("compressed", lossy, "of these with several workers and compressed messages")


def _worst(what: str, found: Sequence[tuple[Fall, RandomProblem]], of: str) -> Finding:
    """How V falls on the problem where it comes nearest to what the theorem says."""
    fall, p = min(found, key=lambda each: each[0].slack)
    loose = "loose" * (fall.slack > TOO_LOOSE)
    text = "too loose to judge: " * bool(loose) + f"on the worst of {len(found)} {of} V goes to {factor_text(fall.measured)} V"
    text += f" in a round; the theorem says {factor_text(fall.stated)} V"
    return Finding(what, True, f"{text} ({p.text})", doubt=loose)


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
    if not ρ.size:
        return Fall(0.0, 1.0)
    factors, within = V[1:] / V[:-1], V[1:] <= ρ * V[:-1] + 1e-9 * V[:-1] + 1e-12 * V[0]
    k = int(np.argmax(factors - ρ) if within.all() else np.argmin(within))  # NaN, too
    said = f"V goes to {factors[k]:.6g} V in round {k}; the theorem says {ρ[k]:.6g} V" * (not within[k])
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


def assumptions(given: object, problems: Sequence[RandomProblem]) -> Findings:
    """What is found of a declared method's assumptions on its problems."""
    links = [link for p in problems for link in links_of(p.method) if not p.method.sets_compressor]
    known = [link for link in links if states_something(link.compressor, link.dim) and not has_state(link.compressor)]
    known.sort(key=lambda link: (loses_much(link), -(link.compressor.omega(link.dim) or 0.0)))
    for link in {link.compressor.name: link for link in known}.values():  # of each the one with the least ω of those that lose much
        yield from _constants(link)
    yield from _independence(given, problems)
    yield from _coin(problems)


def _hard(dim: int) -> dict[str, Vector]:
    """Vectors (dim,) on which δ and ω of compressors are met: beside the usual ones and those of two levels that of equal numbers
    between two powers of 2, and an identity matrix's triangle."""
    found = vectors(dim) | of_two_levels(dim) | {"of four thirds": np.full(dim, 4 / 3)}
    side = (math.isqrt(8 * dim + 1) - 1) // 2
    return found | ({"of an identity matrix": triangle(np.eye(side))} if side * (side + 1) // 2 == dim else {})


def _constants(link: Link) -> Findings:
    """δ or ω of a compressor on hard vectors, and that some vector comes near to it; what else is wrong of it goes before."""
    found = {each.what: each for each in worst(_on_hard_vectors(link.compressor, link.dim))}
    wrong = [each for each in found.values() if not each.holds]
    said = max(wrong, key=lambda each: each.ratio) if wrong else found.get("ω") or next(iter(found.values()))
    holds = not wrong and said.ratio * of_messages.LOOSE >= 1
    yield replace(said, what=f"{said.what} of {link.compressor.name}", holds=holds)


def _on_hard_vectors(c: Compressor, dim: int) -> Findings:
    for name, v in _hard(dim).items():
        yield from of_messages.stated(c, v, np.array([applied(c, v, k, k % 3).dense() for k in range(_DRAWS)]), name)


def _independence(given: object, problems: Sequence[RandomProblem]) -> Findings:
    """Whether workers with the same samples draw alike, where a theorem divides ω, or the variance of minibatches, by n."""
    named = names_of_theorem(given) | named_by(given)
    lossy = [p for p in problems if p.is_compressed and in_mean(p.method)]
    found = lossy or [p for p in problems if len(p.fs) > 1 and p.method.batch is not None]
    if not found or "n" not in named or not {"omega", "batch"} & named:
        return
    p = found[0]
    fs = Shards([p.fs.terms[0]] * len(p.fs))
    plays = [CheckedRounds(p.method, fs, p.x0, False, SEED + seed) for seed in range(_PLAYS)]
    sent = [play.play(k)[0] for play in plays for k in range(_PLAYED)]
    first, *others = [[each.part(i, i + 1).raw.tobytes() for each in sent] for i in range(len(fs))]
    alike = [i for i, own in enumerate(others, 1) if own == first]
    text = f"worker {alike[0]} draws as worker 0 does" if alike else "workers with the same samples send unlike messages"
    yield Finding("independence", not alike, f"{text} ({p.text})")


def _coin(problems: Sequence[RandomProblem]) -> Findings:
    """Heads of the method's coin, counted, where its chance is farthest from ½."""
    tossing = [p for p in problems if 0 < getattr(p.method, "p", 1.0) < 1]
    if not tossing:
        return
    p = max(tossing, key=lambda p: abs(p.method.p - 0.5))
    chance, heads, tosses = p.method.p, 0.0, 0.0
    for seed, k in product(range(_TOSSES), range(_PLAYED)):
        if k == 0:
            play = CheckedRounds(p.method, p.fs, p.x0, False, SEED + seed)
        taken = play.fs.samples[0]
        play.play(k)
        new = p.method.theorem.tossed(play.nodes[0], play.ups, (play.fs.samples[0] - taken) / play.fs.sizes[0])
        heads, tosses = heads + new[0], tosses + new[1]
        if not tosses or tosses >= _TOSSES:
            break
    if tosses:
        off = _SURE * math.sqrt(chance * (1 - chance) / tosses) + 1 / tosses
        text = f"{heads:.0f} heads of {tosses:.0f} tosses; the theorem's coin has p = {chance:.6g} ({p.text})"
        yield Finding("coin", abs(heads / tosses - chance) <= off, text)
