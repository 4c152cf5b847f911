"""ship-data: the rows that arrive are those that were sent, x is the minimiser, and bits are those of the bytes."""

import os
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from helpers.plain_samples import read as read_plainly
from helpers.refusals import naming
from helpers.running import run_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mpi_compress.algorithms.papers import ship_data
from mpi_compress.core.errors import CorruptMessage, UserError
from mpi_compress.job.loading import parse_job
from mpi_compress.messages.batch import LENGTH_BYTES
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.fields import Reader, counts
from mpi_compress.messages.formats import FORMATS
from mpi_compress.messages.samples import Samples, SamplesLink
from mpi_compress.problem.datasets.store import open_data

DATA = {"generator": "gspar", "samples": 90, "dim": 40}
SHIP = {"name": "ship-data"}


def link_of(dim):
    return SamplesLink(compressors["identity"](), codecs["dense"](), dim)


def samples(a, labels):
    row, column = np.nonzero(a)
    return Samples(a.shape[1], np.bincount(row, minlength=len(a)), column.astype(np.uint32), a[row, column], labels)


def read(link, data, at=0):
    """The samples whose message begins at data[at], and where it ends."""
    r = Reader.of_one(data, at, FORMATS[64])
    return link.read(r)[0], r.at.item()


def dense(c):
    out = np.zeros((c.labels.size, c.dim))
    out[np.repeat(np.arange(c.labels.size), c.lengths), c.indices] = c.values
    return out


def rows_in(c):
    """The multiset of a message's rows: f does not depend on their order."""
    return sorted(zip(c.labels.tolist(), dense(c).tolist(), strict=True))


def made(rng, rows, dim, share, numbers):
    held = rng.random((rows, dim)) < share
    values = {
        "ones": lambda: np.ones(held.shape),
        "few": lambda: rng.choice([0.1, 0.25, -3.0], held.shape),
        "thousands": lambda: rng.integers(1, 1000, held.shape) / 999,
        "singles": lambda: rng.standard_normal(held.shape).astype(np.float32).astype(float),
        "doubles": lambda: rng.standard_normal(held.shape),
    }[numbers]()
    return np.where(held, values, 0.0)


@pytest.mark.parametrize("numbers", ["ones", "few", "thousands", "singles", "doubles"])
@pytest.mark.parametrize(
    ("rows", "dim", "share"), [(1, 1, 1.0), (0, 5, 0.0), (3, 7, 0.0), (40, 13, 0.4), (7, 3000, 0.01), (300, 70, 0.02)]
)
def test_what_arrives_is_what_was_sent_to_the_last_bit(rows, dim, share, numbers):
    rng = np.random.default_rng(rows + dim)
    a, link = made(rng, rows, dim, share, numbers), link_of(dim)
    for labels in (np.sign(rng.standard_normal(rows)), rng.standard_normal(rows)):
        data = link.encode(samples(a, labels)).raw
        two = np.concatenate([data, data])
        first, end = read(link, two)
        second, last = read(link, two, end)
        assert (end, last) == (data.size, two.size)
        for c in (first, second):
            assert rows_in(c) == rows_in(samples(a, labels))
            assert link.paper_bits(c) == 8 * data.size


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_damaged_bytes_are_refused_or_rows(seed):
    rng = np.random.default_rng(seed)
    link = link_of(9)
    data = link.encode(samples(made(rng, 20, 9, 0.3, "few"), np.sign(rng.standard_normal(20)))).raw
    for _ in range(rng.integers(1, 4)):
        data[rng.integers(data.size)] ^= np.uint8(1 << rng.integers(8))
    with suppress(CorruptMessage):
        c, end = read(link, data[: rng.integers(data.size // 2, data.size + 1)])
        assert dense(c).shape == (c.labels.size, 9)
        assert end <= data.size


def test_counts_of_more_than_the_bytes_can_hold_take_no_memory():
    head = [2**39, 2**39, 0, 0, 1, 0, 0, 1, 1]
    written, ends = counts(np.array(head))
    data = np.concatenate([written[: ends[-1]], np.zeros(1, np.uint8)])
    tracemalloc.start()
    try:
        with pytest.raises(CorruptMessage, match="1 bytes cannot hold 549755813888 samples"):
            read(link_of(2**16), data)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "objective",
    [
        {"mu": "1e-2 L"},
        {"loss": "least-squares", "mu": "1e-2 L"},
        {"penalty": {"name": "l1", "weight": 0.01}, "f_star": "lowest seen"},
        {"penalty": {"name": "ratio", "weight": 0.01}, "f_star": "lowest seen"},
    ],
)
def test_one_round_finds_the_minimiser_and_the_run_ends(tmp_path, objective):
    least = 1e-5 if objective.get("penalty", {}).get("name") == "ratio" else 1e-9  # not convex: rows in another order end elsewhere
    run = run_of(tmp_path, SHIP, data=DATA, objective=objective, log={"every": 5})
    assert run.status == "complete"
    assert run.trace["round"].tolist() == [0, 1]
    assert run.trace["suboptimality"][-1] < least * run.trace["suboptimality"][0]
    assert run.trace["grad_norm"][-1] < 1e-6 * run.trace["grad_norm"][0], "there, too"
    assert "samples were all sent" in run.attrs["reason"]


def test_the_solver_is_loaded_before_the_clock_runs(tmp_path, monkeypatch):
    solve, found = ship_data.solved, {}
    monkeypatch.setattr(ship_data, "solved", lambda f, *at: found.setdefault(len(f.rows), solve(f, *at)))
    run_of(tmp_path, SHIP, data=DATA)
    assert np.abs(found[2]).max() > 1e-6, "the two samples of the warm-up take steps of the solver before"


def test_its_bits_are_those_of_the_bytes_of_rows_and_of_x(tmp_path):
    run = run_of(tmp_path, SHIP, data=DATA)
    silence = 8 * LENGTH_BYTES
    assert run.trace["wire_bits_down"][-1] == 5 * (silence + 8 + 40 * 64)  # auto: a byte says how
    assert run.trace["wire_bits_up"][-1] == run.trace["paper_bits_up"][-1] + 5 * silence
    assert 0 < run.trace["paper_bits_up"][-1] < 64 * run.trace["elements_up"][-1]


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"objective": {"model": "softmax", "mu": 0.1}}, "linear model"),
        ({"up": {"name": "top-k", "k": 3}}, "leave up.compressor out"),
        ({"workers": {"count": 5, "participate": 2}}, "participate = 2"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(tmp_path, tables, says):
    with pytest.raises(UserError, match=naming(says)):
        run_of(tmp_path, SHIP, data=DATA, **tables)


real = pytest.mark.skipif("MPI_COMPRESS_DATA" not in os.environ, reason="needs the real data sets")


@real
@pytest.mark.parametrize(("name", "n", "most"), [("a1a", 16, 0.050), pytest.param("a9a", 20, 0.52, marks=pytest.mark.slow), ("mushrooms", 10, 0.065), ("w1a", 10, 0.135)])
def test_real_sets_take_few_bits(tmp_path, name, n, most):
    run = run_of(tmp_path, SHIP, data={"name": name}, count=n, objective={"mu": "1e-2 L", "f_star": "skip"})
    assert run.trace["wire_bits_up"][-1] < most * 1e6


@pytest.mark.parametrize("of", ["zeros and ones", "few numbers", "lists of places", "floats", "decimals"])
def test_a_second_program_reads_the_same_rows(of):
    rng = np.random.default_rng(3)
    a = {
        "zeros and ones": lambda: made(rng, 60, 20, 0.3, "ones"),
        "few numbers": lambda: made(rng, 60, 12, 0.5, "few"),
        "lists of places": lambda: made(rng, 50, 900, 0.005, "ones"),
        "floats": lambda: made(rng, 30, 5, 0.9, "singles"),
        "decimals": lambda: np.round(made(rng, 40, 6, 0.9, "doubles"), 3),
    }[of]()
    check_by_a_second_program(samples(a, np.sign(rng.standard_normal(len(a)))))


@real
@pytest.mark.slow
@pytest.mark.parametrize(("name", "n"), [("a1a", 16), ("w1a", 10), ("diabetes_scale", 5)])
def test_a_second_program_reads_real_sets(tmp_path, name, n):
    job = {"data": {"name": name}, "workers": {"count": n}, "stop": {"rounds": 1}, "run": [{"label": "a", "algorithm": SHIP}]}
    spec = parse_job(job, "job", tmp_path, {}).runs[0]
    for shard in open_data(*spec.source).shards(range(n), n):
        check_by_a_second_program(ship_data.samples_of(shard))


def check_by_a_second_program(c):
    data = link_of(c.dim).encode(c).raw
    rows, message = read_plainly(data, c.dim)
    ends = np.cumsum([0, *c.lengths])
    sent = [(y, c.indices[i:j].tolist(), c.values[i:j].tolist()) for y, i, j in zip(c.labels.tolist(), ends, ends[1:], strict=False)]
    assert message.end == data.size
    assert 8 * data.size <= 1.15 * message.entropy
    assert sorted(rows) == sorted(sent)
