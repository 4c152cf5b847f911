"""The loops of two groups of authors, read in their public scripts and stated anew here, at this package's times and minibatches: the
same instants, and the same iterates. Their scripts draw a time whenever a task begins, from one stream, so that two methods never have
the same times.

    Tyurin, Richtárik     github.com/k3nfalt/optimal-decentralized-optimization, asynchronous/algorithm.py: Asynchronous SGD, which
                          takes no gradient that is more than n arrivals old, and Rennala SGD; neither stops a worker
    Maranjyan, Richtárik  scripts of Ringmaster and Ringleader ASGD, asynchronous/algorithm.py: both, delay-adaptive ASGD, and Rennala
                          and Malenia SGD, which stop all workers. These two begin the task of the worker that came last once more
                          before they drop it: it has no number here
"""

import heapq
from itertools import islice
from math import inf

import numpy as np
import pytest
from helpers.running import run_of
from oracles.test_arrivals_by_hand import LAWS, SEED, D, N, took
from oracles.test_queue_by_hand import METHODS, Plain

ACTS = 40


class Workers:
    """Tasks of n workers: how long one takes is drawn at its worker and number, and so is its gradient, of the point at its begin."""

    def __init__(self, law, gradient):
        self.law, self.gradient, self.events, self.numbers, self.ns = law, gradient, [], [-1] * N, 0
        self.tasks = {}

    def begin(self, who, x, version=0):
        for i in who:
            self.numbers[i] += 1
            self.tasks[i] = x.copy(), version
            heapq.heappush(self.events, (self.ns + took(self.law, i, self.numbers[i]), i, self.numbers[i]))

    def next(self):
        """The next worker that has computed, its gradient, and the version of its point."""
        while True:
            self.ns, i, number = heapq.heappop(self.events)
            if number == self.numbers[i]:
                x, version = self.tasks[i]
                return i, self.gradient(i, number, x), version


def asynchronous_sgd(w, γ):
    x, arrivals = np.zeros(D), 0
    w.begin(range(N), x)
    while True:
        i, g, version = w.next()
        if version < arrivals - N:
            return  # it is ignored, and counts as an arrival: a run counts acts, and goes on otherwise
        x, arrivals = x - γ * g, arrivals + 1
        yield w.ns, x
        w.begin([i], x, arrivals)


def rennala_without_stops(w, γ, B=4):
    x, k, total, b = np.zeros(D), 0, 0.0, 0
    w.begin(range(N), x)
    while True:
        i, g, version = w.next()
        if version == k:
            total, b = total + g, b + 1
        if b == B:
            x, k, total, b = x - γ * total / B, k + 1, 0.0, 0
            yield w.ns, x
        w.begin([i], x, k)


def delay_adaptive(w, γ):
    x, delays = np.zeros(D), np.zeros(N)
    w.begin(range(N), x)
    while True:
        i, g, _ = w.next()
        x = x - γ * N / max(N, delays[i]) * g
        delays += 1
        delays[i] = 0
        yield w.ns, x
        w.begin([i], x)


def ringmaster(w, γ, R=3):
    x, delays = np.zeros(D), np.zeros(N)
    w.begin(range(N), x)
    while True:
        i, g, _ = w.next()
        x = x - γ * g
        delays += 1
        delays[i] = 0
        yield w.ns, x
        w.begin([i], x)
        late = np.flatnonzero(delays == R)
        delays[late] = 0
        w.begin(late.tolist(), x)


def rennala(w, γ, B=4):
    x = np.zeros(D)
    while True:
        w.begin(range(N), x)
        total = 0.0
        for b in range(B):
            i, g, _ = w.next()
            total = total + g
            if b < B - 1:
                w.begin([i], x)
        x = x - γ * total / B
        yield w.ns, x


def malenia(w, γ):
    x = np.zeros(D)
    while True:
        w.begin(range(N), x)
        totals, counts = np.zeros((N, D)), np.zeros(N)
        while True:
            i, g, _ = w.next()
            totals[i], counts[i] = totals[i] + g, counts[i] + 1
            if counts.all():
                break
            w.begin([i], x)
        x = x - γ * np.mean(totals / counts[:, None], axis=0)
        yield w.ns, x


def ringleader(w, γ):
    x, means, counts = np.zeros(D), np.zeros((2, N, D)), np.zeros((2, N))

    def take(table, i, g):
        counts[table, i] += 1
        means[table, i] += (g - means[table, i]) / counts[table, i]

    w.begin(range(N), x)
    while True:
        while True:
            i, g, _ = w.next()
            take(0, i, g)
            if counts[0].all():
                break
            w.begin([i], x)
        x = x - γ * means[0].mean(axis=0)
        yield w.ns, x
        w.begin([i], x)
        owed = set(range(N)) - {i}
        while owed:
            i, g, _ = w.next()
            take(0 if i in owed else 1, i, g)
            if i in owed:
                owed.remove(i)
                x = x - γ * means[0].mean(axis=0)
                yield w.ns, x
            w.begin([i], x)
        means, counts = np.stack([means[1], np.zeros((N, D))]), np.stack([counts[1], np.zeros(N)])


CASES = {  # a loop, the keys of a job, and laws of times
    "Asynchronous SGD": (asynchronous_sgd, {"rule": "asgd"}, LAWS),
    "Rennala, without stops": (rennala_without_stops, {"wait": 4, "again": True, "stale": 0, "late": "ignore"}, LAWS),
    "delay-adaptive": (delay_adaptive, {"wait": 1, "again": True, "stale": inf, "weight": "n/max(n, delta)"}, LAWS),
    "Ringmaster": (ringmaster, {"rule": "ringmaster", "stale": 2}, LAWS),
    "Rennala": (rennala, {"rule": "rennala", "wait": 4}, LAWS),
    "Malenia": (malenia, {"rule": "malenia"}, LAWS),
    "Ringleader": (ringleader, {"rule": "ringleader"}, LAWS),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "law"), [(name, law) for name, (_, _, laws) in CASES.items() for law in laws])
def test_runs_are_those_of_the_authors_loops(name, law, tmp_path):
    loop, keys, _ = CASES[name]
    algorithm, up, down = METHODS["sgd"]
    first = run_of(tmp_path / "first", algorithm, up, count=N, rounds=1, seed=SEED, down=down)
    plain = Plain("sgd", 1, None, first)
    found = [*islice(loop(Workers(LAWS[law], plain.message), plain.γ), ACTS)]
    time = {"compute": LAWS[law], **keys}
    run = run_of(tmp_path, algorithm, up, count=N, rounds=len(found), seed=SEED, time=time, down=down)
    assert len(found) == ACTS or name == "Asynchronous SGD"
    assert [round(1e9 * s) for s in run.trace["model_seconds"][1:]] == [ns for ns, _ in found]
    assert np.abs(run.x - found[-1][1]).max() < 1e-10 * max(1.0, np.abs(run.x).max())
