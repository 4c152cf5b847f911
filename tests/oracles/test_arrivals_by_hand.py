"""Workers of unequal speed, and the first m of n to arrive: the same arrivals and iterates as by a queue of events in plain Python,
which shares no code with the package; messages have the sizes that the run counted."""

import heapq
import itertools
import json
from math import cos, exp, log1p, pi, sqrt

import numpy as np
import pytest
from helpers.grids import every_pair
from helpers.plain_literature import drawn, stream
from helpers.running import run_of

import mpi_compress as mc

N, D, SEED, TIME = 5, 40, 3, 7
LINKS = [(1e-3, 2e5), (4e-3, 2e5), (1e-3, 5e4)]  # seconds, bits a second; the workers' in turn
COST = {"model": "trace", "of_workers": [[[0, latency, rate]] for latency, rate in LINKS]}
LAWS = {
    "equal": {"law": "equal", "unit": "10 ms"},
    "sqrt": {"law": "sqrt", "unit": "10 ms"},
    "sqrt, offset": {"law": "sqrt", "unit": "10 ms", "offset": "4 ms"},
    "linear, half-normal": {"law": "linear", "unit": "5 ms", "noise": "half-normal"},
    "lognormal": {"law": "lognormal", "unit": "10 ms", "sigma": 1.5},
    "exponential": {"law": "exponential", "unit": "10 ms"},
    "pareto": {"law": "pareto", "unit": "10 ms", "alpha": 1.5},
    "a list": ["30 ms", "10 ms", "10 ms", "20 ms", 0.01],
}
METHODS = {
    "gd": ({"name": "gd", "step": "0.5/L"}, "identity"),
    "diana": ({"name": "diana", "step": "0.2/L", "alpha": 0.1}, {"name": "random-k", "k": 8}),
    "ef21": ({"name": "ef21", "step": "0.2/L"}, {"name": "top-k", "k": 8}),
}


def took(law, i, k):
    """The nanoseconds in which worker i computes its task k."""
    if isinstance(law, list):
        return round(1e9 * (float(law[i].split()[0]) / 1e3 if isinstance(law[i], str) else law[i]))
    u, v = stream(SEED, TIME, i, k).random(2)
    normal = sqrt(-2 * log1p(-u)) * cos(2 * pi * v)
    factor = {
        "equal": 1.0, "sqrt": sqrt(i + 1), "linear": i + 1 + sqrt(i + 1) * abs(normal) * ("noise" in law),
        "lognormal": exp(law.get("sigma", 0) * normal), "exponential": -log1p(-u), "pareto": (1 - u) ** (-1 / law.get("alpha", 1)),
    }[law["law"]]  # fmt: skip
    unit, offset = (float(law.get(key, "0 ms").split()[0]) / 1e3 for key in ("unit", "offset"))
    return round(1e9 * (unit * factor + offset))


def travels(bits, ns, i, linked):
    latency, rate = LINKS[i % 3]
    return max(ns, round((ns / 1e9 + latency + bits / rate) * 1e9)) if linked and bits else ns


class Plain:
    """The three methods' lines, on shards in NumPy."""

    def __init__(self, name, m, run):
        A, labels = mc.generators["gspar"](samples=100, dim=D, seed=2).make()
        cuts = [i * 100 // N for i in range(N + 1)]
        self.parts = [(A[a:b], np.where(labels[a:b] > 0, 1.0, -1.0)) for a, b in itertools.pairwise(cuts)]
        self.name, self.m, self.γ, self.mu = name, m, json.loads(run.attrs["settled"])["step"], run.attrs["mu"]
        self.C = drawn(METHODS[name][1], SEED) if name != "gd" else lambda v, i, k: v
        self.x, self.mean, self.h = np.zeros(D), np.zeros(D), np.zeros((N, D))

    def message(self, i, k):
        rows, y = self.parts[i]
        slope = -y / (1 + np.exp(y * (rows @ self.x)))
        return self.C(N / 100 * rows.T @ slope + self.mu * self.x - self.h[i], i, k)

    def act(self, taken):
        if self.name == "gd":
            self.x = self.x - self.γ * sum(taken.values()) / self.m
            return
        if self.name == "ef21":
            for i, c in taken.items():
                self.h[i] += c
            self.mean = self.mean + sum(taken.values()) / N
            self.x = self.x - self.γ * self.mean
            return
        m = sum(taken.values()) / self.m
        for i, c in taken.items():
            self.h[i] += 0.1 * N / self.m * c
        self.x, self.mean = self.x - self.γ * (self.mean + m), self.mean + 0.1 * m


def queue(plain, law, rounds, m, up, down, linked):
    """Each round's nanosecond, the workers whose messages the master took, and how many had computed."""
    now, begins, found = 0, [0] * N, []
    for k in range(rounds):
        events = [(begins[i] + took(law, i, k), i, "computed") for i in range(N)]
        heapq.heapify(events)
        computed, taken = {}, {}
        while len(taken) < m:
            ns, i, what = heapq.heappop(events)
            if what == "computed":
                computed[i] = plain.message(i, k)
                heapq.heappush(events, (travels(up, ns, i, linked), i, "in"))
            else:
                taken[i] = computed[i]
        plain.act({i: taken[i] for i in sorted(taken)})
        heard = [travels(down[k], ns, i, linked) for i in range(N)]
        now, begins = (max(heard), [max(heard)] * N) if m == N else (ns, heard)
        found.append((now, sorted(taken), len(computed)))
    return found


@pytest.mark.parametrize(("name", "law", "m", "linked"), every_pair(itertools.product(METHODS, LAWS, [5, 3, 1], [False, True])))
def test_arrivals_and_iterates_are_those_of_a_queue(name, law, m, linked, tmp_path):
    (algorithm, up), rounds = METHODS[name], 25
    tables = {"time": {"compute": LAWS[law], "wait": "all" if m == N else m}, **({"cost": COST} if linked else {})}
    run = run_of(tmp_path, algorithm, up, count=N, rounds=rounds, seed=SEED, **tables)
    each = np.diff(run.workers["wire_bits_up"], axis=0)
    down = (np.diff(run.trace["wire_bits_down"]) / N).tolist()
    plain = Plain(name, m, run)
    found = queue(plain, LAWS[law], rounds, m, int(each.max()), down, linked)
    assert [round(1e9 * s) for s in run.trace["model_seconds"][1:]] == [ns for ns, *_ in found]
    assert [np.flatnonzero(row > 32).tolist() for row in each] == [taken for _, taken, _ in found]
    assert np.diff(run.trace["gradients"]).tolist() == [computed for *_, computed in found]
    assert run.trace["arrivals"][-1] == m * rounds
    assert run.trace["stopped"][-1] == (N - m) * rounds
    assert np.abs(run.x - plain.x).max() < 1e-10 * max(1.0, np.abs(plain.x).max())
