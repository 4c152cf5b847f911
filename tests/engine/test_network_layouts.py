"""Networks give the same bytes on every layout, with dropout on and a ragged last batch; without JAX a job ends in one line."""

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from helpers.layouts import Layout, Plan, assert_equal, play, play_all, results
from helpers.networks import needs_jax
from helpers.refusals import refused

import mpi_compress as mc

EF = {"algorithm": {"name": "ef", "step": 0.1, "batch": 5, "sampling": "epoch"}, "up": {"compressor": {"name": "top-k", "k": "10%"}}}
COMMON = {"workers": {"count": 3, "partition": "shuffled"}, "stop": {"rounds": 9}, "log": {"every": 3}, "run": [{"label": "EF", **EF}]}
JOBS = {
    "gspar-cnn": {
        "data": {"path": "train-images-idx3-ubyte", "test": "t10k-images-idx3-ubyte", "dtype": "float32"},
        "objective": {"model": {"name": "gspar-cnn", "channels": 2, "hidden": 3, "chunk": 5}},
    },
    "ncf": {
        "data": {"path": "ratings.csv", "format": "movielens", "negatives": 1, "test_negatives": 2, "test": "held-out"},
        "objective": {"model": {"name": "ncf", "factors": 2, "layers": [4, 3], "dropout": 0.3, "chunk": 5}},
    },
    "lstm": {
        "data": {"path": "prose.txt", "format": "text", "vocabulary": 9, "window": 4, "held_out": 0.2, "test": "held-out"},
        "objective": {"model": {"name": "lstm", "hidden": 3, "layers": 1, "dropout": 0.3, "chunk": 5}},
    },
    "resnet-8": {
        "data": {"path": "train-images-idx3-ubyte", "dtype": "float32"},
        "objective": {"model": {"name": "resnet-8", "width": 2, "stages": 2, "chunk": 5}},
    },
}


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> Path:
    """The folder of the jobs, with their data."""
    folder, rng = tmp_path_factory.mktemp("networks"), np.random.default_rng(0)
    for name, n in (("train", 38), ("t10k", 7)):
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(rng.integers(0, 256, (n, 6, 5)).astype(np.uint8)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx((np.arange(n) % 3).astype(np.uint8)))
    (folder / "prose.txt").write_text(" ".join(rng.choice(list("abcdefghijk"), 200)))
    rated = [(user, item) for user in range(4) for item in rng.permutation(9)[:5]]
    lines = [f"{user},{item},3,{time}" for time, (user, item) in enumerate(rated)]
    (folder / "ratings.csv").write_text("\n".join(["userId,movieId,rating,timestamp", *lines]))
    for name, tables in JOBS.items():
        (folder / f"{name}.toml").write_text(tomli_w.dumps({**COMMON, **tables}))
    return folder


def compared(jobs, tmp_path, names, ways):
    """The results of one process, compared with those of further ways; what begins on equally many ranks is begun by one start."""
    files = [jobs / f"{name}.toml" for name in names]
    first = {"one": Layout(), **{str(i): layouts[0] for i, layouts in enumerate(ways)}}
    for ranks in dict.fromkeys(layout.ranks for layout in first.values()):
        begun = {name: Plan(files, tmp_path / name, layout) for name, layout in first.items() if layout.ranks == ranks}
        ended = dict(zip(begun, play_all([*begun.values()]), strict=True))
        assert set(ended.get("one", {None: 0}).values()) == {0}
    one = results(tmp_path / "one")
    for i, layouts in enumerate(ways):
        for layout in layouts[1:]:
            play(files, tmp_path / str(i), layout)
        other = results(tmp_path / str(i))
        assert set(other) == set(one)
        for key, file in one.items():
            assert_equal(file, other[key], layouts[-1].left_out)
    return one


ALLGATHER = {"workers.exchange": "allgather"}


@pytest.mark.slow
@needs_jax
def test_results_are_equal_to_the_byte_on_ranks_by_allgather_and_resumed_with_dropout_on(jobs, tmp_path):
    ways = [[Layout(3)], [Layout(None, ALLGATHER, stop_after=4, until_done=True)]]
    one = compared(jobs, tmp_path, ["ncf"], ways)
    run = mc.read(next(iter(one.values())))
    assert run.attrs["framework"].startswith("jax ")
    assert run.attrs["instruction_set"]
    assert run.attrs["device"] == "cpu"


@needs_jax
@pytest.mark.slow
def test_results_of_every_network_as_xla_compiles_by_default_are_equal_to_the_byte(jobs, tmp_path, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS")
    ways = [[Layout(2)], [Layout(3, ALLGATHER)], [Layout(2, stop_after=3), Layout()], [Layout(stop_after=3, until_done=True)]]
    compared(jobs, tmp_path, list(JOBS), ways)


@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="JAX is installed")
def test_without_jax_a_job_ends_in_one_line_that_names_the_extra(jobs, tmp_path, capsys):
    refused(["run", jobs / "lstm.toml", "--out", tmp_path, "--quiet"], capsys, "pip install 'mpi-compress[deep]'")


def test_an_edited_model_file_changes_the_run_id(jobs, tmp_path):
    source = (
        "from dataclasses import dataclass\nimport mpi_compress as mc\n\n"
        "@mc.models.register('mine')\n@dataclass(frozen=True)\nclass Mine(mc.Network):\n    labels = 'number'\n"
        "    blocks = {'w': (5, 1)}\n\n    def outputs(self, p, a, real, drop):\n        return (a @ p['w'])[:, 0]\n\n"
        "    def losses(self, outputs, a, y):\n        return (outputs - y) ** 2\n"
    )
    (tmp_path / "prose.txt").write_text((jobs / "prose.txt").read_text())
    tables = {**COMMON, **JOBS["lstm"], "objective": {"model": {"name": "mine"}}, "plugins": ["mine_network"]}
    (tmp_path / "job.toml").write_text(tomli_w.dumps(tables))
    ids = []
    for text in (source, source.replace("** 2", "** 4")):
        (tmp_path / "mine_network.py").write_text(text)
        ids.append(mc.load_job(tmp_path / "job.toml").runs[0].run_id)
    assert ids[0] != ids[1]
