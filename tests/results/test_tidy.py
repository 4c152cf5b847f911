"""Many results as one table, and one result as a line."""

import shutil

import numpy as np
import pytest

import mpi_compress as mc

JOB = {
    "data": {"generator": "gspar", "samples": 40, "dim": 12},
    "objective": {"mu": "1e-2 L"},
    "workers": {"count": 2},
    "algorithm": {"name": "gd"},
    "stop": {"rounds": 3},
    "run": [
        {"label": "exact <b>", "up": {"compressor": "identity"}},
        {"label": "top", "up": {"compressor": {"name": "top-k", "k": 3}}, "algorithm": {"name": "ef", "step": 0.5}},
    ],
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tidy") / "results"
    for seed in (0, 1):
        mc.run({**JOB, "seed": seed, "name": f"sweep/{seed}"}, out=folder)
    return folder


def test_the_table_has_every_row_of_every_result_with_the_settings_that_vary(out):
    table = mc.load(str(out / "**"), as_="dict")
    assert {len(column) for column in table.values()} == {2 * 2 * 4}
    assert list(table)[:3] == ["job", "label", "seed"]
    settings = [name for name in table if "." in name]
    assert settings == ["algorithm.name", "up.compressor.name", "algorithm.step", "up.compressor.k"]
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    for file in out.rglob("*.h5"):
        run = mc.read(file)
        mine = [row for row in rows if row["label"] == run.label and row["job"] == f"sweep/{file.parent.name}"]
        for name in run.trace:
            assert [row[name] for row in mine] == run.trace[name].tolist()
        top = run.label == "top"
        assert {tuple(row[name] for name in ("seed", *settings)) for row in mine} == {
            (int(file.parent.name), "ef" if top else "gd", "top-k" if top else "identity", 0.5 if top else None, 3 if top else None)
        }  # fmt: skip
        assert [row["seconds"] for row in mine] == run.timing["seconds"].tolist()
    assert {row["error_norm"] is None for row in rows if row["label"] != "top"} == {True}


def test_folders_files_results_and_several_of_these_are_taken_each_once(out):
    whole = mc.load(out, as_="dict")
    files = sorted(out.rglob("*.h5"))
    assert mc.load(files, as_="dict") == whole
    assert mc.load([str(out), *files, str(out / "*" / "*" / "*.h5")], as_="dict") == whole
    assert mc.load([mc.read(file) for file in files], as_="dict") == whole
    one = mc.load(files[0], as_="dict")
    assert (set(one["job"]), set(one["seed"]), [name for name in one if "." in name]) == ({"sweep/0"}, {0}, [])


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_the_table_is_a_data_frame_where_the_library_is_installed(out, kind):
    pytest.importorskip(kind)
    frame, table = mc.load(out, as_=kind), mc.load(out, as_="dict")
    assert list(frame.columns) == list(table)
    assert frame["loss"].to_numpy().tolist() == table["loss"]
    assert int(frame["error_norm"].isna().sum() if kind == "pandas" else frame["error_norm"].null_count()) == 8


@pytest.mark.parametrize(("results", "as_", "said"), [
    ("nothing/**", None, "load: no results .* match 'nothing/"),
    ([], None, "load: no results were given"),
    ("nothing/**", "numpy", "load: as_ = 'numpy' was given; it should be one of polars, pandas, dict"),
])  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(results, as_, said):
    with pytest.raises(mc.UserError, match=said):
        mc.load(results, as_=as_)


def test_a_run_prints_as_one_line_and_shows_as_a_table(out):
    run = mc.read(next(out.rglob("exact*.h5")))
    assert repr(run) == f"Run('exact <b>', complete, round 3, loss {run.trace['loss'][-1]:.6g}, {run.file})"
    html = run._repr_html_()
    for said in ("exact &lt;b&gt;", "complete", f"{run.trace['loss'][-1]:.6g}"):
        assert f"<td>{said}</td>" in html
    begun = mc.Run(run.file, {"label": "begun", "status": "running"}, {}, {}, {}, None)
    assert "no records" in repr(begun)
    assert "running" in begun._repr_html_()
    assert np.isfinite(run.x).all()


def test_a_folder_whose_name_ends_as_a_result_s_is_none_and_trials_are_left_out(out, tmp_path):
    whole, copy = mc.load(str(out / "**"), as_="dict"), shutil.copytree(out, tmp_path / "results")
    (copy / "sweep" / "0" / "old.h5").mkdir()
    shutil.copytree(copy / "sweep" / "0", copy / "sweep" / "0" / "tuning")
    assert mc.load(str(copy / "**"), as_="dict") == whole
    assert len(mc.load(str(copy / "**" / "tuning" / "*"), as_="dict")["loss"]) > 0
