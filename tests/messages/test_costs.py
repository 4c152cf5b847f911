"""Cost models: units, plateaus, what was measured; and links that change: a trace's tables, by hand."""

import bisect
import itertools

import numpy as np
import pytest
from helpers.refusals import naming
from helpers.running import command, here
from hypothesis import given, settings
from hypothesis import strategies as st

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.core.expressions import bits_per_second, seconds
from mpi_compress.job.timing import TimeTable
from mpi_compress.messages.codecs import codecs
from mpi_compress.messages.compressors import compressors
from mpi_compress.messages.costs import at_moment, costs
from mpi_compress.messages.kinds import SignSparse, Sparse, WithScalar
from mpi_compress.messages.link import Link, ScalarLink
from mpi_compress.planning import links as calibrate

BITS = np.arange(0.0, 40_000.0, 7.0)


def test_payload_affine_and_packet_costs_are_those_computed_by_hand():
    assert costs.build({"name": "payload"}, "").cost(100) == 100
    assert costs.build({"name": "affine", "c0": "54 B"}, "").cost(100) == 100 + 432
    assert costs.build({"name": "affine", "c0": 2e-3, "c1": 1e-6}, "").cost(1000) == pytest.approx(3e-3)
    fig3 = costs.build({"name": "packet", "c1": "576 B", "c0": "64 B", "pmax": "512 B"}, "")
    assert [fig3.cost(bits) for bits in (1, 4096, 4097)] == [512 + 4608, 512 + 4608, 512 + 2 * 4608]
    udp = costs.build("udp-ethernet", "")
    assert [udp.cost(8 * n) for n in (0, 1, 1472, 1473)] == [432, 440, 8 * 1472 + 432, 8 * 1473 + 864]
    radio = costs.build({"name": "ieee-802.15.4", "overhead": 82}, "")
    assert [radio.cost(8 * n) for n in (51, 52)] == [8 * 133, 8 * (52 + 164)]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("codec", ["fixed", "bitmap"])
@pytest.mark.parametrize("dim", [1, 2, 40, 300])
def test_the_length_of_a_message_is_planned_to_the_byte(dim, codec, bits):
    """Cost "wire": what is planned for T coordinates is what is sent, for every T."""
    rng = np.random.default_rng(dim)
    budgets = np.arange(1, dim + 1)
    for name in ("top-k", "sq", "stochastic"):
        compressor = compressors.build(name, "")
        link = Link(compressor, codecs.build({"name": codec, "float": bits}, ""), dim)
        if name == "stochastic":
            link = ScalarLink(link)
        planned = link.planned_wire_bits(budgets)
        for T in budgets:
            indices = np.sort(rng.choice(dim, T, replace=False)).astype(np.uint32)
            vector = Sparse(dim, indices, np.ones(T)) if name != "sq" else SignSparse(dim, indices, np.ones(T, dtype=bool), 2.0)
            content = WithScalar(0.5, vector) if name == "stochastic" else vector
            assert link.encode(content).wire_bits == planned[T - 1] == link.planned_wire_bits(int(T))


@pytest.mark.parametrize("codec", ["rice", "elias-delta", "elias-omega", "entropy", "auto"])
def test_what_depends_on_the_set_of_coordinates_cannot_be_planned(codec):
    assert Link(compressors.build("top-k", ""), codecs.build(codec, ""), 50).planned_wire_bits(np.arange(1, 51)) is None


COMPUTE = {"nonzero": 2e-9, "message": 1e-5}  # seconds of a processor


@pytest.fixture
def link_file(tmp_path):
    link = synthetic()
    file = tmp_path / "link.toml"
    file.write_text(link.toml("synthetic", COMPUTE))
    return file


def synthetic(noise=0.01, bad=0, c0=2e-4, c1=1e-8):
    """A link of 100 Mbit/s and 0.2 ms, whose every trip has a small message besides."""
    rng = np.random.default_rng(0)
    bits = np.unique(np.geomspace(8, 1e6, 25).round()) * 8
    times = [(c1 * b + 2 * c0) * (1 + noise * rng.standard_normal(30)) for b in bits]
    for t in times[:bad]:
        t[0] *= 20
    return calibrate.fitted(bits, times)


def test_the_fit_finds_what_a_link_is_made_of_and_names_outliers():
    link = synthetic(bad=5)
    assert link.fits["affine"].values["c0"] == pytest.approx(2e-4, rel=0.05)
    assert link.fits["affine"].values["c1"] == pytest.approx(1e-8, rel=0.05)
    assert link.fits["affine"].r2 > 0.99
    assert len(link.outliers) == 5
    assert {b for b, _ in link.outliers} == set(link.bits[:5])


def test_the_fit_is_not_swayed_by_one_bad_size():
    bits = np.geomspace(64, 8e6, 25)
    seconds = 1e-8 * bits + 2e-4
    seconds[12] *= 10
    fit = calibrate.affine_fit(bits, seconds)
    assert fit.values["c1"] == pytest.approx(1e-8, rel=0.05)
    assert fit.values["c0"] == pytest.approx(2e-4, rel=0.05)


def test_packets_are_found_where_there_are_packets():
    bits = np.unique(np.geomspace(64, 8e5, 400).round())
    seconds = 3e-4 * np.ceil(bits / (1472 * 8)) + 1e-3
    fit = calibrate.packet_fit(bits, seconds)
    assert fit.values["pmax"] == 1472 * 8
    assert fit.values["c1"] == pytest.approx(3e-4, rel=1e-6)
    assert fit.values["c0"] == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize("fit", ["affine", "packet", "points"])
def test_a_table_costs_what_was_measured_and_never_falls(fit, link_file):
    table = costs.build({"name": "table", "file": str(link_file), "fit": fit}, "cost")
    cost = table.cost(np.r_[BITS, 1e7, 1e8, 1e9])
    assert np.all(np.diff(cost) >= 0)
    assert table.cost(8e6) == pytest.approx(0.08 + 2e-4, rel=0.1)
    assert table.cost(1e9) == pytest.approx(10, rel=0.1)


LINK = "affine = { c0 = 1.0, c1 = 1.0 }\npacket = { c0 = 1.0, c1 = 1.0, pmax = 8 }\npoints = { bits = [64], seconds = [1.0] }"


def test_a_table_that_is_none_is_refused(tmp_path):
    for content, complaint in [
        (None, "No such file or directory; `mpi-compress calibrate"),
        ("a = [", "is no table"),
        ("[affine]\nc0 = 1", "is no table that `mpi-compress calibrate` made: it has no affine.c1"),
        ("data = { generator = 'gspar' }", "it has no affine.c0"),
        (LINK.replace("c0 = 1.0", "c0 = 'gspar'"), "affine.c0 = 'gspar' should be a finite number"),
        (LINK.replace("c0 = 1.0", "c0 = nan"), "affine.c0 = nan"),
        (LINK.replace("bits = [64]", "bits = 64"), "points.bits should be a list of finite numbers"),
        (LINK.replace("bits = [64]", "bits = [64, 'a']"), "points.bits"),
        (LINK.replace("bits = [64]", "bits = [64, 32]"), "sizes must rise"),
        (LINK.replace("bits = [64], seconds = [1.0]", "bits = [64, 128, 96], seconds = [1.0, 2.0, 3.0]"), "sizes must rise"),
        (LINK.replace("bits = [64], seconds = [1.0]", "bits = [64, 64], seconds = [1.0, 2.0]"), "sizes must rise"),
        (b"\xff", "is no table"),
    ]:
        file = tmp_path / "link.toml"
        if content is not None:
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(UserError, match=naming(complaint)):
            costs.build({"name": "table", "file": str(file)}, "cost")
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        costs.build({"name": "table", "file": str(tmp_path)}, "cost")


def test_calibrate_measures_the_time_of_a_gradient(tmp_path):
    link = synthetic()
    (tmp_path / "link.toml").write_text(link.toml("here", COMPUTE))
    computing = TimeTable(compute=str(tmp_path / "link.toml")).computing(3)
    assert (computing.law.unit, computing.per) == (pytest.approx(2e-9), "nonzero")
    assert "compute  2 ns a nonzero of a gradient" in calibrate.lines_about(link, COMPUTE)
    assert 1e-11 < calibrate.seconds_a_nonzero() < 1e-5


def test_calibrate_measures_a_real_link_and_a_job_uses_it(small_job, tmp_path):
    table = tmp_path / "link.toml"
    done = command("calibrate", "-o", table, "--repeats", "5", "--largest", "200 kB", ranks=2)
    assert done.returncode == 0, done.stderr
    assert "affine" in done.stdout
    assert "packets" in done.stdout
    job, packet = small_job.read_text(), 'model = "packet", c1 = "16 B", c0 = "8 B", pmax = "16 B"'
    assert packet in job
    small_job.write_text(job.replace(packet, f'model = "table", file = "{table}"'))
    done = here("run", small_job, "--only", "CAT", "--out", tmp_path, "--quiet")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_of_more_ranks_the_first_two_are_calibrated(tmp_path):
    done = command("calibrate", "-o", tmp_path / "link.toml", "--repeats", "3", "--largest", "20 kB", ranks=4)
    assert done.returncode == 0, done.stderr
    assert "between ranks 0 and 1 of 4" in (tmp_path / "link.toml").read_text()


def test_calibrate_needs_two_ranks(tmp_path):
    done = command("calibrate", "-o", tmp_path / "link.toml")
    assert done.returncode == 2
    assert "mpiexec -n 2" in done.stderr
    assert list(tmp_path.iterdir()) == []


TWO = {"name": "trace", "rows": [["0 s", "5 ms", "40 kbit/s"], ["2 s", "0.1 s", "1 kB/s"]]}


def trace(**table):
    return costs.build({"name": "trace", **table}, "cost")


def test_times_and_bandwidths_have_units():
    assert [seconds(text) for text in ("5 ms", "2 ns", "3 us", "3µs", "4 s")] == [5e-3, 2e-9, 3e-6, 3e-6, 4.0]
    assert [bits_per_second(text) for text in ("40 Mbit/s", "1 kB/s", "8 bit/s", "2e3", 5, "1.5 Gbit/s")] == [4e7, 8e3, 8.0, 2e3, 5.0, 1.5e9]
    for wrong in ("40 Mbit", "fast", "0 bit/s", "-1 kbit/s", "40 mbit/s", float("nan")):
        with pytest.raises(ValueError, match="bandwidth"):
            bits_per_second(wrong)


def test_a_message_is_charged_at_the_link_of_the_moment():
    cost = costs.build(TWO, "cost")
    assert cost.unit == "s"
    assert at_moment(cost, 1.99, 0).cost(4000.0) == pytest.approx(0.005 + 0.1)
    assert at_moment(cost, 2.0, 0).cost(4000.0) == pytest.approx(0.1 + 0.5)
    assert at_moment(cost, 1e9, 3).cost(4000.0) == pytest.approx(0.1 + 0.5)
    assert cost.cost(4000.0) == pytest.approx(0.105)
    steady = costs.build("payload", "cost")
    assert at_moment(steady, 7.0, 1) is steady


@pytest.mark.parametrize(("bits", "second", "arrives", "latency"), [
    (400.0, 0.0, 0.015, 0.005),  # within the first row
    (40_000.0, 1.495, 1.5 + 0.5 + 20_000 / 8000, 0.005),  # half of it after second 2, on the slower link
    (800.0, 2.0, 2.2, 0.1),
    (800.0, 1.999, 2.004 + 0.1, 0.005),  # the latency of the moment at which it is sent
    (0.0, 1.0, 1.005, 0.005),
])  # fmt: skip
def test_a_message_is_walked_through_the_table(bits, second, arrives, latency):
    found = costs.build(TWO, "cost").clock.arrival(bits, second, 0)
    assert found == pytest.approx((arrives, latency), rel=1e-12)


def test_a_table_begins_again_after_its_period():
    cost = trace(rows=[[0, 0, 100.0], [1, 0, 10.0]], period="2 s")
    assert [cost.clock.at(s, 0).bandwidth for s in (0.0, 0.999, 1.0, 1.999, 2.0, 3.0, 1e6 + 0.5)] == [100, 100, 10, 10, 100, 10, 100]
    assert cost.clock.arrival(1000.0, 0.0, 0)[0] == pytest.approx(18.0 + 10 / 100)  # nine periods of 110 bits, and 10 bits
    starts = np.random.default_rng(0).random(200) * 7
    for start in starts:  # against small steps of time
        bits, now, left = 37.0, start, 37.0
        while left > 0:
            left -= 1e-3 * (100.0 if now % 2 < 1 else 10.0)
            now += 1e-3
        assert cost.clock.arrival(bits, start, 0)[0] == pytest.approx(now, abs=2e-2)


def walked(table, period, bits, now):
    """When so many bits have passed a table that is walked row by row; its rows are (second, bandwidth)."""
    starts, ends = [start for start, _ in table], [*(start for start, _ in table[1:]), period]
    row = bisect.bisect_right(starts, now % period) - 1
    left = ends[row] - now % period
    while bits > left * table[row][1]:
        bits, now, row = bits - left * table[row][1], now + left, (row + 1) % len(table)
        left = ends[row] - starts[row]
    return now + bits / table[row][1]


@settings(max_examples=60)
@given(
    widths=st.lists(st.integers(1, 64), min_size=1, max_size=4),
    rates=st.lists(st.sampled_from([1, 2, 4, 8, 16, 32, 64]), min_size=4, max_size=4),
    start=st.integers(0, 2000),
    bits=st.integers(0, 30_000),
)
def test_whole_periods_are_divided_out_to_the_bits_of_the_walk_row_by_row(widths, rates, start, bits):
    """Of eighths of a second and powers of two, all sums and quotients are exact; of tenths they are not, and the two are close."""
    for unit in (1 / 8, 1 / 10):
        starts = [unit * sum(widths[:i]) for i in range(len(widths))]
        period, table = unit * sum(widths), list(zip(starts, map(float, rates), strict=False))
        found, _ = trace(rows=[[s, 0.0, rate] for s, rate in table], period=period).clock.arrival(float(bits), unit * start, 0)
        expected = walked(table, period, float(bits), unit * start)
        assert found == expected if unit == 1 / 8 else found == pytest.approx(expected, rel=1e-9)


def test_a_message_of_very_many_periods_is_charged_at_once():
    cost = trace(rows=[[0, 0, 3.0], [1, 0, 1.0]], period="2 s")
    assert cost.clock.arrival(4e15 + 1.5, 0.0, 0)[0] == 2e15 + 0.5


def test_an_arrival_is_later_for_more_bits_and_for_a_later_start():
    cost = trace(rows=[[0, 0.01, 100.0], [1, 0.01, 10.0]], period="1.7 s")
    for grid in ([cost.clock.arrival(b, 0.3, 0)[0] for b in np.linspace(0, 500, 301)], [cost.clock.arrival(40.0, s, 0)[0] for s in np.linspace(0, 5, 301)]):
        assert all(a < b for a, b in itertools.pairwise(grid))


def test_workers_have_tables_in_turn_and_a_file_says_the_same(tmp_path):
    (tmp_path / "links.csv").write_text("second, latency, bandwidth, worker\n0, 5 ms, 40 kbit/s, 0\n0, 1e-3, 8e3, 1\n2, 0.1, 1 kB/s, 0\n")
    file = trace(file=str(tmp_path / "links.csv"))
    table = trace(of_workers=[TWO["rows"], [[0, "1 ms", "8 kbit/s"]]])
    for worker, second in itertools.product(range(4), (0.0, 1.0, 3.0)):
        assert file.clock.at(second, worker) == table.clock.at(second, worker)
    assert table.clock.at(3.0, 2) == table.clock.at(3.0, 0) != table.clock.at(3.0, 1) == table.clock.at(0.0, 3)


@pytest.mark.parametrize(("table", "text"), [
    ({}, "one of rows, of_workers and file is needed, and none was given"),
    ({"rows": [[0, 0, 1]], "file": "x.csv"}, "rows and file was given"),
    ({"rows": [[1, 0, 1]]}, "begin at 0 and rise"),
    ({"rows": [[0, 0, 1], [0, 0, 2]]}, "begin at 0 and rise"),
    ({"rows": [[0, 0, 1], [float("nan"), 0, 2]]}, "begin at 0 and rise"),
    ({"rows": [[0, 0]]}, "row 0: 2 numbers were given"),
    ({"rows": [[0, 0, "5 ms"]]}, "row 0: '5 ms' is no bandwidth"),
    ({"rows": [[0, "far", 1]]}, "row 0: 'far' is no time"),
    ({"rows": [[0, -1, 1]]}, "row 0: a latency of -1"),
    ({"rows": [[0, 0, 1], [3, 0, 1]], "period": 3}, "period 3.0"),
    ({"file": "nowhere.csv"}, "file nowhere.csv"),
    ({"file": "short.csv"}, "bandwidth"),
    ({"file": "gap.csv"}, "should have rows of the workers 0, 1"),
])  # fmt: skip
def test_tables_that_are_none_are_refused(table, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.csv").write_text("second,latency\n0,0\n")
    (tmp_path / "gap.csv").write_text("second,latency,bandwidth,worker\n0,0,1,2\n")
    with pytest.raises(mc.UserError, match=naming(text)):
        trace(**table)


def test_a_period_is_later_than_the_last_row_of_every_table():
    tables = [[[0, 0, 1.0], [5, 0, 1.0]], [[0, 0, 1.0], [2, 0, 1.0]]]
    for order in (tables, tables[::-1]):
        assert trace(of_workers=order, period=5.5).period == 5.5
        with pytest.raises(ValueError, match=r"period = 5\.0 should be later than the last row, at second 5"):
            trace(of_workers=order, period=5.0)
