"""Results carry their check, unfinished ones too; a damaged result is neither adopted nor passed over."""

import os
import random
import re
from pathlib import Path

import h5py
import pytest
from helpers.refusals import naming, refused
from helpers.running import GSPAR, SMALL_JOB, After

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core import seals
from mpi_compress.core.errors import UserError
from mpi_compress.core.signals import Stopped
from mpi_compress.results import catalogue, checksums, reader, writer
from mpi_compress.results.files import checkpoint_of, part_of, result_file
from mpi_compress.results.tidy import difference

TABLES = {"data": GSPAR, "algorithm": {"name": "gd"}, "workers": {"count": 2}, "stop": {"rounds": 3}}


@pytest.fixture
def part(tmp_path):
    """What a run has written that was asked to end."""
    with pytest.raises(Stopped):
        mc.run({**TABLES, "stop": {"rounds": 4000}, "title": "one"}, out=tmp_path / "out", interrupts=After(2))
    (file,) = (tmp_path / "out").rglob("*.part")
    return file


@pytest.fixture
def complete(tmp_path):
    """The file of a run that has ended."""
    return mc.run({**TABLES, "title": "one"}, out=tmp_path / "complete")[0].file


def changed(content: bytes, draw: random.Random) -> bytes:
    at = draw.choice([at for at, byte in enumerate(content) if byte])
    return content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :]


@pytest.mark.parametrize("is_killed", [None, True, False], ids=["complete", "killed", "stopped"])
@pytest.mark.parametrize("times", [15, pytest.param(500, marks=pytest.mark.slow)])
def test_no_flipped_bit_is_read_as_other_numbers(times, is_killed, part, complete):
    """A kill leaves no seal behind: then checksums alone tell, and some flips crash HDF5 in the process that tries the file."""
    file = complete if is_killed is None else part
    if is_killed:
        file.write_bytes(file.read_bytes()[: -seals.SIZE])
    whole, run, draw, refused = file.read_bytes(), mc.read(file), random.Random(times), 0
    assert run.has_checksums
    assert run.rows > 1
    for _ in range(times):
        file.write_bytes(changed(whole, draw))
        try:
            found, said = mc.read(file), ""
        except mc.UserError as error:
            said = str(error)
        if said:
            assert re.fullmatch(rf"{file}: [^\n]+", said)
            refused += 1
            continue
        for table in ("trace", "timing", "workers"):
            ours, theirs = getattr(run, table), getattr(found, table)
            assert all(column.tobytes() == ours[name][: found.rows].tobytes() for name, column in theirs.items())
        same = {name for name, value in found.attrs.items() if str(value) == str(run.attrs.get(name))}
        assert same == run.attrs.keys() or not found.has_checksums  # of all flips, one may hide the checksums alone
        if is_killed is None:
            assert re.search(naming(f"equal {run.rows} records"), next(difference(run, found)))
    assert refused > times // 4


def test_rows_beyond_the_last_flush_are_not_shown(part):
    """A flush that is caught halfway has more rows than its checksums say."""
    run = mc.read(part)
    with h5py.File(part, "r+") as h5:
        h5["trace/loss"].resize(run.rows + 5, axis=0)
    assert mc.read(part).trace["loss"].tolist() == run.trace["loss"].tolist()


@pytest.mark.parametrize("which", ["part", "complete"])
def test_a_result_of_an_earlier_version_is_read_and_shown_to_have_no_checksums(which, request, capsys):
    file = request.getfixturevalue(which)
    assert main(["show", str(file)]) == 0
    assert "checksums" not in capsys.readouterr().out
    with h5py.File(file, "r+") as h5:
        for name in checksums.SLOTS if which == "part" else [checksums.ATTRIBUTE]:
            del h5.attrs[name]
    assert not mc.read(file).has_checksums
    assert main(["show", str(file)]) == 0
    assert "  no checksums: an earlier version wrote this file" in capsys.readouterr().out


def test_checksums_of_many_flushes_take_no_more_room(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "_BUFFERED_ROWS", 1)
    recorder = writer.Recorder(tmp_path / "run.h5", {"label": "a"})
    sizes = []
    for k in range(900):
        recorder.append(writer.Row({"round": k, "loss": 1.0}, {}, {"seconds": float(k)}))
        sizes.append(recorder.part.stat().st_size)
    recorder.abandon("stopped", "the test")
    assert sizes[-1] == sizes[1]
    assert mc.read(recorder.part).rows == 900


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_damaged_result_of_another_job_is_not_taken(is_sealed, tmp_path):
    (first,) = mc.run({**TABLES, "title": "one"}, out=tmp_path)
    with h5py.File(first.file, "r+") as h5:
        h5["trace/loss"][1] += 1e-3
    if is_sealed:
        seals.seal(first.file, "as a flipped bit leaves it")
    (second,) = mc.run({**TABLES, "title": "one", "name": "other"}, out=tmp_path)
    assert second.trace["loss"].tolist() == first.trace["loss"].tolist()
    with pytest.raises(mc.UserError, match="`run --fresh` reruns it"):
        mc.run({**TABLES, "title": "one"}, out=tmp_path)


def test_a_broken_seal_without_checksums_is_damage(tmp_path):
    (run,) = mc.run({**TABLES, "title": "one"}, out=tmp_path)
    with h5py.File(run.file, "r+") as h5:
        del h5.attrs[checksums.ATTRIBUTE]
    seals.seal(run.file, "another")
    with pytest.raises(mc.UserError, match="its checksums are missing"):
        mc.read(run.file)


@pytest.mark.parametrize("times", [15, pytest.param(1000, marks=pytest.mark.slow)])
def test_attributes_of_damaged_files_are_those_that_were_written_or_none(times, tmp_path):
    """And a listing reads what it can; it never raises."""
    (run,) = mc.run({**TABLES, "title": "one"}, out=tmp_path)
    whole, known, draw = run.file.read_bytes(), reader.attributes(run.file), random.Random(0)
    for _ in range(times):
        run.file.write_bytes(changed(whole, draw))
        assert str(reader.attributes(run.file)) in (str(known), "{}")
        (entry,) = catalogue.entries(tmp_path)
        assert entry.label
        assert entry.state
        assert isinstance(entry.tables, dict)


def test_a_listing_takes_an_attribute_of_another_type(complete):
    with h5py.File(complete, "r+") as h5:
        h5.attrs["job"] = [114, 117, 110]
    (entry,) = catalogue.entries(complete.parent)
    assert entry.tables == {}


def test_ls_check_reads_all_checksums(part, tmp_path, capsys):
    out = str(tmp_path / "out")
    (run,) = mc.run({**TABLES, "title": "two"}, out=out)
    assert main(["results", "ls", "--check", "--out", out]) == 0
    assert capsys.readouterr().err == ""
    saved = checkpoint_of(part.with_suffix(""))
    assert part_of(part.with_suffix("")) == part
    for file in (run.file, part, saved):
        content = bytearray(file.read_bytes())
        at = content.find(b"one" if file is saved else b"gspar") if file is not saved else len(content) // 2
        content[at] ^= 1
        file.write_bytes(content)
    assert main(["results", "ls", "--check", "--out", out]) == 3
    told = capsys.readouterr().err.splitlines()
    assert [line.removeprefix("mpi-compress: ").partition(": ")[0] for line in told] == [str(part), str(saved), str(run.file)]
    assert all("is damaged" in line for line in told)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("ending", ["", ".part", ".ckpt"])
def test_a_pipe_or_a_folder_in_the_place_of_a_results_file_is_named_and_never_opened(make, ending, tmp_path, capsys):
    (tmp_path / "one.toml").write_text(SMALL_JOB)
    job, out = str(tmp_path / "one.toml"), str(tmp_path / "out")
    (spec,) = mc.load_job(job, only="GD").runs
    place = Path(f"{result_file('one', 'GD', spec.run_id, Path(out))}{ending}")
    place.parent.mkdir(parents=True)
    make(place)
    words = f"{place}: is {'a folder' if make is os.mkdir else 'no plain file'}"
    for more in ([], ["--fresh"]):
        assert words in refused(["run", job, "--only", "GD", "--out", out, *more], capsys)
    assert main(["plan", job, "--only", "GD", "--out", out]) == 0
    assert f"cannot be read: {words}" in capsys.readouterr().out
    if not ending:
        for command in (["show", place], ["plot", place], ["table", place, "--to", "loss=1"]):
            assert words in refused(command, capsys)


def test_a_table_of_many_results_leaves_out_and_names_what_cannot_be_read(complete, capsys):
    wrong = {name: complete.with_name(f"{name}.h5") for name in ("cut", "empty", "gone", "pipe")}
    wrong["cut"].write_bytes(complete.read_bytes()[:5000])
    wrong["empty"].touch()
    wrong["gone"].symlink_to("nowhere")
    os.mkfifo(wrong["pipe"])
    assert mc.load(complete.parent, as_="dict") == mc.load(complete, as_="dict")
    lines = capsys.readouterr().err.splitlines()
    assert [str(file) in line for file, line in zip(wrong.values(), lines, strict=True)] == [True] * 4
    with pytest.raises(UserError, match="cut"):
        mc.load(wrong["cut"])
