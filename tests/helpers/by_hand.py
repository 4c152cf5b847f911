"""Verdicts by hand: from the .h5 files of a folder and the claims of a job file alone, without a line of the package."""

import fnmatch
import itertools
import json
import operator
import re
import tomllib
from pathlib import Path

import h5py
import numpy as np
from scipy.stats import binom

DERIVED = {
    "wire_bits": "wire_bits_up + wire_bits_down", "paper_bits": "paper_bits_up + paper_bits_down",
    "relative_distance": "distance / distance[0]", "squared_grad_norm": "grad_norm ** 2", "squared_error": "error_norm ** 2",
    "kappa": "L / mu + 0 * round",
}  # fmt: skip
SIGNS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


def columns(file):
    """A result's label, its seed, and its columns by name."""
    with h5py.File(file) as f:
        found = {name: f[table][name][...] for table in ("trace", "timing") for name in f[table]}
        settled = json.loads(f.attrs.get("settled", "{}"))
        found |= {name: np.full(len(found["round"]), settled[name]) for name in settled if name not in found}
        if "tuned" in f.attrs:
            tuned = json.loads(f.attrs["tuned"])
            formula = re.sub(r"(?<=\d) +(?=[A-Za-z])", "*", str(tuned["value"]))
            own = settled.get(tuned["parameter"].removeprefix("algorithm."))
            number = eval(formula, {}, {"L": f.attrs["L"]}) if own is None else own
            sizes = [float(re.match(r"[\d.e+-]+", str(value))[0]) for value, _ in tuned["tried"]]
            won = sizes[[value for value, _ in tuned["tried"]].index(tuned["value"])]
            low, high = max([0.0, *(s for s in sizes if s < won)]), min([np.inf, *(s for s in sizes if s > won)])
            found |= {"tuned": np.array([number]), "tuned_low": np.array([number * low / won]), "tuned_high": np.array([number * high / won])}
        known = {**found, "L": f.attrs["L"], "mu": f.attrs["mu"]}
        for name, formula in DERIVED.items():
            if set(re.findall(r"[A-Za-z]\w*", formula)) <= set(known):
                with np.errstate(all="ignore"):
                    found[name] = eval(formula, {}, known)  # of this file alone
        return f.attrs["label"], tomllib.loads(f.attrs["job"]).get("seed", 0), found


def claims(job):
    """The claims of a job file, one for each point of their grids."""
    for claim in tomllib.loads(Path(job).read_text())["claim"]:
        grid = claim.pop("grid", {})
        for point in itertools.product(*grid.values()):
            filled = dict(claim)
            for name, value in zip(grid, point, strict=True):
                filled = {k: v.replace(f"{{{name}}}", str(value)) if isinstance(v, str) else v for k, v in filled.items()}
            yield filled


def value(formula, runs):
    """A claim's value from runs by label: each a dict of columns."""

    def of(label, number):
        return min(number(runs[each]) for each in ([label] if label in runs else fnmatch.filter(runs, label)))

    def last_or_reached(name):
        def call(label, **level):
            if not level:
                return of(label, lambda run: run[name][-1])
            ((at, low),) = level.items()
            return of(label, lambda run: next((v for v, x in zip(run[name], run[at], strict=True) if x <= low), np.inf))

        return call

    def over(take):
        def call(rows, label, **window):
            def number(run):
                keep = np.ones(len(run["round"]), bool)
                for at, (low, high) in window.items():
                    keep = (run[at] > low) & (run[at] <= high)
                with np.errstate(all="ignore"):
                    values = np.asarray(eval(rows, {}, run), float)[keep]
                return take(values[np.isfinite(values)])

            return of(label, number)

        return call

    names = {name for run in runs.values() for name in run}
    known = {"log": np.log, "largest": over(np.max), "smallest": over(np.min), "mean": over(np.mean)}
    with np.errstate(all="ignore"):
        return float(eval(f"({formula})", {**{name: last_or_reached(name) for name in names}, **known}))


def verdict(condition, values):
    """Holds, does not hold, or undecided: the median, and the order statistics that hold it with nine tenths or more."""
    sign, *numbers = re.findall(r"[<>]=?|in|[-+\d.e]+", condition)
    low, high = map(float, numbers) if sign == "in" else (float(numbers[0]), np.inf) if ">" in sign else (-np.inf, float(numbers[0]))
    meets = [low <= v <= high if sign == "in" else bool(SIGNS[sign](v, float(numbers[0]))) for v in sorted(values)]
    n, median = len(values), float(np.median(values))
    outside = [k for k in range(n // 2) if 2 * binom.cdf(k, n, 0.5) <= 0.1 + 1e-12]
    if outside:
        inside = meets[outside[-1] : n - outside[-1]]
        spans = min(values) < low < high < max(values) and sign == "in"
        if any(inside) != all(inside) or (spans and not any(inside)):
            return "undecided"
    met = low <= median <= high if sign == "in" else SIGNS[sign](median, float(numbers[0]))
    return "holds" if met else "does not hold"


def decides(condition, low, high):
    """Whether the condition holds at some points from low to high and not at others; a window may lie strictly between the two."""
    inside = [float(number) for number in re.findall(r"[-+\d.e]+", condition) if low < float(number) < high]
    return len({verdict(condition, [value]) for value in (low, *inside, high)}) == 2


def judged(job, folder):
    """Each claim's id, its values seed by seed, and its verdict; of runs with one seed that one is taken."""
    found = {}
    for file in sorted(Path(folder).glob("*.h5")):
        label, seed, own = columns(file)
        found.setdefault(label, {})[seed] = own
    for claim in claims(job):
        asked = set(re.findall(r"'([^']*)'", claim["value"]))
        used = [label for label in found if any(label == p or fnmatch.fnmatchcase(label, p) for p in asked)]
        seeds = sorted({s for label in used if len(found[label]) > 1 for s in found[label]}) or [0]
        at = [{label: next(iter(own.values())) if len(own) == 1 else own[s] for label, own in found.items()} for s in seeds]
        values = [value(claim["value"], runs) for runs in at]
        corners = [value(formula, runs) for runs in at for formula in between_trials(claim["value"])]
        levels = re.search(r"\w=[^=(]", claim["value"]) and any(map(np.isnan, values))  # inf/inf: no run comes down to the level
        wide = any(map(np.isnan, corners)) or (corners and decides(claim["holds"], min(corners), max(corners)))
        yield claim["id"], values, "not tested" if levels else "undecided" if wide else verdict(claim["holds"], values)


def between_trials(formula):
    """A formula with the next smaller and the next larger trial in place of each tuned number."""
    first, *others = formula.split("tuned(")
    for ends in itertools.product(("tuned_low(", "tuned_high("), repeat=len(others)) if others else ():
        yield first + "".join(itertools.chain(*zip(ends, others, strict=True)))
