"""How rankings of methods depend on the way bits are counted: python docs/bit_audit.py > docs/bit-audit.md

The same runs are counted by each convention of [log] count, by the bytes that were sent, and by these with the headers of UDP on
Ethernet. Data sets are those of the package, or looked for as jobs look for them; one that is not here is left out.
"""

import itertools
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

import mpi_compress as mc

CONVENTIONS = {
    "cat": "bits_cat", "values-only-32": "bits_values_32", "values-only-64": "bits_values_64", "values+indices": "bits_values_indices",
    "min(k log2 d, …)": "bits_cheapest_indices",
}  # fmt: skip
SENT, HEADERS = "sent", "sent, with UDP's headers"
WAYS = [*CONVENTIONS, SENT, HEADERS]
SHARE = 1e-2  # of ‖∇f(x0)‖², which is to be reached

RATIO = {"mu": 0.0, "penalty": {"name": "ratio", "weight": 0.1}, "f_star": 0.0}
PROBLEMS: dict[str, dict[str, Any]] = {
    "logistic + ratio, generated, d = 300, n = 10": {
        "data": {"generator": "gspar", "samples": 1000, "dim": 300}, "objective": RATIO, "workers": {"count": 10},
    },
    "logistic + ratio, mushrooms, n = 20": {"data": {"name": "mushrooms"}, "objective": RATIO, "workers": {"count": 20}},
    "logistic + ratio, a9a, n = 20": {"data": {"name": "a9a"}, "objective": RATIO, "workers": {"count": 20}},
}  # fmt: skip
METHODS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "EF21, top-1": ({"name": "ef21"}, {"name": "top-k", "k": 1}, {"name": "auto", "float": 32}),
    "EF21, top 10 %": ({"name": "ef21"}, {"name": "top-k", "k": "10%"}, {"name": "auto", "float": 32}),
    "EF21, block signs of 16": ({"name": "ef21"}, {"name": "block-sign", "block": 16}, {"name": "packed", "float": 32}),
    "MARINA, random 10 %": ({"name": "marina"}, {"name": "random-k", "k": "10%"}, {"name": "auto", "float": 32}),
    "MARINA, PermK": ({"name": "marina"}, "perm-k", {"name": "seeded", "float": 32}),
    "DIANA, natural": ({"name": "diana"}, "natural", {"name": "entropy", "float": 32}),
    "GD, floats of 32 bits": ({"name": "gd"}, "identity", {"name": "dense", "float": 32}),
}


def played(problem: Mapping[str, Any], folder: Path) -> dict[str, mc.Run]:
    """The runs of all methods on a problem, by label."""
    runs = [
        {"label": label, "algorithm": algorithm, "up": {"compressor": compressor, "codec": codec}}
        for label, (algorithm, compressor, codec) in METHODS.items()
    ]
    file = folder / "audit.toml"
    file.write_text(tomli_w.dumps({**problem, "stop": {"rounds": 3000}, "log": {"count": [*CONVENTIONS]}, "run": runs}))
    return {run.label: run for run in mc.run(mc.load_job(file), out=folder)}


def bits(run: mc.Run) -> dict[str, float]:
    """Bits up, of all workers, until ‖∇f‖² is the share of its start; infinite where it is not reached."""
    squares = np.square(run.trace["grad_norm"])
    reached = np.flatnonzero(squares <= SHARE * squares[0])
    if not reached.size:
        return dict.fromkeys(WAYS, math.inf)
    k = int(reached[0])
    each = np.diff(run.workers["wire_bits_up"][: k + 1], axis=0).astype(float)
    headers = mc.costs.costs["udp-ethernet"]().cost(each).sum()
    columns = {**CONVENTIONS, SENT: "wire_bits_up"}
    return {**{way: float(run.trace[column][k]) for way, column in columns.items()}, HEADERS: float(headers)}


def flips(one: Mapping[str, float], other: Mapping[str, float]) -> tuple[int, int]:
    """How many pairs of methods are in another order, and how many there are; of those that reach the share."""
    pairs = [(a, b) for a, b in itertools.combinations(one, 2) if math.isfinite(one[a]) and math.isfinite(one[b])]
    return sum((one[a] < one[b]) != (other[a] < other[b]) for a, b in pairs), len(pairs)


def tables(title: str, found: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """The lines about one problem."""
    yield f"\n## {title}\n"
    yield "| method, bits up to the share | " + " | ".join(WAYS) + " |"
    yield "| --- |" + " ---: |" * len(WAYS)
    for label, of in found.items():
        places = {way: 1 + sum(other[way] < of[way] for other in found.values()) for way in WAYS}
        cells = [f"{of[way]:.3g} ({places[way]})" if math.isfinite(of[way]) else "not reached" for way in WAYS]
        yield f"| {label} | " + " | ".join(cells) + " |"
    by = {way: {label: of[way] for label, of in found.items()} for way in WAYS}
    yield "\n| pairs in another order | " + " | ".join(WAYS) + " |"
    yield "| --- |" + " ---: |" * len(WAYS)
    for reference in (SENT, HEADERS):
        against = [flips(by[way], by[reference]) for way in WAYS]
        yield f"| than by what was {reference} | " + " | ".join(f"{n} of {m}" for n, m in against) + " |"


def main() -> None:
    print("# Rankings of methods by the way bits are counted\n")
    print("Made by `python docs/bit_audit.py > docs/bit-audit.md`: the same runs, with the steps of their theorems, counted up to the round")
    print(f"in which ‖∇f(x)‖² is {SHARE:g} of its start, by the conventions of `[log] count` (docs/jobs.md), by the bytes that were sent with")
    print("their lengths, and by these in UDP packets on Ethernet, a packet or more for each message. In brackets: the place.")
    for title, problem in PROBLEMS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                runs = played(problem, Path(folder))
            except mc.UserError as error:
                print(f"left out: {error}", file=sys.stderr)
                continue
            print(*tables(title, {label: bits(run) for label, run in runs.items()}), sep="\n")


if __name__ == "__main__":
    main()
