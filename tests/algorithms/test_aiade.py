"""What double encoding is proved to do, at every round; and that it is what the paper writes."""

import itertools
import json
import math

import numpy as np
import pytest
from helpers.grids import every_pair
from helpers.plain_aiade import iade
from helpers.plays import optimum, play, problem
from helpers.running import run_of

from mpi_compress.algorithms.double_encoding import rounded_up, xi
from mpi_compress.algorithms.papers.iade import AIADE, DQGD, IADE, IADESGD
from mpi_compress.cli.show import summary
from mpi_compress.core.errors import UserError
from mpi_compress.job.tables import Ending

SENT, BOUND = {"name": "lattice"}, {"name": "lattice", "range": "bound"}
HEADER = 64 + 32 + 64  # the coder's few bits, the length, M
X_STAR = 1e-9  # how well x* is known


def watched(p, algorithm, q=SENT, rounds=300):
    """The run, with ‖x_k − x*‖ and the bits of a message up at every round."""
    x_star, _ = optimum(p)
    xs = []
    down = {"name": "identity"} if algorithm["name"] == "dqgd" else q
    run = play(p, algorithm, q, rounds, lambda k, node, workers: xs.append(node.x.copy()), x_star=x_star, down=down)
    run.distance = np.linalg.norm(np.array(xs[: len(run.rows)]) - x_star, axis=1)
    run.bits_up = np.diff(run.trace["wire_bits_up"]) / p.count
    return run


def bits_bound(method, start, dim):
    """Theorem 3.1's bits of a message, k ≥ 1: (1.05 + log2(ζ + 2))·d."""
    L, η, s, c1 = method.L, method.η, method.s, method.rate
    ξ = xi(start, η * s, method.c, c1)
    ζ = (2 * L**2 * η * ξ + 2 * L * η * s * c1 + 3 * s * c1) / (s * c1**2)
    return (1.05 + math.log2(ζ + 2)) * dim


@pytest.mark.parametrize(
    ("algorithm", "count", "loss"),
    every_pair(itertools.product(["iade", "aiade", "dqgd"], [1, 4, 20], ["logistic", "least-squares", "squared-hinge"])),
)
def test_estimate_distance_and_bits_are_within_their_theorems_at_every_round(algorithm, count, loss):
    p = problem(count, loss)
    run = watched(p, {"name": algorithm}, BOUND if loss == "least-squares" else SENT, 150)
    assert np.all(run.trace["gap"][1:] <= 1 + 1e-9)
    assert np.all(run.distance <= run.trace["bound"] + X_STAR)
    assert np.all(run.bits_up <= run.trace["upper_up"][1:] * p.dim + HEADER)
    if algorithm == "iade":
        assert np.max(run.bits_up[1:]) <= bits_bound(run.method, run.distance[0], p.dim) + HEADER


@pytest.mark.parametrize("algorithm", [{"name": "iade", "rate": "1 - 0.9*step*mu"}, {"name": "aiade"}], ids=lambda a: a["name"])
@pytest.mark.parametrize("count", [1, 4])
def test_the_theorems_hold_down_to_the_floor_of_floats_where_the_run_ends(algorithm, count):
    p = problem(count, mu=0.05)
    x_star, _ = optimum(p)
    run = watched(p, algorithm, rounds=100_000)
    assert run.verdict is Ending.COMPLETE
    assert "finer than floats" in run.reason
    assert np.all(run.trace["gap"][1:] <= 1)
    assert np.all(run.distance <= run.trace["bound"] + 1e-13)
    assert run.distance[-1] < 1e-14 * np.linalg.norm(x_star)
    assert np.max(run.bits_up[len(run.bits_up) // 2 :]) <= np.max(run.bits_up[: len(run.bits_up) // 2])


def test_the_printed_theorem_fails_where_the_step_is_above_1_and_the_corrected_one_holds():
    p = problem(scale=0.02, mu=1e-6)
    run = watched(p, {"name": "iade"}, rounds=1000)
    m, R = run.method, run.distance[0]
    assert m.η > 100
    gap = m.rate - m.c
    printed = m.rate ** np.arange(1001) * (max(0, R - m.c * m.s / gap) + m.rate * m.s / gap)
    assert np.any(run.distance > printed)
    assert np.all(run.distance <= run.trace["bound"] + X_STAR)


@pytest.mark.parametrize("algorithm", ["iade", "aiade"])
@pytest.mark.parametrize("q", [SENT, BOUND], ids=["sent", "bound"])
def test_a_range_that_both_ends_know_is_never_exceeded_and_costs_nothing(algorithm, q):
    p = problem(4)
    x_star, _ = optimum(p)
    most = []

    def look(k, node, workers):
        if k > 0:
            most.extend((np.linalg.norm(before[i] - w.g), w.ball[1]) for i, w in workers.items())
        before.update({i: w.s.copy() for i, w in workers.items()})

    before = {}
    run = play(p, {"name": algorithm}, q, 200, look, x_star=x_star, down=q)
    change, radius = np.array(most).T
    assert np.all(change <= radius * (1 + 1e-12))
    if q == BOUND:
        sent = play(p, {"name": algorithm}, SENT, 200, x_star=x_star, down=SENT)
        assert np.array_equal(run.x, sent.x)


@pytest.mark.parametrize("bound", [1e-300, 0.3, 1.0, 1.0 + 2**-52, 7e200])
def test_a_bound_is_rounded_up_by_less_than_a_64th_and_alike_for_neighbouring_floats(bound):
    assert bound <= rounded_up(bound) <= bound * (1 + 1 / 64)
    assert rounded_up(rounded_up(bound)) == rounded_up(bound)
    assert rounded_up(0.3) == rounded_up(np.nextafter(0.3, 1)) == rounded_up(np.nextafter(0.3, 0))


@pytest.mark.parametrize("algorithm", ["iade", "aiade"])
@pytest.mark.parametrize("loss", ["logistic", "least-squares"])
def test_trajectories_are_those_of_a_plain_implementation(algorithm, loss):
    p = problem(4, loss, mu=0.01)
    run_xs = []
    run = play(p, {"name": algorithm}, SENT, 400, lambda k, node, workers: run_xs.append(node.x.copy()), down=SENT)
    m = run.method

    def gradient(i):
        def at(x):
            return p.fs[i].value_and_gradient(x)[1].copy()

        return at

    accelerated = (m.c, m.τ) if algorithm == "aiade" else None
    rate = m.c if accelerated else m.rate
    xs = iade([gradient(i) for i in range(4)], np.full(p.dim, 0.1), m.s, m.η, rate, len(run_xs) - 1, accelerated)
    assert np.max(np.abs(xs - np.array(run_xs))) < 1e-10 * np.max(np.abs(xs))


def test_with_exact_links_aiade_is_nesterov_and_iade_is_gradient_descent():
    p = problem(4)
    exact = {"name": "identity"}
    τ = "(sqrt(L_max) - sqrt(mu))/(sqrt(L_max) + sqrt(mu))"
    pairs = [
        ({"name": "aiade"}, {"name": "nesterov", "step": "1/L_max", "momentum": τ}),
        ({"name": "iade"}, {"name": "gd", "step": "2/(L_max + mu)"}),
    ]
    for ours, theirs in pairs:
        xs, ys = [], []
        play(p, ours, exact, 300, lambda k, node, w, xs=xs: xs.append(node.x.copy()), down=exact)
        play(p, theirs, exact, 300, lambda k, node, w, ys=ys: ys.append(node.state.x.copy()))
        assert np.max(np.abs(np.array(xs) - np.array(ys))) < 1e-12 * np.max(np.abs(ys))


def test_a_step_that_no_theorem_covers_has_no_bound():
    x_star, _ = optimum(problem(2))
    for algorithm, step, proved in (("iade", "2/(L_max + mu)", True), ("iade", "2.1/L_max", False), ("aiade", "0.9/L_max", False)):
        run = play(problem(2), {"name": algorithm, "step": step}, SENT, 3, x_star=x_star, down=SENT)
        assert np.all(np.isfinite(run.trace["bound"])) == proved
        assert np.all(run.trace["gap"][1:] <= 1)


def test_a_run_that_diverges_is_not_taken_for_one_that_is_done():
    run = play(problem(4, "least-squares"), {"name": "iade", "step": "4/L", "rate": 0.999}, SENT, 5000, down=SENT)
    assert run.verdict is Ending.DIVERGED
    assert run.trace["loss"][-1] > run.trace["loss"][0]


def test_defaults_are_settled_before_the_run_and_printed(tmp_path):
    run = run_of(tmp_path, {"name": "iade"}, rounds=20)
    settled = json.loads(run.attrs["settled"])
    assert settled["level"] == pytest.approx(run.trace["grad_norm"][0], rel=1e-12)
    assert settled["rate"] == pytest.approx(1 - settled["step"] * run.attrs["mu"] / 2, rel=1e-15)
    assert 1 / run.attrs["L"] < settled["step"] <= 2 / (run.attrs["L"] + run.attrs["mu"])
    told = "\n".join(summary(run))
    assert f"level = {settled['level']:.9g}" in told


def test_a_run_can_stop_at_a_distance(tmp_path):
    run = run_of(tmp_path, {"name": "aiade"}, stop={"rounds": 1000, "relative_distance": 1e-3})
    reached = run.column("relative_distance") <= 1e-3
    assert reached[-1]
    assert not np.any(reached[:-1])
    assert len(reached) < 900


def interpolated(**more):
    """Least squares without noise or regulariser: every sample is fitted at x°, f is 1/3-convex."""
    return problem(2, "least-squares", mu=0.0, generator="least-squares", samples=40, dim=8, condition=3.0, **more)


def test_iade_sgd_is_unbiased_within_its_budget_and_under_theorem_5_2():
    p = interpolated()
    x_star, _ = optimum(p)
    squares, errors = [], []
    for seed in range(20):
        far, error = [], []

        def look(k, node, workers, far=far, error=error):
            far.append(np.sum((node.x - x_star) ** 2))
            if k:
                error.append(node.v - np.mean([w.g for w in workers.values()], axis=0))

        run = play(p, {"name": "iade-sgd", "convexity": "1/3"}, SENT, 120, look, seed=seed, x_star=x_star, down=SENT)
        squares.append(far)
        errors.append(np.array(error) / np.array([run.method.budget(k) for k in range(120)])[:, None])
    assert np.all(np.mean(squares, axis=0) <= run.trace["bound"] ** 2 * (1 + 1e-12))
    assert np.mean(squares, axis=0)[-1] < 0.2 * np.mean(squares, axis=0)[0]
    errors = np.concatenate(errors)
    assert np.all(np.abs(errors.mean(axis=0)) <= 5 * errors.std(axis=0) / np.sqrt(len(errors)))
    each = np.sum(errors**2, axis=1)
    assert each.mean() <= 1 + 5 * each.std() / np.sqrt(len(each))


def test_the_weak_growth_condition_holds_with_the_default_rho():
    p = interpolated()
    method = play(p, {"name": "iade-sgd", "convexity": "1/3"}, SENT, 0, down=SENT).method
    assert method.η == pytest.approx(1 / p.numbers["L_row"])
    for x in np.random.default_rng(3).normal(size=(20, p.dim)):
        squares = [np.sum(f.gradient(x, np.array([j], dtype=np.uint64)) ** 2) for f in p.fs for j in range(len(f.rows))]
        f_x = np.mean([f.value_and_gradient(x)[0] for f in p.fs])
        assert np.mean(squares) <= 2 * method.rho * method.L * f_x  # f* = 0


def test_svrg_is_written_as_its_paper_and_counts_its_full_gradients():
    p = problem(3, samples=60)
    step, epoch, batch = 0.3 / p.numbers["L"], 5, 4
    points, full = [], []

    def look(k, node, workers):
        points.append(node.x.copy())
        full.append(np.mean([f.value_and_gradient(node.x)[1] for f in p.fs], axis=0))

    run = play(p, {"name": "svrg", "step": step, "epoch": epoch, "batch": batch}, {"name": "identity"}, 60, look)
    rounds = range(60)
    assert all(np.array_equal(points[k], points[k + 1]) for k in rounds if k % 6 == 0)
    # SVRG's steps are along the full gradient in the mean, with an error that falls with the distance to the reference point
    for k in rounds:
        if k % 6:
            step_taken = (points[k] - points[k + 1]) / step
            reach = max(np.linalg.norm(points[k] - points[k - k % 6]), 1e-300)
            assert np.linalg.norm(step_taken - full[k]) <= 2 * p.numbers["L_row"] * reach + 1e-12
    assert run.trace["epoch"][-1] == pytest.approx((10 * 60 + 50 * 2 * batch * 3) / 60)
    q = play(
        p,
        {"name": "svrg", "step": step, "epoch": epoch},
        {"name": "qsgd", "levels": 4},
        12,
        codec={"name": "elias-omega", "float": 32},
    )
    bits = np.diff(q.trace["paper_bits_up"]) / p.count
    assert bits[0] == bits[6] == 32 * p.dim
    assert np.all(np.delete(bits, [0, 6]) < 8 * p.dim)


def test_svrg_converges_to_the_optimum_and_sgd_of_the_same_step_does_not():
    p = problem(2, mu=0.3)
    _, f_star = optimum(p)
    runs = {
        name: play(p, {"name": name, "step": "0.3/L_row", "batch": 2}, {"name": "qsgd", "levels": 16}, 900)
        for name in ("svrg", "sgd")
    }
    assert runs["svrg"].trace["loss"][-1] - f_star < 1e-12
    assert runs["sgd"].trace["loss"][-1] - f_star > 1e-7


def test_an_epoch_of_svrg_sees_every_row_once_whatever_its_full_rounds():
    p = problem(2, samples=24)
    method = play(p, {"name": "svrg", "batch": 3, "sampling": "epoch", "step": 1e-9}, {"name": "identity"}, 10).method
    from mpi_compress.core.streams import Role, Round, Streams

    assert method.steps == 4
    rounds = [Round(k, Streams(0), Role.WORKER, 0) for k in range(1, 5)]
    rows = [method.rows(p.fs[0], t, method.steps_before(t.k)).tolist() for t in rounds]
    assert sorted(itertools.chain(*rows)) == list(range(12))


def mirrored(count=2, mu=0.5):
    """∇f is exactly 0 at 0: every sample is there with its opposite, under one label."""
    p = problem(count, samples=8, dim=3, mu=mu)
    for f in p.fs:
        a = f.rows.matrix[0]
        a[1::2] = -a[::2]
        f.rows.labels[1::2] = f.rows.labels[::2]
    return p


@pytest.mark.parametrize("algorithm", ["iade", "aiade", "dqgd", pytest.param("iade-sgd", marks=pytest.mark.slow)])
@pytest.mark.parametrize("q", [SENT, BOUND], ids=["sent", "bound"])
def test_a_run_from_its_optimum_ends_where_its_budget_underflows(algorithm, q):
    if algorithm == "iade-sgd":
        if q == BOUND:
            return
        p = problem(1, samples=2, dim=3, mu=0.5, loss="least-squares")
        p.fs[0].rows.labels[:] = 0.0
    else:
        p = mirrored()
    down = {"name": "identity"} if algorithm == "dqgd" else q
    run = play(p, {"name": algorithm, "level": 1.0}, q, 20_000, x0=np.zeros(3), down=down)
    assert run.verdict is Ending.COMPLETE
    assert "finer than floats" in run.reason
    assert np.all(run.trace["gap"][1:] == 0)
    assert np.all(run.x == 0)


@pytest.mark.parametrize("algorithm", [pytest.param("iade", marks=pytest.mark.slow), "aiade", pytest.param("dqgd", marks=pytest.mark.slow)])
def test_with_exact_links_a_run_goes_on_past_its_budget_and_has_no_gap(algorithm):
    exact = {"name": "identity"}
    run = play(problem(2, mu=0.5), {"name": algorithm}, exact, 4000, down=exact)
    assert run.method.budget(4000) == 0
    assert run.trace["round"][-1] == 4000
    assert np.all(np.isnan(run.trace["gap"]))
    assert run.trace["grad_norm"][-1] < 1e-14


@pytest.mark.parametrize("algorithm", ["iade", "aiade"])
@pytest.mark.parametrize("half", [16, "bf16"])
def test_a_range_sent_in_16_bits_keeps_the_theorems(algorithm, half):
    p = problem(4)
    x_star, _ = optimum(p)
    xs: list = []
    watch = lambda k, node, workers: xs.append(node.x.copy())  # noqa: E731
    codec = {"name": "lattice", "float": half}
    run = play(p, {"name": algorithm}, SENT, 150, watch, x_star=x_star, down=SENT, codec=codec)
    distance = np.linalg.norm(np.array(xs[: len(run.rows)]) - x_star, axis=1)
    bits = np.diff(run.trace["wire_bits_up"]) / p.count
    assert len(run.rows) == 151
    assert np.all(run.trace["gap"][1:] <= 1 + 1e-9)
    assert np.all(distance <= run.trace["bound"] + X_STAR)
    assert np.all(bits <= run.trace["upper_up"][1:] * p.dim + HEADER)  # Lemma 2.1, of the range as it was sent


@pytest.mark.parametrize("half", [16, "bf16"])
@pytest.mark.parametrize("way", ["up", "down"])
def test_an_exact_link_of_floats_of_16_bits_is_refused(half, way, tmp_path):
    link = {"compressor": "identity", "codec": {"name": "dense", "float": half}}
    with pytest.raises(UserError, match=rf"iade needs {way}\.compressor = lattice with floats of 16 bits: with the identity, use"):
        run_of(tmp_path, {"name": "iade"}, rounds=3, **{way: link})
    link["codec"]["float"] = 32
    assert run_of(tmp_path, {"name": "iade"}, rounds=3, **{way: link}).status == "complete"


@pytest.mark.parametrize("algorithm", ["iade", "aiade", "iade-sgd"])
@pytest.mark.parametrize("start", [{}, {"offset": 1e200}], ids=["level", "start"])
def test_a_level_or_a_start_whose_square_overflows_ends_like_any_other(algorithm, start, tmp_path):
    own = {"name": algorithm, "level": 1.0 if start else 1e300}
    run = run_of(tmp_path, own, start=start, rounds=30, objective={"mu": 0.1})
    assert run.status in ("complete", "diverged")


@pytest.mark.parametrize("cls", [AIADE, DQGD, IADE, IADESGD], ids=lambda c: c.name)
def test_what_a_link_is_where_a_job_says_nothing_is_refused(cls):
    assert "floats of 32 bits" in " ".join(cls.__doc__.split())


@pytest.mark.parametrize("whole", [False, True])
def test_svrg_s_full_gradients_are_compressed_where_that_is_asked_both_ways(whole):
    """Rounds 0 and 4 of an epoch of 3 are full: 32 bits a coordinate up and down, or QSGD's few."""
    p, few = problem(2, dim=64), {"name": "qsgd", "levels": 1}
    algorithm = {"name": "svrg", "step": "0.1/L_row", "epoch": 3, "batch": 2, "compress_full": whole}
    trace = play(p, algorithm, few, 8, codec={"name": "elias-omega", "float": 32}, down=few).trace
    for way in ("up", "down"):
        bits = np.diff(trace[f"paper_bits_{way}"]) / p.count
        assert np.all((bits == 32 * 64) == ([not whole, False, False, False] * 2)), way
