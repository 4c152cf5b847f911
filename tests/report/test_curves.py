"""The curves of a page: medians over seeds, the columns that can be its x, rows thinned without their extremes, short numbers."""

import json
from dataclasses import replace

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.evidence.lines import lines
from mpi_compress.figures.curves import ceiling
from mpi_compress.job.tables import FigureTable
from mpi_compress.report import curves
from mpi_compress.results.columns import column_of

JOB = {
    "title": "noise", "data": {"generator": "gspar", "samples": 40, "dim": 8}, "objective": {"mu": "1e-2 L"}, "workers": {"count": 2},
    "cost": {"model": "packet", "c1": "8 B", "c0": "8 B", "pmax": "8 B"}, "stop": {"rounds": 400}, "grid": {"seed": [0, 1, 2]},
    "run": [
        {"label": "SGD", "algorithm": {"name": "sgd", "batch": 1, "step": "0.5/L"}},
        {"label": "long", "algorithm": {"name": "gd", "step": "1e3/L"}},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return mc.run(JOB, out=tmp_path_factory.mktemp("drawing"), quiet=True)


def test_a_page_opens_on_what_methods_pay_along_the_axis_that_the_figure_has(runs):
    figure = FigureTable("paper_bits_up", "loss", xscale="log", to={"loss": 0.5})
    drawn = curves.curves(runs, figure)
    assert [*drawn["labels"]][:2] == ["wire_bits_up", "paper_bits_up"]
    assert drawn["xscale"] == "log"


def test_a_line_is_the_median_over_seeds_against_each_column_that_all_runs_have(runs):
    drawn = json.loads(json.dumps(curves.curves(runs, FigureTable("round", "loss")), allow_nan=False))
    assert [*drawn["labels"]] == ["round", "wire_bits_up", "wire_bits", "cost_up", "paper_bits_up", "seconds"]
    assert drawn["labels"]["cost_up"] == "uplink cost, by the papers' formula [bit]"
    sgd, _ = drawn["lines"]
    for x in ("round", "cost_up", "seconds"):
        (wanted,) = lines(runs[:3], x, "loss")
        keep = curves.thinned(wanted.y)
        np.testing.assert_allclose(np.array(sgd["y"].get(x, sgd["y"]["round"]), dtype=float), wanted.y[keep], rtol=1e-5)
        np.testing.assert_allclose(sgd["x"][x], wanted.x[keep], rtol=1e-5)


def test_a_curve_that_diverges_ends_where_that_of_plot_does(runs):
    diverged = next(run for run in runs if run.label == "long")
    assert diverged.status == "diverged"
    highest = ceiling(runs, FigureTable(y="loss"))
    assert highest < 100
    _, long = curves.curves(runs, FigureTable("round", "loss"))["lines"]
    assert long["label"] == "long (diverged)"
    assert long["y"]["round"][-1] == max(y for y in long["y"]["round"] if y is not None) == pytest.approx(highest, rel=1e-5)
    assert ceiling(runs[:3], FigureTable(y="loss")) == np.inf


def test_a_figure_of_ends_or_theory_has_the_loss_against_bits(runs):
    drawn = curves.curves(runs, FigureTable("budget", "cost_up", at={"loss": 0.6}))
    assert next(iter(drawn["labels"])) == "wire_bits_up"
    drawn = curves.curves(runs, FigureTable("T", "speedup"))
    assert (next(iter(drawn["labels"])), drawn["y"]) == ("wire_bits_up", column_of("loss").label)
    assert (drawn["xscale"], drawn["yscale"]) == ("linear", "linear")


def test_a_line_that_a_logarithmic_axis_cannot_show_is_there_for_a_linear_one(runs):
    at_optimum = [replace(run, trace={**run.trace, "loss": 0 * run.trace["loss"]}) if run.label == "SGD" else run for run in runs]
    sgd, long = curves.curves(at_optimum, FigureTable("round", "loss", yscale="log"))["lines"]
    assert set(sgd["y"]["round"]) == {0}
    assert long["y"]["round"][0] > 0


def test_what_has_no_number_is_not_drawn(runs):
    unknown = [replace(run, attrs={**run.attrs, "f_star": np.nan}, trace={**run.trace, "loss": run.trace["loss"] * np.nan}) for run in runs]
    assert curves.curves(unknown, FigureTable("round", "loss")) is None


@pytest.mark.parametrize("row", [0, 1, 17, 4_000, 70_123, 99_999])
def test_a_spike_and_a_dip_of_one_row_survive_thinning(row):
    values = 1 / (1 + np.arange(100_000.0))
    for extreme in (7.0, -7.0):
        values[row] = extreme
        rows = curves.thinned(values)
        assert row in rows
        assert {0, 99_999} <= set(rows)
        assert rows.size < 250
        assert np.all(np.diff(rows) > 0)


def test_a_thinned_line_keeps_its_shape():
    """Between the rows that are left, a smooth line is straight to a fiftieth of its range, even in logarithms."""
    rounds = np.arange(50_000.0)
    fall = np.exp(-rounds / 2000) + 1e-9
    rows = curves.thinned(fall)
    again = np.interp(rounds, rounds[rows], np.log(fall[rows]))
    assert np.max(np.abs(again - np.log(fall))) < 0.02 * np.ptp(np.log(fall))


def test_few_rows_are_all_kept_and_nothing_is_thinned_to_nothing():
    assert curves.thinned(np.array([3.0, 2.0, 1.0])).tolist() == [0, 1, 2]
    assert curves.thinned(np.full(1, np.nan)).tolist() == [0]


def test_numbers_are_short_and_exact_where_whole():
    assert curves._short(np.array([1 / 3, 123456789012.0, np.nan, np.inf, -0.5])) == [0.333333, 123456789012, None, None, -0.5]
