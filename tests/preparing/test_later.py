"""x* and f* where nothing asks for them, and f* after the run."""

import numpy as np
import pytest
import tomli_w
from helpers.running import command, here

import mpi_compress as mc
from mpi_compress.evidence.problems import key_of

DIM = 250_001  # 20 for each coordinate are more than is solved at once


@pytest.fixture
def job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = [
        f"{y} 1:{a:.3f} 2:{b:.3f} {DIM}:{c:.3f}\n" for y, (a, b, c) in zip([1, -1] * 15, rng.normal(size=(30, 3)), strict=True)
    ]
    (tmp_path / "wide.txt").write_text("".join(lines))
    return {
        "name": "wide",
        "data": {"path": "wide.txt"},
        "objective": {"loss": "logistic", "mu": 0.1},
        "workers": {"count": 2},
        "algorithm": {"name": "gd"},
        "stop": {"rounds": 3},
    }


def test_a_job_that_asks_for_no_gap_is_not_solved_and_its_gap_is_computed_later(job):
    (run,) = mc.run(job)
    assert run.attrs["f_star_source"] == "left out"
    assert np.isnan(run.trace["suboptimality"]).all()
    (whole,) = mc.with_suboptimality([run])
    (asking,) = mc.run(job | {"name": "asking", "figure": {"y": "suboptimality"}})
    assert asking.attrs["run_id"] == run.attrs["run_id"]  # it was not played again
    (played,) = mc.run(job | {"name": "played", "figure": {"y": "suboptimality"}}, out="anew")
    np.testing.assert_array_equal(played.trace["suboptimality"], asking.trace["suboptimality"])
    np.testing.assert_array_equal(whole.trace["suboptimality"], asking.trace["suboptimality"])
    assert whole.attrs["f_star"] == asking.attrs["f_star"] == mc.problem(job).f_star
    assert whole.trace["suboptimality"][-1] > 0


def test_files_of_one_name_in_two_folders_are_two_problems(job, tmp_path):
    jobs = []
    for name, rows in (("one", 30), ("two", 21)):
        folder = tmp_path / name
        folder.mkdir()
        lines = (tmp_path / "wide.txt").read_text().splitlines()
        (folder / "set.txt").write_text("\n".join(lines[:rows]) + "\n")
        tables = {key: value for key, value in job.items() if key != "name"}
        (folder / f"{name}.toml").write_text(tomli_w.dumps({**tables, "data": {"path": "set.txt"}}))
        jobs.append(mc.load_job(folder / f"{name}.toml"))
    runs = [mc.run(each, out=tmp_path / "out")[0] for each in jobs]
    specs = [spec for each in jobs for spec in each.runs]
    together = [run.attrs["f_star"] for run in mc.with_suboptimality(runs, specs)]
    assert together == [mc.with_suboptimality([run], specs)[0].attrs["f_star"] for run in runs]
    assert together[0] != together[1]
    assert key_of(runs[0], "wire_bits") != key_of(runs[1], "wire_bits")


@pytest.mark.parametrize("asking", [
    {"objective": {"loss": "logistic", "mu": 0.1, "f_star": "solve"}},
    {"stop": {"rounds": 3, "suboptimality": 1e-9}},
    {"claim": [{"id": "1", "says": "near", "value": "suboptimality('wide')", "holds": "< 1"}], "title": "wide"},
    {"tune": {"parameter": "algorithm.step", "values": ["1/L", "2/L"], "to": {"suboptimality": 1e-9}}},
])  # fmt: skip
def test_stops_claims_targets_and_the_key_itself_ask_for_f_star(job, asking):
    (run,) = mc.run(job | asking)
    assert run.trace["suboptimality"][-1] > 0


def test_a_distance_that_nothing_asked_for_names_what_asks(job):
    (run,) = mc.run(job)
    with pytest.raises(mc.UserError, match='f_star = "solve", or a figure'):
        run.column("distance")
    (run,) = mc.run(job | {"name": "asking", "figure": {"y": "distance"}})
    assert run.column("relative_distance")[0] == 1.0


def test_a_result_is_data_whose_plugins_are_imported_if_that_is_asked_for_alone(job, tmp_path):
    (tmp_path / "theirs.py").write_text("print('imported')")
    (run,) = mc.run(job | {"plugins": ["theirs"]})
    for asked in (["plot", run.file, "--y", "suboptimality", "-o", "f.png"], ["table", run.file, "--to", "suboptimality=0.01"]):
        done = command(*asked)
        assert "names plugins, theirs; --with-plugins" in done.stderr
        assert "imported" not in done.stdout
        assert "imported" in command(*asked, "--with-plugins").stdout
    with pytest.raises(mc.UserError, match="with_plugins=True"):
        mc.problem(run)
    assert mc.problem(run, with_plugins=True).dim == DIM


def test_a_table_of_gaps_computes_f_star(job):
    (run,) = mc.run(job)
    assert "f* was left out" in here("show", run.file).stdout
    done = here("table", run.file, "--to", "suboptimality=0.01")
    assert "32 Mbit" in done.stdout
