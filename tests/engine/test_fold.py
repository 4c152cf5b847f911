"""Runs whose messages are added up by the tree of folds, beside those in worker order; and what has no such runs."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers.examples import GENERATED
from helpers.layouts import assert_equal
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress.core.errors import UserError


def job(algorithm: dict, up: dict | None = None, **workers) -> mc.Job:
    links = {"up": {"compressor": up}} if up else {}
    return mc.load_job({**GENERATED, "workers": workers, "stop": {"rounds": 4}, "log": {"every": 1}, "algorithm": algorithm, **links})


TOP = {"name": "ef"}, {"name": "top-k", "k": 3}


@pytest.mark.parametrize("count", [1, 31])
def test_below_32_workers_a_tree_adds_in_worker_order(count, tmp_path):
    for fold in ("tree", "order"):
        mc.run(job(*TOP, count=count, fold=fold), out=tmp_path / fold)
    one, other = (next((tmp_path / fold).rglob("*.h5")) for fold in ("tree", "order"))
    assert_equal(one, other)


@pytest.mark.parametrize("method", [TOP, ({"name": "gd"},), ({"name": "ef"}, {"name": "hard-threshold", "threshold": 0.5})])
def test_from_32_workers_on_it_sends_as_many_bits_to_points_that_differ_by_rounding(method, tmp_path):
    tree, order = (mc.run(job(*method, count=70, fold=fold), out=tmp_path)[0] for fold in ("tree", "order"))
    assert tree.attrs["run_id"] != order.attrs["run_id"]
    assert 0 < np.max(np.abs(tree.x - order.x)) < 1e-12
    for column in ("wire_bits_up", "wire_bits_down", "paper_bits_up", "cost_up", "elements_up"):
        assert tree.trace[column].tobytes() == order.trace[column].tobytes(), column


@pytest.mark.parametrize(("method", "why"), [
    (({"name": "adiana"}, {"name": "random-k", "k": 9}), "adiana, as it is set here, needs each message"),
    (({"name": "adef"}, {"name": "top-k", "k": 9}), "adef message"),
    (({"name": "cat"}, {"name": "stochastic"}), "cat message"),
    (({"name": "async-sgd", "step": 0.1},), "async-sgd, as it is set here, shares memory and sends no messages"),
])  # fmt: skip
def test_a_method_whose_master_needs_more_than_the_mean_is_refused(method, why, tmp_path):
    with pytest.raises(UserError, match=naming(f'workers.fold = "tree": {why} fold = "order" would do')):
        mc.run(job(*method, count=3, fold="tree"), out=tmp_path)


@pytest.mark.usefixtures("registered_for_one_test_only")
def test_a_master_of_ones_own_that_looks_at_single_messages_is_told_what_would_do(tmp_path):
    @mc.algorithms.register("one-by-one")
    @dataclass(frozen=True)
    class OneByOne(mc.algorithms["gd"]):
        def master_answers(self, node, master, ups, t):
            return self.down.pack(sum(u.dense() for u in ups) / len(ups), t)

    assert mc.run(job({"name": "one-by-one"}, count=40), out=tmp_path)
    with pytest.raises(UserError, match=r'this master asks for single messages.* fold = "order"'):
        mc.run(job({"name": "one-by-one"}, count=40, fold="tree"), out=tmp_path)
