"""Axes by hand: scales, units with prefixes, ends that a scale does not have, entries and titles of legends."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mpi_compress.core.errors import UserError
from mpi_compress.figures import axes, words
from mpi_compress.job.tables import FigureTable, PanelTable


@pytest.fixture
def ax():
    yield plt.subplots()[1]
    plt.close("all")


def shown(ax, unit, scale, ends):
    """The unit that the name of x gets, and how the axis writes 1500 and its end."""
    ax.set(xscale=scale, xlim=ends)
    unit = axes._ticked(ax, "x", unit)
    form = ax.xaxis.get_major_formatter()
    return unit, form(1500.0, 0), form(float(ends[1]), 0)


@pytest.mark.parametrize(("unit", "scale", "ends", "wanted"), [
    ("bit", "linear", (0, 2e6), ("Mbit", "0.0015", "2")),
    ("bit", "linear", (0, 2000), ("kbit", "1.5", "2")),
    ("bit", "linear", (0, 999), ("bit", "1500", "999")),
    ("bit", "linear", (0, 1e17), ("Tbit", "1.5e-09", "100000")),
    ("s", "linear", (0, 2e-3), ("ms", "1.5e+06", "2")),
    ("s", "linear", (0, 2e-9), ("µs", "1.5e+09", "0.002")),
    ("bit", "log", (2e5, 2e6), ("Mbit", "0.0015", "2")),
    ("", "linear", (0, 10_000), ("", "1.5 k", "10 k")),
    ("", "log", (1000, 11_999), ("", "1.5 k", "11.999 k")),
    ("", "log", (1000, 9000), ("", "1500", "9000")),
])  # fmt: skip
def test_an_axis_has_a_prefix_for_its_end(ax, unit, scale, ends, wanted):
    assert shown(ax, unit, scale, ends) == wanted


def test_the_end_of_an_axis_is_the_larger_of_both(ax):
    ax.set(ylim=(-3e6, 10))
    assert axes._ticked(ax, "y", "bit") == "Mbit"


@pytest.mark.parametrize(("scale", "unit"), [("linear", "Mbit"), ("log", "bit")])
def test_plots_side_by_side_have_one_prefix_for_a_unit(scale, unit):
    left, right = plt.subplots(1, 2)[1]
    left.set(xlim=(1e3, 4e6), xscale=scale)
    axes.name_axes([(left, FigureTable(), []), (right, FigureTable(), [])])
    assert [ax.get_xlabel().partition(" [")[2] for ax in (left, right)] == [f"{unit}]"] * 2


def test_a_long_logarithmic_axis_keeps_its_powers_and_its_unit(ax):
    ax.set(xscale="log", xlim=(1e5, 1.2e6))
    before = ax.xaxis.get_major_formatter()
    assert axes._ticked(ax, "x", "bit") == "bit"
    assert ax.xaxis.get_major_formatter() is before


def test_short_logarithmic_axes_have_few_plain_ticks(ax):
    ax.set(xscale="log", xlim=(2e5, 2e6))
    axes._ticked(ax, "x", "bit")
    assert 2 <= len([tick for tick in ax.get_xticks() if 2e5 <= tick <= 2e6]) <= 6
    assert len(ax.xaxis.get_minorticklocs()) == 0


def test_small_numbers_without_a_unit_are_left_to_matplotlib(ax):
    ax.set(xlim=(0, 9999))
    before = ax.xaxis.get_major_formatter()
    assert axes._ticked(ax, "x", "") == ""
    assert ax.xaxis.get_major_formatter() is before


@pytest.mark.parametrize(("figure", "wanted"), [
    ({"x": "round", "y": "loss"}, ("linear", "linear")),
    ({"x": "round", "y": "suboptimality"}, ("linear", "log")),
    ({"x": "T", "y": "loss"}, ("log", "log")),
    ({"x": "round", "y": "wire_bits", "at": {"loss": 0.5}}, ("log", "log")),
    ({"x": "round", "y": "suboptimality, loss", "yscale": "linear"}, ("linear", "linear")),
    ({"x": "round", "y": "loss", "xscale": "log"}, ("log", "linear")),
])  # fmt: skip
def test_scales_suit_their_columns_unless_the_figure_says_one(figure, wanted):
    assert axes.scales(FigureTable(**figure)) == wanted


def test_an_end_that_a_logarithmic_axis_does_not_have_is_refused(ax):
    figure = FigureTable(x="round", y="suboptimality", xlim=[0, 30], ylim=[1e-9, 1.0])
    axes.set_limits(ax, figure)
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 30), (1e-9, 1.0))
    for ends in ([0, 1], [-1, 1]):
        with pytest.raises(UserError, match=r"ylim = .*: a logarithmic axis begins above 0"):
            axes.set_limits(ax, FigureTable(x="round", y="suboptimality", ylim=ends))


def test_an_entry_of_a_legend_is_at_most_as_long_as_a_line():
    assert axes.entry("abcdefgh", 8) == "abcdefgh"
    assert axes.entry("abcdefghijkl", 8) == "abcd … l"
    assert axes.entry("EF21, top 10 %, down dense, tuned step = 16 theory", 40) == "EF21, …, tuned step = 16 theory"
    assert axes.entry("_hidden", 48) == " _hidden", "Matplotlib leaves out what begins with _"


@pytest.mark.parametrize(("value", "end", "text"), [
    (1e4, None, "10 k"), (9999.0, None, "9999"), (1e6, None, "1 M"), (999_999.0, None, "999.999 k"), (2e9, None, "2 G"),
    (3e20, None, "300000 P"), (-2e6, None, "-2 M"), (-2e6, 1e9, "-0.002 G"), (1e-3, None, "0.001"), (9.99e-4, None, "9.99·10⁻⁴"),
    (-1e-4, 1.0, "-1·10⁻⁴"), (0.0, None, "0"), (0.02, None, "0.02"),
])  # fmt: skip
def test_numbers_have_a_prefix_from_10_000_on_and_powers_of_ten_below_a_thousandth(value, end, text):
    assert words.number(value, end) == text


def test_lines_are_as_full_as_they_can_be():
    room = words.width("one two", 8)
    assert words.wrapped("one two six", room, 8) == "one two\nsix"
    assert words.wrapped("one two\nsix", 99, 8) == "one two\nsix"
    assert words.wrapped("of $a + b$ and c", words.width("of a + b", 8), 8) == "of $a + b$\nand c"
    assert words.wrapped("one two $", words.width("one two", 8), 8) == "one two\n$", "a single dollar sign is no mathematics"
    assert words.wrapped("$x_1 + x_2 + x_3 + x_4$", words.width("xx", 8), 8) == "$x_1 + x_2 + x_3 + x_4$", "mathematics is not broken"
    assert words.wrapped("W", words.width("i", 8), 8) == "W"
    np.testing.assert_array_less(0.0, words.width("$\\alpha$", 8))


def test_other_axes_are_those_of_all_panels_and_keep_what_is_not_theirs():
    panel = PanelTable(title="a", x="round", xlim=[0, 9], yscale="log", bounds=["kappa"])
    figure = FigureTable("epoch", "loss", bounds=["bound"], xlabel="passes", ylabel="f", xlim=[0, 5], yscale="log", panel=[panel])
    over_bits = figure.changed(x="wire_bits_up")
    assert (over_bits.x, over_bits.xlabel, over_bits.xlim, over_bits.ylabel) == ("wire_bits_up", None, None, "f")
    assert (over_bits.yscale, over_bits.bounds) == ("log", ["bound"])
    assert over_bits.panel == [PanelTable(title="a", yscale="log", bounds=["kappa"])]
    gaps = figure.changed(y="suboptimality")
    assert (gaps.y, gaps.ylabel, gaps.yscale, gaps.bounds, gaps.xlim) == ("suboptimality", None, None, [], [0, 5])
    assert gaps.panel == [PanelTable(title="a", x="round", xlim=[0, 9])]
