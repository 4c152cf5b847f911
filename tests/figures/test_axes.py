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


@pytest.mark.parametrize(("unit", "scale", "ends", "wanted"), [
    ("bit", "linear", (0, 2e6), "2 M"), ("bit", "linear", (0, 999), "999"), ("s", "linear", (0, 2e-3), "0.002"),
    ("bit", "log", (2e5, 2e6), "2 M"), ("", "linear", (0, 10_000), "10 k"), ("", "log", (1000, 11_000), "11 k"), ("", "log", (1000, 9000), "9000"),
])  # fmt: skip
def test_ticks_with_a_unit_or_of_large_numbers_have_prefixes(ax, unit, scale, ends, wanted):
    ax.set(xscale=scale, xlim=ends)
    axes._write_ticks(ax, "x", unit)
    assert ax.xaxis.get_major_formatter()(float(ends[1]), 0) == wanted


@pytest.mark.parametrize(("scale", "ends"), [("log", (1e5, 1.2e6)), ("linear", (0, 9999))])
def test_powers_of_ten_and_small_numbers_without_a_unit_are_left_to_matplotlib(ax, scale, ends):
    ax.set(xscale=scale, xlim=ends)
    before = ax.xaxis.get_major_formatter()
    axes._write_ticks(ax, "x", "bit" if scale == "log" else "")
    assert ax.xaxis.get_major_formatter() is before


def test_short_logarithmic_axes_have_few_plain_ticks(ax):
    ax.set(xscale="log", xlim=(2e5, 2e6))
    axes._write_ticks(ax, "x", "bit")
    assert 2 <= len([tick for tick in ax.get_xticks() if 2e5 <= tick <= 2e6]) <= 6
    assert not any(text.get_text() for text in ax.get_xticklabels(minor=True)), "marks alone, which show that it is logarithmic"
    assert len(ax.xaxis.get_minorticklocs()) > 0


def test_a_logarithmic_axis_with_a_single_power_of_ten_has_further_ticks(ax):
    ax.set(xscale="log", xlim=(0.013, 0.25))
    axes._write_ticks(ax, "x", "")
    assert [round(tick, 3) for tick in ax.get_xticks() if 0.013 <= tick <= 0.25] == [0.02, 0.05, 0.1, 0.2]


@pytest.mark.parametrize("ends", [(0.8, 7.0), (0.27, 1.7), (1.01, 2.1), (2.01, 4.1), (5.1, 26.0), (1.01, 5.1)])
def test_a_short_logarithmic_axis_has_ticks_in_its_lower_part_too(ax, ends):
    ax.set(yscale="log", ylim=ends)
    axes._write_ticks(ax, "y", "s")
    ticks = [tick for tick in ax.get_yticks() if ends[0] <= tick <= ends[1]]
    assert len(ticks) >= 2
    assert ticks[0] <= ends[0] * (ends[1] / ends[0]) ** 0.65


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


def test_an_entry_of_a_legend_is_the_whole_label():
    """What its middle says may be all that tells two methods apart; a long one is wrapped."""
    label = "EF21, top 10 %, down dense, " * 5 + "tuned step = 16 theory"
    assert axes.entry(label) == label
    assert axes.entry("_hidden") == " _hidden", "Matplotlib leaves out what begins with _"


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
    figure = FigureTable("epoch", "loss", bounds=["bound"], xlabel="passes", ylabel="f", xlim=[0, 5], yscale="log", xscale="log", panel=[panel])
    over_bits = figure.changed(x="wire_bits_up")
    assert (over_bits.x, over_bits.xlabel, over_bits.xlim, over_bits.ylabel) == ("wire_bits_up", None, None, "f")
    assert (over_bits.xscale, over_bits.yscale, over_bits.bounds) == (None, "log", ["bound"])
    assert (figure.changed(x="round", xscale="log").xscale, figure.changed(y="loss").xscale) == ("log", "log")
    assert over_bits.panel == [PanelTable(title="a", yscale="log", bounds=["kappa"])]
    gaps = figure.changed(y="suboptimality")
    assert (gaps.y, gaps.ylabel, gaps.yscale, gaps.bounds, gaps.xlim) == ("suboptimality", None, None, [], [0, 5])
    assert gaps.panel == [PanelTable(title="a", x="round", xlim=[0, 9])]
