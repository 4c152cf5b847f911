"""The columns of V: by hand, off the counts, and nothing of them where nothing asks for them."""

import numpy as np
import pytest
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.cli.show import summary
from mpi_compress.figures import plotting as figures
from mpi_compress.job.loading import parse_job
from mpi_compress.results.theorem import summary as of_theorem

DATA = {"generator": "gspar", "samples": 60, "dim": 12}
THEORY = {"theory": True}
DIANA = {"algorithm": {"name": "diana"}, "up": {"compressor": {"name": "random-k", "k": 3}}}


def job(folder, log=THEORY, **tables):
    tables = {"data": DATA, "objective": {"mu": "1e-2 L"}, "workers": {"count": 3}, "stop": {"rounds": 20}, "log": log, **tables}
    return parse_job({"run": [{"label": "run"}], **tables}, "job", folder, {})


def test_columns_of_gradient_descent_are_those_of_the_distance(tmp_path):
    (run,) = mc.run(job(tmp_path, algorithm={"name": "gd"}), out=tmp_path)
    V, distance, ρ = run.trace["lyapunov"], run.trace["distance"], (1 - run.attrs["mu"] / run.attrs["L"]) ** 2
    assert np.allclose(V, distance**2, rtol=1e-12)
    assert np.isnan(run.trace["lyapunov_rate"][0])
    assert np.allclose(run.trace["lyapunov_rate"][1:], V[1:] / V[:-1], rtol=1e-12)
    assert np.allclose(run.trace["lyapunov_bound"], V[0] * ρ ** np.arange(21), rtol=1e-12)


def test_where_some_rounds_have_rows_the_factor_is_that_of_a_round(tmp_path):
    each = {every: mc.run(job(tmp_path, {**THEORY, "every": every}, **DIANA), out=tmp_path / str(every))[0].trace for every in (1, 5)}
    for name in ("lyapunov", "lyapunov_bound"):
        assert np.allclose(each[1][name][::5], each[5][name], rtol=1e-12)
    V = each[1]["lyapunov"]
    assert np.allclose(each[5]["lyapunov_rate"][1:], (V[5::5] / V[:-5:5]) ** 0.2, rtol=1e-12)


@pytest.mark.parametrize("name", ["diana", "marina", "gd"])
def test_v_changes_no_other_column(name, tmp_path):
    tables = {"algorithm": {"name": name}} if name == "gd" else {**DIANA, "algorithm": {"name": name}}
    (seen,), (unseen,) = (mc.run(job(tmp_path, log, **tables), out=tmp_path / str(len(log))) for log in (THEORY, {}))
    added = {"lyapunov", "lyapunov_rate", "lyapunov_bound"}
    assert seen.trace.keys() - unseen.trace.keys() <= added | {"distance"}
    assert all(np.array_equal(seen.trace[column], unseen.trace[column], equal_nan=True) for column in unseen.trace)
    assert np.array_equal(seen.x, unseen.x)
    assert not [key for key in unseen.attrs if "lyapunov" in key]


def test_show_has_the_worst_factor_beside_the_theorems_and_seeds_are_judged_by_their_mean(tmp_path, capsys):
    (exact,) = mc.run(job(tmp_path, algorithm={"name": "gd"}), out=tmp_path)
    (line,) = [line for line in summary(exact) if line.startswith("  lyapunov")]
    worst, ρ = np.nanmax(exact.trace["lyapunov_rate"]), (1 - exact.attrs["mu"] / exact.attrs["L"]) ** 2
    assert f"{worst:.6g}," in line
    assert line.endswith(f"{ρ:.6g}: holds")
    runs = mc.run(job(tmp_path, grid={"seed": [1, 2, 3, 4]}, **DIANA), out=tmp_path)
    (line,) = of_theorem(runs)
    mean = np.mean([run.trace["lyapunov_rate"][1:] for run in runs], axis=0).max()
    assert f"{mean:.6g} ± " in line
    assert line.endswith(": holds")
    assert next(of_theorem(runs[:1])).endswith("about the mean over seeds")


def test_a_figure_of_v_has_the_theorems_line(tmp_path):
    (run,) = mc.run(job(tmp_path, algorithm={"name": "gd"}), out=tmp_path)
    drawn = figures.plot([run], x="round", y="lyapunov")
    lines = [line.get_ydata() for line in drawn.lines]
    assert any(np.array_equal(line, run.trace["lyapunov_bound"]) for line in lines)


def test_a_run_without_v_says_why_and_is_refused_where_its_job_asks_for_v(tmp_path):
    (run,) = mc.run(job(tmp_path, algorithm={"name": "ef"}, up={"compressor": {"name": "top-k", "k": 3}}), out=tmp_path)
    assert "lyapunov" not in run.trace
    assert any("one worker and step" in line for line in summary(run))
    with pytest.raises(UserError, match=naming("log.theory lyapunov diana theory")):
        mc.run(job(tmp_path, figure={"y": "lyapunov"}, **{**DIANA, "algorithm": {"name": "diana", "step": "3 theory"}}), out=tmp_path)
