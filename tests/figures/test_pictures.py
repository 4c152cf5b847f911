"""How figures are drawn: noise, starts on logarithmic axes, looks, words and numbers, sizes for a paper."""

import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers.made_up import made_up_results
from matplotlib.colors import to_rgb

from mpi_compress.evidence.lines import Line
from mpi_compress.figures import curves, legends, plotting, style, words
from mpi_compress.figures.curves import draw_on
from mpi_compress.job.loading import load_job
from mpi_compress.job.tables import FigureTable

JOB = """
title = "A title that is much too long for a plot which is as wide as the column of a paper, and so it wraps twice"
data = { generator = "gspar", samples = 60, dim = 10 }
workers.count = 2
algorithm = { name = "gd" }
stop.rounds = 10
[[run]]
label = "one"
[[run]]
label = "two"
cost = { model = "packet", c1 = "128 B", pmax = "128 B" }
[figure]
x = "wire_bits_up"
xscale = "log"
"""


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    return load_job(tmp_path / "job.toml")


def test_noise_is_a_running_median_in_a_band():
    rng, x = np.random.default_rng(1), np.arange(4000.0)
    level = np.exp(-x / 1500)
    line = Line("a", x, level * np.exp(rng.normal(0, 0.5, x.size)))
    smooth = curves.smoothed(line, "linear", "log")
    assert smooth is not None
    assert (smooth.x[0], smooth.y[0]) == (line.x[0], line.y[0])  # where the curve comes from is seen
    smooth = smooth.rows(smooth.x > 0)
    np.testing.assert_allclose(smooth.y, np.exp(-smooth.x / 1500), rtol=0.25)
    assert np.all(smooth.least < smooth.y)
    assert np.all(smooth.y < smooth.most)
    rows = np.interp(x, smooth.x, smooth.most) - level * np.exp(rng.normal(0, 0.5, x.size))
    assert 0.85 < np.mean(rows > 0) < 0.95


def test_a_curve_that_turns_now_and_then_is_no_noise_however_far_it_travels():
    x = np.arange(4000.0)
    assert not curves.is_noise(np.sin(x / 10))
    assert curves.is_noise(np.random.default_rng(0).standard_normal(4000))
    assert not curves.is_noise(np.cumsum(np.random.default_rng(0).random(4000))), "it never turns"
    assert not curves.is_noise(np.ones(4000))
    assert not curves.is_noise(100 * x + np.random.default_rng(0).standard_normal(4000) * 80), "its turns are small beside its range"


@pytest.mark.parametrize("wave", [lambda x: np.exp(-x / 900), lambda x: 1.5 + np.sin(x / 60), lambda x: 1 / (1 + x)])
def test_smooth_curves_and_slow_waves_are_drawn_as_they_are(wave):
    x = np.arange(1000.0)
    assert curves.smoothed(Line("a", x, wave(x)), "linear", "log") is None


def test_the_start_is_at_the_edge_of_a_logarithmic_axis(job):
    figure = plotting.draw(made_up_results(job), job.titled_figure)
    (ax,) = figure.axes
    figure.canvas.draw()
    left = ax.get_xlim()[0]
    assert 0 < left < min(line.get_xdata().min() for line in ax.lines)
    assert next(text.get_text() for text in ax.get_xticklabels()) == "0"
    dots = [tuple(point) for each in ax.collections for point in np.atleast_2d(each.get_offsets())]
    assert any(x == left and y == pytest.approx(0.69) for x, y in dots)


@pytest.mark.parametrize(("last", "lowest"), [(1e-300, 1e-34), (1e-20, 1e-21)])
def test_a_logarithmic_axis_ends_where_only_rounding_is_left(last, lowest):
    _, ax = plt.subplots()
    line = Line("a", np.arange(3.0), np.array([1.0, 1e-3, last]))
    draw_on(ax, [], [line], FigureTable(x="round", y="squared_grad_norm"), ["a"])
    assert lowest / 10 < ax.get_ylim()[0] < 30 * lowest


def test_models_of_cost_have_a_panel_each_unless_the_job_names_the_axis(job):
    runs = made_up_results(job)
    split = plotting.draw(runs, job.titled_figure.changed(x="cost_up"))
    assert [ax.get_title() for ax in split.axes] == ["payload", "packet, c1 = 128 B, pmax = 128 B"]
    assert [ax.get_xlabel().replace("\n", " ") for ax in split.axes] == [
        "communication cost up, payload [bit]", "communication cost up, packet [bit]"
    ]  # fmt: skip
    named = job.titled_figure.changed(x="cost_up")
    named.__dict__["xlabel"] = "cost"
    assert len(plotting.draw(runs, named).axes) == 1


def test_the_looks_of_forty_methods_differ_and_ten_colours_do():
    looks = [style.look_of(i) for i in range(40)]
    assert len({(look["color"], str(look["linestyle"])) for look in looks if look["linestyle"] != ":"}) == 40
    for one, other in itertools.combinations(style.COLOURS, 2):
        assert np.linalg.norm(np.subtract(to_rgb(one), to_rgb(other))) > 0.2


def test_a_method_keeps_its_colour_and_a_parameter_its_dashes():
    names = [f"{method}, count = {n}" for method in ("EF21", "GD") for n in (2, 4, 8)]
    looks = style.looks(names)
    for name, look in looks.items():
        alike = [other for other in names if looks[other]["color"] == look["color"]]
        assert {other.partition(",")[0] for other in alike} == {name.partition(",")[0]}
        alike = [other for other in names if looks[other]["linestyle"] == look["linestyle"]]
        assert {other.partition(", ")[2] for other in alike} == {name.partition(", ")[2]}
    assert len({looks[name]["color"] for name in names}) == 2
    for others in (names[:3], ["GD", "EF21"]):  # nothing to tell apart
        assert style.looks(others) == {name: style.look_of(i) for i, name in enumerate(others)}


@pytest.mark.parametrize(
    ("value", "end", "text"),
    [(2e6, None, "2 M"), (5e5, 2e6, "0.5 M"), (12_345.0, None, "12.345 k"), (1250.0, None, "1250"), (0.985, None, "0.985"),
     (2e-5, None, "2·10⁻⁵"), (1e-6, None, "10⁻⁶"), (0.0, 1e9, "0")],
)  # fmt: skip
def test_numbers_read_aloud(value, end, text):
    assert words.number(value, end) == text


def test_text_wraps_between_words_and_within_one_that_is_too_long():
    with mpl.rc_context(style.STYLE):
        lines = words.wrapped("some words and " + "x" * 90, 1.5, 8).splitlines()
        assert all(words.width(line, 8) <= 1.5 for line in lines)
    assert "".join(lines) == "some words and" + "x" * 90


def test_a_difference_is_not_broken_before_what_is_taken_away():
    with mpl.rc_context(style.STYLE):
        room = words.width("suboptimality f(x) −", 8)
        assert words.wrapped("suboptimality f(x) − f*", room, 8) == "suboptimality\nf(x) − f*"


def test_further_curves_than_eight_are_thin_and_grey_and_named():
    _, ax = plt.subplots()
    names = [f"method {i}" for i in range(11)]
    lines = [Line(name, np.arange(9.0), np.arange(9.0) + i) for i, name in enumerate(names)]
    draw_on(ax, [], lines, FigureTable(x="round", y="loss"), names, grey=names[style.MOST :])
    assert list(legends.handles_of([ax])) == names
    assert [len({line.get_color() for line in those}) for those in (ax.lines[:8], ax.lines[8:])] == [8, 1]
    assert len({line.get_marker() for line in ax.lines[8:]}) == 3


def test_ticks_of_a_paper_are_large_enough_to_read(job):
    figure = plotting.draw(made_up_results(job), job.titled_figure, "paper")
    assert all(text.get_fontsize() >= 7 for ax in figure.axes for text in (*ax.get_xticklabels(), *ax.get_yticklabels()))
    assert figure.axes[0].get_title() == ""


@pytest.mark.parametrize(("width", "inches"), [("3.3in", 3.3), ("84 mm", 84 / 25.4), ("8.4cm", 8.4 / 2.54), (3.3, 3.3), (None, None)])
def test_a_width_is_read_in_its_unit(width, inches):
    assert style.inches(width) == (None if inches is None else pytest.approx(inches))


@pytest.mark.parametrize("last", [-1e-17, 0.0, 1e-30, 1e-14])
@pytest.mark.parametrize("xscale", ["linear", "log"])
def test_a_curve_that_falls_below_the_others_in_one_round_ends_in_a_triangle_at_the_bottom(xscale, last):
    _, ax = plt.subplots()
    x = np.arange(5.0)
    drawn = [Line("slow", x, 0.5**x), Line("the data", x[:2] * 3, np.array([1.0, last])), Line("rounding", x, np.array([1, 1e-5, 1e-12, 0, 0]))]
    draw_on(ax, [], drawn, FigureTable(x="round", y="suboptimality", xscale=xscale, yscale="log"), [line.label for line in drawn])
    (triangle,) = (line for line in ax.lines if line.get_marker() == "v")
    assert triangle.get_xydata().tolist() == [[3.0, ax.get_ylim()[0]]]
    assert ax.get_ylim()[0] > 1e-14, "a curve of two points does not lengthen the axis"
    plt.close("all")
