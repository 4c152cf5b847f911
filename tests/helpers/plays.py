"""Rounds of an algorithm on generated data, with a look at every state: what theorems about states are tested with."""

import itertools
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

import mpi_compress as mc
from mpi_compress.algorithms import Setting, algorithms, memories
from mpi_compress.core.streams import Streams
from mpi_compress.engine import rounds as engine
from mpi_compress.engine.evaluation import Evaluator
from mpi_compress.engine.observer import Observer
from mpi_compress.exchange import Exchange
from mpi_compress.job.tables import Stop
from mpi_compress.job.timing import TimeTable
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.costs import costs
from mpi_compress.messages.link import Link
from mpi_compress.problem.data_terms import data_term
from mpi_compress.problem.losses import losses
from mpi_compress.problem.objective import Objective, Shards
from mpi_compress.problem.optimum import minimize
from mpi_compress.problem.rows import Rows


def problem(
    count=4,
    loss="logistic",
    mu=1e-2,
    seed=1,
    samples=60,
    dim=30,
    apart=False,
    generator="gspar",
    scale=1.0,
    sparse=False,
    **parameters,
):
    """Shards of generated data and their constants; `sparse`: in CSR form, most entries left out."""
    A, labels = mc.datasets.generators[generator](samples=samples, dim=dim, seed=seed, **parameters).make()
    A = scale * A * (np.random.default_rng(seed).random(A.shape) < 0.2) if sparse else scale * A
    cuts = [i * samples // count for i in range(count + 1)]
    held = csr if sparse else lambda a: (np.ascontiguousarray(a),)
    rows = [Rows(held(A[a:b]), labels[a:b], dim) for a, b in itertools.pairwise(cuts)]
    curvature = losses[loss]().curvature
    L = curvature * np.linalg.eigvalsh(A.T @ A)[-1] / samples + mu
    parts = [A[a:b] for a, b in itertools.pairwise(cuts)]
    each = np.array([curvature * count / samples * np.linalg.eigvalsh(a.T @ a)[-1] + mu for a in parts])
    row = max(curvature * count / samples * len(a) * (a**2).sum(axis=1).max() + mu for a in parts)
    numbers = {
        "L": L, "L_max": each.max(), "L_rms": np.sqrt(np.mean(each**2)), "L_row": row, "mu": mu, "n": count, "d": dim, "N": samples,
    }  # fmt: skip
    fs = Shards([data_term(r, losses[loss](), count / samples, 0.0 if apart else mu) for r in rows])
    return SimpleNamespace(
        A=A, labels=labels, loss=loss, mu=mu, apart=mu if apart else 0.0, count=count, dim=dim, N=samples, fs=fs,
        numbers={**numbers, "kappa": L / mu if mu else np.inf},
    )  # fmt: skip


def csr(a):
    """A matrix in the form of sparse `Rows`."""
    matrix = sp.csr_matrix(a)
    return matrix.indptr.astype(np.uint64), matrix.indices.astype(np.uint32), matrix.data


def bound(p, algorithm, up, x0=None, x_star=None, codec=None, down=None, participants=None, cost="payload", floats_down=64, time=None):
    """An algorithm, from a job's table or of the test's own, in the setting of a problem."""
    compressor = compressors.build(up, "up")
    link = Link(compressor, codecs.build(codec or compressor.codec, "up"), p.dim)
    back = Link(compressors.build("identity", "down"), codecs.build({"name": "auto", "float": floats_down}, "down"), p.dim)
    if down:
        back = Link(compressors.build(down, "down"), codecs.build(codec or compressors.build(down, "down").codec, "down"), p.dim)
    method = algorithms.build(algorithm, "algorithm") if isinstance(algorithm, dict) else algorithm
    x0 = start(p, x0)
    g0 = np.linalg.norm(np.mean([f.value_and_gradient(x0)[1] for f in p.fs], axis=0))
    numbers = {**p.numbers, "g0": g0}
    whole = lambda rows: Objective(rows, losses[p.loss](), 1 / p.N, p.mu)  # noqa: E731
    time = TimeTable(**(time or {}))
    rule = time.rule_of(p.count)
    setting = Setting(n=p.count, dim=p.dim, up=link, down=back, cost=costs.build(cost, "cost"), numbers=numbers, mu_apart=p.apart, x_star=x_star,
                      participants=rule.wait if rule else participants, rule=rule, computing=time.computing(p.count), whole=whole)
    return method.bind(setting)


def start(p, x0=None):
    """The point that runs start from."""
    return np.full(p.dim, 0.1) if x0 is None else x0


def gradients(p, x):
    """∇f_i(x_i) of all workers (n, d); x (d,) or (n, d)."""
    x = np.broadcast_to(x, (p.count, p.dim))
    return np.array([f.value_and_gradient(np.array(x[i]))[1].copy() for i, f in p.fs.items()])


def each_memory(workers, n):
    """The memory of each of n workers alone, of their rows."""
    return {i: memories.one(workers, i) for i in range(n)}


def play(p, algorithm, up, rounds, look=lambda k, node, workers: None, x0=None, seed=0, **setting):
    """The bound algorithm, its rows and its last point; `look` sees the states before every round and at the end."""
    method = bound(p, algorithm, up, x0, **setting)
    rows = []

    class Watch(Observer):
        def look(self, k, algorithm, node, workers, finite, master=None):
            look(k, node, each_memory(workers, p.count))
            return super().look(k, algorithm, node, workers, finite, master)

    stop, cost = Stop(rounds=rounds), method.setting.cost
    watch = Watch(Evaluator(Exchange(p.count), p.fs, p.apart), cost, stop, p.N, sink=rows.append)
    verdict, x = engine.run(method, Streams(seed), start(p, x0), watch)
    trace = {c: np.array([r.trace[c] for r in rows]) for c in rows[0].trace}
    return SimpleNamespace(method=method, x=x, verdict=verdict, reason=watch.reason, trace=trace, rows=rows)


def optimum(p):
    """x* and f* of a problem."""
    whole = Rows((p.A,), p.labels, p.dim)
    found = minimize(Objective(whole, losses[p.loss](), 1 / p.N, p.mu))
    return found.x, found.f
