"""Results on other layouts, compared byte for byte."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import mpi_compress as mc
from helpers.running import command

DOWN = ("wire_bits_down", "paper_bits_down", "cost_down")  # allgather has no messages down
ALLGATHER = ["--set", "workers.exchange=allgather"]
MASTER_WORKS = ["--set", "workers.master=worker"]


def assert_equal(one: Path, other: Path, left_out: Sequence[str] = ()) -> None:
    """Two results are equal but for their timing, their host and the columns `left_out`."""
    a, b = mc.read(one), mc.read(other)
    for table in ("trace", "workers"):
        assert set(getattr(a, table)) == set(getattr(b, table))
        for column, values in getattr(a, table).items():
            assert column in left_out or values.tobytes() == getattr(b, table)[column].tobytes(), f"{one.name}: {table}/{column}"
    assert a.x is not None
    assert b.x is not None
    assert a.x.tobytes() == b.x.tobytes()
    assert (a.status, a.attrs["reason"]) == (b.status, b.attrs["reason"])


def played_in_one_process(folder: Path, name: str, text: str, status: int = 0) -> tuple[Path, Path]:
    """A job and the folder of its results."""
    folder.mkdir(exist_ok=True)
    job = folder / f"{name}.toml"
    job.write_text(text)
    done = command("run", job, "--out", folder, "--quiet", timeout=300)
    assert done.returncode == status, done.stderr
    return job, folder / name


def assert_equal_on(ranks: int, options: list[str], played: tuple[Path, Path], out: Path, status: int = 0) -> None:
    """A job gives the same results on so many ranks."""
    job, reference = played
    done = command("run", job, "--out", out, "--quiet", *options, ranks=ranks, timeout=580)
    assert done.returncode == status, done.stderr
    files = sorted(reference.glob("*.h5"))
    assert files
    for file in files:
        other = out / job.stem / file.name
        assert mc.read(other).attrs["n_ranks"] == ranks
        assert_equal(file, other, DOWN if options == ALLGATHER else ())


def layouts(*slow: int) -> pytest.MarkDecorator:
    """Parametrizes a test by `ranks` and `options`: three ranks, allgather, and in the slow suite `slow` and a master that works."""
    more = [(ranks, []) for ranks in slow] + [(5, MASTER_WORKS)]
    return pytest.mark.parametrize(
        ("ranks", "options"),
        [(3, []), (3, ALLGATHER), *(pytest.param(*layout, marks=pytest.mark.slow) for layout in more)],
        ids=lambda value: str(value) if isinstance(value, int) else "".join(value[1:]) or "dedicated",
    )
