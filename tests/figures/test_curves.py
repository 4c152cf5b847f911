"""What of each line is drawn, by hand: where it begins and ends, its level, its band and its bounds; and entries of legends side by side."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.evidence.lines import Line
from mpi_compress.figures import curves, legends, words
from mpi_compress.job.tables import FigureTable


@pytest.fixture
def ax():
    yield plt.subplots()[1]
    plt.close("all")


def line(y, x=None, label="a", **band):
    y = np.array(y, dtype=float)
    return Line(label, np.arange(float(y.size)) if x is None else np.array(x, dtype=float), y, **{k: np.array(v) for k, v in band.items()})


def run(label, loss, status="complete"):
    trace = {"round": np.arange(len(loss)), "loss": np.array(loss, dtype=float)}
    return mc.Run(Path(f"{label}.h5"), {"label": label, "status": status}, trace, {}, {"seconds": np.zeros(len(loss))}, None)


def drawn(ax, lines, runs=(), **figure):
    table = FigureTable(**{"x": "round", "y": "loss", **figure})
    curves.draw_on(ax, runs, lines, table, list(dict.fromkeys(each.label for each in lines)))
    return [each.get_xydata().tolist() for each in ax.lines]


def test_a_linear_plot_has_all_points_that_are_finite(ax):
    assert drawn(ax, [line([3, np.nan, 0, -1, np.inf])]) == [[[0, 3], [2, 0], [3, -1]]]


def test_a_logarithmic_plot_has_those_above_0(ax):
    assert drawn(ax, [line([3, 2, 0.5, -1])], yscale="log")[0] == [[0, 3], [1, 2], [2, 0.5]]


def test_few_points_have_a_marker_each_and_many_have_one_here_and_there(ax):
    drawn(ax, [line([3, 2, 1]), line([4, 3, 2, 1], label="b")])
    assert [each.get_markevery() for each in ax.lines] == [None, (0.05, 0.2)]


@pytest.mark.parametrize(("least", "most", "bands"), [([1, 1], [2, 2], 1), ([2, 1], [2, 2], 1), ([2, 2], [2, 2], 0)])
def test_a_band_is_drawn_where_seeds_differ(ax, least, most, bands):
    drawn(ax, [line([2, 2], least=least, most=most)])
    assert len(ax.collections) == bands


@pytest.mark.parametrize(("least", "most", "bands"), [(1.0, 3.0, 1), (2.0, 2.0, 0)])
def test_a_line_without_x_crosses_the_plot(ax, least, most, bands):
    drawn(ax, [Line("a", None, np.array([2.0]), np.array([least]), np.array([most])), line([1, 5], label="b")])
    assert ax.lines[0].get_ydata() == [2.0, 2.0]
    assert len(ax.patches) == bands


def test_a_level_that_an_axis_does_not_have_is_not_drawn(ax):
    drawn(ax, [Line("a", None, np.array([0.0])), line([1, 5], label="b")], yscale="log")
    assert len(ax.lines) == 1


def test_a_curve_that_diverges_is_drawn_up_to_ten_times_what_the_others_reach():
    runs = [run("good", [2.0, 4.0, 1.0]), run("wild", [2.0, 39.0, 41.0, 1e300], "diverged")]
    assert curves.ceiling(runs, FigureTable(y="loss")) == 40.0
    _, ax = plt.subplots()
    assert drawn(ax, [line(each.trace["loss"], label=each.label) for each in runs], runs)[1] == [[0, 2], [1, 39]]
    assert curves.ceilings(runs)["loss"] == 40.0
    assert [curves.ceiling([run("alone", ys, "diverged")], FigureTable(y="loss")) for ys in ([2.0, 39.0], [0.0, 5.0])] == [20.0, np.inf]
    plt.close("all")


@pytest.mark.parametrize(
    ("y", "last"),
    [([1, 0.1, 0], 1), ([1, 0.1, -1e-17], 1), ([1, 1e-10, 0], None), ([1, 2e-9, 0], 1), ([1, 0.1], None), ([0, 0], None), ([1, 0, 0.5, 0, 0], 2)],
)
def test_a_fall_to_0_is_one_from_far_above_rounding(y, last):
    assert curves._before_end(line(y), 0.0) == last


def test_a_start_at_0_is_one_that_could_be_drawn_but_for_the_axis():
    assert curves._starts_at_zero(line([2, 1]), "log", 2.0)
    assert not curves._starts_at_zero(line([2, 1]), "log", 1.9)
    assert not curves._starts_at_zero(line([0, 1]), "log", 2.0)
    assert not curves._starts_at_zero(line([2, 1], x=[1, 2]), "log", 2.0)


def test_what_is_read_off_below_rounding_is_not_on_the_axis(ax):
    drawn(ax, [line([1.0, 1e-20, 1e-40])], yscale="log")
    assert ax.get_ylim() == (pytest.approx(1e-34), pytest.approx(10.0))


@pytest.mark.parametrize(("entries", "widest", "room", "abreast"), [(6, 1.0, 3.5, 3), (4, 1.0, 3.5, 2), (7, 1.0, 4.5, 4), (5, 9.0, 3.5, 1), (1, 1.0, 9.0, 1)])
def test_entries_stand_side_by_side_in_rows_that_are_equally_full(entries, widest, room, abreast):
    """With the gap between two columns: three of 1 in and two gaps of 1/6 in (1.5 · 8/72) take 3 1/3 in."""
    assert legends._abreast(entries, widest, room, 8) == abreast


def test_as_many_columns_as_the_longest_entry_leaves_room_for(monkeypatch):
    monkeypatch.setitem(mpl.rcParams, "legend.fontsize", 8)
    for names in (["short", "x" * 40, "y"], ["x" * 40, "short", "y"], ["short", "y", "x" * 40]):
        figure = plt.figure(figsize=(words.width("x" * 40, 8) * 2.2, 3))
        handles = [figure.add_subplot().plot([0], [0])[0] for _ in names]
        height = legends.put_below(figure, dict(zip(names, handles, strict=True)), "title")
        (legend,) = figure.legends
        assert legend._ncols == 1
        assert 0.2 < height < 2
        assert legend.get_title().get_text() == "title"
    plt.close("all")


def test_a_legend_meets_what_is_in_its_box(ax):
    from matplotlib.transforms import Bbox

    ax.set(xlim=(0, 1), ylim=(0, 1))
    box = Bbox(ax.transData.transform([[0.4, 0.4], [0.6, 0.6]]))
    assert not legends.meets(ax, box)
    crossing = ax.plot([0, 1], [0.5, 0.5])[0]
    assert legends.meets(ax, box), "though none of its points is in the box"
    crossing.remove()
    ax.plot([0.1, 0.2, 0.9], [0.1, 0.9, 0.9])
    assert not legends.meets(ax, box)
    point = ax.scatter([0.5], [0.41])
    assert legends.meets(ax, box)
    point.remove()
    band = ax.fill_between([0, 1], [0.3, 0.3], [0.7, 0.7])
    assert legends.meets(ax, box)
    band.remove()
    assert not legends.meets(ax, box)


def test_each_bound_has_its_dashes_and_the_colour_of_its_run(ax):
    runs = [run("a", [3.0, 2.0, 1.0]), run("b", [3.0, 2.5, 2.0])]
    for each, kappa in zip(runs, (5.0, 7.0), strict=True):
        each.attrs.update(L=kappa, mu=1.0)
    drawn(ax, [line(each.trace["loss"], label=each.label) for each in runs], runs, bounds=["kappa", "L"])
    curve_a, curve_b, *bounds = ax.lines
    at = {(each.get_color(), float(each.get_ydata()[0])) for each in bounds if len(each.get_ydata())}
    assert at == {(curve_a.get_color(), 5.0), (curve_b.get_color(), 7.0)}
    first, second = ({str(each._unscaled_dash_pattern) for each in three} for three in (bounds[:3], bounds[3:]))  # two runs and an entry
    assert len(first) == len(second) == 1
    assert first != second
    ax.fill_between([-1, 9], -99, 99)
    legends.name_bounds(ax)
    assert not ax.texts, "they have no place beside their curves"
    assert len(legends.handles_of([ax])) == 4
