"""Result files: whole or `.part`, readable while they are written, explaining themselves."""

import resource
import sys
import threading
import time
import warnings
from dataclasses import replace

import h5py
import numpy as np
import pytest
from helpers.disk import order_of_syncs
from helpers.refusals import naming
from helpers.running import run_of

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.figures import plotting as figures
from mpi_compress.results import probing, reader
from mpi_compress.results.locks import is_being_written
from mpi_compress.results.reader import ResultRow, Runs
from mpi_compress.results.tidy import difference
from mpi_compress.results.writer import Recorder, Row, part_of


def row(k):
    return Row({"round": k, "loss": 1.0 / (k + 1)}, {"wire_bits_up": [8 * k, 9 * k]}, {"seconds": 0.1 * k})


def test_rows_come_back_as_they_were_written(tmp_path):
    recorder = Recorder(tmp_path / "deep" / "a.h5", {"label": "a"})
    for k in range(2500):
        recorder.append(row(k))
    file = recorder.finish("complete", "", np.arange(3.0), {"extra": 5})
    run = mc.read(file)
    assert run.trace["round"].tolist() == list(range(2500))
    assert run.trace["loss"].tobytes() == np.array([1.0 / (k + 1) for k in range(2500)]).tobytes()
    assert run.workers["wire_bits_up"].shape == (2500, 2)
    assert (run.label, run.status, run.attrs["extra"]) == ("a", "complete", 5)
    assert run.x.tolist() == [0.0, 1.0, 2.0]
    assert not file.with_name("a.h5.part").exists()


def test_run_label_alone_knows_how_a_label_is_stored(tmp_path, monkeypatch):
    def everywhere(run):
        return repr(run), run._repr_html_(), Runs([run])._repr_html_(), ResultRow(run, 0)["label"]

    (run,) = results_with(tmp_path, ["a, b"])
    shown = everywhere(run)
    elsewhere = replace(run, attrs={"called" if name == reader.LABEL else name: value for name, value in run.attrs.items()})
    monkeypatch.setattr(reader.Run, "label", property(lambda run: run.attrs["called"]))
    assert everywhere(elsewhere) == shown


def test_a_short_run_makes_a_small_file(small_job, tmp_path):
    (run,) = mc.run(mc.load_job(small_job).only("CAT"), out=tmp_path)
    assert run.file.stat().st_size < 400_000


def test_a_file_that_is_being_written_can_be_read(tmp_path):
    recorder = Recorder(tmp_path / "a.h5", {"label": "a"})
    recorder.append(row(0))
    recorder.flush()
    run = mc.read(recorder.part)
    assert (run.status, len(run.trace["loss"]), run.x) == ("running", 1, None)
    recorder.abandon("failed", "why")
    assert not (tmp_path / "a.h5").exists()
    assert mc.read(recorder.part).attrs["reason"] == "why"


def test_rows_that_are_half_flushed_are_left_out(tmp_path):
    recorder = Recorder(tmp_path / "a.h5", {"label": "a"})
    for k in range(5):
        recorder.append(row(k))
        if k >= 3:
            recorder.flush()
    recorder._let_go()  # as a kill leaves it
    with h5py.File(recorder.part, "r+") as h5:
        h5["workers/wire_bits_up"].resize(4, axis=0)
    run = mc.read(recorder.part)
    assert [len(c) for t in (run.trace, run.workers, run.timing) for c in t.values()] == [4, 4, 4, 4]


def test_what_another_process_saved_meanwhile_is_what_counts(tmp_path):
    """Where the rows go on is asked once no other process can write them."""
    earlier = Recorder(tmp_path / "a.h5", {"label": "a"})
    earlier.append(row(0))
    asked = []

    def saved():
        asked.append(is_being_written(part_of(tmp_path / "a.h5")))

    earlier.abandon("stopped", "")
    Recorder(tmp_path / "a.h5", {"label": "a"}, saved).abandon("stopped", "")
    assert asked == [True]


def test_going_on_takes_little_more_room_than_the_rows(tmp_path):
    """A disk with room for the rows and a megabyte is enough, however many columns are copied."""
    recorder, names = Recorder(tmp_path / "a.h5", {"label": "a"}), [f"own_{i}" for i in range(20)]
    recorder.append(Row({"round": 0, **dict.fromkeys(names, 1.0)}, {}, {"seconds": 0.0}))
    mark = recorder.mark()
    recorder.abandon("stopped", "")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (recorder.part.stat().st_size + 2**20, before[1]))
    try:
        again = Recorder(tmp_path / "a.h5", {"label": "a"}, lambda: (recorder.part, mark))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert mc.read(again.finish("complete", "", np.zeros(1), {})).trace["own_19"].tolist() == [1.0]


def test_a_result_that_was_completed_meanwhile_is_not_written_over(tmp_path):
    """A .part that is opened, then renamed by the process that had it, is no longer the one that is wanted."""
    first = Recorder(tmp_path / "a.h5", {"label": "a"})
    first.append(row(0))
    found = []

    def second():
        try:
            found.append(Recorder(tmp_path / "a.h5", {"label": "b"}))
        except UserError as error:
            found.append(error)

    waiting = threading.Thread(target=second)
    waiting.start()
    time.sleep(0.02)
    file = first.finish("complete", "", np.arange(3.0), {})
    waiting.join()
    if isinstance(found[0], Recorder):
        found[0].abandon("stopped", "")
    assert mc.read(file).x.tolist() == [0.0, 1.0, 2.0]
    assert mc.read(file).label == "a"


def test_plot_draws_one_line_a_run_and_one_look_a_label(tmp_path):
    runs = results_with(tmp_path, ["one", "one", "two"])
    ax = mc.plot(runs, x="round", y="loss")
    assert len(ax.lines) == 3
    assert ax.lines[0].get_color() == ax.lines[1].get_color() != ax.lines[2].get_color()
    assert {t.get_text() for t in ax.texts} == {"one", "two"}
    assert np.array_equal(ax.lines[2].get_ydata(), runs[2].trace["loss"])


def results_with(tmp_path, labels, **columns):
    """A result for each label: ten rows of `row`, and further columns, functions of the run's number and k."""
    runs = []
    for i, label in enumerate(labels):
        attributes = {"label": label, "n_workers": 2, "dim": 4, "L": 8.0, "mu": 2.0, "settled": '{"step": 0.5}'}
        recorder = Recorder(tmp_path / f"{i}.h5", attributes)
        for k in range(10):
            one = row(k)
            one.trace.update({name: of(i, k) for name, of in columns.items()})
            recorder.append(one)
        runs.append(mc.read(recorder.finish("complete", "", np.zeros(1), {})))
    return runs


def test_bounds_are_dashed_over_the_curves_of_the_runs_that_have_them(tmp_path):
    runs = results_with(tmp_path, ["one", "two"], bound=lambda i, k: 10.0 + i - k)
    del runs[1].trace["bound"]
    ax = mc.plot(runs, x="round", y="loss", bounds=["bound"])
    curves, (bound, _) = ax.lines[:2], ax.lines[2:]
    assert [c.get_linestyle() for c in curves] == ["-", "--"], "they are equal, so the upper one has gaps"
    assert bound.get_linestyle() == "--"
    assert bound.get_color() == curves[0].get_color() != curves[1].get_color()
    assert np.array_equal(bound.get_ydata(), runs[0].trace["bound"])
    assert [t.get_text() for t in (*ax.figure.legends[0].get_texts(), *ax.texts)] == ["one", "two", "theorem's bound"]
    runs[0].attrs["lyapunov_unknown"] = "no theorem"
    for y, bounds, says in (("loss", ["lower"], "no run has a column lower$"), ("lyapunov", [], "lyapunov_bound: no theorem")):
        with pytest.raises(mc.UserError, match=says):
            mc.plot(runs, x="round", y=y, bounds=bounds)


def test_columns_that_follow_from_others(tmp_path):
    (run,) = results_with(
        tmp_path, ["a"], wire_bits_up=lambda i, k: 80 * k, wire_bits_down=lambda i, k: 160 * k, distance=lambda i, k: 4.0 / (k + 1)
    )
    assert run.column("wire_bits").tolist() == [240 * k for k in range(10)]
    assert run.column("bits_up")[1:].tolist() == [10.0] * 9
    assert np.isnan(run.column("bits_up")[0])
    assert run.column("bits_down")[-1] == 20.0
    assert run.column("relative_distance").tolist() == [1 / (k + 1) for k in range(10)]
    assert run.column("kappa").tolist() == [4.0] * 10
    assert run.column("step").tolist() == [0.5] * 10
    with pytest.raises(mc.UserError, match="did you mean 'loss'"):
        run.column("lose")


@pytest.mark.parametrize(("damage", "says"), [
    (lambda h5: h5.attrs.pop("label"), "its attribute label is missing"),
    (lambda h5: h5.attrs.__setitem__("status", 3), "its attribute status is no text"),
    (lambda h5: h5.attrs.__setitem__("settled", "{"), "its attribute settled cannot be read"),
    (lambda h5: h5["trace"].pop("round"), "it has no column round"),
    (lambda h5: h5.pop("timing"), "column seconds"),
    (lambda h5: h5["trace/loss"].resize((7,)), "some columns have 7 records, and some 10"),
    (lambda h5: h5.__setitem__("trace/group/loss", 3), "cannot be read as HDF5"),
    (lambda h5: h5.attrs.__setitem__("format", "other/9"), "is no result of format mpi-compress/1 but of other/9"),
    (lambda h5: h5["trace"].move("own", "owns"), "its dataset /trace/own is missing"),
    (lambda h5: h5.attrs.__setitem__("L", 2.0), "attribute L written"),
    (lambda h5: h5.attrs.pop("mu"), "attribute mu missing"),
    (lambda h5: h5.attrs.__setitem__("checksums", "{}"), "its checksums cannot be read"),
])  # fmt: skip
def test_a_damaged_result_is_one_line(damage, says, tmp_path):
    (run,) = results_with(tmp_path, ["a"], own=lambda i, k: 1.0)
    with h5py.File(run.file, "r+") as h5:
        damage(h5)
    with pytest.raises(mc.UserError, match=naming(says)):
        mc.read(run.file)


def test_a_result_keeps_x_star_where_its_run_knew_it(small_job, tmp_path):
    job = mc.load_job(small_job, {"stop.rounds": 3}).only("CAT")
    (run,) = mc.run(job, out=tmp_path)
    np.testing.assert_array_equal(run.x_star, mc.problem(job).x_star)
    assert np.linalg.norm(run.x - run.x_star) == pytest.approx(run.trace["distance"][-1], rel=1e-12)
    (unsolved,) = mc.run(mc.load_job(small_job, {"stop.rounds": 3, "objective.f_star": 0.1}).only("CAT"), out=tmp_path)
    assert unsolved.x_star is None


def test_a_value_changed_in_any_dataset_is_one_line_that_names_it(small_job, tmp_path):
    """`read` has another process try a damaged file: for the first one it does, for the others it is tried here."""
    (run,) = mc.run(mc.load_job(small_job).only("CAT"), out=tmp_path)
    assert run.has_checksums
    whole, changed, names = run.file.read_bytes(), 0, []
    with h5py.File(run.file) as h5:
        h5.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    for name in names:
        with h5py.File(run.file, "r+") as h5:
            last = h5[name][-1:]
            last.view(np.uint8).flat[0] ^= 1
            h5[name][-1:] = last
        expected = f"{run.file}: is damaged: its dataset /{name} is not as it was written"
        if not changed:
            with pytest.raises(mc.UserError) as error:
                mc.read(run.file)
            assert str(error.value) == expected
        assert probing.complaint_of(run.file) == expected
        run.file.write_bytes(whole)
        changed += 1
    assert changed > 20


def test_a_result_that_a_program_wrote_to_is_checked_by_its_datasets(small_job, tmp_path):
    (run,) = mc.run(mc.load_job(small_job).only("CAT"), out=tmp_path)
    assert run.file.read_bytes()[-27:].startswith(b"mpi-compress crc32 ")
    with h5py.File(run.file, "r+") as h5:
        h5.attrs["note"] = "the one of Monday"
    assert b"mpi-compress crc32" not in run.file.read_bytes()[-27:]
    found = mc.read(run.file)
    assert found.has_checksums
    assert found.attrs["note"] == "the one of Monday"


def test_columns_that_one_result_has_are_not_called_equal(tmp_path):
    runs = results_with(tmp_path, ["a", "b"], own=lambda i, k: 1.0, mine=lambda i, k: k)
    with h5py.File(runs[1].file, "r+") as h5:
        del h5["trace/own"], h5["trace/mine"]
        del h5.attrs["checksums"]
    said = list(difference(*(mc.read(r.file) for r in runs)))
    assert said[0] == f"only in {runs[0].file}: /trace/mine, /trace/own", "a line for each file"
    assert len(said) == 2
    assert said[-1].endswith(": 10 records of the columns that both have")


@pytest.mark.parametrize(("asked", "says"), [
    ({"at": {"loss": -5.0}}, "nothing to draw: no run comes down to loss = -5"),
    ({"y": "never"}, "nothing to draw: no record has round and never"),
    ({"at": {"loss": 0.5}, "x": "nope"}, "nope"),
    ({"at": {"loss": -5.0}, "x": "budget"}, "loss -5"),
    ({"rows": "first"}, "plot.rows: 'first' 'all' or 'last'"),
    ({"xscale": "symlog"}, "plot.xscale: 'symlog' was given"),
    ({"at": {}}, "should be one column and its value"),
    ({"y": ""}, "should be the name of a column"),
])  # fmt: skip
def test_a_plot_of_nothing_is_refused(asked, says, tmp_path):
    runs = results_with(tmp_path, ["a"], never=lambda i, k: np.nan)
    with pytest.raises(mc.UserError, match=naming(says)):
        mc.plot(runs, **{"x": "round", "y": "loss", **asked})


def test_letters_that_the_font_lacks_are_one_line(tmp_path, capfd):
    (run,) = results_with(tmp_path, ["ünï 漢字"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figures.save(mc.plot([run], x="round", y="loss"), tmp_path / "a.png")
    assert capfd.readouterr().err.count("the font has no 漢 字; boxes stand there") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="files are named by /proc")
def test_a_result_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    recorder = Recorder(tmp_path / "folder" / "a.h5", {"label": "a"})
    recorder.append(row(0))
    seen = order_of_syncs(monkeypatch)
    recorder.finish("complete", "", np.zeros(1), {})
    assert seen == [("sync", "a.h5.part"), ("name", "a.h5"), ("sync", "folder")]


def test_bits_a_coordinate_are_of_one_message_however_often_rows_are_logged(tmp_path):
    run = run_of(tmp_path, {"name": "gd"}, count=3, rounds=10, log={"every": 5})
    d = run.attrs["dim"]
    assert run.column("bits_up")[1:].tolist() == [8 * (4 + 8 * d) / d] * 2
