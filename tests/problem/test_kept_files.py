"""What is kept beside the data is believed only if it is as it was written."""

import os
import random

import h5py
import pytest
from helpers.running import SMALL_JOB

import mpi_compress as mc
from mpi_compress.core import seals
from mpi_compress.problem.datasets.cache import cache_folder


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Plays a job with a cache of its own: the last loss, gap and L."""
    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "job.toml").write_text(SMALL_JOB)

    def play() -> list[float]:
        (run,) = mc.run(mc.load_job(tmp_path / "job.toml", only="GD"), out=tmp_path / "out", fresh=True)
        return [run.trace["loss"][-1], run.trace["suboptimality"][-1], run.attrs["L"], run.attrs["n_samples"], run.attrs["dim"]]

    return play


def kept(name: str):
    (file,) = cache_folder().rglob(name)
    return file


def change_eigenvalue(file) -> None:
    content = bytearray(file.read_bytes())
    content[1] ^= 1  # a digit of λmax
    file.write_bytes(content)


def change_attribute(name: str, by: float):
    def change(file) -> None:
        with h5py.File(file, "r+") as h5:
            h5.attrs[name] = type(h5.attrs[name])(h5.attrs[name] + by)

    return change


def change_entry(file) -> None:
    with h5py.File(file, "r+") as h5:
        h5["x"][0] += 1e-3


CHANGES = {
    "a digit of an eigenvalue": ("*-eigenvalues-*-1.json", change_eigenvalue),
    "f*": ("*-optimum-*.h5", change_attribute("f", 1e-3)),
    "an entry of x*": ("*-optimum-*.h5", change_entry),
    "the number of samples": ("gspar-????????????????.h5", change_attribute("n_samples", -1)),
    "d": ("gspar-????????????????.h5", change_attribute("dim", 1)),
    "all of x*": ("*-optimum-*.h5", lambda file: file.write_bytes(b"nonsense")),
    "half of x*": ("*-optimum-*.h5", lambda file: file.write_bytes(file.read_bytes()[:1000])),
    "the end of the eigenvalues": ("*-eigenvalues-*-1.json", lambda file: file.write_text(file.read_text()[:3])),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_changed_is_made_again_with_one_line(what, played, capfd):
    wanted = played()
    name, change = CHANGES[what]
    file = kept(name)
    before = file.read_bytes()
    file.write_bytes(before[: -seals.SIZE])
    change(file)
    capfd.readouterr()
    assert played() == wanted
    lines = [line for line in capfd.readouterr().err.splitlines() if str(file) in line]
    assert lines == [f"{file}: invalid cache file; rebuilding it"]
    assert file.read_bytes() == before


def test_a_file_of_another_key_is_not_taken(played):
    wanted = played()
    file = kept("*-eigenvalues-*-1.json")
    other = file.with_name("other-eigenvalues-40-bits-1.json")
    other.write_text("[2.0]")
    seals.seal(other, other.name)
    other.replace(file)
    assert played() == wanted


def test_a_digest_that_was_changed_is_computed_anew(tmp_path, monkeypatch):
    from mpi_compress.problem.datasets.cache import digest

    monkeypatch.setenv("MPI_COMPRESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "set").write_text("1 1:1\n-1 2:1\n")
    wanted = digest(tmp_path / "set")
    (note,) = cache_folder().rglob("digests/*")
    content = bytearray(note.read_bytes())
    content[5] ^= 1
    note.write_bytes(content)
    assert digest(tmp_path / "set") == wanted


@pytest.mark.parametrize("key", ["", "a key"])
def test_a_seal_finds_every_flipped_bit_and_every_cut(key, tmp_path):
    draw, file = random.Random(0), tmp_path / "file"
    for size in (0, 1, 30, 5000):
        content = draw.randbytes(size)
        file.write_bytes(content)
        assert seals.holds(file, key) is None
        seals.seal(file, key)
        assert seals.holds(file, key)
        assert seals.content(file, key) == content
        assert not seals.holds(file, "another key")
        sealed = file.read_bytes()
        with file.open("r+b") as out:  # a new file takes longer
            for bit in range(8 * len(sealed)) if size < 100 else draw.sample(range(8 * len(sealed)), 200):
                at = bit // 8
                os.pwrite(out.fileno(), bytes([sealed[at] ^ 1 << bit % 8]), at)
                assert not seals.holds(file, key)
                os.pwrite(out.fileno(), sealed[at : at + 1], at)
            assert seals.holds(file, key)
        for end in reversed(range(len(sealed)) if size < 100 else sorted(draw.sample(range(len(sealed)), 50))):
            os.truncate(file, end)
            assert not seals.holds(file, key)


