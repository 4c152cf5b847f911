"""What a cache keeps for one thing is never taken for another: every part of every key counts by itself."""

import copy
from dataclasses import fields

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.preparing.problems import key_of
from mpi_compress.problem.constants import eigenvalues_file
from mpi_compress.problem.datasets.store import cached_file, open_data
from mpi_compress.problem.datasets.table import DataTable
from mpi_compress.problem.optimum import lowest, optimum_file

FILE = "".join(f"{j % 3} {j % 4 + 1}:{j + 1}.5\n" for j in range(12))
BASE = {
    "seed": 1,
    "data": {"path": "a.svm", "positive": [1]},
    "objective": {"mu": 0.1},
    "workers": {"count": 2, "partition": "shuffled"},
    "algorithm": {"name": "gd", "step": 0.1},
    "up": {"compressor": {"name": "top-k", "k": 2}, "codec": {"name": "fixed", "float": 32}},
    "stop": {"rounds": 3},
}
OF_DATA = {
    "data.path": "b.svm", "data.normalize": "rows", "data.positive": [2], "data.dtype": "float32", "data.rows": 11, "data.dim": 9,
    "workers.partition": "by-label", "seed": 2,
}  # fmt: skip
OF_PROBLEM = {
    **OF_DATA,
    "objective.mu": 0.2,
    "objective.loss": "squared-hinge",
    "objective.penalty": {"name": "ratio", "weight": 0.1},
    "objective.regularizer": "master",
    "objective.smoothness": 3.0,
    "objective.f_star": 0.1,
    "workers.count": 3,
}
OF_RUN = {
    **OF_PROBLEM,
    "algorithm": {"name": "nesterov", "step": 0.1},
    "algorithm.step": 0.2,
    "algorithm.batch": 2,
    "up.compressor": {"name": "random-k", "k": 2},
    "up.compressor.k": 3,
    "up.codec.name": "rice",
    "up.codec.float": 64,
    "down": {"compressor": {"name": "top-k", "k": 2}},
    "cost": {"model": "affine", "c0": 1, "c1": 2},
    "start.at": "random",
    "start.offset": 0.1,
    "stop.rounds": 4,
    "stop.grad_norm": 1e-9,
    "stop.suboptimality": 1e-9,
    "workers.participate": 1,
    "log.every": 2,
    "log.theory": True,
    "log.metrics": ["accuracy"],
}
OF_NO_NUMBER = {"workers.exchange": "allgather", "workers.master": "worker", "workers.patience": "1 min", "checkpoint.every": 2}


@pytest.fixture
def spec(tmp_path):
    """The run of the job above with one value changed, and the files a.svm and b.svm beside it."""
    (tmp_path / "a.svm").write_text(FILE)
    (tmp_path / "b.svm").write_text(FILE.replace("2.5", "2.25"))

    def changed(key=None, value=None):
        tables = copy.deepcopy(BASE)
        tables["data"]["path"] = str(tmp_path / "a.svm")
        if key:
            *outer, last = key.split(".")
            table = tables
            for name in outer:
                table = table.setdefault(name, {})
            table[last] = str(tmp_path / value) if key == "data.path" else value
        return mc.load_job(tables).runs[0]

    return changed


def all_distinct(values):
    assert len(set(values)) == len(values), values


def test_each_setting_of_the_data_has_a_file_of_its_own(spec):
    specs = [spec(), *(spec(key, value) for key, value in OF_DATA.items())]
    all_distinct([cached_file(*s.source).name.rpartition("-")[2] for s in specs])
    named = {key.partition(".")[2] for key in OF_DATA if key.startswith("data.")}
    assert {f.name for f in fields(DataTable)} - named == {
        *("name", "generator", "test", "test_rows"),  # which are no settings of the training rows
        *("format", "parameters"),  # in `test_formats.py`, and of generators in `test_generators.py`
    }


def test_labels_of_another_kind_are_in_another_file(spec):
    s = spec()
    all_distinct([cached_file(*s.source[:3], labels) for labels in ("sign", "class", "number")])


def test_what_changes_the_problem_is_another_problem(spec):
    all_distinct([key_of(spec()), *(key_of(spec(key, value)) for key, value in OF_PROBLEM.items())])


def test_what_changes_a_number_is_another_run(spec):
    all_distinct([spec().run_id, *(spec(key, value).run_id for key, value in OF_RUN.items())])


@pytest.mark.parametrize("key", OF_NO_NUMBER)
def test_what_changes_no_number_is_the_same_run(key, spec):
    assert spec(key, OF_NO_NUMBER[key]).run_id == spec().run_id


def test_an_optimum_is_that_of_its_loss_its_mu_and_its_start(spec, tmp_path):
    s = spec()
    data = open_data(*s.source)
    huber, penalty = mc.losses["huber"], mc.penalties["ratio"]
    ways = [(mc.losses["logistic"](), 0.1), (mc.losses["logistic"](), 0.2), (huber(delta=0.5), 0.1), (huber(delta=0.25), 0.1)]
    all_distinct([optimum_file(data, loss, mu) for loss, mu in ways])
    before = set(data.file.parent.iterdir())
    ratio, other = (penalty(weight) for weight in (0.1, 0.2))
    for x0, r in ((0.0, None), (0.5, None), (0.0, ratio), (0.0, other)):
        lowest(data, mc.losses["logistic"](), 0.1, np.full(data.dim, x0), r)
    assert len(set(data.file.parent.iterdir()) - before) == 4


def test_eigenvalues_are_those_of_so_many_shards(spec):
    s = spec()
    data = open_data(*s.source)
    all_distinct([eigenvalues_file(data, n) for n in (1, 2, 3)])


@pytest.mark.parametrize("way", ["up", "down"])
def test_the_source_of_a_codec_counts_in_either_direction(way, tmp_path, registered_for_one_test_only):
    """Two codecs of one name, each of a session of its own, whose source is not known."""

    def run_id():
        own = type("Own", (mc.codecs["dense"],), {"__module__": "a_session_that_is_over"})
        mc.codecs.register("own-of-test-keys")(own)
        tables = {"data": {"generator": "gspar"}, "algorithm": {"name": "gd"}, "stop": {"rounds": 1}}
        return mc.load_job({**tables, "title": "own", way: {"codec": "own-of-test-keys"}}).runs[0].run_id

    all_distinct([run_id(), run_id()])
