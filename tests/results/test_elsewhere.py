"""Links in results lead nowhere else, and somebody else's result runs no code of theirs."""

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from helpers.running import GSPAR

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core import seals
from mpi_compress.results import checksums

TABLES = {"data": GSPAR, "algorithm": {"name": "gd"}, "workers": {"count": 2}, "stop": {"rounds": 3}, "title": "one"}


@pytest.fixture
def run(tmp_path):
    return mc.run(TABLES, out=tmp_path / "out")[0]


def external_link(h5, other) -> None:
    del h5["trace"]
    h5["trace"] = h5py.ExternalLink(str(other), "/trace")


def link_to_a_dataset(h5, other) -> None:
    del h5["trace/loss"]
    h5["trace/loss"] = h5py.ExternalLink(str(other), "/trace/loss")


def soft_link(h5, other) -> None:
    del h5["trace/loss"]
    h5["trace/loss"] = h5py.SoftLink("/trace/grad_norm")


def bytes_of_another_file(h5, other) -> None:
    rows = len(h5["trace/loss"])
    del h5["trace/loss"]
    h5.create_dataset("trace/loss", (rows,), "f8", external=[(str(other), 0, 8 * rows)])


def virtual(h5, other) -> None:
    rows = len(h5["trace/loss"])
    del h5["trace/loss"]
    layout = h5py.VirtualLayout((rows,), "f8")
    layout[:] = h5py.VirtualSource(str(other), "trace/loss", (rows,))
    h5.create_virtual_dataset("trace/loss", layout)


@pytest.mark.parametrize("is_fifo", [False, True])
@pytest.mark.parametrize("change", [external_link, link_to_a_dataset, soft_link, bytes_of_another_file, virtual])
def test_a_result_that_leads_elsewhere_is_one_line_and_nothing_else_is_opened(change, is_fifo, run, tmp_path):
    """A pipe would be waited for without end."""
    other = tmp_path / "other.h5"
    if is_fifo:
        os.mkfifo(other)
    else:
        other.write_bytes(run.file.read_bytes())
    with h5py.File(run.file, "r+") as h5:
        del h5.attrs[checksums.ATTRIBUTE]
        change(h5, other)
    with pytest.raises(mc.UserError, match=r"is damaged: its (dataset )?/trace(/loss)? (is a link|lies in another file)"):
        mc.read(run.file)
    assert main(["results", "ls", "--out", str(tmp_path / "out")]) == 0


def test_a_result_may_be_read_by_a_link_and_none_is_written_through_one(run, tmp_path):
    link = tmp_path / "link.h5"
    link.symlink_to(run.file)
    assert mc.read(link).trace["loss"].tolist() == run.trace["loss"].tolist()
    mine = tmp_path / "mine"
    mine.write_text("of somebody")
    run.file.unlink()
    part = Path(f"{run.file}.part")
    part.symlink_to(mine)
    with pytest.raises(mc.UserError, match="results cannot be written there: Too many levels of symbolic links"):
        mc.run(TABLES, out=tmp_path / "out")
    part.unlink()
    for name in (f"{run.file}.ckpt.new", f"{run.file}.part.new", f"{run.file}.new"):
        Path(name).symlink_to(mine)
    mc.run({**TABLES, "checkpoint": {"every": 1}}, out=tmp_path / "out")
    mc.run({**TABLES, "title": "two"}, out=tmp_path / "out")
    assert mine.read_text() == "of somebody"


PLUGIN = """
from pathlib import Path
from dataclasses import dataclass
import mpi_compress as mc

Path(__file__).with_name("was_imported").touch()

@mc.compressors.register("of-theirs")
@dataclass(frozen=True)
class OfTheirs(mc.Compressor):
    makes = mc.Dense

    def compress(self, v, t):
        return mc.Dense(v.copy())
"""


def test_a_result_of_somebody_else_is_read_without_their_plugin(tmp_path, monkeypatch, capsys):
    """Every command that takes a result; a job is a program, and its plugins are imported where it is loaded."""
    monkeypatch.chdir(tmp_path)
    plugin, mark = tmp_path / "theirs.py", tmp_path / "was_imported"
    plugin.write_text(PLUGIN)
    Path("job.toml").write_text(
        'plugins = ["theirs"]\ndata = { generator = "gspar", samples = 40, dim = 9 }\nstop = { rounds = 3 }\n'
        'algorithm = { name = "gd" }\nup = { compressor = "of-theirs" }\n'
    )
    (run,) = mc.run(mc.load_job("job.toml"))
    assert mark.exists()
    mark.unlink()
    import sys

    sys.modules.pop("theirs")
    file = str(run.file)
    for line in (
        ["show", file], ["table", file], ["table", file, "--to", "loss=0.9"], ["plot", file, "-o", "figure.png"],
        ["results", "ls"], ["results", "ls", "--check"], ["watch", file],
    ):  # fmt: skip
        assert main(line) == 0, line
    assert mc.load(file, as_="dict")["round"] == [0, 1, 2, 3]
    assert mc.read(file).written["plugins"] == ["theirs"]
    assert not mark.exists()
    assert "theirs" not in sys.modules
    assert seals.holds(run.file)
    assert np.isfinite(run.x).all()
