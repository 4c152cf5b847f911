"""Copies of the tree, in which mistakes are made and tests are played: for `mistakes.py` and `random_mistakes.py`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "mpi_compress"
LONGEST = 300  # seconds for the tests of one mistake


def copied(place: Path) -> Path:
    """A copy of what tests need."""
    for name in ("mpi_compress", "tests", "docs", "jobs", "benchmarks"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
    for file in (file for file in ROOT.iterdir() if file.is_file()):
        shutil.copy2(file, place)
    return place


def played(place: Path, command: list[str], longest: float, **variables: str) -> tuple[int, str]:
    """The exit status of a command of Python's on the copy in `place`, and what it printed; 1 if it takes longer than it may."""
    environment = {"PYTHONPATH": f"{place}{os.pathsep}{place / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1", **variables}
    line = [sys.executable, "-m", *command]
    try:
        done = subprocess.run(line, cwd=place, env=os.environ | environment, capture_output=True, text=True, timeout=longest)
    except subprocess.TimeoutExpired:
        return 1, f"the tests do not end in {longest:.0f} s"
    return done.returncode, done.stdout + done.stderr


def kernels_for(file: str, cache: Path, folder: Path) -> Path:
    """Where a mistake in `file` finds compiled kernels: in a kernel, in a copy of the cache, where its own does not take the right one's place."""
    if not file.startswith("kernels/") or not cache.exists():
        return cache
    return shutil.copytree(cache, folder / "kernels", copy_function=os.link)  # Numba replaces files, and writes into none


def pytest_of(tests: list[str], *options: str) -> list[str]:
    """Pytest's line for these tests, which stops at the first failure."""
    return ["pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "-m", "not slow", *options, *tests]


def on_copies(folder: Path, jobs: int, work: Callable[[Any, Path], Any], items: Iterable[Any]) -> Iterator[Any]:
    """`work(item, place)` for each item, in order, so many at a time, each on a copy of the tree that no other one has meanwhile."""
    places: SimpleQueue[Path] = SimpleQueue()
    for i in range(jobs):
        place = folder / f"copy-{i}"
        places.put(place if place.exists() else copied(place))

    def one(item: Any) -> Any:
        place = places.get()
        try:
            return work(item, place)
        finally:
            places.put(place)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(one, items)
