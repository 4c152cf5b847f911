"""Results of the same jobs on other layouts, compared byte for byte."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import h5py

import mpi_compress as mc
from helpers.running import BIN
from mpi_compress.results.reader import attributes

PLAYER = Path(__file__).with_name("player.py")
DOWN = ("trace/wire_bits_down", "trace/paper_bits_down", "trace/cost_down")  # allgather has no messages down


@dataclass(frozen=True)
class Layout:
    """Where jobs are played: on ranks, or with None in one process; and how often they are stopped on the way."""

    ranks: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    stop_after: int | None = None  # rounds
    until_done: bool = False  # stopped again and again; else once, and something else finishes it

    @property
    def left_out(self) -> Sequence[str]:
        """Columns that differ from those of one process."""
        return DOWN if self.settings.get("workers.exchange") == "allgather" else ()


def arrays(file: Path) -> dict[str, bytes]:
    """Every array of a result but the seconds that it took."""
    found = []
    with h5py.File(file) as h5:
        h5.visititems(lambda name, item: found.append((name, item[()].tobytes())) if isinstance(item, h5py.Dataset) else None)
    return {name: content for name, content in found if not name.startswith("timing/")}


def content(file: Path) -> tuple[dict[str, bytes], str, str]:
    """The arrays of a result, its status and the reason why it ended; of a file that is as it was, as they were read before."""
    stat = file.stat()
    return _read(file, stat.st_ino, stat.st_mtime_ns)


@lru_cache(maxsize=256)
def _read(file: Path, *state: int) -> tuple[dict[str, bytes], str, str]:
    run = mc.read(file)
    return arrays(file), run.status, run.attrs["reason"]


def assert_equal(one: Path, other: Path, left_out: Sequence[str] = ()) -> None:
    """Two results are equal to the last byte but for their timing, their host and the arrays `left_out`."""
    (ones, *end_of_one), (others, *end_of_other) = content(one), content(other)
    assert set(ones) == set(others)
    assert {"final/x", "trace/loss", "trace/round"} <= set(ones)
    assert [name for name in ones if name not in left_out and ones[name] != others[name]] == [], one.name
    assert end_of_one == end_of_other


class Plan(NamedTuple):
    """Jobs that are played on a layout, and the folder of their results."""

    jobs: Sequence[Path]
    out: Path
    layout: Layout


Ended = dict[Path, int | list[int]]
"""The status of each job; or how often each of its runs was stopped."""


def play(jobs: Sequence[Path], out: Path, layout: Layout) -> Ended:
    """Play jobs on a layout, by one start of MPI."""
    return play_all([Plan(jobs, out, layout)])[0]


def play_all(plans: Sequence[Plan]) -> list[Ended]:
    """Play plans on equally many ranks one after the other, by one start of MPI."""
    (ranks,) = {plan.layout.ranks for plan in plans}
    written = []
    for jobs, out, layout in plans:
        out.mkdir(parents=True, exist_ok=True)
        settings = {**layout.settings, **({} if layout.stop_after is None else {"checkpoint.every": 7})}
        stops = {"stop_after": layout.stop_after, "until_done": layout.until_done}
        written.append({"jobs": [str(job) for job in jobs], "out": str(out), "settings": settings, **stops})
    file = plans[0].out / "plans.json"
    file.write_text(json.dumps(written))
    launcher = [BIN / "mpiexec", "-n", str(ranks), sys.executable, "-m", "mpi4py"] if ranks else [sys.executable]
    done = subprocess.run([str(a) for a in (*launcher, PLAYER, file)], capture_output=True, text=True, timeout=580 * len(plans))
    ended = file.with_suffix(".ended")
    assert done.returncode == 0, done.stderr
    assert ended.exists(), done.stderr
    statuses = json.loads(ended.read_text())
    ended.unlink()
    file.unlink()
    return [{Path(job): status for job, status in each.items()} for each in statuses]


def results(folder: Path) -> dict[tuple[str, str], Path]:
    """Result files by job and label."""
    return {(file.parent.name, attributes(file)["label"]): file for file in folder.glob("*/*.h5")}
