"""Rules of arrival: when the master acts, which messages it takes, and what becomes of work that is too old."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from mpi_compress.core.expressions import evaluate, names_in

Late = Literal["stop", "ignore"]
Name = Literal["m-synchronous", "rennala", "malenia", "asgd", "delay-adaptive", "rescaled", "ringmaster", "ringleader", "fedbuff"]


@dataclass(frozen=True)
class Rule:
    """The master acts with `wait` messages that it takes, on the mean of these. The staleness of a message is the number of the
    master's acts since its worker began; one that is above `stale` is ignored."""

    wait: int
    each: int = 0  # S > 0: it acts when the harmonic mean of the messages taken of each of the `wait` workers is at least S/wait
    tables: bool = False  # True: it moves along the means of a table that takes messages act after act (`engine.ringleader`)
    again: bool = False  # True: a worker whose message was taken begins again at once; else after the master's next act
    stale: float = 0  # the greatest staleness of a message that is taken; inf: there is none
    late: Late = "stop"  # a worker whose message would be ignored begins again, unless it has computed; or goes on in vain
    weight: str = "1"  # what a message is multiplied by: a formula in delta, its staleness, tau, its worker's mean time over the
    # harmonic mean of all, b, the messages of its worker that are taken together, and n

    def __post_init__(self) -> None:
        if not (self.stale >= 0 and (self.stale == inf or self.stale == int(self.stale))):
            raise ValueError(f"stale = {self.stale} should be a whole number from 0 on, or inf")
        if unknown := names_in(self.weight) - {"delta", "tau", "b", "n"}:
            raise ValueError(f"weight = '{self.weight}' names {min(unknown)}; it may name delta, tau, b and n")
        for delta in (0, int(min(self.stale, 1e6))):
            if not self.weighs(delta, 1.0, 1, 1) > 0:
                raise ValueError(f"weight = '{self.weight}' should be more than 0, and is not with delta = {delta}")

    @property
    def all_begin_together(self) -> bool:
        """True if all workers begin at the point of each round."""
        return self == Rule(self.wait)

    @property
    def distance(self) -> float:
        """R, the gradients that x has moved by, at most, while one of those taken was on its way (Birch SGD, arXiv 2505.09218)."""
        return self.wait * (self.stale + 1) - 1

    def may_ignore(self, has_links: bool) -> bool:
        """True if a message may be ignored: one that is under way arrives, though its worker would be stopped."""
        return self.stale < inf and (self.late == "ignore" or has_links)

    def weighs(self, delta: int, tau: float, b: int, n: int) -> float:
        """The weight of a message."""
        return evaluate(self.weight, {"delta": float(delta), "tau": tau, "b": float(b), "n": float(n)})


_TAKES_ALL: Mapping[str, Any] = {"wait": 1, "again": True, "stale": inf}
_KEYS: Mapping[str, Mapping[str, Any]] = {
    "m-synchronous": {"again": False, "stale": 0, "late": "stop", "weight": "1"},
    "rennala": {"again": True, "stale": 0, "late": "stop", "weight": "1"},
    "malenia": {"each": True, "again": True, "stale": 0, "late": "stop", "weight": "1/b"},
    "asgd": {**_TAKES_ALL, "weight": "1"},
    "delay-adaptive": {**_TAKES_ALL, "weight": "min(1, n/(1 + delta))"},
    "rescaled": {**_TAKES_ALL, "weight": "tau"},
    "ringmaster": {"wait": 1, "again": True, "weight": "1"},
    "ringleader": {"wait": "each", "tables": True, "again": True, "stale": inf, "weight": "1"},
    "fedbuff": {"again": True, "late": "ignore", "weight": "1/sqrt(1 + delta)"},
}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"malenia": {"wait": "each"}, "fedbuff": {"stale": inf}}
_NEEDS: Mapping[str, tuple[str, str]] = {
    "m-synchronous": ("wait", "m"),
    "rennala": ("wait", "B"),
    "ringmaster": ("stale", "R - 1"),
    "fedbuff": ("wait", "K"),
}


def keys_of(name: Name, given: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a named rule, with those that a job gives beside; ValueError if it gives one that the rule sets, or lacks one.

    m-synchronous SGD: arXiv 2602.03802. Rennala SGD and Malenia SGD: 2305.12387; Malenia takes the mean of the workers' means, once
    (1/n Σ 1/b_i)^−1 ≥ S/n. Its wait is S; left out it is n, and the master waits until each has sent. ASGD has one step size;
    delay-adaptive ASGD has γ min{1, n/(1 + δ)} (Koloskova, Stich, Jaggi, 2206.08307), and Rescaled ASGD γ_i ∝ τ_i (2605.13434).
    Ringmaster ASGD: 2501.16168, Algorithm 5; with late = "ignore" Algorithm 4. Ringleader ASGD: 2509.22860. FedBuff: 2106.06639.
    """
    sets = _KEYS[name]
    for key in given.keys() & sets.keys():
        raise ValueError(f'rule = "{name}" sets {key} = {sets[key]!r}: leave {key} out, or write the keys without a rule')
    key, symbol = _NEEDS.get(name, ("", ""))
    if key and key not in given:
        raise ValueError(f'rule = "{name}" needs {key}, its {symbol}')
    return {**_DEFAULTS.get(name, {}), **given, **sets}
