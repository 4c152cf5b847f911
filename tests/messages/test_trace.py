"""Links that change: a trace's tables, by hand."""

import bisect
import itertools

import numpy as np
import pytest
from helpers.refusals import naming
from hypothesis import given, settings
from hypothesis import strategies as st

import mpi_compress as mc
from mpi_compress.core.expressions import bits_per_second, seconds
from mpi_compress.messages.costs import at_moment, costs

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
    found = costs.build(TWO, "cost").arrival(bits, second, 0)
    assert found == pytest.approx((arrives, latency), rel=1e-12)


def test_a_table_begins_again_after_its_period():
    cost = trace(rows=[[0, 0, 100.0], [1, 0, 10.0]], period="2 s")
    assert [cost.at(s, 0).bandwidth for s in (0.0, 0.999, 1.0, 1.999, 2.0, 3.0, 1e6 + 0.5)] == [100, 100, 10, 10, 100, 10, 100]
    assert cost.arrival(1000.0, 0.0, 0)[0] == pytest.approx(18.0 + 10 / 100)  # nine periods of 110 bits, and 10 bits
    starts = np.random.default_rng(0).random(200) * 7
    for start in starts:  # against small steps of time
        bits, now, left = 37.0, start, 37.0
        while left > 0:
            left -= 1e-3 * (100.0 if now % 2 < 1 else 10.0)
            now += 1e-3
        assert cost.arrival(bits, start, 0)[0] == pytest.approx(now, abs=2e-2)


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
        found, _ = trace(rows=[[s, 0.0, rate] for s, rate in table], period=period).arrival(float(bits), unit * start, 0)
        expected = walked(table, period, float(bits), unit * start)
        assert found == expected if unit == 1 / 8 else found == pytest.approx(expected, rel=1e-9)


def test_a_message_of_very_many_periods_is_charged_at_once():
    cost = trace(rows=[[0, 0, 3.0], [1, 0, 1.0]], period="2 s")
    assert cost.arrival(4e15 + 1.5, 0.0, 0)[0] == 2e15 + 0.5


def test_an_arrival_is_later_for_more_bits_and_for_a_later_start():
    cost = trace(rows=[[0, 0.01, 100.0], [1, 0.01, 10.0]], period="1.7 s")
    for grid in ([cost.arrival(b, 0.3, 0)[0] for b in np.linspace(0, 500, 301)], [cost.arrival(40.0, s, 0)[0] for s in np.linspace(0, 5, 301)]):
        assert all(a < b for a, b in itertools.pairwise(grid))


def test_workers_have_tables_in_turn_and_a_file_says_the_same(tmp_path):
    (tmp_path / "links.csv").write_text("second, latency, bandwidth, worker\n0, 5 ms, 40 kbit/s, 0\n0, 1e-3, 8e3, 1\n2, 0.1, 1 kB/s, 0\n")
    file = trace(file=str(tmp_path / "links.csv"))
    table = trace(of_workers=[TWO["rows"], [[0, "1 ms", "8 kbit/s"]]])
    for worker, second in itertools.product(range(4), (0.0, 1.0, 3.0)):
        assert file.at(second, worker) == table.at(second, worker)
    assert table.at(3.0, 2) == table.at(3.0, 0) != table.at(3.0, 1) == table.at(0.0, 3)
    assert trace(**{k: v for k, v in TWO.items() if k != "name"}, compute="2 ns").computing(500.0) == pytest.approx(1e-6)


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
    ({"rows": [[0, 0, 1]], "compute": -1}, "compute = -1.0 should be 0 or more"),
    ({"rows": [[0, 0, 1]], "compute": float("inf")}, "compute inf 0"),
    ({"rows": [[0, 0, 1]], "compute": "nowhere.toml"}, "compute nowhere.toml"),
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
