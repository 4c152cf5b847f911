"""Robust means by hand and beside SciPy, what byzantine workers send, and runs that one of them would spoil without a robust mean."""

import numpy as np
import pytest
import scipy.stats
from helpers.examples import COMPRESSORS
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.core.streams import Role, Round, Streams
from mpi_compress.messages.attacks import attacks
from mpi_compress.messages.attacks.usual import times
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.kinds import Dense, Lattice, Powers, Sparse
from mpi_compress.messages.link import Link, Message
from mpi_compress.messages.robust import robust_means

FEW = np.array([[1.0, 8.0], [2.0, -1.0], [30.0, 1.0], [3.0, 0.0], [-50.0, 2.0]])
MANY = np.random.default_rng(0).standard_normal((9, 40))


def built(name, n=5, f=1, **parameters):
    return robust_means.build({"name": name, **parameters}, "workers.robust").among(n, f)


def test_each_robust_mean_gives_what_it_gives_by_hand():
    np.testing.assert_array_equal(built("median").of(FEW), [2, 1])
    np.testing.assert_array_equal(built("median").of(FEW[:4]), [2.5, 0.5])
    np.testing.assert_array_equal(built("trimmed-mean").of(FEW), [2, 1])  # (1 + 2 + 3)/3 and (0 + 1 + 2)/3
    # from the median 2, by at most τ = 3: −1, 0, 3, 1 and −3 in the mean
    np.testing.assert_allclose(built("centred-clipping", tau=3.0, rounds=1).of(FEW[:, :1]), [2.0])
    np.testing.assert_allclose(built("centred-clipping", tau=3.0, rounds=1).of(FEW[[0, 1, 2], :1]), [2 + (3 - 1) / 3])
    # each of 1, 2 and 3 becomes the mean of itself and its nearest; 30 the mean of 3 and 30
    mixed = built("nearest-neighbour-mixing", n=4, f=2, count=1, then="trimmed-mean").of(np.array([[1.0], [2.5], [3.0], [30.0]]))
    np.testing.assert_allclose(mixed, (6.5 / 3 + 6.5 / 3) / 2)
    assert built("nearest-neighbour-mixing", f=2).after.name == "median"


def test_each_robust_mean_is_that_of_scipy_and_of_plain_loops():
    np.testing.assert_array_equal(built("median", 9).of(MANY), np.median(MANY, axis=0))
    for f in range(5):
        found = built("trimmed-mean", 9, count=f).of(MANY)
        np.testing.assert_allclose(found, scipy.stats.trim_mean(MANY, f / 9 + 1e-9, axis=0), rtol=1e-12, atol=1e-14)
    c = np.median(MANY, axis=0)
    for _ in range(4):
        c = c + sum(min(1.0, 2.0 / np.linalg.norm(v - c)) * (v - c) for v in MANY) / 9
    np.testing.assert_allclose(built("centred-clipping", 9, tau=2.0, rounds=4).of(MANY), c, rtol=1e-12, atol=1e-14)
    mixed = [np.mean(sorted(MANY, key=lambda u, v=v: np.linalg.norm(u - v))[:7], axis=0) for v in MANY]
    found = built("nearest-neighbour-mixing", 9, 2, then={"name": "trimmed-mean"}).of(MANY)
    np.testing.assert_allclose(found, scipy.stats.trim_mean(mixed, 2 / 9 + 1e-9, axis=0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", sorted(robust_means))
def test_equal_vectors_have_themselves_as_robust_mean_and_a_shift_is_a_shift(name):
    mean = built(name, 9, 2)
    np.testing.assert_allclose(mean.of(np.tile(MANY[0], (9, 1))), MANY[0], rtol=1e-13)
    np.testing.assert_allclose(mean.of(MANY + 5.0), mean.of(MANY) + 5.0, rtol=1e-12)
    before = MANY.copy()
    few = mean.mean([Sparse(40, np.array([3], dtype=np.uint32), np.array([float(i + 1)])) for i in range(9)])
    assert (type(few), few.indices.tolist()) == (Sparse, [3])
    assert type(mean.mean([Dense(v) for v in MANY])) is Dense
    np.testing.assert_array_equal(MANY, before)


@pytest.mark.parametrize("name", sorted(robust_means))
def test_far_vectors_move_a_robust_mean_no_further_than_the_others_reach(name):
    vs = np.concatenate([MANY[:7], np.full((2, 40), 1e9)])
    assert np.linalg.norm(built(name, 9, 2).of(vs) - MANY[:7].mean(axis=0)) < 20
    assert np.linalg.norm(vs.mean(axis=0)) > 1e8


@pytest.mark.parametrize("spec", COMPRESSORS, ids=str)
def test_a_flipped_message_says_minus_the_vector_in_as_many_bytes(spec):
    C, v = compressors.build(spec, "up"), np.random.default_rng(4).standard_normal(12)
    link = Link(C.in_round(12, 0.1, True), mc.codecs.codecs.build(C.codec, "up"), 12)
    sent = link.pack(v, Round(0, Streams(1), Role.WORKER, 1))
    said = link.unpack(Message(sent.data))
    flipped = link.encode(times(said, -1.0))
    np.testing.assert_array_equal(link.unpack(Message(flipped.data)).dense(), -said.dense())
    assert flipped.data.size == sent.data.size or spec["name"] == "lattice"  # its entropy coder learns the signs
    assert not np.shares_memory(said.dense(), v)
    if not isinstance(said, Powers | Lattice) and "natural" not in str(spec):
        np.testing.assert_allclose(times(said, 3.0).dense(), 3.0 * said.dense(), rtol=1e-14)


def test_attackers_who_know_all_send_what_their_papers_say():
    honest = MANY[:6]
    np.testing.assert_allclose(attacks["ipm"](0.5).knowing(honest, 3), -0.5 * honest.mean(axis=0))
    np.testing.assert_allclose(attacks["alie"](1.5).knowing(honest, 3), honest.mean(axis=0) - 1.5 * honest.std(axis=0))
    z = scipy.stats.norm.ppf((9 - 3 - 2) / 6)  # s = ⌊9/2 + 1⌋ − 3 = 2
    np.testing.assert_allclose(attacks["alie"]().knowing(honest, 3), honest.mean(axis=0) - z * honest.std(axis=0))


def tables(robust=None, attack=None, count=2, algorithm="gd", up=None, rounds=60, **workers):
    lies = {} if attack is None else {"byzantine": {"count": count, "attack": attack}}
    mean = {} if robust is None else {"robust": robust}
    return {
        "data": {"generator": "gspar", "samples": 2100, "dim": 20, "seed": 1}, "objective": {"mu": "1e-1 L"},
        "workers": {"count": 7, "partition": "shuffled", **mean, **lies, **workers}, "algorithm": {"name": algorithm} if isinstance(algorithm, str) else algorithm,
        "up": {"compressor": up or "identity"}, "stop": {"rounds": rounds}, "log": {"every": rounds},
    }  # fmt: skip


STRONG = {"name": "sign-flip", "scale": 6.0}


def gap(tmp_path, **of):
    run = mc.run(tables(**of), out=tmp_path, fresh=True)[0]
    return run.trace["suboptimality"][-1] / run.trace["suboptimality"][0] if run.status == "complete" else np.inf


@pytest.mark.parametrize("robust", ["median", "trimmed-mean", "centred-clipping", "nearest-neighbour-mixing"])
def test_flipped_signs_make_the_mean_diverge_and_leave_a_robust_mean_near_the_optimum(robust, tmp_path):
    assert gap(tmp_path, attack=STRONG) > 1
    assert gap(tmp_path, attack=STRONG, robust=robust) < 0.05
    for attack in ("alie", {"name": "ipm", "epsilon": 20.0}):
        assert gap(tmp_path, attack=attack, robust=robust) < 0.2


def test_a_run_is_its_plain_loop(tmp_path):
    """The median of seven gradients, of which the last two come as −6 times themselves."""
    run = mc.run(tables(robust="median", attack=STRONG, rounds=20), out=tmp_path)[0]
    p = mc.problem(run)
    x, L = np.zeros(20), p.L
    for _ in range(20):
        g = np.array([f.value_and_gradient(x)[1].copy() for f in p.f_i])
        g[5:] *= -6
        x = x - np.median(g, axis=0) / L
    np.testing.assert_allclose(run.x, x, rtol=1e-12, atol=1e-13)


def test_the_mean_of_honest_workers_is_the_mean(tmp_path):
    """Dropping no values is the mean, up to the order of additions."""
    plain = mc.run(tables(rounds=10), out=tmp_path)[0]
    trimmed = mc.run(tables(robust={"name": "trimmed-mean", "count": 0}, rounds=10), out=tmp_path)[0]
    np.testing.assert_allclose(trimmed.x, plain.x, rtol=1e-12)
    assert trimmed.attrs["run_id"] != plain.attrs["run_id"]
    lying = mc.run(tables(attack="ipm", rounds=10), out=tmp_path)[0]
    assert lying.trace["wire_bits_up"][-1] == plain.trace["wire_bits_up"][-1]


REFUSED = {
    "no such mean": ({"robust": "medain"}, "workers.robust: 'median'"),
    "no such attack": ({"attack": "flip"}, "workers.byzantine.attack: "),
    "f unknown": ({"robust": "trimmed-mean"}, "workers.robust: trimmed-mean needs count = f"),
    "too many": ({"robust": {"name": "trimmed-mean", "count": 4}}, "count = 4 should be less than half of the 7 workers"),
    "mixing too many": ({"robust": "nearest-neighbour-mixing", "attack": "ipm", "count": 4}, "count = 4 7"),
    "all lie": ({"attack": "ipm", "count": 7}, "workers.byzantine: count = 7 should be from 1 to 6"),
    "no z": ({"attack": "alie", "count": 5}, "alie has no z of its own for 5 of 7 workers: give z"),
    "tree": ({"robust": "median", "fold": "tree"}, 'workers.fold = "tree": robust means and byzantine workers need each message; fold = "order" would do'),
    "attack by tree": ({"attack": "ipm", "fold": "tree"}, 'workers.fold = "tree": byzantine'),
    "some workers": ({"robust": "median", "participate": 3}, "workers.participate = 3: all workers"),
    "pairs": ({"robust": "median", "algorithm": "adiana", "up": {"name": "random-k", "k": 5}}, "adiana, as it is set here, takes no mean of vectors"),
    "shared": ({"robust": "median", "algorithm": {"name": "async-sgd", "step": 0.1}}, "async-sgd mean"),
    "scaled powers": ({"attack": STRONG, "up": "natural", "algorithm": "diana"}, "'natural' sends whole numbers, which sign-flip cannot scale"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused_in_one_line(name, tmp_path):
    of, says = REFUSED[name]
    with pytest.raises(UserError, match=naming(says)):
        mc.run(tables(**of), out=tmp_path)


def test_what_a_byzantine_worker_cannot_send_is_said(tmp_path):
    job = {
        "title": "too large", "data": {"generator": "gspar", "samples": 60, "dim": 8}, "algorithm": {"name": "gd"}, "stop": {"rounds": 3},
        "workers": {"count": 3, "byzantine": {"count": 1, "attack": {"name": "sign-flip", "scale": 1e300}}},
        "up": {"codec": {"name": "dense", "float": 32}},
    }  # fmt: skip
    (run,) = mc.run(job, out=tmp_path)
    assert run.status == "diverged"
    assert "worker 2: a value of magnitude" in run.attrs["reason"]
