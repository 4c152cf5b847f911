"""Figures: panels, seeds, names and units of axes."""

import dataclasses
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers.refusals import naming, refused
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.text import Text

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.cli.main import main
from mpi_compress.evidence.comparison import compare
from mpi_compress.evidence.lines import lines, without_common
from mpi_compress.figures import plotting as figures
from mpi_compress.figures import words
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.results.targets import Target

JOB = """
title = "panels"
data = { generator = "gspar", samples = 60, dim = 10 }
objective.mu = 0.1
workers.count = 2
algorithm = { name = "sgd", batch = 4, step = 0.1 }
stop.rounds = 10
[[run]]
label = "GSpar"
up.compressor = { name = "gspar", kappa = 0.5 }
[[run]]
label = "baseline"
[grid]
"data.c2" = [0.25, 0.5]
seed = [0, 1, 2]
[figure]
x = "epoch"
y = "suboptimality"
xlabel = "data passes"
columns = 2
notes = ["variance"]
[[figure.panel]]
title = "(a)"
runs = ["*, c2 = 0.25"]
[[figure.panel]]
title = "(b)"
runs = ["*, c2 = 0.5"]
[[figure.panel]]
title = "(c)"
runs = ["*, c2 = 0.5"]
x = "wire_bits_up"
xlabel = "sent"
yscale = "linear"
bounds = ["wire_bits", "step"]
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("panels")
    file = folder / "job.toml"
    file.write_text(JOB)
    job = mc.load_job(file)
    return file, job, mc.run(job, out=folder)


def test_seeds_are_one_line_in_a_band(done):
    _, _, runs = done
    first = [r for r in runs if r.label == "GSpar, c2 = 0.25"]
    (line,) = lines(first, "round", "loss")
    losses = np.array([r.trace["loss"] for r in first])
    np.testing.assert_array_equal(line.y, np.median(losses, axis=0))
    np.testing.assert_array_equal(line.least, losses.min(axis=0))
    np.testing.assert_array_equal(line.most, losses.max(axis=0))
    np.testing.assert_array_equal(line.x, first[0].trace["round"])
    ax = mc.plot(runs, x="round", y="loss")
    assert len(ax.lines) == sum(isinstance(each, PolyCollection) for each in ax.collections) == 4
    assert ax.figure.get_supxlabel() == "median and range over 3 seeds"


def test_a_figure_says_how_many_of_several_seeds_are_unfinished(done):
    """Those that are left out, where others have ended, and those that are drawn, where none has."""
    _, job, runs = done
    stops = [run for run in runs if run.label == "GSpar, c2 = 0.25"][:2] + [run for run in runs if run.label == "baseline, c2 = 0.25"]
    now = [dataclasses.replace(run, attrs=run.attrs | {"status": "stopped"}) if run in stops else run for run in runs]
    for each, count in ((now, "5 runs"), ([now[runs.index(run)] for run in stops[2:]], "3 runs")):
        drawn = figures.draw(each, FigureTable("round", "loss"))
        assert drawn.get_supxlabel().endswith(f"seeds\n{count} unfinished")
        plt.close(drawn)
    said = figures.draw(now, job.figure).legends[0].get_title().get_text()
    assert said == "median and range over 1 to 3 seeds\n5 runs unfinished"
    plt.close("all")


def test_a_figure_says_that_a_seed_that_ended_keeps_its_last_value(done):
    _, _, runs = done
    own = [run for run in runs if run.label == "baseline, c2 = 0.5"]

    def ending(run, row):
        return dataclasses.replace(run, trace={name: values[:row] for name, values in run.trace.items()}, timing={name: values[:row] for name, values in run.timing.items()})

    for row, said in ((6, "\na seed that ended keeps its last value"), (11, "")):
        ax = figures.plot([ending(own[0], row), *own[1:]], x="round", y="loss")
        assert ax.figure.get_supxlabel() == f"median and range over 3 seeds{said}"
    plt.close("all")


def test_a_method_has_one_hue_in_all_figures_of_a_job_and_in_those_that_list_the_same_methods(done):
    file, job, runs = done

    def colours(job, runs):
        figure = figures.draw(runs, job.titled_figure.changed(x="round", y="loss"))
        plt.close(figure)
        return {line.get_label().partition(",")[0]: line.get_color() for line in figure.axes[0].lines}

    both, alone = colours(job, runs), mc.load_job(file, only="base*")
    assert both["GSpar"] != both["baseline"]
    own = [run for run in runs if run.label.startswith("base")]
    assert colours(alone, own)["baseline"] == both["baseline"]
    listed = dataclasses.replace(alone, figure=dataclasses.replace(alone.figure, methods=["baseline", "GSpar"]))
    assert colours(listed, own)["baseline"] == both["GSpar"]


def test_a_title_says_that_the_runs_are_not_on_the_data_of_the_job(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(JOB.partition("[[run]]")[0])
    for changed, title in (({"data.generator": "least-squares", "objective.loss": "least-squares"}, "panels\non least-squares in place of the job's data"), ({"data.samples": 30}, "panels")):
        job = mc.load_job(file, changed)
        drawn = figures.draw(mc.run(job, out=tmp_path, quiet=True), job.titled_figure)
        assert drawn.axes[0].get_title() == title
        plt.close(drawn)


def test_a_title_that_has_the_set_in_place_of_the_job_s_own_has_no_further_line(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(JOB.partition("[[run]]")[0].replace('"panels"', '"SGD on gspar"'))
    job = mc.load_job(file, {"data.generator": "least-squares", "objective.loss": "least-squares"})
    assert job.title == "SGD on least-squares"
    drawn = figures.draw(mc.run(job, out=tmp_path, quiet=True), job.titled_figure)
    assert drawn.axes[0].get_title() == job.title
    plt.close(drawn)


def test_the_last_points_of_runs_that_have_not_ended_are_not_drawn_and_that_is_said(done):
    _, _, runs = done
    each = [run for run in runs if run.label.startswith("GSpar") and run.seed == 0]
    begun = [dataclasses.replace(run, attrs=run.attrs | {"status": "running"}) for run in each]
    sweep = FigureTable("data.c2", "loss", rows="last")
    (drawn,) = figures.draw([each[0], begun[1]], sweep).axes
    (line,) = drawn.lines
    assert line.get_xdata().tolist() == [0.25]
    assert line.get_label() == "GSpar (running at round 10: c2 = 0.5)"
    with pytest.raises(UserError, match=r"; running at round 10$"):
        figures.draw(begun, sweep)
    plt.close("all")


def test_lowered_digits_of_labels_are_mathematics_also_in_a_paper(done, tmp_path, capsys):
    """Times has none."""
    _, _, runs = done
    run = dataclasses.replace(runs[0], attrs=runs[0].attrs | {"label": "‖EF21‖, γ₀ = 1"})
    ax = mc.plot([run, runs[3]], x="round", y="loss", style="paper")
    figures.save(ax, tmp_path / "a.svg")
    assert any("γ$_{0}$ = 1" in text.get_text() for text in ax.figure.findobj(Text))
    assert "the font has no" not in capsys.readouterr().err
    plt.close("all")


def test_titles_and_file_names_have_the_set_that_is_in_place_of_the_job_s_own(tmp_path, capsys):
    made = {name: mc.data.save(np.eye(4), np.arange(4) % 2, tmp_path / f"{name}.libsvm")[0] for name in ("mine", "yours")}
    panels = "".join(f'[[figure.panel]]\ntitle = "{title}"\n' for title in ("(a) MINE.libsvm", "(b) mine.libsvm-like", "(c)"))
    tables = 'title = "GD on mine.libsvm, 2 workers"\nobjective.mu = 0.1\nworkers.count = 2\nalgorithm.name = "gd"\nstop.rounds = 3\n'
    (tmp_path / "mine.toml").write_text(f'{tables}run = [{{ label = "GD" }}]\n[data]\npath = "mine.libsvm"\n[figure]\nx = "round"\n{panels}')
    where = [str(tmp_path / "mine.toml"), "--set", f"data.path={made['yours']}", "--out", str(tmp_path)]
    assert main(["run", *where, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["plot", *where]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'mine' / 'mine-on-yours.libsvm.png'}\n"
    job = mc.load_job(tmp_path / "mine.toml", {"data.path": str(made["yours"])})
    assert job.title == job.titled_figure.title == "GD on yours.libsvm, 2 workers"
    assert [panel.title for panel in job.figure.panel] == ["(a) yours.libsvm", "(b) mine.libsvm-like", "(c)"]
    assert main(["report", *where, "-o", str(tmp_path / "r.html"), "--table", str(tmp_path / "r.md")]) == 0
    assert (tmp_path / "r" / "mine-on-yours.libsvm.png").exists()
    assert "### mine-on-yours.libsvm\n\nGD on yours.libsvm, 2 workers\n" in (tmp_path / "r.md").read_text()
    own = mc.load_job(tmp_path / "mine.toml", {"stop.rounds": 2})
    assert (own.title, own.figure.panel[0].title) == ("GD on mine.libsvm, 2 workers", "(a) MINE.libsvm")


def test_a_panel_whose_level_no_run_reaches_is_empty_and_the_others_are_drawn(done):
    _, _, runs = done
    panels = [PanelTable(title="(a)"), PanelTable(title="(b)", x="data.c2", y="wire_bits", at={"loss": 1e-9})]
    one, empty = figures.draw(runs, FigureTable("round", panel=panels)).axes
    assert (len(one.lines), len(empty.get_yticks())) == (4, 0)


def test_curves_over_budgets_and_over_records_share_no_axis(done):
    _, _, runs = done
    for x, y, would_do in (("round", "alpha_bar", "--y loss"), ("T", "loss", "--x round")):
        with pytest.raises(mc.UserError, match=naming(f"a value for each budget T one for each record: add {would_do}")):
            mc.plot(runs, x=x, y=y)


def test_panels_share_looks_and_a_legend(done):
    _, job, runs = done
    figure = figures.draw(runs, job.figure)
    a, b, c = figure.axes
    assert [ax.get_title() for ax in figure.axes] == ["(a)", "(b)", "(c)"]
    for one, other in zip(a.lines, b.lines, strict=True):
        assert (one.get_color(), one.get_linestyle(), one.get_marker()) == (
            other.get_color(), other.get_linestyle(), other.get_marker(),
        )
        assert not np.array_equal(one.get_ydata(), other.get_ydata())
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["GSpar", "baseline", "uplink and downlink bits, on the wire", "step"]
    assert [len(ax.lines) for ax in figure.axes] == [2, 2, 8]  # a bound is a line for each run, and one for the legend
    assert (a.get_yscale(), c.get_yscale()) == ("log", "linear")
    assert (b.get_xlabel(), c.get_xlabel()) == ("data passes", "sent [bit]")
    assert (a.get_ylabel(), b.get_ylabel()) == ("suboptimality f(x) − f*", "")
    assert a.get_legend().get_texts()[0].get_text().startswith("GSpar: var = "), "a box names the method"
    assert figure.get_size_inches()[0] == pytest.approx(6.9)


def test_notes_stand_under_their_panel_and_overrides_above_the_entries(done):
    _, job, runs = done
    changed = [dataclasses.replace(r, attrs=r.attrs | {"overridden": f'{{"stop.rounds": 7, "seed": {r.seed}}}'}) for r in runs]
    under = figures.draw(changed, job.figure)
    under.canvas.draw()
    assert all(ax.get_legend().get_window_extent().y1 < ax.bbox.y0 - 10 for ax in under.axes)
    assert under.legends[0].get_title().get_text() == "median and range over 3 seeds\nrounds = 7"


def test_a_single_point_is_seen_over_the_lines_that_cross_it(done):
    _, _, runs = done
    (point,) = figures.draw(runs[:1], FigureTable("round", "loss", rows="last")).axes[0].lines
    assert point.get_xdata().size == 1
    assert (point.get_markersize(), point.get_zorder(), point.get_linestyle()) == (6, 3, "None")


def test_a_panel_of_another_column_does_not_take_the_name_of_the_axis(done):
    _, _, runs = done
    tables = [PanelTable(title="(a)"), PanelTable(title="(b)", y="grad_norm"), PanelTable(title="(c)", y="grad_norm", ylabel="‖g‖")]
    figure = figures.draw(runs, FigureTable("round", "loss", ylabel="f(w)", panel=tables))
    assert [ax.get_ylabel().replace("\n", " ") for ax in figure.axes] == ["f(w)", "gradient norm ‖∇f(x)‖", "‖g‖"]


def test_the_first_panel_of_a_row_alone_names_the_axis_that_all_of_the_row_share(done):
    _, _, runs = done
    figure = figures.draw(runs, FigureTable("round", "loss", columns=3, ylabel="f(w)", panel=[PanelTable(title=f"({c})") for c in "abcd"]))
    assert [ax.get_ylabel() for ax in figure.axes] == ["f(w)", "", "", "f(w)"]
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "round", "round", "round"]


def test_other_axes_can_be_asked_for(done):
    """By the command line, in all panels, into several files; fonts of a PDF are embedded as TrueType."""
    file, job, runs = done
    pdf, png = (file.with_name(name) for name in ("a.pdf", "a.png"))
    assert main(["plot", str(file), "--out", str(file.parent), "-o", str(pdf), "-o", str(png), "--x", "round", "--y", "loss"]) == 0
    assert b"/FontFile2" in pdf.read_bytes()
    assert png.read_bytes().startswith(b"\x89PNG")
    figure = figures.draw(runs, job.figure.changed(x="round", y="loss"))
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "round", "round"]
    assert figure.axes[0].get_yscale() == "linear"


def test_a_figure_for_a_paper(done, capsys):
    """A PDF as wide as it is asked for, with its fonts."""
    file, *_ = done
    asked = ["plot", str(file), "--out", str(file.parent), "--style", "paper"]
    assert main([*asked, "--width", "84mm"]) == 0
    written = (file.parent / "job" / "job.pdf").read_bytes()
    assert b"STIXGeneral" in written
    assert b"/FontFile2" in written
    assert float(re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", written)[1]) / 72 == pytest.approx(84 / 25.4, abs=0.01)
    refused([*asked, "--width", "3.3 inch"], capsys, "--width: '3.3 inch'")


def test_axes_are_cut_at_the_ends_that_are_asked_for(done, tmp_path, capsys):
    file, job, runs = done
    ax = figures.plot(runs[:1], x="round", y="suboptimality", xlim=(2, 5), ylim=[1e-3, 1.0])
    assert (ax.get_xlim(), ax.get_ylim()) == ((2, 5), (1e-3, 1.0))
    with pytest.raises(mc.UserError, match=r"xlim = \[3.*\] should be the ends of an axis, the lower one first"):
        figures.plot(runs[:1], xlim=(3.0, 2.0))
    cut = figures.draw(runs, job.figure.changed(xlim=[0.0, 1.0]))
    assert sorted(ax.get_xlim() == (0.0, 1.0) for ax in cut.axes) == [False, True, True], "one panel has another x"
    other = figures.draw(runs, FigureTable(x="epoch", xlim=[0.0, 1.0]).changed(x="round"))
    assert other.axes[0].get_xlim() != (0.0, 1.0), "they were the other column's"
    asked = ["plot", str(file), "--out", str(file.parent), "-o", str(tmp_path / "a.png"), "--xlim"]
    assert main([*asked, "0:0.5"]) == 0
    assert "an axis's ends are required, the lower one first" in refused([*asked, "0.5:0"], capsys)


def test_bounds_have_their_runs_colour_beside_several_columns(done):
    _, _, runs = done
    ax = figures.plot(runs[:1], x="round", y="loss,suboptimality", bounds=["step"])
    assert [line.get_color() for line in ax.lines[:3]] == [
        ax.lines[0].get_color(), ax.lines[1].get_color(), ax.lines[0].get_color(),
    ]  # fmt: skip


@pytest.mark.parametrize("title", [r"$\frac{1}$", r"$\input{/etc/passwd}$", "$" + "{" * 5000 + "}" * 5000 + "$", "$$$a$ $^$"])
def test_mathematics_that_cannot_be_drawn_is_drawn_as_it_is_written(title, done, tmp_path):
    ax = mc.plot(done[2], title=f"x {title}\nand $x^*$")
    figures.save(ax, tmp_path / "figure.svg")
    assert title[:40] in "".join(ElementTree.parse(tmp_path / "figure.svg").getroot().itertext())
    figures.plt.close("all")


def test_of_two_equal_curves_the_upper_one_has_gaps_also_beside_bounds(done):
    _, _, runs = done
    one = [run for run in runs if run.label == "GSpar, c2 = 0.25"][:1]
    twice = [dataclasses.replace(one[0], attrs={**one[0].attrs, "label": label}) for label in ("EF21", "EF21, step = 4", "EF21, step = theory")]
    other = [dataclasses.replace(run, attrs={**run.attrs, "label": "SGD"}) for run in runs if run.label == "baseline, c2 = 0.25"][:1]
    for bounds in ([], ["step"]):
        ax = mc.plot([*twice, *other], x="round", y="loss", bounds=bounds)
        lines = sorted((line for line in ax.lines if line.get_label().startswith("EF21")), key=lambda line: line.get_zorder())
        assert lines[0].get_linestyle() == "-"
        assert {line.get_linestyle() for line in lines[1:]} == {"--"}
        assert len({line.get_zorder() for line in lines}) == 3
        (apart,) = (line for line in ax.lines if line.get_label() == "SGD")
        assert apart.get_linestyle() == ("-" if bounds else "--")


def test_names_keep_only_what_differs():
    assert without_common(["A, c2 = 0.5, k = 1", "A, c2 = 0.5, k = 2", "B, c2 = 0.5"]) == {
        "A, c2 = 0.5, k = 1": "A, k = 1", "A, c2 = 0.5, k = 2": "A, k = 2", "B, c2 = 0.5": "B",
    }  # fmt: skip


@pytest.mark.parametrize(("changed", "says"), [
    ('runs = ["*, c2 = 0.3"]', "figure.panel 1.runs"),
    ('runs = "*"', "figure.panel 1.runs: '*' was given"),
    ('run = ["*"]', "run runs"),
])  # fmt: skip
def test_a_panel_of_nothing_is_refused(changed, says, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace('runs = ["*, c2 = 0.25"]', changed))
    with pytest.raises(mc.UserError, match=naming(says)):
        mc.load_job(file)


def test_a_swept_key_is_x_and_y_what_it_took_to_a_target(done, tmp_path, capsys):
    file, *_ = done
    asked = ["plot", str(file), "--out", str(file.parent), "-o", str(tmp_path / "a.svg"), "--to", "loss=0.68"]
    assert main([*asked, "--x", "data.c2"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'a.svg'}\n"
    words = " ".join(each.strip() for each in ElementTree.parse(tmp_path / "a.svg").getroot().itertext() if each.strip())
    assert "data.c2" in words
    assert "uplink bits, on the wire, over all workers to f(x) ≤ 0.68 [bit]" in words.replace("\n", " ")
    assert main([*asked, "--x", "data.c2", "--y", "round"]) == 0
    drawn = [main([*asked, "--x", "data.c2", "--xscale", scale]) or (tmp_path / "a.svg").read_text() for scale in ("linear", "log")]
    assert drawn[0] != drawn[1]
    plt.close("all")
    assert "data.c2" in refused([*asked, "--x", "c2"], capsys)
    assert main([*asked[:-1], "loss=0.66", "--x", "data.c2"]) == 0
    ticks = {each.strip() for each in ElementTree.parse(tmp_path / "a.svg").getroot().itertext()}
    assert {"0.25", "0.5"} <= ticks
    refused(asked, capsys, "--to goes with --x KEY")
    refused([*asked, "--x", "data.c2", "--by", "round", "--by", "cost_up"], capsys, "--to goes with --x KEY, and with it one --by")
    assert main([*asked, "--x", "data.c2", "--by", "round", "--to", "loss=0.6875"]) == 0
    words = " ".join(" ".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext()).split())
    assert re.findall(r"≤ (0\.68\d*)", words) == ["0.68", "0.6875"], "a panel for each target"
    plt.close("all")


def test_what_a_target_took_is_what_the_job_says_or_the_command(done, tmp_path, capsys):
    file, *_ = done
    asked = ["plot", str(tmp_path / "job.toml"), "--out", str(file.parent), "-o", str(tmp_path / "a.svg"), "--x", "data.c2"]

    def names(figure, *options):
        (tmp_path / "job.toml").write_text(f"{JOB.split('[figure]')[0]}[figure]\n{figure}\n")
        assert main([*asked, "--to", "loss=0.68", *options]) == 0
        root = ElementTree.parse(tmp_path / "a.svg").getroot()
        return " ".join(" ".join(each.strip() for each in root.itertext() if each.strip()).split())

    bits = "uplink bits, on the wire, over all workers to f(x) ≤ 0.68 [bit]"
    assert "round to f(x) ≤ 0.68" in names('by = "round"')
    assert "round to f(x) ≤ 0.68" in names('y = "round"\nat = { loss = 0.6 }'), "y of a figure of what it took"
    assert bits in names('y = "suboptimality"'), "y of a figure of curves is nothing that is paid"
    assert bits in names('by = "round"', "--by", "wire_bits_up")
    assert "round to f(x) ≤ 0.68" in names("", "--by", "round")
    assert bits in names("", "--by", "round", "--y", "wire_bits_up")
    capsys.readouterr()
    refused([*asked, "--by", "round"], capsys, "--to goes with --x KEY")
    refused([*asked, "--to", "loss=0.68", "--by", "round", "--by", "seconds"], capsys, "--to goes with --x KEY")


def test_a_sweep_that_reaches_no_target_is_refused_beside_a_level_that_does(tmp_path, capsys):
    (tmp_path / "job.toml").write_text("""
data = { generator = "gspar", samples = 60, dim = 12 }
objective.mu = 0.1
workers.count = 3
stop.rounds = 30
[[run]]
label = "EF21"
algorithm.name = "ef21"
up.compressor.name = "top-k"
grid = { "up.compressor.k" = [1, 3] }
[[run]]
label = "GD"
algorithm.name = "gd"
""")
    job = mc.load_job(tmp_path / "job.toml")
    runs = mc.run(job, out=tmp_path, quiet=True)
    ends = {run.label: run.trace["suboptimality"].min() for run in runs}
    level = (ends["GD"] + ends["EF21, k = 3"]) / 2
    asked = ["plot", tmp_path / "job.toml", "--out", tmp_path, "-o", tmp_path / "a.svg", "--to", f"suboptimality={level}", "--x"]
    near = f"'EF21, k = 3' comes nearest, to {ends['EF21, k = 3']:.3g}: a target of"
    line = refused([*asked, "up.compressor.k"], capsys, f"nothing to draw: no run at any up.compressor.k {near}")
    proposed = float(re.search("a target of (.*) would do", line)[1])
    assert ends["EF21, k = 3"] <= proposed < 1.1 * ends["EF21, k = 3"]
    refused([*asked, "up.compressor.k", "--by", "cost_up"], capsys, near)
    for x in ("wire_bits_up", "budget"):
        refused([*asked, x], capsys, f"no run has a single {x}; x should be a key")
    panels = [PanelTable(title="(a)"), PanelTable(title="(b)")]
    with pytest.raises(mc.UserError, match=naming(near)):
        figures.draw(runs, FigureTable("up.compressor.k", "wire_bits", at={"suboptimality": level}, panel=panels))
    asked[-2] = f"suboptimality={proposed}"
    assert main([*map(str, asked), "up.compressor.k"]) == 0


def test_a_small_target_has_its_power_of_ten_in_mathematics_which_all_fonts_have(done, tmp_path, capfd):
    small = [dataclasses.replace(r, trace=r.trace | {"suboptimality": 1e-4 * r.trace["suboptimality"]}) for r in done[2]]
    level = 2e-7 + max(r.trace["suboptimality"][-1] for r in small)
    figures.save(mc.plot(small, x="data.c2", y="round", at={"suboptimality": level}, style="paper"), tmp_path / "a.svg")
    told = capfd.readouterr()
    assert "font" not in told.err
    assert "Warning" not in told.err
    assert words.drawable("f(x) − f* ≤ 2×10⁻⁴, ‖∇f(x)‖² ≤ 10⁻⁵") == "f(x) − f* ≤ 2×10$^{-4}$, ‖∇f(x)‖$^{2}$ ≤ 10$^{-5}$"


def test_a_column_as_x_draws_curves_where_the_job_s_figure_is_of_a_target(done, tmp_path):
    file, *_ = done
    written = JOB.split("[figure]")[0] + '[figure]\nx = "data.c2"\ny = "wire_bits_up"\nat = { loss = 0.68 }\nxscale = "log"\n'
    (tmp_path / "job.toml").write_text(written)
    asked = ["plot", str(tmp_path / "job.toml"), "--out", str(file.parent), "-o", str(tmp_path / "a.svg")]

    def names(*options):
        assert main([*asked, *options]) == 0
        root = ElementTree.parse(tmp_path / "a.svg").getroot()
        return " ".join(" ".join(each.strip() for each in root.itertext() if each.strip()).split())

    assert "uplink bits, on the wire, over all workers to f(x) ≤ 0.68 [bit]" in names("--x", "data.c2"), "a key of the job"
    assert " to f(x) ≤" not in names("--x", "round", "--y", "suboptimality")
    assert "suboptimality f(x) − f*" in names("--x", "round", "--y", "suboptimality")
    assert "loss f(x)" in names("--x", "wire_bits_up"), "the target's column"
    (tmp_path / "job.toml").write_text(written.replace('y = "wire_bits_up"\n', ""))
    assert "uplink bits, on the wire, over all workers to f(x) ≤ 0.68 [bit]" in names(), "what it took, where the job has no y"
    (tmp_path / "job.toml").write_text(written.replace('y = "wire_bits_up"', 'by = "round"'))
    assert "round to f(x) ≤ 0.68" in names()


def test_seeds_that_do_not_reach_a_target_are_listed(done, capsys):
    file, _, runs = done
    ends = {(r.label, s): r.trace["loss"].min() for s in range(3) for r in runs if r.written["seed"] == s}
    label = max({r.label for r in runs}, key=lambda name: min(ends[name, s] for s in range(3)))
    *_, last = sorted(range(3), key=lambda s: ends[label, s])
    others = sorted(ends[label, s] for s in range(3))
    level = (others[1] + others[2]) / 2
    asked = ["plot", str(file), "--out", str(file.parent), "-o", str(file.parent / "b.svg"), "--x", "data.c2", "--y", "round", "--to"]
    assert main([*asked, f"loss={level}"]) == 0
    told = capsys.readouterr().err
    (line,) = (line for line in told.splitlines() if "these do not reach loss" in line)
    assert f"{label} (seed {last})" in line
    assert main([*asked, f"loss={others[0] / 2 + others[1] / 2}"]) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "these do not reach loss" in line)
    assert re.search(rf"{label} \(seed \d, \d\)", line)
    assert main([*asked, f"loss={others[0] - 1e-9}"]) == 0
    assert f"{label} (seed 0, 1, 2)" in capsys.readouterr().err


def test_notes_of_a_sweep_have_the_colour_of_the_curve_that_has_their_point(tmp_path):
    """The trials of one value of k miss the target, in both panels of what a level took; and in one of several columns."""
    (tmp_path / "job.toml").write_text("""
data = { generator = "gspar", samples = 60, dim = 12 }
objective.mu = 0.1
workers.count = 3
stop.rounds = 30
[[run]]
label = "GD"
algorithm.name = "gd"
[[run]]
label = "EF21"
algorithm.name = "ef21"
up.compressor.name = "top-k"
grid = { "up.compressor.k" = [1, 3] }
tune = { parameter = "algorithm.step", values = ["1/2 theory", "theory"], to = { suboptimality = 1e-9 } }
""")
    runs = mc.run(tmp_path / "job.toml", out=tmp_path, quiet=True)
    missed, level = ["EF21, k = 1"], float(max(run.trace["suboptimality"][-1] for run in runs))
    panels = [PanelTable(title=f"to {times}", at={"suboptimality": times * level}) for times in (2, 1.1)]
    sweep = FigureTable("up.compressor.k", "wire_bits_up", at={"suboptimality": level}, panel=panels)
    for figure in (sweep, FigureTable("round", "loss,grad_norm", panel=[PanelTable(title="(a)")])):
        drawn = figures.draw(runs, figure, "paper")
        for ax in drawn.axes:
            curves = {line.get_label().partition(" (")[0].partition(": ")[0]: line.get_color() for line in ax.get_lines()}
            notes = {text.get_text().partition(":")[0]: text.get_color() for text in ax.get_legend().get_texts()}
            assert [*notes] == missed
            assert all(curves.get(label, curves.get("EF21")) == colour for label, colour in notes.items())
    plt.close("all")


def ended_at(losses, tuned, k=5):
    """Results of an EF21 that ends at these losses, one a seed, after 20 bits, as [tune] found it."""
    each = [mc.Run(Path(f"{k}-{seed}.h5"), {"status": "complete", "f_star": 0.0, "label": f"EF21, k = {k}"}, {}, {}, {}, None) for seed in range(len(losses))]
    for seed, (run, loss) in enumerate(zip(each, losses, strict=True)):
        run.attrs.update(job=f"seed = {seed}\nup.compressor.k = {k}", tuned=json.dumps(tuned))
        run.trace.update(round=np.arange(2), loss=np.array([1.0, loss]), wire_bits_up=np.array([0, 20 + seed]), wire_bits_down=np.array([0, 9]))
        run.timing.update(seconds=np.arange(2.0))
    return each


TUNED = {"parameter": "algorithm.step", "value": 1, "by": "wire_bits_up", "to": "loss ≤ 0.4", "tried": [[1, 0.1]], "took": [20], "settled": True}


def test_a_figure_says_as_a_table_does_what_its_runs_were_tuned_for():
    runs = ended_at((0.1, 0.2), TUNED)
    said = "tuned for uplink bits on the wire to loss ≤ 0.4, so another value may need less"

    def notes(**asked):
        return " ".join(" ".join(each.get_text().split()) for each in figures.draw(runs, FigureTable(**asked)).findobj(Text) if "tuned for" in each.get_text())

    sweep = {"x": "up.compressor.k", "y": "wire_bits_up"}
    assert notes(**sweep, at={"loss": 0.5}).endswith(f"{said} here: EF21, k = 5")
    assert f"{said} here: EF21, k = 5" in compare(runs, [Target.of("loss", 0.5)]).notes
    assert notes(**sweep, at={"loss": 0.4}) == ""
    assert notes(**sweep | {"y": "wire_bits"}, at={"loss": 0.4}).endswith(f"{said} here: EF21, k = 5")
    assert notes(x="wire_bits_up", y="loss") == notes(x="up.compressor.k", y="loss", rows="last") == ""
    assert notes(x="seconds", y="loss").endswith(f"{said} on other axes: EF21, k = 5")
    panels = [PanelTable(title="(a)"), PanelTable(title="(b)", x="round"), PanelTable(title="(c)", x="seconds")]
    in_panels = notes(x="wire_bits_up", panel=panels)
    assert in_panels.count(said) == 1
    assert in_panels.endswith(f"{said} on other axes: EF21, k = 5")
    of_two_targets = notes(**sweep, panel=[PanelTable(title="(a)", at={"loss": 0.5}), PanelTable(title="(b)", at={"loss": 0.4})])
    assert of_two_targets.endswith(f"{said} to loss ≤ 0.5: EF21, k = 5")
    plt.close("all")


def test_a_point_that_some_seeds_alone_reach_has_a_bar_that_is_open_upward():
    """Of five seeds two do not come to the level: the median is that of the slowest of the others."""
    runs = [*ended_at((0.1, 0.1, 0.1, 0.9, 0.9), TUNED), *ended_at((0.1, 0.1, 0.1), TUNED, k=7)]
    ax = mc.plot(runs, x="up.compressor.k", y="wire_bits_up", at={"loss": 0.5})
    (bars,) = (each for each in ax.collections if isinstance(each, LineCollection))
    assert [bar[:, 1].tolist() for bar in bars.get_segments()] == [[20, 22], [20, 22]]
    (arrow,) = (text for text in ax.texts if text.arrow_patch)
    assert (*arrow.xy, arrow.xyann[1] > 0) == (5, 22, True)
    assert arrow.arrow_patch.get_window_extent().y1 < ax.bbox.y1
    assert ax.get_legend_handles_labels()[1] == ["EF21 (3 of 5 seeds reach it: k = 5)"]
    level = mc.plot(ended_at((0.1, 0.1, 0.9), TUNED), x="wire_bits_down", y="wire_bits_up", at={"loss": 0.5})
    assert np.isfinite(level.get_ylim()).all()
    plt.close("all")


def test_by_alone_replaces_what_the_job_s_figure_of_a_target_pays_in_and_each_panel_s_missed_seeds_are_told(tmp_path, capsys):
    """A swept key of a link is named in words."""
    job = tmp_path / "job.toml"
    job.write_text("""
data = { generator = "gspar", samples = 60, dim = 12 }
objective.mu = 0.1
workers.count = 3
stop.rounds = 30
algorithm.name = "ef21"
up.compressor.name = "top-k"
[[run]]
label = "EF21"
grid = { "up.compressor.k" = [1, 12] }
[figure]
x = "up.compressor.k"
y = "wire_bits_up"
at = { suboptimality = LEVEL }
[[figure.panel]]
at = { suboptimality = 0.05 }
[[figure.panel]]
at = { suboptimality = LEVEL }
""".replace("LEVEL", "1e-4"))
    ends = {run.label: run.trace["suboptimality"].min() for run in mc.run(job, out=tmp_path, quiet=True)}
    assert ends["EF21, k = 12"] < ends["EF21, k = 1"] < 0.05
    level = np.sqrt(ends["EF21, k = 12"] * ends["EF21, k = 1"])
    job.write_text(job.read_text().replace("1e-4", f"{level}"))
    asked = ["plot", str(job), "--out", str(tmp_path), "-o", str(tmp_path / "a.svg")]
    for option, axis in ((["--by", "wire_bits"], "uplink and downlink bits"), ([], "uplink bits")):
        assert main([*asked, *option]) == 0
        words = " ".join(" ".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext()).split())
        assert f"{axis}, on the wire" in words
        assert "k of the uplink's compressor" in words
        assert f"these do not reach suboptimality ≤ {level:g}: EF21, k = 1 (seed 0)" in capsys.readouterr().err


def test_curves_of_two_jobs_say_of_which_one_they_are(tmp_path):
    """As tables do, also in a paper's figure."""
    each, job = {"GD": 0.1, "slow": 0.01}, {"data": {"generator": "gspar", "samples": 20, "dim": 4}, "stop": {"rounds": 9}}
    second = [{"label": label, "algorithm": {"name": "gd", "step": step}} for label, step in each.items()]
    jobs = {"first": [{"label": "GD", "algorithm": {"name": "gd"}}], "second": second}
    runs = [run for name, own in jobs.items() for run in mc.run(mc.load_job({**job, "run": own}, name=name), out=tmp_path, quiet=True)]
    for style in ("screen", "paper"):
        drawn = mc.plot(runs, style=style)
        assert sorted(drawn.get_legend_handles_labels()[1]) == ["GD (first)", "GD (second)", "slow"]
        assert len({line.get_color() for line in drawn.get_lines()}) == 3
    plt.close("all")


def test_tables_and_figures_say_which_seeds_and_methods_are_not_here_yet(tmp_path, capsys):
    """As of a job that was stopped, or still runs: on the screen, in files, and in a paper's figure, too."""
    file = tmp_path / "job.toml"
    file.write_text("""
data = { generator = "gspar", samples = 20, dim = 4 }
stop.rounds = 9
grid.seed = [0, 1]
[[run]]
label = "GD"
algorithm.name = "gd"
[[run]]
label = "SGD"
algorithm = { name = "sgd", batch = 2, step = 0.1 }
[[run]]
label = "slow"
algorithm = { name = "sgd", batch = 2, step = 0.01 }
""")
    runs, out = mc.run(file, out=tmp_path, quiet=True), ["--out", str(tmp_path)]
    table = ["table", str(file), *out, "--to", "loss=0.69"]
    drawn = ["plot", str(file), *out, "--style", "paper", "-o", str(tmp_path / "a.svg")]
    assert [main(asked) for asked in (table, drawn)] == [0, 0]
    assert "here so far" not in capsys.readouterr().out + (tmp_path / "a.svg").read_text()
    for run in runs:
        if run.label == "slow" or (run.label, run.seed) == ("SGD", 1):
            run.file.unlink()
    notes = ["1 of 2 seeds here so far: SGD", "0 of 2 seeds here so far: slow"]
    assert main([*table, "-o", str(tmp_path / "t.md")]) == 0
    assert main(drawn) == 0
    written = capsys.readouterr().out, (tmp_path / "t.md").read_text(), " ".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext())
    assert all(note in text for note in notes for text in written)
    assert main([*table, "--only", "GD"]) == 0
    assert "here so far" not in capsys.readouterr().out
    file.write_text(file.read_text().replace("[0, 1]", "[0]"))
    assert main(table) == 0
    assert "not run yet: slow" in capsys.readouterr().out, "of one seed"
    (tmp_path / "other.toml").write_text(file.read_text().replace('"GD"', '"other"'))
    mc.run(tmp_path / "other.toml", out=tmp_path, quiet=True)
    both = ["plot", str(file), str(tmp_path / "other.toml"), *out, "-o", str(tmp_path / "b.svg")]
    assert main([*both, "--only", "GD", "--only", "other"]) == 0
    words = " ".join(ElementTree.parse(tmp_path / "b.svg").getroot().itertext())
    assert ("GD" in words, "other" in words, "SGD" in words) == (True, True, False)
    assert main([*both, "--only", "GD", "--only", "none"]) == 2
    assert "--only: no job has a run called 'none'" in capsys.readouterr().err


SWEEP = """
title = "sweep"
data = { generator = "gspar", samples = 20, dim = 4 }
algorithm.name = "gd"
stop = { rounds = 30, suboptimality = 1e-1 }
[[run]]
label = "GD"
[grid]
"algorithm.step" = ["0.5/L", "1/L"]
[figure]
x = "step"
y = "wire_bits"
rows = "last"
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(SWEEP)
    mc.run("sweep.toml", quiet=True)
    yield
    plt.close("all")


def text_of(file):
    return " ".join(re.sub("<[^>]*>", " ", Path(file).read_text()).split())


@pytest.mark.parametrize("style", ["screen", "paper"])
def test_a_seed_from_outside_is_said_below_figures_and_tables_and_a_band_s_own_seeds_are_not(style, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, figure in (("one", ""), ("panels", "figure.panel = [{}, { x = 'round' }]\n")):
        job = 'title = "SGD"\ndata = { generator = "gspar", samples = 20, dim = 4 }\nalgorithm = { name = "sgd", batch = 2 }\nstop.rounds = 3\n'
        Path(f"{name}.toml").write_text(f"{job}{figure}grid.seed = [0, 1]\n")
        for settings, said in (((), ""), (("--set", "seed=3", "--set", "data.seed=5"), "data.seed = 5, seed = 3")):
            assert main(["run", f"{name}.toml", *settings, "--quiet"]) == 0
            assert main(["table", f"{name}.toml", *settings, "--to", "loss=0.6"]) == 0
            assert ("all with" in (table := capsys.readouterr().out)) == bool(said)
            assert said in table
            assert main(["plot", f"{name}.toml", *settings, "--style", style, "-o", "a.svg"]) == 0
            assert ("seed" in text_of("a.svg").replace("over 2 seeds", "")) == bool(said)
            assert (said if name == "one" else said.replace(", ", "; ")) in text_of("a.svg")
    plt.close("all")


def test_a_picture_of_what_is_set_from_outside_has_a_name_of_its_own_and_so_has_a_report(sweep, capsys):
    def written(*line):
        assert main(["run", "sweep.toml", *line, "--quiet"]) == 0
        capsys.readouterr()
        assert main(["plot", "sweep.toml", *line]) == main(["report", "sweep.toml", *line]) == 0
        picture, *_, page = capsys.readouterr().out.splitlines()
        assert Path(picture).exists()
        assert Path(page).exists()
        return Path(picture).name, page

    assert written() == ("sweep.png", "report.html")
    assert written("--set", "stop.suboptimality=2e-1") == ("sweep-suboptimality=2e-1.png", "report-suboptimality=2e-1.html")
    two = "--set", "stop.rounds=20", "--set", "data.dim=5"
    assert written(*two)[0] == written(*two[2:], *two[:2])[0] == "sweep-data.dim=5-rounds=20.png"
    other = "--set", "data.generator=least-squares", "--set", "objective.loss=least-squares"
    assert written(*other) == ("sweep-on-least-squares-objective.loss=least-squares.png", "report-on-least-squares-objective.loss=least-squares.html")
    parts = [written("--set", f'up.compressor={{ name = "top-k", k = {k} }}', "--set", 'up.codec={ name = "fixed", float = 32, indices = "free" }')[0] for k in (1, 2)]
    assert parts[0] != parts[1]
    assert all(re.fullmatch(r"sweep-[\w.=-]{60}-[0-9a-f]{8}\.png", name) for name in parts)


def test_a_column_of_the_trace_as_x_draws_all_rows_of_a_job_whose_figure_shows_the_last_ones(sweep, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, _: drawn.append([line.get_xydata() for line in figure.axes[0].lines]))
    rows = [mc.read(file).rows for file in sorted(Path("results/sweep").glob("*.h5"))]
    for options in (["--x", "wire_bits"], ["--x", "loss", "--y", "round"], ["--y", "round"], ["--x", "step"]):
        assert main(["plot", "sweep.toml", *options]) == 0
    assert [sorted(map(len, lines)) for lines in drawn] == [sorted(rows), sorted(rows), [2], [2]]


def test_an_axis_of_the_first_of_two_jobs_that_the_other_lacks_is_named(sweep, capsys):
    other = 'data = { generator = "gspar", samples = 20, dim = 4 }\nalgorithm = { name = "ship-data" }\nstop.rounds = 3\n'
    Path("other.toml").write_text(other)
    (run,) = mc.run("other.toml", quiet=True)
    would_do = "--x COLUMN names another, or give the files in another order"
    refused(["plot", "sweep.toml", "other.toml"], capsys, f"step is the x axis of sweep.toml, and {run.file} has no such column; {would_do}")
    assert main(["plot", "sweep.toml", "other.toml", "--x", "round", "-o", "a.svg"]) == 0
    assert main(["plot", "other.toml", "sweep.toml", "-o", "a.svg"]) == 0


def test_a_paper_s_figure_that_names_the_data_that_are_set_has_no_warning(sweep, capsys):
    other = ["sweep.toml", "--set", "data.generator=least-squares", "--set", "objective.loss=least-squares"]
    assert main(["run", *other, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["plot", *other, "--style", "paper", "-o", "a.svg"]) == 0
    assert "data.generator = least-squares" in text_of("a.svg") or "generator = least-squares" in text_of("a.svg")
    assert capsys.readouterr().err == ""
