"""How figures are drawn: noise, looks, words and sizes for a paper; what of each line, by hand; CAT's table 1 as a picture."""

import itertools
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers.made_up import made_up_results
from matplotlib.colors import to_rgb

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.evidence import lines
from mpi_compress.evidence.lines import Line
from mpi_compress.figures import curves, legends, plotting, style, words
from mpi_compress.figures.curves import draw_on
from mpi_compress.figures.of_run import draw_bounds
from mpi_compress.job.loading import load_job, parse_job
from mpi_compress.job.tables import FigureTable
from mpi_compress.results.bounds import HEADS, BoundsTable

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


def test_noise_is_a_running_median_and_only_seeds_make_a_band():
    rng, x = np.random.default_rng(1), np.arange(4000.0)
    level = np.exp(-x / 1500)
    seeds = level * np.exp(rng.normal(0, 0.5, (3, x.size)))
    alone = curves.smoothed(Line("a", x, seeds[0]), "linear", "log")
    assert (alone.x[0], alone.y[0]) == (0.0, seeds[0, 0])  # where the curve comes from is seen
    np.testing.assert_allclose(alone.y[1:], np.exp(-alone.x[1:] / 1500), rtol=0.25)
    assert not alone.has_band
    smooth = curves.smoothed(Line("a", x, np.median(seeds, axis=0), seeds.min(axis=0), seeds.max(axis=0)), "linear", "log").rows(np.arange(60) > 0)
    assert np.all(smooth.least < smooth.y)
    assert np.all(smooth.y < smooth.most)


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


@pytest.mark.parametrize(("last", "lowest"), [(1e-300, 1e-34), (1e-20, 1e-21)])
def test_a_logarithmic_axis_ends_where_only_rounding_is_left(last, lowest):
    _, ax = plt.subplots()
    line = Line("a", np.arange(3.0), np.array([1.0, 1e-3, last]))
    draw_on(ax, [], [line], FigureTable(x="round", y="squared_grad_norm"), style.looks("a"))
    assert lowest / 10 < ax.get_ylim()[0] < 30 * lowest


def test_models_of_cost_have_a_panel_each_unless_the_job_names_the_axis(job):
    runs = made_up_results(job)
    split = plotting.draw(runs, job.titled_figure.changed(x="cost_up"))
    assert [ax.get_title() for ax in split.axes] == ["payload", "packet, c1 = 128 B, pmax = 128 B"]
    assert [ax.get_xlabel().replace("\n", " ") for ax in split.axes] == [
        "uplink cost, by the papers' formula [bit]", "uplink cost, by the papers' formula [bit]"
    ], "their titles name the models"
    named = job.titled_figure.changed(x="cost_up")
    named.__dict__["xlabel"] = "cost"
    assert len(plotting.draw(runs, named).axes) == 1


def test_panels_of_cost_models_have_one_hue_for_a_method_and_the_same_ends_of_x(tmp_path):
    methods = "".join(f"""
[[run]]
label = "{name}, {what}"
algorithm = {{ name = "gd", step = "{step}/L" }}
cost = {{ model = "{model}" }}
""" for name, step in (("fast", 1), ("slow", 0.5)) for what, model in (("payload", 'payload'), ("packets", 'packet", c1 = "128 B", pmax = "128 B')))
    (tmp_path / "job.toml").write_text(JOB.partition("[[run]]")[0] + methods + '[figure]\nx = "cost_up"\n')
    job = load_job(tmp_path / "job.toml")
    runs = made_up_results(job)
    drawn = plotting.draw(runs, job.titled_figure)
    one, other = drawn.axes
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["fast", "slow"], "the panels' titles name the models"
    assert [line.get_color() for line in one.lines] == [line.get_color() for line in other.lines]
    assert one.get_xlim() == other.get_xlim()
    assert one.get_xlim()[1] >= max(run.trace["cost_up"][-1] for run in runs)
    cut = plotting.draw(runs, job.titled_figure.changed(xlim=[0.0, 7.0]))
    assert {ax.get_xlim() for ax in cut.axes} == {(0.0, 7.0)}
    plt.close("all")


def test_faint_points_do_not_lie_on_each_other():
    """In the long tail of a logarithmic axis they would make a dotted median a solid line."""
    _, ax = plt.subplots()
    x = np.arange(1.0, 20_001.0)
    y = np.exp(np.random.default_rng(1).normal(0, 1, x.size)) * np.where(x < 200, 1.0, 1e-6) + 1
    draw_on(ax, [], [Line("a", x, y)], FigureTable(x="round", y="suboptimality", xscale="log"), style.looks("a"))
    points = ax.collections[0].get_offsets()
    tail = points[points[:, 0] > 200]
    assert tail.shape[0] < 200
    assert points.shape[0] - tail.shape[0] > 50
    assert points[:, 1].max() == pytest.approx(y.max())
    plt.close("all")


def test_many_models_of_cost_have_a_panel_each_but_where_x_is_what_they_differ_in(tmp_path):
    (tmp_path / "job.toml").write_text(JOB.replace('label = "two"', 'label = "two"\ngrid = { "cost.c1" = [1, 2, 4, 8, 16] }'))
    job = load_job(tmp_path / "job.toml")
    runs = made_up_results(job)
    titles = [ax.get_title().replace("\n", " ") for ax in plotting.draw(runs, job.titled_figure.changed(x="cost_up")).axes]
    assert titles == ["payload", *(f"packet, c1 = {c1}, pmax = 128 B" for c1 in (1, 2, 4, 8, 16))]
    level = float(np.median(runs[0].trace["loss"]))
    swept = plotting.draw(runs, job.titled_figure.changed(x="cost.c1", y="cost_up", at={"loss": level}))
    assert len(swept.axes) == 1


def test_the_looks_of_forty_methods_differ_and_ten_colours_do():
    looks = [look.of_line for look in style.looks([f"method {i}" for i in range(40)]).values()]
    assert len({(look["color"], str(look["linestyle"])) for look in looks}) == 40
    assert len({(str(look["linestyle"]), look["marker"]) for look in looks[:8]}) == 8, "told apart without colour, too"
    for one, other in itertools.combinations(style.COLOURS, 2):
        assert np.linalg.norm(np.subtract(to_rgb(one), to_rgb(other))) > 0.2


@pytest.mark.parametrize("values", [(1, 1), (2, 2), (5, 5), (3, 1), (5, 1), (1, 5), (8, 3)])
@pytest.mark.parametrize("methods", [12, 20])
def test_two_methods_of_one_colour_differ_in_dashes_and_in_marker(methods, values):
    """Those up to the tenth have one number of values, and those after it another; the darker half of black is black."""
    own = [(f"m{i}", values[i // 10]) for i in range(methods)]
    names = {f"{method}, k = {k}" if n > 1 else method: method for method, n in own for k in range(n)}
    looks = {name: look.of_line for name, look in style.looks(names).items()}
    for (one, a), (other, b) in itertools.combinations(looks.items(), 2):
        if a["color"] == b["color"] != "#000000" and names[one] != names[other]:
            assert a["linestyle"] != b["linestyle"], (one, other)
            assert a["marker"] != b["marker"], (one, other)


def test_a_method_has_one_hue_and_marker_and_the_values_of_a_grid_have_a_ramp_and_dashes():
    names = [f"{method}, count = {n}" for n in (8, 2, 10) for method in ("EF21", "GD")] + ["CAT"]
    looks = style.looks(names)
    assert [looks[name].hue for name in names] == [0, 1, 0, 1, 0, 1, 2]
    assert [looks[name].marker for name in names] == [0, 1, 0, 1, 0, 1, 2]
    assert [looks[f"EF21, count = {n}"].tone for n in (2, 8, 10)] == [-1, 0, 1], "by the number, not as text or by the job's order"
    assert len({looks[f"GD, count = {n}"].dash for n in (2, 8, 10)}) == 3
    colours = [np.sum(to_rgb(looks[f"GD, count = {n}"].of_line["color"])) for n in (2, 8, 10)]
    assert colours == sorted(colours, reverse=True), "the least is the lightest"
    assert looks["CAT"].tone == 0


def test_a_tuned_value_is_no_method_of_its_own_and_one_method_alone_has_a_marker_for_each_value():
    assert lines.method_and_values("EF21, k = 5, top 10 %, tuned step = 4 theory") == ("EF21, top 10 %", "k = 5, tuned step = 4 theory")
    assert len({look.hue for look in style.looks(["EF21, step = theory", "EF21, tuned step = 64 theory"]).values()}) == 1
    steps = style.looks([f"T = {n}" for n in (1, 10, 100)])
    assert {look.hue for look in steps.values()} == {0}
    assert len({look.marker for look in steps.values()}) == 3


def test_a_run_looks_the_same_on_a_screen_which_says_what_was_tuned_and_in_a_paper():
    labels = ["EF21, k = 1", "EF21, k = 5", "DIANA, levels = 1", "DIANA, levels = 5", "GD"]
    tuned = ["4096 theory", "16 theory (not settled)", "64 theory", "4 theory", "1 theory (not settled)"]
    on_screen = style.looks([f"{label}, tuned step = {value}, compressor = top-k 5%" for label, value in zip(labels, tuned, strict=True)])
    in_paper = style.looks(["EF21, k = 1", "EF21, k = 5 (not settled)", *labels[2:4], "GD (not settled)"])
    assert [*on_screen.values()] == [*in_paper.values()] == [*style.looks(labels).values()]
    columns = [f"GD, tuned step = 4{column}" for column in (": loss f(x)", ": round")]
    assert [*style.looks(columns).values()] == [*style.looks([name.replace(", tuned step = 4", "") for name in columns]).values()]
    same = style.looks(["GD, tuned step = 4", "GD, tuned step = 64"])
    assert len({look.dash for look in same.values()}) == 2, "two results of one label"


def test_text_wraps_between_words_and_within_one_that_is_too_long():
    with mpl.rc_context(style.STYLE):
        lines = words.wrapped("some words and " + "x" * 90, 1.5, 8).splitlines()
        assert all(words.width(line, 8) <= 1.5 for line in lines)
    assert "".join(lines) == "some words and" + "x" * 90


def test_a_difference_is_not_broken_before_what_is_taken_away():
    with mpl.rc_context(style.STYLE):
        room = words.width("suboptimality f(x) −", 8)
        assert words.wrapped("suboptimality f(x) − f*", room, 8) == "suboptimality\nf(x) − f*"


def test_all_of_many_curves_have_colours_and_are_named():
    _, ax = plt.subplots()
    names = [f"method {i}" for i in range(12)]
    draw_on(ax, [], [Line(name, np.arange(9.0), np.arange(9.0) + i) for i, name in enumerate(names)], FigureTable(x="round", y="loss"), style.looks(names))
    assert list(legends.handles_of([ax])) == names
    greys = [line for line in ax.lines if np.ptp(to_rgb(line.get_color())) < 0.1 and max(to_rgb(line.get_color())) > 0.1]
    assert not greys


def test_names_stand_beside_their_curves_where_all_have_room_and_else_in_a_legend():
    apart = [run(f"at {y}", [y, y - 0.1, y - 0.2]) for y in (1.0, 2.0, 3.0)]
    ax = plotting.plot(apart, x="round")
    assert [text.get_text() for text in ax.texts] == ["at 1.0", "at 2.0", "at 3.0"]
    assert not ax.figure.legends
    close = [run(f"a rather long name of a curve that is number {i}", [3.0, 2 + i / 1000, 1 + i / 1000]) for i in range(4)]
    ax = plotting.plot(close, x="round")
    assert not ax.texts
    assert len(ax.figure.legends[0].get_texts()) == 4
    plt.close("all")


def test_a_name_beside_its_curve_touches_no_other_one():
    k = np.arange(30)
    ax = plotting.plot([run(name, list(a + 0.9 ** (k * b))) for name, a, b in (("slow", 0.0, 0.4), ("middle", 0.1, 1.0), ("fast", 0.15, 3.0))], x="round")
    names = {text.get_text(): text for text in ax.texts}
    assert len(names) == 3
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path())
        for name, text in names.items():
            room = text.get_window_extent().padded(0 if name == line.get_label() else ax.figure.dpi / 72)
            assert not path.intersects_bbox(room, filled=False), (name, line.get_label())
    plt.close("all")


@pytest.mark.parametrize("others", [1, 7])
def test_the_value_of_a_point_far_below_stays_and_no_name_covers_it(others):
    falls = [run(f"method {i}", list((0.5 + i / 100) ** np.arange(9.0))) for i in range(others)]
    ax = plotting.plot([*falls, run("the data", [1e-30, 1e-30])], x="round", y="loss", yscale="log")
    values = [text for text in ax.texts if text.get_text() == "1e-30"]
    names = [text for text in ax.texts if text.get_text() in ("the data", "method 0")]
    assert len(names) == (2 if others == 1 else 0)
    assert len(values) == 2
    assert not any(value.get_window_extent().count_overlaps([name.get_window_extent() for name in names]) for value in values)
    plt.close("all")


def test_ticks_of_a_paper_are_large_enough_to_read(job):
    figure = plotting.draw(made_up_results(job), job.titled_figure, "paper")
    assert all(text.get_fontsize() >= 7 for ax in figure.axes for text in (*ax.get_xticklabels(), *ax.get_yticklabels()))
    assert figure.axes[0].get_title() == ""


@pytest.mark.parametrize(("width", "inches"), [("3.3in", 3.3), ("84 mm", 84 / 25.4), ("8.4cm", 8.4 / 2.54), (3.3, 3.3), (None, None)])
def test_a_width_is_read_in_its_unit(width, inches):
    assert style.inches(width) == (None if inches is None else pytest.approx(inches))


def test_on_a_logarithmic_x_axis_curves_begin_with_their_first_record():
    """Round 0 lies at no place of it, and a way from there would cross curves that it has no record beside."""
    _, ax = plt.subplots()
    x = np.arange(5.0)
    drawn = [Line("fast", 10 * x, 0.5**x), Line("slow", 40 * x, 0.9**x), Line("the data", x[:2] * 3, x[:2] + 0.1)]
    draw_on(ax, [], drawn, FigureTable(x="wire_bits_up", y="loss", xscale="log"), style.looks(line.label for line in drawn))
    assert [line.get_xydata()[0].tolist() for line in ax.lines] == [[10, 0.5], [40, 0.9], [3, 1.1]]
    plt.close("all")


@pytest.mark.parametrize("last", [-1e-17, 0.0, 1e-30, 1e-14])
def test_few_points_far_below_the_others_stand_within_the_plot_with_an_arrow_down_and_hardly_lengthen_the_axis(last):
    _, ax = plt.subplots()
    x = np.arange(5.0)
    drawn = [Line("slow", x, 0.5**x), Line("the data", x[:2] * 3, np.array([1.0, last]))]
    draw_on(ax, [], drawn, FigureTable(x="round", y="suboptimality", yscale="log"), style.looks(line.label for line in drawn))
    assert ax.lines[1].get_xydata().tolist() == [[0, 1], [3, 0.5**4 / 10]]
    arrow, value = ax.texts
    assert (arrow.xy, arrow.get_position()) == ((3, 0.5**4 / 10), (0, -13)), "points down from where it stands"
    assert float(value.get_text()) == last
    assert 0.5**4 / 20 < ax.get_ylim()[0] < 0.5**4 / 11
    plt.close("all")


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


def drawn(ax, each_line, runs=(), **figure):
    table = FigureTable(**{"x": "round", "y": "loss", **figure})
    curves.draw_on(ax, runs, each_line, table, style.looks(each.label for each in each_line))
    return [each.get_xydata().tolist() for each in ax.lines]


def test_a_linear_plot_has_all_points_that_are_finite(ax):
    assert drawn(ax, [line([3, np.nan, 0, -1, np.inf])]) == [[[0, 3], [2, 0], [3, -1]]]


def test_a_logarithmic_plot_has_those_above_0(ax):
    assert drawn(ax, [line([3, 2, 0.5, -1])], yscale="log")[0] == [[0, 3], [1, 2], [2, 0.5]]


def test_few_points_have_a_marker_each_and_many_have_one_here_and_there(ax):
    drawn(ax, [line([3, 2, 1]), line([4, 3, 2, 1], label="b"), line(range(31), label="c")])
    assert [each.get_markevery() for each in ax.lines] == [None, (0.05, 0.2), (0.07, 0.2)]
    assert [len(dots.get_offsets()) for dots in ax.collections] == [4], "each record of few is a dot"


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
    assert [len(each.get_xdata()) for each in ax.lines] == [0, 2]


@pytest.mark.parametrize(("scale", "top"), [("log", 40.0), ("linear", 4.8)])
def test_a_curve_that_diverges_is_drawn_to_the_top_edge_and_marked(ax, scale, top):
    runs = [run("good", [2.0, 4.0, 1.0]), run("wild", [2.0, 3.0, 1e4, np.inf], "diverged"), run("at once", [2.0, np.nan], "diverged")]
    figure = FigureTable("round", yscale=scale)
    assert curves.ceiling(runs, figure) == pytest.approx(top)
    wild, at_once = drawn(ax, curves.lines_of(runs, figure), runs, yscale=scale)[1:]
    assert wild == [[0, 2], [1, 3], [2, pytest.approx(top)]]
    assert at_once == [[0, 2], [1, pytest.approx(top)]]
    assert ax.get_ylim()[1] == pytest.approx(top)
    assert [*legends.handles_of([ax])] == ["good", "wild (diverged)", "at once (diverged)"]
    assert [curves.ceiling([run("alone", ys, "diverged")], FigureTable(yscale="log")) for ys in ([2.0, 39.0], [0.0, 5.0])] == [20.0, np.inf]
    half = [run("half", [2.0, 500.0]), run("half", [3.0, 1e9], "diverged"), run("good", [4.0, 1.0])]
    assert curves.ceiling(half, FigureTable(yscale="log")) == 40.0, "seeds of a method that diverges now and then are not what others reach"


def test_rounding_of_a_suboptimality_is_not_drawn(ax):
    gaps = [1.0, 1e-10, 4e-16, -2e-16, 3e-15, 0.0]
    made = run("a", [0.5 + gap for gap in gaps])
    made.trace["suboptimality"] = np.array(gaps)
    (seen,) = curves.lines_of([made], FigureTable("round", "suboptimality"))
    assert seen.y.tolist() == [1.0, 1e-10, 0, 0, 0, 0]
    assert drawn(ax, [seen], [made], y="suboptimality") == [[[0, 1], [1, 1e-10]]]
    made.trace["suboptimality"] = np.array([1.0, 1e-10, 1e-13, 1e-3, 1e-10, 1e-12])
    (seen,) = curves.lines_of([made], FigureTable("round", "suboptimality"))
    assert seen.y.tolist() == made.trace["suboptimality"].tolist(), "nothing but rounding"


def test_a_legend_says_where_a_value_takes_fewer_bits_than_x_counts(ax):
    made = [run(label, [3.0, 2.0]) for label in ("dense, bf16", "dense")]
    made[0].attrs["job"] = '[up]\ncodec = { name = "dense", float = "bf16" }'
    for each in made:
        each.attrs["n_workers"] = 2
        each.trace.update(bits_values_32=np.array([0, 64]), wire_bits_up=np.array([0, 32]))
    assert [line.entry for line in curves.lines_of(made, FigureTable("bits_32_n"))] == ["dense, bf16 (sends 16 a value)", "dense"]
    assert [line.entry for line in curves.lines_of(made, FigureTable("wire_bits_up"))] == ["dense, bf16", "dense"]


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
    assert len(legends.handles_of([ax])) == 4


def played(tmp_path, theory):
    tables = {
        "data": {"generator": "gspar", "samples": 40, "dim": 12},
        "objective": {"mu": "1e-2 L"},
        "algorithm": {"name": "cat", "budget": 4},
        "stop": {"rounds": 300},
        "log": {"theory": theory},
    }
    return mc.run(parse_job(tables, "bounds", tmp_path, {}), out=tmp_path, quiet=True)[0]


def test_its_cells_are_the_bounds_and_the_rounds_that_were_needed(tmp_path, capsys):
    run = played(tmp_path, True)
    (drawn,) = draw_bounds(run).axes[0].tables
    cells = {place: cell.get_text().get_text() for place, cell in drawn.get_celld().items()}
    assert [cells[0, column] for column in range(6)] == [*HEADS]
    table = BoundsTable.of(run)
    rows = list(table.rows())
    assert {row.kind for row in rows} == {"µ-convex", "convex", "non-convex"}
    for i, (kind, eps, needed, (plain, data, worst)) in enumerate(rows, 1):
        assert [cells[i, column] for column in range(6)] == [kind, f"{eps:.2g}", f"{needed}", f"{plain:.3g}", f"{data:.3g}", f"{worst:.3g}"]
        values = run.trace["grad_norm"] ** 2 if kind == "non-convex" else run.trace["suboptimality"]
        assert values[needed] <= eps < values[needed - 1]
        assert needed <= data * (1 + 1e-12) <= worst * (1 + 1e-12)
        assert worst == pytest.approx(3 * plain)  # d/T
    picture = tmp_path / "table1.png"
    assert main(["show", str(run.file), "--bounds", str(picture)]) == 0
    assert capsys.readouterr().out == f"{picture}\n"
    assert picture.stat().st_size > 1000


def test_a_run_without_bounds_is_refused(tmp_path):
    with pytest.raises(mc.UserError, match="has no bounds of CAT's table 1"):
        draw_bounds(played(tmp_path, False))


def test_the_axis_of_a_key_has_the_values_that_do_not_reach_the_level(ax):
    drawn(ax, [line([np.nan, 20, 50, np.nan], x=[1, 2, 5, 300])], x="up.compressor.k", y="round", at={"loss": 0.5}, xscale="log")
    assert ax.get_xlim()[0] <= 1
    assert ax.get_xlim()[1] >= 300
    assert ax.lines[0].get_xdata().tolist() == [2, 5]


def test_points_that_stand_for_runs_have_a_bar_each_over_their_seeds_and_no_band(ax):
    """Where some seeds missed the level there is no bar, and one point that is left has its own."""
    band = {"least": [1, 15, 45], "most": [np.nan, 30, 45]}
    single = line([7], x=[5], label="b", least=[6], most=[9])
    drawn(ax, [line([2, 20, 45], x=[1, 2, 5], **band), single], x="up.compressor.k", y="round", at={"loss": 0.5})
    bars = [[segment.tolist() for segment in bar.get_segments() if len(segment) and np.ptp(segment[:, 1])] for bar in ax.collections]
    assert bars == [[[[2, 15], [2, 30]]], [[[5, 6], [5, 9]]]]
