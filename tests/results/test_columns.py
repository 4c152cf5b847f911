"""One table of columns: what results hold, figures name and checkpoints depend on."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from fixtures import places
from helpers.plays import bound, problem

import mpi_compress as mc
from mpi_compress.algorithms import algorithms
from mpi_compress.algorithms.log import Log
from mpi_compress.core.errors import UserError
from mpi_compress.results.columns import COLUMNS, TAKEN, Column, column_of, dtype_of, listing, schema
from mpi_compress.results.reader import Run
from mpi_compress.results.writer import Recorder, Row


def in_files(c: Column) -> set[str]:
    return {f"{table}/{c.name}" for table in (c.table, "workers" if c.workers else c.table) if table}


def test_the_table_has_every_column_that_runs_write_and_no_other():
    written = {
        c for run in places.load(places.RUNS)["runs"].values() for c in run if c.startswith(("trace/", "workers/", "theory/"))
    }
    assert {place for c in COLUMNS for place in in_files(c) if c.table != "timing"} == written


NOISY = {"name": "random-k", "k": 3}


def test_what_algorithms_add_is_in_the_table_and_takes_no_other_name():
    logs = {name: cls.log for name, cls in algorithms.items()}
    for name in [name for name, log in logs.items() if not isinstance(log, Log)]:  # what it logs depends on the run
        logs[name] = bound(problem(), {"name": name}, NOISY if name in ("sgd", "svrg") else {"name": "identity"}).log
        assert logs[name].columns
    added = {column for log in logs.values() for column in log.columns}
    assert added <= {c.name for c in COLUMNS if c.since == "algorithm"}
    assert not added & TAKEN


def test_counts_are_whole_numbers_and_columns_of_ones_own_are_floats(tmp_path):
    recorder = Recorder(tmp_path / "a.h5", {"label": "a"})
    trace = {"round": 2**60 + 1, "wire_bits_up": 2**60 + 1, "loss": 0.5, "height": 1.5, "T": 2.5}
    recorder.append(Row(trace, {"wire_bits_up": [3, 4], "height": [1.0, 2.0]}, {"seconds": 0.1}))
    with h5py.File(recorder.finish("complete", "", np.zeros(1), {})) as h5:
        kept = {f"{table}/{name}": h5[table][name] for table in ("trace", "workers", "timing") for name in h5[table]}
        assert {name for name, column in kept.items() if column.dtype == np.int64} == {
            "trace/round", "trace/wire_bits_up", "workers/wire_bits_up",
        }  # fmt: skip
        assert kept["trace/round"][0] == 2**60 + 1
        assert kept["trace/T"][0] == 2.5, "a column of somebody's algorithm, not the T of theory"
    assert (dtype_of("trace/height"), column_of("height").label) == ("float64", "height")


def test_a_further_column_changes_the_schema():
    lines = schema().splitlines()
    assert len(lines) == len(set(lines)) == sum(bool(c.table) for c in COLUMNS)
    assert "trace/wire_bits_up int64 and workers" in lines


@pytest.mark.parametrize("column", [c for c in COLUMNS if c.derive or c.since in ("curves", "bounds")], ids=lambda c: c.name)
def test_what_the_table_derives_can_be_asked_of_a_result(column, with_theory, with_errors):
    run = with_errors if column.name == "squared_error" else with_theory
    values = run.column(column.name)
    assert values.dtype == column.dtype
    assert len(values) == len(run.column("T") if column.since == "curves" else run.trace["round"])


def played(folder, rest):
    tables = 'data = { generator = "gspar", samples = 60, dim = 30 }\nobjective = { mu = "1e-2 L" }\nstop = { rounds = 3 }\n'
    file = folder / "job.toml"
    file.write_text(tables + rest)
    return mc.run(mc.load_job(file), out=file.parent)[0]


@pytest.fixture(scope="module")
def with_theory(tmp_path_factory):
    return played(tmp_path_factory.mktemp("columns"), 'algorithm = { name = "gd" }\nlog = { theory = true, count = ["values-only-32", "values-only-64", "padded"] }\n')


@pytest.fixture(scope="module")
def with_errors(tmp_path_factory):
    return played(tmp_path_factory.mktemp("errors"), 'algorithm = { name = "ef" }\nup = { compressor = { name = "top-k", k = 3 } }\n')


def test_a_way_of_counting_that_a_run_does_not_have_says_where_it_is_asked_for(with_errors):
    with pytest.raises(UserError, match=r"'bits_values_32' is a way of counting, which this run was not asked for: \[log\] count"):
        with_errors.column("bits_32_n")


def test_the_listing_has_a_line_for_each_column():
    assert [line.split()[0] for line in listing()] == [c.name for c in COLUMNS]


def test_squares_of_a_run_that_diverges_may_be_infinite():
    run = Run(Path("a.h5"), {}, {"round": np.arange(2), "grad_norm": np.array([2.0, 1e200])}, {}, {}, None)
    assert run.column("squared_grad_norm").tolist() == [4.0, np.inf]
