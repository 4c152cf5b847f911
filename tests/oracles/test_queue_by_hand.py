"""Workers that do not begin together: the same arrivals and iterates as by a queue of events in plain Python, which shares no code
with the package, for each rule of arrival; messages have the sizes that their codecs give."""

import heapq
import itertools
import json
from math import inf, sqrt

import numpy as np
import pytest
from helpers.grids import every_pair
from helpers.plain_ef import top
from helpers.plain_literature import batches, drawn
from helpers.running import run_of
from oracles.test_arrivals_by_hand import COST, LAWS, SEED, D, N, took, travels

import mpi_compress as mc

RULES = {  # the keys of a job; and what they mean: wait, again, stale, late, weight
    "rennala": ({"rule": "rennala", "wait": 7}, (7, True, 0, "stop", lambda δ, τ: 1)),
    "malenia": ({"rule": "malenia"}, ("each", True, 0, "stop", lambda δ, τ: 1)),
    "malenia, S = 9": ({"rule": "malenia", "wait": 9}, ("each", True, 0, "stop", lambda δ, τ: 1)),
    "ringleader": ({"rule": "ringleader"}, ("tables", True, inf, "stop", lambda δ, τ: 1)),
    "asgd": ({"rule": "asgd"}, (1, True, inf, "stop", lambda δ, τ: 1)),
    "delay-adaptive": ({"rule": "delay-adaptive"}, (1, True, inf, "stop", lambda δ, τ: min(1, N / (1 + δ)))),
    "rescaled": ({"rule": "rescaled"}, (1, True, inf, "stop", lambda δ, τ: τ)),
    "ringmaster 5": ({"rule": "ringmaster", "stale": 2}, (1, True, 2, "stop", lambda δ, τ: 1)),
    "ringmaster 4": ({"rule": "ringmaster", "stale": 2, "late": "ignore"}, (1, True, 2, "ignore", lambda δ, τ: 1)),
    "fedbuff": ({"rule": "fedbuff", "wait": 3}, (3, True, inf, "ignore", lambda δ, τ: (1 + δ) ** -0.5)),
    "fedbuff, bounded": ({"rule": "fedbuff", "wait": 2, "stale": 1}, (2, True, 1, "ignore", lambda δ, τ: (1 + δ) ** -0.5)),
    "not again": ({"wait": 2, "stale": 1}, (2, False, 1, "stop", lambda δ, τ: 1)),
    "taken as they come": ({"wait": 2, "again": True, "stale": inf}, (2, True, inf, "stop", lambda δ, τ: 1)),
}
DENSE, SMALL = {"compressor": "identity", "codec": "dense"}, {"compressor": {"name": "top-k", "k": 3}, "codec": "fixed"}
METHODS = {  # the algorithm, the uplink's compressor, the downlink
    "gd": ({"name": "gd", "step": "0.2/L"}, {"name": "identity"}, DENSE),
    "sgd": ({"name": "sgd", "batch": 2, "step": "0.1/L"}, {"name": "random-k", "k": 8}, DENSE),
    "gd, top-3 down": ({"name": "gd", "step": "0.1/L"}, {"name": "identity"}, {**SMALL, "by": "ef21-p"}),
    "ef21": ({"name": "ef21", "step": "0.1/L"}, {"name": "top-k", "k": 8}, DENSE),
    "diana": ({"name": "diana", "step": "0.1/L", "alpha": 0.05}, {"name": "random-k", "k": 8}, DENSE),
}


class Plain:
    """The methods' lines, on shards in NumPy."""

    def __init__(self, name, wait, weight, run):
        A, labels = mc.generators["gspar"](samples=100, dim=D, seed=2).make()
        cuts = [i * 100 // N for i in range(N + 1)]
        self.parts = [(A[a:b], np.where(labels[a:b] > 0, 1.0, -1.0)) for a, b in itertools.pairwise(cuts)]
        self.name, self.wait, self.weight = name, wait if type(wait) is int else N, weight
        self.γ, self.mu = json.loads(run.attrs["settled"])["step"], run.attrs["mu"]
        up = METHODS[name][1]
        self.C = (lambda v, i, k: v) if up["name"] == "identity" else drawn(up, SEED)
        self.rows = batches(self, 2, SEED) if name == "sgd" else lambda i, j: slice(None)
        self.x, self.w, self.mean, self.h = np.zeros(D), np.zeros(D), np.zeros(D), np.zeros((N, D))

    @property
    def node(self):
        return (self.w if "down" in self.name else self.x).copy()

    def message(self, i, j, x):
        A, y = (held[self.rows(i, j)] for held in self.parts[i])
        g = N / 100 * len(self.parts[i][1]) / len(y) * A.T @ (-y / (1 + np.exp(y * (A @ x)))) + self.mu * x
        c = self.C(g - self.h[i], i, j)
        self.h[i] += c if self.name == "ef21" else 0.05 * N / self.wait * c if self.name == "diana" else 0
        return c

    def act(self, taken):
        total = sum(self.weight(δ, τ) * c for δ, τ, c in taken)
        if self.name == "ef21":
            self.mean = self.mean + total / N
            self.x = self.x - self.γ * self.mean
        else:
            self.x = self.x - self.γ * (self.mean + total / self.wait)
            self.mean = self.mean + 0.05 * total / self.wait * (self.name == "diana")
        self.w = self.w + top(3)(self.x - self.w)


def queue(plain, law, acts, rule, up, answer, whole, linked, S=N):
    """Of each act its nanosecond, and after it the messages taken of each worker, those ignored, tasks that were stopped, the sum of
    staleness, and the bits down."""
    wait, again, stale, late, _ = rule
    τ = [(sqrt(i + 1) + 0.4 * ("offset" in law) if law["law"] == "sqrt" else 1.0) for i in range(N)]
    τ = [t * sum(1 / each for each in τ) / N for t in τ]
    events, version, number, nodes, computed = [], [0] * N, [-1] * N, [None] * N, [None] * N
    table, later, moved = [[] for _ in range(N)], [[] for _ in range(N)], set()  # Ringleader's, and for whom x has moved in this cycle
    V, heard, down, ignored, stopped, stalenesses, arrivals, taken, waiting, found = 0, [0] * N, 0, 0, 0, 0, [0] * N, [], [], []

    def begin(i, ns):
        nonlocal down
        bits = min((V - heard[i]) * answer, whole)
        down += bits
        heard[i], version[i], nodes[i], computed[i] = V, V, plain.node, None
        number[i] += 1
        heapq.heappush(events, (travels(bits, ns, i, linked) + took(law, i, number[i]), i, number[i], "computed"))

    def enough():
        if wait == "tables":
            return i not in moved and all(table)
        b = [sum(i == each[0] for each in taken) for i in range(N)]
        return len(taken) == wait if wait != "each" else all(b) and N / sum(1 / each for each in b) >= S / N

    for i in range(N):
        begin(i, 0)
    while len(found) < acts:
        ns, i, j, what = heapq.heappop(events)
        if j != number[i]:
            continue
        if what == "computed":
            computed[i] = plain.message(i, j, nodes[i])
            heapq.heappush(events, (travels(up, ns, i, linked), i, j, "in"))
            continue
        δ = V - version[i]
        if δ > stale:
            ignored += 1
            begin(i, ns)
            continue
        taken.append((i, j, δ, computed[i]))
        (later if i in moved else table)[i].append(computed[i])
        if again and not enough():
            begin(i, ns)
        else:
            waiting.append(i)
        if enough():
            b = [sum(i == each[0] for each in taken) if wait == "each" else 1 for i in range(N)]
            terms = [(δ, τ[i], c / b[i]) for i, j, δ, c in sorted(taken, key=lambda each: each[:2])]
            plain.act([(0, 1, sum(of) / len(of)) for of in table] if wait == "tables" else terms)
            moved.add(i)
            if len(moved) == N:
                table, later, moved = later, [[] for _ in range(N)], set()
            for i, _, δ, _ in taken:
                arrivals[i] += 1
                stalenesses += δ
            V += 1
            late_ones = [i for i in range(N) if i not in waiting and computed[i] is None and V - version[i] > stale]
            late_ones *= late == "stop"
            stopped += len(late_ones)
            for i in sorted([*waiting, *late_ones]):
                begin(i, ns)
            found.append((ns, [*arrivals], ignored, stopped, stalenesses, down))
            taken, waiting = [], []
    return found


REMEMBER = ["asgd", "taken as they come"], ["not again"]  # rules for workers that remember: with links or without, and without
CASES = [
    (method, rule, law, linked)
    for method, rule, law, linked in itertools.product(METHODS, RULES, ["equal", "sqrt", "sqrt, offset", "lognormal"], [False, True])
    if law != "sqrt, offset" or (method, rule, linked) == ("gd", "rescaled", False)
    if method not in ("ef21", "diana") or rule in REMEMBER[0] or (rule in REMEMBER[1] and not linked)
]


@pytest.mark.parametrize(("method", "rule", "law", "linked"), every_pair(CASES))
def test_arrivals_and_iterates_are_those_of_a_queue(method, rule, law, linked, tmp_path):
    (keys, means), (algorithm, up, down), acts = RULES[rule], METHODS[method], 40
    tables = {"time": {"compute": LAWS[law], **keys}, "down": down, **({"cost": COST} if linked else {})}
    run = run_of(tmp_path, algorithm, up, count=N, rounds=acts, seed=SEED, **tables)
    whole = 8 * (4 + 8 * D)
    answer = 8 * (4 + 1 + 3 + 3 * 8) if "down" in method else whole  # a count, three indices of 6 bits, and their values
    plain = Plain(method, means[0], means[-1], run)
    size = int(run.trace["wire_bits_up"][-1] / run.trace["gradients"][-1])
    nodes = {"ef21": 2, "diana": 2}.get(method, 1)  # vectors
    found = queue(plain, LAWS[law], acts, means, size, answer, nodes * whole, linked, keys.get("wait", N))
    ns, arrivals, ignored, stopped, stalenesses, bits = (np.array(column) for column in zip(*found, strict=True))
    assert [round(1e9 * s) for s in run.trace["model_seconds"][1:]] == ns.tolist()
    assert np.array_equal(run.workers["arrivals"][1:], arrivals)
    assert run.trace["ignored"][1:].tolist() == ignored.tolist()
    assert run.trace["stopped"][1:].tolist() == stopped.tolist()
    assert run.trace["staleness"][1:] * run.trace["arrivals"][1:] == pytest.approx(stalenesses)
    assert run.trace["wire_bits_down"][1:].tolist() == bits.tolist()
    assert run.trace["wire_bits_up"][-1] == size * (arrivals[-1].sum() + ignored[-1])
    assert np.abs(run.x - (plain.w if "down" in method else plain.x)).max() < 1e-10 * max(1.0, np.abs(plain.x).max())
