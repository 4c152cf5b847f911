"""Methods that a job's line puts together: an estimator, a server and a downlink; beside plain loops, where they coincide, and refusals."""

from copy import deepcopy
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from helpers import plain_literature as draws
from helpers import plain_products as plain
from helpers.grids import every_pair
from helpers.plain_ef import shards
from helpers.plays import optimum, play, problem, start
from helpers.refusals import naming
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress.algorithms import algorithms, downlinks, servers
from mpi_compress.algorithms.parts import dense
from mpi_compress.algorithms.product import Estimator, heard_by
from mpi_compress.algorithms.servers.norms import Muon, polar_factor
from mpi_compress.core.expressions import evaluate

TOP, RANDOM, EXACT = {"name": "top-k", "k": 3}, {"name": "random-k", "k": 3}, {"name": "identity"}
HEAVY, NESTEROV, ADAM = {"name": "heavy-ball", "beta": 0.8}, {"name": "nesterov", "momentum": 0.6}, {"name": "adam", "beta2": 0.9}
DITHERED = {"name": "correlated-dithering", "levels": 3, "n": 4}
SQUEEZE, MARINA_P = "double-squeeze", {"name": "marina-p", "p": 0.4}
γ, ROUNDS = 0.1, 40


def own_coin(i, k):
    """What a worker draws after its random-k has drawn 3 of 12 coordinates."""
    stream = draws.stream(0, draws.WORKER, i, k)
    stream.choice(12, size=3, replace=False, shuffle=False)
    return stream.random()


top, random = draws.drawn(TOP), draws.drawn(RANDOM)
top_down, random_down = (draws.drawn(each, role=draws.MASTER_ROLE) for each in (TOP, RANDOM))

SERVERS = {
    "step": (None, plain.step(γ)),
    "heavy ball": (HEAVY, plain.heavy_ball(γ, 0.8)),
    "heavy ball, printed": ({**HEAVY, "form": "printed"}, plain.heavy_ball(γ, 0.8, "printed")),
    "heavy ball, nesterov": ({**HEAVY, "form": "nesterov"}, plain.heavy_ball(γ, 0.8, "nesterov")),
    "nesterov": (NESTEROV, plain.nesterov(γ, 0.6)),
    "adam": (ADAM, plain.adam(γ, β2=0.9)),
    "adagrad": ({"name": "adagrad", "beta1": 0.5}, plain.adagrad(γ, 0.5)),
    "lmo": ({"name": "lmo", "norm": "euclidean", "beta": 0.8}, plain.normalised(γ, 0.8)),
    "muon": ({"name": "muon", "vectors": "euclidean"}, plain.normalised(γ, 0.95)),
    "l-bfgs": ({"name": "l-bfgs", "memory": 4}, plain.l_bfgs(γ, problem(samples=24, dim=12, mu=0.1).numbers["L"], 0.1, 4)),
}
ESTIMATORS = {
    "gd": ({"name": "gd"}, RANDOM, lambda f: plain.gd(f, random)),
    "ef21": ({"name": "ef21"}, TOP, lambda f: plain.ef21(f, top)),
    "diana": ({"name": "diana", "alpha": 0.25}, RANDOM, lambda f: plain.diana(f, random, 0.25)),
    "ef-bv": ({"name": "ef-bv", "lam": 0.25, "nu": 0.75}, RANDOM, lambda f: plain.ef_bv(f, random, 0.25, 0.75)),
    "rand-diana": ({"name": "rand-diana", "p": 0.3}, RANDOM, lambda f: plain.rand_diana(f, random, own_coin, 0.3)),
    "marina": ({"name": "marina", "p": 0.3}, RANDOM, lambda f: plain.marina(f, random, draws.coins(0.3, ROUNDS))),
    "ef": ({"name": "ef"}, TOP, lambda f: plain.ef(f, top)),
}
DOWNLINKS = {
    "mean": (None, None, lambda *of, **_: plain.by_mean(*of)),
    "ef21-p": ("ef21-p", TOP, lambda *of, **_: plain.by_ef21_p(*of, top_down)),
    "double-squeeze": (SQUEEZE, TOP, lambda *of, **_: plain.by_squeeze(*of, top_down)),
    "marina-p": (MARINA_P, RANDOM, lambda *of, tosses: plain.by_marina_p(*of, random_down, draws.coins(0.4, ROUNDS, at=tosses))),
}
COINS = {"marina", "marina-pp", "page", "dasha-page"}  # they toss the common coin before marina-p does


def played(p, algorithm, up, server=None, by=None, down=None, rounds=ROUNDS, **more):
    """The points that are evaluated."""
    nodes = []
    method = algorithms.build({**algorithm, "step": γ, **({"server": server} if server else {})}, "algorithm")
    method = heard_by(method, by) if by else method
    bound = play(p, method, up, rounds, lambda k, node, workers: nodes.append(deepcopy(node)), down=down, **more).method
    return np.array([np.array(dense(bound.iterate(node))) for node in nodes])


@pytest.mark.parametrize(("estimator", "server", "downlink"), every_pair(product(ESTIMATORS, SERVERS, DOWNLINKS)))
def test_a_product_is_its_plain_loop(estimator, server, downlink):
    if (server, estimator) == ("l-bfgs", "ef"):
        with pytest.raises(ValueError, match="the direction of ef is no gradient"):
            played(problem(), {"name": "ef"}, TOP, SERVERS[server][0])
        return
    p = problem(samples=24, dim=12, mu=0.1)
    f = shards(p)
    (algorithm, up, direction), (settings, server_of), (by, down, heard) = ESTIMATORS[estimator], SERVERS[server], DOWNLINKS[downlink]
    magnifies = server == "l-bfgs" and (estimator, downlink) != ("ef21", "mean")  # rounding, by differences of a random estimate
    rounds, tolerance = (8, 1e-9) if magnifies else (ROUNDS, 1e-12)
    xs = played(p, algorithm, up, settings, by, down, rounds)
    wanted = heard(f, start(p), direction(f), server_of, rounds, tosses=int(estimator in COINS))
    np.testing.assert_allclose(xs, wanted, rtol=tolerance, atol=tolerance)


def goes_with_l_bfgs(name, of):
    """Its server takes differences of gradients of one f."""
    return "batch" not in of[0] and not any("takes differences of gradients" in need.sentence for need in algorithms[name].needs)


LINK = {"name": "trace", "rows": [[0, "1 ms", "1 Gbit/s"]]}
WHOLE = {"batch": 6, "sampling": "epoch"}  # a minibatch of all rows of a shard
ALL = {"name": "top-k", "k": 12}
EXACTLY = {  # estimators whose messages lose nothing here: each is then gradient descent
    "3pc": ({"zeta": 0.0}, EXACT), "adacgd": ({"zeta": 0.0, "levels": [12]}, {"name": "top-k"}), "cat": ({"budget": 12}, {"name": "top-k"}),
    "clag": ({"zeta": 0.0}, ALL), "dasha": ({}, EXACT), "dasha-mvr": (WHOLE, EXACT), "dasha-page": ({"p": 0.5, **WHOLE}, EXACT),
    "dasha-pp": ({}, EXACT), "diana": ({"alpha": 0.4}, EXACT), "diana-plus": ({"alpha": 0.4}, EXACT), "econtrol": ({}, ALL), "ef": ({"reset": 3}, ALL), "ef-bv": ({}, ALL), "ef-gdstar": ({}, ALL),
    "ef21": ({}, ALL), "ef21-w": ({}, ALL), "ef21-sgdm": ({"eta": 1.0}, ALL), "gd": ({}, EXACT), "kimad": ({"deadline": "9 s"}, {"name": "top-k"}), "lag": ({"zeta": 0.0}, EXACT), "laq": ({"zeta": 0.0}, EXACT),
    "marina": ({"p": 0.5}, EXACT), "marina-pp": ({"p": 0.5}, EXACT), "page": ({"p": 0.5, **WHOLE}, EXACT),
    "rand-diana": ({"p": 0.5}, EXACT), "sgd": (WHOLE, EXACT),
}  # fmt: skip


@pytest.mark.parametrize("downlink", DOWNLINKS)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (1, 2, 3))])
def test_without_loss_every_estimator_is_gradient_descent_with_that_server_and_downlink(server, downlink, turn):
    """In each turn every estimator goes with every server and with every downlink; in all four turns with every two of these."""
    first = [*SERVERS].index(server) + [*DOWNLINKS].index(downlink) + turn
    p = problem(samples=24, dim=12, mu=0.1)
    f, (settings, server_of), (by, down, heard) = shards(p), SERVERS[server], DOWNLINKS[downlink]
    wanted = [heard(f, start(p), plain.gd(f, lambda v, i, k: v), server_of, 8, tosses=at) for at in (0, 1)]
    for name, (given, up) in [each for each in [*EXACTLY.items()][first % 4 :: 4] if server != "l-bfgs" or goes_with_l_bfgs(*each)]:
        more = {"cost": LINK, "codec": "fixed"} if name == "kimad" else {"x_star": optimum(p)[0]} if name == "ef-gdstar" else {}
        xs = played(p, {"name": name, **given}, up, settings, by, down, rounds=8, **more)
        np.testing.assert_allclose(xs, wanted[name in COINS], rtol=1e-9, atol=1e-11, err_msg=name)


def test_every_estimator_is_among_those_without_loss():
    estimators = {name for name, cls in algorithms.items() if issubclass(cls, Estimator) and cls.parts == ("step", "mean")}
    assert set(EXACTLY) == estimators - {"local-sgd", "power-sgd", "sparse-loco", "svrg"} - {"cafe"}  # not one step; workers use the mean


@pytest.mark.parametrize("server", ["step", "heavy ball, nesterov", "adam", "nesterov"])
def test_local_steps_with_a_server_are_diloco_and_fedadam(server):
    p = problem(samples=24, dim=12, mu=0.1)
    f = shards(p)
    made = {
        "step": plain.step(0.7), "heavy ball, nesterov": plain.heavy_ball(0.7, 0.8, "nesterov"),
        "adam": plain.adam(0.7, β2=0.9), "nesterov": plain.nesterov(0.7, 0.6),
    }  # fmt: skip
    xs = played(p, {"name": "local-sgd", "local_steps": 3, "server_step": 0.7}, EXACT, SERVERS[server][0])
    np.testing.assert_allclose(xs, plain.by_mean(f, start(p), plain.local(f, γ, 3), made[server], ROUNDS), rtol=1e-12, atol=1e-12)


HEARD = {
    "cafe": ({"name": "cafe"}, TOP, lambda f: plain.cafe(f, top), 1),
    "sparse-loco": ({"name": "sparse-loco", "local_steps": 3, "server_step": 0.7}, TOP, lambda f: plain.sparse_loco(f, top, γ, 3, 0.95), 0.7 / γ),
    "marina": ({"name": "marina", "p": 0.3}, DITHERED, lambda f: plain.marina(f, draws.correlated(3, 4), draws.coins(0.3, ROUNDS)), 1),
}  # fmt: skip


@pytest.mark.parametrize("server", ["step", "heavy ball", "nesterov"])
@pytest.mark.parametrize("name", HEARD)
def test_what_workers_share_is_in_a_plain_loop_too(name, server):
    """CAFe's mean, SparseLoCo's local steps, and the order in which correlated dithering has the workers; the last number scales γ."""
    p = problem(samples=24, dim=12, mu=0.1)
    f, (algorithm, up, direction, scale) = shards(p), HEARD[name]
    made = {"step": plain.step, "heavy ball": lambda γ: plain.heavy_ball(γ, 0.8), "nesterov": lambda γ: plain.nesterov(γ, 0.6)}[server]
    xs = played(p, algorithm, up, SERVERS[server][0])
    np.testing.assert_allclose(xs, plain.by_mean(f, start(p), direction(f), made(γ * scale), ROUNDS), rtol=1e-12, atol=1e-12)


def test_sparse_loco_of_one_step_whose_errors_stay_is_error_feedback_and_cafe_of_one_worker_is_ef21():
    several, one = (problem(samples=24, dim=12, mu=0.1, count=n) for n in (4, 1))
    for p, a, b in ((several, {"name": "sparse-loco", "local_steps": 1, "beta": 1.0}, "ef"), (one, {"name": "cafe"}, "ef21")):
        np.testing.assert_allclose(played(p, a, TOP), played(p, {"name": b}, TOP), rtol=1e-12, atol=1e-12)
    exact = played(p, {"name": "cafe"}, EXACT)
    np.testing.assert_allclose(exact, plain.by_mean(shards(p), start(p), plain.gd(shards(p), lambda v, i, k: v), plain.step(γ), ROUNDS), atol=1e-12)


SAME = {
    "ef21-norm": ({"name": "ef21-norm"}, {"name": "ef21", "server": {"name": "lmo", "norm": "euclidean", "beta": 0.0}}, TOP, {}, {}),
    "nesterov": ({"name": "nesterov", "momentum": 0.6}, {"name": "gd", "server": NESTEROV}, RANDOM, {}, {}),
    "adam": ({"name": "adam", "beta2": 0.9}, {"name": "ef", "server": ADAM}, TOP, {}, {}),
    "momentum": ({"name": "ef", "momentum": 0.8}, {"name": "ef", "server": {**HEAVY, "form": "printed"}}, TOP, {}, {}),
    "ef21-p": ({"name": "ef21-p"}, {"name": "gd"}, EXACT, {"compressor": TOP}, {"by": "ef21-p"}),
    "ef21-p-diana": ({"name": "ef21-p-diana", "beta": 0.25}, {"name": "diana", "alpha": 0.25}, RANDOM, {"compressor": TOP}, {"by": "ef21-p"}),
    "double-squeeze": ({"name": "double-squeeze"}, {"name": "ef"}, TOP, {"compressor": TOP}, {"by": SQUEEZE}),
    "marina-p": ({"name": "marina-p", "p": 0.4}, {"name": "gd"}, EXACT, {"compressor": RANDOM}, {"by": MARINA_P}),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_a_products_name_is_its_parts(name, tmp_path):
    """To the last bit; their ids differ, as their jobs do."""
    one, other, up, down, by = SAME[name]
    down_one, down_other = ({"down": each} if each else {} for each in (down, {**down, **by}))
    a = run_of(tmp_path, {**one, "step": γ}, up, **down_one)
    b = run_of(tmp_path, {**other, "step": γ}, up, **down_other)
    assert a.attrs["run_id"] != b.attrs["run_id"]
    np.testing.assert_array_equal(a.x, b.x)


BETWEEN = {  # EF-BV at its ends
    "ef21": ({"name": "ef21"}, {"lam": 1, "nu": 1}, TOP),
    "diana": ({"name": "diana", "alpha": 0.25}, {"lam": 0.25, "nu": 1}, RANDOM),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_ef_bv_is_ef21_and_diana_to_the_last_bit(name, tmp_path):
    method, ends, up = BETWEEN[name]
    a = run_of(tmp_path, {**method, "step": γ}, up)
    b = run_of(tmp_path, {"name": "ef-bv", **ends, "step": γ}, up)
    np.testing.assert_array_equal(a.x, b.x)


def test_ef_bvs_defaults_are_the_parameters_and_the_step_of_its_ends(tmp_path):
    """λ = ν = 1 and EF21's step for a contraction; λ = 1/(1 + ω), ν = 1/(1 + ω/n) for an unbiased compressor."""
    top, ef21 = (run_of(tmp_path, {"name": name}, TOP) for name in ("ef-bv", "ef21"))
    np.testing.assert_allclose(top.x, ef21.x, rtol=1e-12)
    random = run_of(tmp_path, {"name": "ef-bv"}, RANDOM)
    ω, n = random.attrs["dim"] / 3 - 1, random.attrs["n_workers"]
    λ, ν = 1 / (1 + ω), 1 / (1 + ω / n)
    again = run_of(tmp_path, {"name": "ef-bv", "lam": λ, "nu": ν}, RANDOM)
    np.testing.assert_allclose(again.x, random.x, rtol=1e-12)


@pytest.mark.parametrize(("η", "ω", "λ", "ν"), [(0.0, 3.0, 0.25, 0.8), (0.5, 0.2, 0.9, 1.0), (0.9, 0.0, 1.0, 1.0)])
def test_ef_bvs_step_is_the_longest_that_its_lyapunov_function_allows(η, ω, λ, ν):
    """ρ = 1 is the default; with ρ = (1 + r)/2 the function falls by max{1 − γµ, ρ} under µ-PŁ."""
    r, r_av = (1 - λ + λ * η) ** 2 + λ**2 * ω, (1 - ν + ν * η) ** 2 + ν**2 * ω / 10
    for ρ in (1.0, (1 + r) / 2):
        s = np.geomspace(1e-5, ρ / r - 1, 100_001)[:-1]  # Young's weight: (1 + s) r < ρ
        longest = 1 / (2 + 3 * np.sqrt(np.min((1 + 1 / s) * r_av / (ρ - (1 + s) * r))))
        assert longest == pytest.approx(1 / (2 + 3 * np.sqrt(r_av) / (np.sqrt(ρ) - np.sqrt(r))), rel=1e-6)
        if ρ == 1.0:
            numbers = {"L": 2.0, "L_rms": 3.0, "bias": η, "spread": ω, "spread_of_mean": ω / 10, "lam": λ, "nu": ν}
            assert evaluate(algorithms["ef-bv"].theory, numbers) == pytest.approx(longest, rel=1e-6)


def test_ef21_w_is_ef21_with_a_longer_step(tmp_path):
    weighted, ef21 = (run_of(tmp_path, {"name": name}, TOP) for name in ("ef21-w", "ef21"))
    same = run_of(tmp_path, {"name": "ef21", "step": "1/(L + L_mean*sqrt(1 - delta)/(1 - sqrt(1 - delta)))"}, TOP)
    np.testing.assert_array_equal(weighted.x, same.x)
    assert weighted.trace["loss"][-1] < ef21.trace["loss"][-1]


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 4)])
def test_muon_moves_matrices_along_the_polar_factor_of_their_momentum(shape):
    """SciPy's polar decomposition is the second opinion; a vector beside the matrix moves by its sign."""
    rng, γ = np.random.default_rng(0), 0.3
    size = int(np.prod(shape))
    setting = SimpleNamespace(mu_apart=0.0, shapes=[shape, (2,)], penalty_apart=None, numbers={})
    server = Muon(beta=0.5).bind(SimpleNamespace(setting=setting, batch=None))
    x = rng.standard_normal(size + 2)
    moved, wanted, m = server.start(x.copy()), x.copy(), np.zeros(size + 2)
    for k in range(3):
        g = rng.standard_normal(size + 2)
        m = 0.5 * m + g
        factor, _ = scipy.linalg.polar(m[:size].reshape(-1, shape[-1]))
        wanted -= γ * np.concatenate([factor.ravel(), np.sign(m[size:])])
        server.move(moved, (g,), γ, k)
    np.testing.assert_allclose(moved.x, wanted, rtol=1e-12, atol=1e-12)


def test_the_polar_factor_of_a_matrix_of_low_rank_has_its_rank():
    a, b = np.arange(1.0, 5), np.array([1.0, -2, 0.5])
    factor = polar_factor(np.outer(a, b))
    np.testing.assert_allclose(factor, np.outer(a / np.linalg.norm(a), b / np.linalg.norm(b)), atol=1e-12)
    assert not polar_factor(np.zeros((3, 2))).any()
    wide = np.zeros((2, 50))
    wide[0, 0], wide[1, 1] = 1.0, 5e-15  # rounding of 50 columns is 50 · 2e-16
    np.testing.assert_allclose(polar_factor(wide), np.eye(2, 50) * [[1.0], [0.0]], atol=1e-15)


@pytest.mark.parametrize("method", ["ef", "ef21"])
def test_a_budget_of_the_uplink_is_that_of_the_method(method, tmp_path):
    a = run_of(tmp_path, {"name": method, "budget": "cat", "step": 0.2}, {"name": "top-k"})
    b = run_of(tmp_path, {"name": method, "step": 0.2}, {"compressor": "top-k", "budget": "cat"})
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.trace["wire_bits_up"], b.trace["wire_bits_up"])


@pytest.mark.parametrize("method", ["econtrol", "ef21-sgdm", "gd", "3pc", "double-squeeze", "local-sgd"])
def test_any_method_that_compresses_vectors_can_be_tuned(method, tmp_path):
    run = run_of(tmp_path, {"name": method, "step": 0.1}, up={"compressor": "top-k", "budget": "cat"}, cost={"model": "udp-ethernet"})
    assert len(set(np.diff(run.trace["elements_up"])[1:])) > 1


REFUSED = [
    ({"algorithm": {"name": "ef21", "server": "nesterov"}}, "algorithm: step = … is needed: no theorem is known for ef21 with nesterov"),
    ({"algorithm": {"name": "gd", "server": "nesterov"}}, 'gd with nesterov has a name of its own: name = "nesterov"'),
    ({"algorithm": {"name": "ef21"}, "down": {"by": "ef21-p"}}, "no theorem is known for ef21 with ef21-p"),
    ({"algorithm": {"name": "ef21", "server": "nestrov"}}, "server: no server called 'nestrov'; did you mean 'nesterov'?"),
    ({"algorithm": {"name": "ef21", "step": 0.1}, "down": {"by": "mena"}}, "by: no downlink called 'mena'; did you mean 'mean'?"),
    ({"algorithm": {"name": "iade"}, "down": {"by": "mean"}}, "down.by: iade is no method of three parts"),
    ({"algorithm": {"name": "cat"}, "up": {"compressor": "top-k", "budget": "cat"}}, "up.budget: cat sets what is sent itself"),
    ({"algorithm": {"name": "gd"}, "up": {"compressor": "top-k", "budget": 3}}, "up.budget: 3 was given"),
    ({"algorithm": {"name": "gd"}, "up": {"compressor": TOP, "budget": "cat"}}, 'budget = "cat" sets k itself'),
    ({"algorithm": {"name": "ef21-w", "step": 0.1}, "up": {"compressor": {"name": "hard-threshold", "threshold": 0.1}}}, "ef21-w needs a compressor with C(tv) = t C(v)"),
    ({"algorithm": {"name": "svrg", "step": 0.1}, "down": {"by": "ef21-p"}}, "the workers of svrg use the mean that they hear"),
    ({"algorithm": {"name": "cafe", "step": 0.1}, "up": {"compressor": TOP}, "down": {"by": "double-squeeze"}}, "the workers of cafe use the mean that they hear"),
    ({"algorithm": {"name": "gd", "step": "tight"}}, "'tight' theorem ef and ef21 do"),
    ({"algorithm": {"name": "gd", "step": 0.1, "average": "uniform"}, "down": {"by": "ef21-p"}}, "leave average out"),
    ({"algorithm": {"name": "ef", "step": 0.1, "server": {"name": "heavy-ball", "beta": 1.0}}, "up": {"compressor": TOP}}, "server.beta: 1.0 0 1"),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "text"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_products_that_cannot_be_are_refused_in_one_line(tables, text, tmp_path):
    algorithm = tables["algorithm"]
    others = {key: value for key, value in tables.items() if key != "algorithm"}
    with pytest.raises(mc.UserError, match=naming(text)):
        run_of(tmp_path, algorithm, **others)


def test_every_part_is_in_a_product_here():
    assert {"step", *(settings["name"] for settings, _ in SERVERS.values() if settings)} == set(servers)
    assert {"mean", *(by if isinstance(by, str) else by["name"] for by, *_ in DOWNLINKS.values() if by)} == set(downlinks)


def test_a_master_may_answer_something_else_than_the_mean(tmp_path):
    """The median of seven gradients, of which the last two come as −6 times themselves."""

    @algorithms.register("median")
    class MedianOfGradients(mc.Estimator):
        step: mc.Step = "1/L"

        def worker_sends(self, node, worker, f, t):
            return self.up.pack(f.gradient(node.x) * (-6.0 if t.who >= 5 else 1.0), t)

        def answer(self, ups):
            return mc.Dense(np.median([c.dense() for c in ups], axis=0))

    job = {
        "data": {"generator": "gspar", "samples": 2100, "dim": 20, "seed": 1}, "objective": {"mu": "1e-1 L"},
        "workers": {"count": 7, "partition": "shuffled"}, "algorithm": {"name": "median"}, "stop": {"rounds": 20},
    }  # fmt: skip
    (run,) = mc.run(job, out=tmp_path)
    p = mc.problem(run)
    x = np.zeros(20)
    for _ in range(20):
        g = np.array([f.value_and_gradient(x)[1].copy() for f in p.f_i])
        g[5:] *= -6
        x = x - np.median(g, axis=0) / p.L
    np.testing.assert_allclose(run.x, x, rtol=1e-12, atol=1e-13)
