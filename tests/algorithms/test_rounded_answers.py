"""Answers in floats of 32 bits and bf16: where nodes add them up, the master keeps what rounding left, and there is no floor."""

import numpy as np
import pytest
from helpers import plain_literature as draws
from helpers import plain_products as plain
from helpers.plain_ef import shards
from helpers.plays import play, problem, start
from helpers.refusals import naming
from helpers.running import run_of

from mpi_compress import UserError
from mpi_compress.algorithms import algorithms
from mpi_compress.algorithms.parts import dense

DATA = {"generator": "gspar", "samples": 60, "dim": 12}
TOP, RANDOM = {"name": "top-k", "k": 4}, {"name": "random-k", "k": 6}
NONE, LEVEL = None, 1e-10
EXACT = {  # they come down to 1e-10 with answers of any floats
    "3pc": (TOP, {}), "adacgd": (NONE, {}), "adef": ({"name": "top-k", "k": 9}, {"step": "0.3/L"}), "adiana": (RANDOM, {}), "adiana-plus": (RANDOM, {}), "bfgs": (NONE, {}),
    "clag": (TOP, {}), "compressed-scaffnew": (NONE, {}), "dasha": (RANDOM, {"step": "4 theory"}), "dasha-page": (RANDOM, {"batch": 6, "step": "6 theory"}),
    "dasha-pp": (RANDOM, {"step": "4 theory"}), "diana": (RANDOM, {}), "diana-plus": (RANDOM, {}), "econtrol": (TOP, {"step": "0.1/L"}), "ef-bv": (TOP, {}),
    "ef-gdstar": (TOP, {}), "ef21": (TOP, {}), "ef21-sgdm": (TOP, {"step": "0.1/L"}), "ef21-w": (TOP, {}), "fednl": (TOP, {}), "fednl-pp": (TOP, {}), "gd": (NONE, {}),
    "kimad": ({"name": "top-k"}, {"deadline": 300}), "lag": (NONE, {}), "laq": (NONE, {}), "locodl": (RANDOM, {}), "marina": (RANDOM, {}), "marina-pp": (RANDOM, {}), "nesterov": (NONE, {}), "page": (RANDOM, {"batch": 6}),
    "rand-diana": (RANDOM, {}), "scaffnew": (NONE, {}), "ship-data": (NONE, {}),
}  # fmt: skip
WITHOUT_BF16 = {"aiade": "lattice with floats of 16 bits", "dqgd": "none to messages down in 16 bits", "iade": "lattice with floats of 16 bits"}
WITH_A_FLOOR = {  # of another kind: errors of minibatches, of workers' compression, or of local steps; or a compressor down is meant
    "adam", "cat", "dasha-mvr", "double-squeeze", "ef", "ef21-p", "ef21-p-diana", "iade-sgd", "local-sgd", "marina-p", "power-sgd", "sgd", "svrg",
    "async-sgd", "cafe", "ef21-norm", "sparse-loco",
}  # fmt: skip


def to_bf16(v):
    """The nearest numbers of 8 digits; ties to even."""
    m, e = np.frexp(v)
    return np.ldexp(np.round(m * 256), e - 8)


def with_down(folder, name, up, more, f):
    up = {"compressor": up, "codec": "fixed"} if name == "kimad" else up  # its length follows from T
    down = {} if f is None else {"down": {"codec": {"float": f}}}
    stop = {"rounds": 3000, "suboptimality": LEVEL}
    return run_of(folder, {"name": name, **more}, up, DATA, objective={"mu": "0.3 L"}, stop=stop, log={"every": 10}, **down)


@pytest.mark.parametrize("name", [pytest.param(m, marks=[pytest.mark.slow] * (i % 3 != 0)) for i, m in enumerate([*EXACT, *WITHOUT_BF16])])
def test_rounded_answers_leave_no_floor(name, tmp_path):
    up, more = EXACT.get(name, (NONE, {}))
    runs = [with_down(tmp_path, name, up, more, f) for f in (64, 32, *(["bf16"] if name in EXACT else []))]
    assert all(run.trace["suboptimality"][-1] <= LEVEL for run in runs)
    took = [run.trace["round"][-1] for run in runs]
    assert max(took) <= 1.1 * took[0] + 20
    bits = [run.trace["wire_bits_down"][-1] / k for run, k in zip(runs, took, strict=True)]
    assert all(b < share * bits[0] for b, share in zip(bits, (1.01, 0.56, 0.34), strict=False))


@pytest.mark.parametrize("name", WITHOUT_BF16)
def test_a_theorem_without_room_for_16_bits_refuses_them_by_name(name, tmp_path):
    with pytest.raises(UserError, match=naming(f"{name} {WITHOUT_BF16[name]}")):
        with_down(tmp_path, name, NONE, {}, "bf16")


def test_every_method_is_told_here():
    assert {*EXACT, *WITHOUT_BF16, *WITH_A_FLOOR} == set(algorithms)


@pytest.mark.parametrize("k", [1, 3])  # of 12 coordinates at 4 workers: the mean is sparse, or dense
@pytest.mark.parametrize("name", ["ef21", "diana"])
def test_what_rounding_left_goes_with_the_next_answer_as_in_a_plain_loop(name, k):
    p, α = problem(samples=24, dim=12, mu=0.1), {"ef21": 1.0, "diana": 0.25}[name]
    up = {"name": {"ef21": "top-k", "diana": "random-k"}[name], "k": k}
    xs, more = [], {"alpha": α} if name == "diana" else {}
    play(p, {"name": name, "step": 0.1, **more}, up, 60, lambda k, node, workers: xs.append(np.array(dense(node.x))), floats_down="bf16")
    direction = plain.rounded(shards(p), draws.drawn(up), α, to_bf16)
    wanted = plain.by_mean(shards(p), start(p), direction, plain.step(0.1), 60)
    np.testing.assert_allclose(np.array(xs), wanted, rtol=1e-12, atol=1e-12)


def test_the_floats_alone_leave_an_answer_sparse(tmp_path):
    """As it is where [down] is left out: EF21's mean of top-1 takes some 40 + 9 bits a coordinate, not 32 · 40."""
    runs = [run_of(tmp_path, {"name": "ef21"}, {"name": "top-k", "k": 1}, rounds=20, **down) for down in ({}, {"down": {"codec": {"float": 32}}})]
    bits = [run.trace["wire_bits_down"][-1] / (20 * 5) for run in runs]
    assert bits[1] < bits[0] - 32 < 450


def test_what_comes_down_must_be_whole_in_any_floats(tmp_path):
    with pytest.raises(UserError, match=r"leave .down. out, or use the identity$"):
        run_of(tmp_path, {"name": "ef21"}, TOP, down={"compressor": TOP, "codec": {"float": 32}})
