"""What the page's plots have as those of `plot`: units of costs, the end of curves that diverge, running medians of noise."""

import json

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.evidence.lines import lines
from mpi_compress.figures.curves import ceiling, ceilings, smoothed
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.report import series
from mpi_compress.results.columns import column_of

JOB = {
    "title": "noise", "data": {"generator": "gspar", "samples": 40, "dim": 8}, "objective": {"mu": "1e-2 L"}, "workers": {"count": 2},
    "cost": {"model": "packet", "c1": "8 B", "c0": "8 B", "pmax": "8 B"}, "stop": {"rounds": 400},
    "run": [
        {"label": "SGD", "algorithm": {"name": "sgd", "batch": 1, "step": "0.5/L"}},
        {"label": "long", "algorithm": {"name": "gd", "step": "1e3/L"}},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return mc.run(JOB, out=tmp_path_factory.mktemp("drawing"), quiet=True)


def test_noise_has_the_running_median_and_band_of_plot(runs):
    figure = FigureTable("wire_bits_up", "grad_norm")
    view = series.views(runs, figure, 64)[0]
    smooth = view["series"][0]["smooth"]["grad_norm"]
    (line,) = lines(runs[:1], "wire_bits_up", "grad_norm")
    wanted = smoothed(line, "linear", "log")
    for name, values in (("y", wanted.y), ("low", wanted.least), ("high", wanted.most)):
        np.testing.assert_allclose(smooth[name], values, rtol=1e-6)
    np.testing.assert_allclose(smooth["x"]["wire_bits_up"], wanted.x, rtol=1e-6)
    assert np.all(np.diff(smooth["x"]["round"]) > 0)
    assert "loss" not in smooth["x"]
    assert "smooth" not in series.views(runs, FigureTable("round", "wire_bits_up"), 64)[0]["series"][0]


def test_a_curve_that_diverges_ends_where_that_of_plot_does(runs):
    assert runs[1].status == "diverged"
    view = series.views(runs, FigureTable("round", "loss"), 64)[0]
    assert view["ceilings"]["loss"] == ceiling(runs, FigureTable(y="loss")) < 100
    assert "suboptimality" in view["ceilings"]
    assert ceilings(runs[:1]) == {}


def test_costs_have_their_model_and_unit(runs):
    view = json.loads(series.as_json(series.views(runs, FigureTable(), 64)))[0]
    assert view["names"]["cost_up"] == f"{column_of('cost_up').label}, packet [bit]"


def test_panels_show_series_of_other_views(tmp_path):
    """A panel over budgets T shows the theory's curves, of the runs that have them; any other one whole runs, or the ends of runs."""
    with_theory = {"label": "CAT", "algorithm": {"name": "cat"}, "up": {"compressor": "top-k", "codec": "fixed"}, "log": {"theory": True}}
    job = JOB | {"stop": {"rounds": 4}, "run": [{"label": "GD", "algorithm": {"name": "gd"}}, with_theory]}
    figure = FigureTable("round", "loss", panel=[
        PanelTable(title="curves", x="T", y="speedup"), PanelTable(title="both", y="grad_norm"), PanelTable(title="one", runs=["CAT"])
    ])  # fmt: skip
    runs = mc.run(job, out=tmp_path, quiet=True)
    curves, both, one, whole, theory = series.views(runs, figure, 64)
    assert [view["title"] for view in (curves, both, one)] == ["curves", "both", "one"]
    assert [len(view["series"]) for view in (whole, theory)] == [2, 1]
    assert [view["source"] for view in (curves, both, one)] == [4, 3, 3], "the places of `theory` and `whole` in the list"
    assert [view["of"] for view in (curves, both, one)] == [[0], [0, 1], [1]]
    assert [view["labels"] for view in (curves, both, one)] == [["CAT"], ["GD", "CAT"], ["CAT"]]
    assert {view["kind"] for view in (curves, both, one, whole, theory)} == {"lines"}
    assert [(view["x"], view["y"], view["yscale"]) for view in (curves, both)] == [("T", "speedup", "log"), ("round", "grad_norm", "log")]
    over = FigureTable("wire_bits_up", "loss", at={"loss": 0.6}, panel=[PanelTable(title="ends", y="grad_norm")])
    ends, points, *_ = series.views(runs[:1], over, 64)
    assert (ends["kind"], ends["source"], ends["of"], points["kind"]) == ("points", 1, [0], "points")


def test_what_bounds_name_is_among_the_columns(runs):
    whole = [series.views(runs[:1], FigureTable("round", "loss", bounds=bounds), 64)[0]["series"][0]["columns"] for bounds in ([], ["kappa"])]
    assert ["kappa" in columns for columns in whole] == [False, True]
