"""DIANA+ and ADIANA+ against plain loops that draw for themselves, beside DIANA and ADIANA, and against DIANA+'s theorem."""

import numpy as np
import pytest
from helpers import plain_literature as draws
from helpers.plain_ef import shards
from helpers.plays import bound, optimum, play, problem, start
from helpers.refusals import naming
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.algorithms.smoothness import scaled
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.job.loading import load_job
from mpi_compress.messages.batch import batch_of, together
from mpi_compress.messages.kinds import Dense, Sparse, stacked
from mpi_compress.messages.link import arrived

RANDOM, ROUNDS = {"name": "random-k", "k": 5}, 60
MATRICES = ["full", "diagonal"]


def root(f, i, matrix):
    """L_i^{1/2} (d, d) of logistic regression, whose second derivatives are at most 1/4, by NumPy alone."""
    A, _ = f.parts[i]
    s, d = 0.25 * f.n / f.N, A.shape[1]
    if matrix == "diagonal":
        return np.diag(np.sqrt(s * (abs(A) * abs(A).sum(axis=1, keepdims=True)).sum(axis=0) + f.mu))
    values, vectors = np.linalg.eigh(s * A.T @ A + f.mu * np.eye(d))
    return vectors @ np.diag(np.sqrt(values)) @ vectors.T


def roots(f, matrix):
    return np.array([root(f, i, matrix) for i in range(f.n)])


def diana_plus(f, x, S, γ, α, rounds, seed=0):
    Q, P = draws.drawn(RANDOM, seed), np.linalg.inv(S)
    h, xs = np.zeros((f.n, x.size)), [x]
    for k in range(rounds):
        m = np.array([S[i] @ Q(P[i] @ (f.gradient(i, x) - h[i]), i, k) for i in range(f.n)])
        x = x - γ * (h + m).mean(axis=0)
        h = h + α * m
        xs.append(x)
    return np.array(xs)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("matrix", MATRICES)
def test_diana_plus_is_a_plain_loop(matrix, sparse):
    p, γ, α = problem(mu=0.1, sparse=sparse), 0.05, 1 / 6
    seen = []
    play(p, {"name": "diana-plus", "matrix": matrix, "step": γ}, RANDOM, ROUNDS, lambda k, node, workers: seen.append(np.array(node.x)), seed=3)
    wanted = diana_plus(shards(p), start(p), roots(shards(p), matrix), γ, α, ROUNDS, seed=3)
    np.testing.assert_allclose(seen, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("matrix", MATRICES)
def test_adiana_plus_is_a_plain_loop(matrix):
    p, q, η, seed = problem(mu=0.1), 0.3, 0.05, 2
    done = play(p, {"name": "adiana-plus", "matrix": matrix, "p": q, "step": η}, RANDOM, ROUNDS, seed=seed)
    f, µ, α, θ = shards(p), p.mu, 1 / 6, min(0.25, np.sqrt(η * p.mu / q))
    γ, S = η / (2 * (θ + η * µ)), roots(f, matrix)
    P, h = np.linalg.inv(S), np.zeros((f.n, p.dim))
    y = z = w = start(p)
    for k in range(ROUNDS):
        x, m, c = θ * z + w / 2 + (0.5 - θ) * y, [], []
        for i in range(f.n):
            stream = draws.stream(seed, draws.WORKER, i, k)
            for point, sent in ((x, m), (w, c)):
                kept, u = stream.choice(p.dim, size=5, replace=False, shuffle=False), P[i] @ (f.gradient(i, point) - h[i])
                sent.append(S[i][:, kept] @ u[kept] * (p.dim / 5))
        g, h = (h + m).mean(axis=0), h + α * np.array(c)
        after = x - η * g
        z = (1 - γ * µ) * z + γ * µ * x + γ / η * (after - x)
        w, y = (y if draws.stream(seed, draws.SHARED, 0, k).random() < q else w), after
    np.testing.assert_allclose(done.x, y, rtol=1e-12, atol=1e-12)


ONE_EACH = "".join(f"{y} {j}:2\n" for j in range(1, 7) for y in (-1, 1, 1)) * 3  # each worker's AᵀA is a multiple of I


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize(("name", "plus"), [("diana", "diana-plus"), ("adiana", "adiana-plus")])
def test_where_each_matrix_is_a_multiple_of_the_identity_it_is_the_method_without_matrices(name, plus, matrix, tmp_path):
    (tmp_path / "unit.svm").write_text(ONE_EACH)
    tables = {"data": {"path": str(tmp_path / "unit.svm")}, "workers": {"count": 3}, "objective": {"mu": 0.01}, "log": {"every": 1}}
    own = {"matrix": matrix}
    plain, other = (
        mc.run(
            {**tables, "stop": {"rounds": 50}, "run": [{"label": each, "algorithm": {"name": each, "step": 0.3, **more}, "up": {"compressor": {"name": "random-k", "k": 2}}}]},
            out=tmp_path,
            quiet=True,
        )[0]
        for each, more in ((name, {}), (plus, own))
    )  # fmt: skip
    np.testing.assert_allclose(other.x, plain.x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(other.trace["loss"], plain.trace["loss"], rtol=1e-12)
    matrices = 3 * 64 * (6 if matrix == "diagonal" else 21)
    assert np.all(other.trace["wire_bits_up"][1:] - plain.trace["wire_bits_up"][1:] == matrices)


def test_diana_plus_falls_as_its_theorem_says():
    """E‖x_k − x*‖² + Mγ²σ² falls by max(1 − γµ, 1 − α/2) a round, σ² = (1/n) Σ‖h_i − ∇f_i(x*)‖² in the norms of L_i⁻¹."""
    p, seeds = problem(mu=0.1), 8
    x_star, _ = optimum(p)
    f = shards(p)
    S = roots(f, "full")
    inverses, goal = np.linalg.inv(S @ S), np.array([f.gradient(i, x_star) for i in range(f.n)])
    ω, n, α = p.dim / 5 - 1, p.count, 5 / p.dim
    𝓛 = ω * p.numbers["L_max"]
    γ = 1 / (p.numbers["L"] + 6 * 𝓛 / n)
    Ψ = np.zeros((seeds, 401))
    for seed in range(seeds):

        def look(k, node, workers, seed=seed):
            σ2 = np.mean([(worker.h - g) @ M @ (worker.h - g) for worker, g, M in zip(workers.values(), goal, inverses, strict=True)])
            Ψ[seed, k] = np.sum((node.x - x_star) ** 2) + 4 * 𝓛 / (n * α) * γ**2 * σ2

        method = play(p, {"name": "diana-plus"}, RANDOM, 400, look, seed=seed).method
        assert (method.step, method.alpha) == pytest.approx((γ, α))
    mean, rate = Ψ.mean(axis=0), max(1 - γ * p.mu, 1 - α / 2)
    assert np.all(mean <= 1.05 * mean[0] * rate ** np.arange(401))
    assert mean[-1] < 1e-2 * mean[0]


@pytest.mark.parametrize("sparse", [False, True])
def test_the_matrices_are_above_the_hessians_and_the_diagonal_is_above_the_matrix(sparse):
    p = problem(mu=0.1, sparse=sparse)
    f, x = shards(p), np.random.default_rng(0).standard_normal(p.dim)
    for i, (A, y) in enumerate(f.parts):
        σ = 1 / (1 + np.exp(y * (A @ x)))
        hessian = f.n / f.N * (A.T * (σ * (1 - σ))) @ A + f.mu * np.eye(p.dim)
        full, diagonal = (S @ S for S in (root(f, i, matrix) for matrix in MATRICES))
        assert np.linalg.eigvalsh(full - hessian)[0] > -1e-12
        assert np.linalg.eigvalsh(diagonal - full)[0] > -1e-12
    assert p.numbers["L_max"] == pytest.approx(max(np.linalg.norm(S @ S, 2) for S in roots(f, "full")))


@pytest.mark.parametrize(("matrix", "numbers"), [("full", 30 * 31 // 2), ("diagonal", 30)])
@pytest.mark.parametrize("name", ["diana-plus", "adiana-plus"])
def test_round_0_sends_the_root_in_the_floats_of_the_codec(name, matrix, numbers):
    p = problem(mu=0.1)
    method = bound(p, {"name": name, "matrix": matrix, "step": 0.1}, RANDOM, codec={"name": "fixed", "float": 32})
    node, f, t = method.start(start(p)), p.fs[1], Round(0, Streams(0), Role.WORKER, 1)
    worker, master = method.start_worker(node, f), method.start_master(node)
    message = method.worker_sends(node, worker, f, t)
    link, own, received = method.uplink(node, 0), method.uplink(node, 1), batch_of(message.raw)
    sent = link.unpack(received)
    assert message.size == own.encode(sent.parts[0]).size + 4 * numbers
    assert link.paper_bits(sent) == own.paper_bits(sent.parts[0]) + 32 * numbers
    method.master_answers(node, master, arrived(link, together([received] * p.count)), t)
    np.testing.assert_array_equal(master.S[1], worker.L.S)  # to the last bit, rounded as they are
    np.testing.assert_allclose(worker.L.S, root(shards(p), 1, "full") if matrix == "full" else np.diag(root(shards(p), 1, matrix)), rtol=1e-5, atol=1e-6)


def test_a_diagonal_leaves_sparse_messages_sparse():
    Δ = stacked([Sparse(4, np.array([1, 3], dtype=np.uint32), np.array([2.0, -1.0])), Sparse(4, np.array([2], dtype=np.uint32), np.ones(1))])
    diagonals = np.array([np.arange(4.0), np.full(4, 5.0)])
    for S, kind in ((diagonals, Sparse), (np.array([np.diag(diagonal) for diagonal in diagonals]), Dense)):
        assert isinstance(scaled(S, Δ), kind)
        assert scaled(S, Δ).dense().tolist() == [[0, 2, 0, -3], [0, 0, 5, 0]]


def test_a_diagonal_changes_nothing_for_a_compressor_that_keeps_or_drops_coordinates():
    """D^{1/2} Q(D^{−1/2} v) = Q(v) then; of quantisers, whose errors follow the largest coordinate, it is not so."""
    p, look = problem(mu=0.1), {"step": 0.05}
    for up, alike in ((RANDOM, True), ({"name": "qsgd", "levels": 4}, False)):
        plain = play(p, {"name": "diana", **look}, up, 30)
        plus = play(p, {"name": "diana-plus", "matrix": "diagonal", **look}, up, 30)
        assert np.allclose(plain.x, plus.x, rtol=1e-11, atol=1e-13) is alike


def test_where_columns_differ_in_size_quantised_messages_need_fewer_bits_by_a_diagonal(tmp_path):
    """Each step is tuned, and the bits of the diagonals count."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((240, 40)) * np.logspace(0, -1.5, 40)
    y = np.where(A @ rng.standard_normal(40) > 0, 1, -1)
    file = tmp_path / "sizes.svm"
    file.write_text("".join(f"{b} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(a)) + "\n" for a, b in zip(A, y, strict=True)))
    values = [f"{2.0**j}/L" for j in range(-3, 2)]
    tune = {"parameter": "algorithm.step", "values": values, "to": {"suboptimality": 1e-3}, "by": "wire_bits_up"}
    up = {"compressor": {"name": "qsgd", "levels": 1}, "codec": {"name": "auto", "float": 32}}
    given = {"diana": {}, "diana-plus": {"matrix": "diagonal"}}
    runs = [{"label": name, "algorithm": {"name": name, "step": "1/L", **more}, "up": up} for name, more in given.items()]
    tables = {"data": {"path": str(file)}, "workers": {"count": 4}, "objective": {"mu": "1e-3 L"}}
    stop = {"rounds": 300, "suboptimality": 1e-3}
    plain, plus = mc.run({**tables, "stop": stop, "tune": tune, "run": runs}, out=tmp_path, quiet=True)
    assert plain.tuned["settled"]
    assert plus.tuned["settled"]
    bits = [run.to("suboptimality", 1e-3)["wire_bits_up"] for run in (plain, plus)]
    assert bits[1] < 0.9 * bits[0]


@pytest.mark.parametrize("name", ["diana-plus", "adiana-plus"])
@pytest.mark.parametrize(
    ("algorithm", "tables", "text"),
    [
        ({"matrix": "diagonal"}, {}, 'with matrix = "diagonal" needs a step'),
        ({"matrix": "diagonal", "step": "2 theory"}, {}, "matrix diagonal"),
        ({}, {"up": {"name": "top-k", "k": 3}}, "needs an unbiased compressor up: natural or random-k would do"),
        ({}, {"objective": {"mu": 0.0}}, "needs mu > 0"),
        ({"step": 0.1}, {"objective": {"model": "softmax", "mu": 0.1}}, "name a loss of a margin, such as logistic, no model"),
        ({"step": 0.1}, {"objective": {"loss": "hinge", "mu": 0.1}}, "needs matrices L_i, which follow from the curvature that a smooth loss states"),
        ({"step": 0.1}, {"objective": {"penalty": {"name": "ratio", "weight": 0.1}, "mu": 0.1}}, "leave objective.penalty out"),
        ({"step": 0.1}, {"data": {"generator": "gspar", "samples": 20, "dim": 2501}}, 'for d up to 2500: matrix = "diagonal" would do'),
        ({"step": 0.1}, {"workers": {"count": 4, "participate": 2}}, "participate = 2"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(name, algorithm, tables, text, tmp_path):
    up, others = tables.get("up", RANDOM), {key: value for key, value in tables.items() if key != "up"}
    with pytest.raises(mc.UserError, match=naming(text)):
        run_of(tmp_path, {"name": name, **algorithm}, up, **others)


def test_a_plan_tells_the_memory_of_the_matrices(tmp_path):
    text = '[data]\ngenerator = "gspar"\nsamples = 200\ndim = 2000\n[objective]\nmu = 0.1\n[workers]\ncount = 50\n[stop]\nrounds = 1\n[up.compressor]\nname = "random-k"\nk = 3\n'
    (tmp_path / "job.toml").write_text(text + '[algorithm]\nname = "diana-plus"\n')
    (spec,) = load_job(tmp_path / "job.toml").runs
    assert spec.algorithm.more_memory(2000, 50) == (2 * 2000**2, 50 * 2000**2)
