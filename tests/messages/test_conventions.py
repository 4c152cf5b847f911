"""[log] count: the same messages by the conventions of several sources, which have one column each."""

import json
from math import log2

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.job.loading import parse_job
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.conventions import CONVENTIONS, conventions_of
from mpi_compress.messages.kinds import Blocks, Chained, Dense, Hybrid, Levels, Powers, SignSparse, Sparse, WithScalar
from mpi_compress.messages.link import Link
from mpi_compress.results.columns import COLUMNS

ALL = [*CONVENTIONS]


def counted(c, compressor="top-k", **parameters):
    link = Link(compressors[compressor](**parameters), codecs["fixed"](float=64), c.dim)
    return [each.bits(link, c) for each in CONVENTIONS.values()]


def test_each_convention_has_a_column_and_each_column_a_convention():
    assert [c.column for c in CONVENTIONS.values()] == [c.name for c in COLUMNS if c.since == "convention"]
    assert conventions_of(["min(k log2 d, ...)", "cat"]).keys() == {"min(k log2 d, …)", "cat"}
    with pytest.raises(ValueError, match="values-only-32"):
        conventions_of(["values-only-3"])


def test_conventions_count_what_is_counted_by_hand():
    d, K = 1000, 7
    few = Sparse(d, np.arange(K, dtype=np.uint32), np.ones(K))
    assert counted(few) == [K * (10 + 64), 32 * K, 64 * K, K * (32 + 10), 64 * K, 32 * K + K * log2(d), K * (10 + 64)]
    assert counted(few, "random-k", k=7)[5] == 32 * K  # the seed says which
    many = Sparse(d, np.arange(500, dtype=np.uint32), np.ones(500))
    assert counted(many)[5] == 32 * 500 + d
    nearly = Sparse(d, np.arange(998, dtype=np.uint32), np.ones(998))
    assert counted(nearly)[5] == 32 * 998 + 2 * log2(d)
    assert counted(Dense(np.ones(d))) == [64 * d, 32 * d, 64 * d, 32 * d, 32 * d, 32 * d, 64 * d]
    signs = SignSparse(d, few.indices, np.ones(K, dtype=bool), 1.0)
    assert counted(signs) == [64 + K * 10, 32, 64, 32 + K * 10, 32 + 32 * K, 32 + K * log2(d), 64 + K * 10]
    assert counted(WithScalar(0.5, few))[5] == 32 + 32 * K + K * log2(d)
    assert counted(Blocks((few, few), "fixed")) == [2 * bits for bits in counted(few)]
    powers = Chained(few, Powers(np.ones(K, dtype=np.int32), 0), ("fixed", "packed"))
    by_size = [K * (10 + 12), K * 9, K * 12, K * (10 + 9), K * (9 + 32), K * 9 + K * log2(d), K * (10 + 12)]
    assert counted(powers) == by_size  # a sign and an exponent of 8 or 11 bits for each value
    assert counted(powers, "random-k", k=7)[5] == K * 9


def test_gspars_string_is_counted_at_its_entropy():
    """§2.3: Σ d_ℓ log2(d/d_ℓ), at most 2d, unless the indices are shorter; one float for the magnitude, one for each value."""
    d, b = 16, 64
    at = np.arange(8, dtype=np.uint32)
    even = Hybrid(d, at[:4], np.ones(4), at[4:], np.array([True, True, False, False]), 1.0)
    string = 8 * log2(2) + 4 * log2(4) + 2 * 2 * log2(8)
    assert counted(even)[-1] == string + 4 * b + b < even.paper_bits(b) == 2 * d + 4 * b + b
    assert counted(WithScalar(0.5, even))[-1] == string + 6 * b
    assert counted(Blocks((even, even), "fixed"))[-1] == 2 * (string + 5 * b)
    one = Hybrid(d, at[:1], np.ones(1), at[:0], np.zeros(0, dtype=bool), 0.0)
    assert counted(one)[-1] == 1 * log2(d) + 2 * b  # the index alone: Σ would be 5.4
    quarters = Hybrid(d, at[:4], np.ones(4), np.arange(4, 12, dtype=np.uint32), np.arange(8) < 4, 1.0)
    assert counted(quarters)[-1] == 2 * d + 5 * b  # the bound is reached
    levels = Levels(np.ones(d, dtype=np.int8), np.ones(1), d)
    link = Link(compressors["qsgd"](levels=1), codecs["entropy"](float=32, element_bits=2.0), d)
    assert CONVENTIONS["gspar"].bits(link, levels) == 2 * d


def job(tmp_path, runs, **tables):
    return parse_job(
        {
            "data": {"generator": "gspar", "samples": 60, "dim": 20},
            "objective": {"mu": "1e-2 L"},
            "workers": {"count": 3},
            "stop": {"rounds": 4},
            "log": {"count": ALL},
            "run": runs,
            **tables,
        },
        "count",
        tmp_path,
        {},
    )


def test_a_run_has_the_columns_that_its_job_names_and_no_other_number_changes(tmp_path):
    top = {"label": "top", "algorithm": {"name": "ef"}, "up": {"compressor": {"name": "top-k", "k": 2}}}
    whole = {"label": "whole", "algorithm": {"name": "ef21", "first": "gradient"}, "up": {"compressor": {"name": "top-k", "k": 2}}}
    dense = {"label": "dense", "algorithm": {"name": "gd"}}
    found = {run.label: run for run in mc.run(job(tmp_path, [top, whole, dense]), out=tmp_path)}
    rounds, n, d, K = np.arange(5), 3, 20, 2
    trace = found["top"].trace
    np.testing.assert_array_equal(trace["bits_cat"], trace["paper_bits_up"])
    np.testing.assert_array_equal(trace["bits_values_32"], n * 32 * K * rounds)
    np.testing.assert_allclose(trace["bits_cheapest_indices"], n * K * (32 + log2(d)) * rounds, rtol=1e-14)
    later = np.maximum(rounds - 1, 0)
    np.testing.assert_array_equal(found["whole"].trace["bits_values_64"], n * 64 * K * later)  # the start is free
    np.testing.assert_array_equal(found["whole"].trace["bits_values_indices"], n * (32 * d * (rounds > 0) + K * 37 * later))
    np.testing.assert_array_equal(found["dense"].trace["bits_values_32"], n * 32 * d * rounds)  # and dense gradients are not
    (plain,) = mc.run(job(tmp_path, [top], log={"every": 1}), out=tmp_path / "plain")
    assert not plain.has("padded_density")
    assert set(trace) - set(plain.trace) == {c.column for c in CONVENTIONS.values()}
    assert all(np.array_equal(trace[name], plain.trace[name], equal_nan=True) for name in plain.trace)
    assert "count" in json.dumps(found["top"].attrs["job"])


def test_names_of_no_convention_and_methods_without_messages_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"log: .*values-only-32"):
        job(tmp_path, [{"label": "a", "algorithm": {"name": "gd"}}], log={"count": ["values-only"]})
    shared = {
        "label": "a",
        "algorithm": {"name": "async-sgd", "step": "0.1/L"},
        "up": {"compressor": {"name": "gspar", "kappa": 0.3}},
    }
    with pytest.raises(UserError, match=r"log\.count: async-sgd shares memory"):
        mc.run(job(tmp_path, [shared]), out=tmp_path)


def test_padded_messages_count_as_much_as_the_largest_of_their_round(tmp_path):
    """HT's code: a value and a position of 32 bits each, all workers padded to the one that sends most."""
    table = {"label": "hard", "algorithm": {"name": "ef"}, "up": {"compressor": {"name": "hard-threshold", "threshold": 0.05}}}
    (run,) = mc.run(job(tmp_path, [table]), out=tmp_path)
    each = np.diff(run.workers["wire_bits_up"], axis=0) - 8 * (4 + 1)  # a byte says how many; 64 bits a value, 5 an index
    most = np.floor(each / 69).max(axis=1)
    assert len(set(most)) > 1 or np.ptp(each) > 0
    assert run.trace["bits_padded"].tolist() == [0, *np.cumsum(3 * 64 * most)]
    assert run.column("padded_density")[-1] == pytest.approx(most.mean() / 20)
    assert run.column("average_density")[-1] == pytest.approx(run.trace["elements_up"][-1] / (4 * 3 * 20))
    assert run.column("average_density")[-1] < run.column("padded_density")[-1]
