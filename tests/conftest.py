"""Shared by all tests: a cache of their own, real data where it is, and real MPI."""

import compileall
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import fixtures.instructions  # noqa: F401  it chooses code for NumPy and Numba, before they are imported
import matplotlib as mpl
import pytest
from helpers.running import SMALL_JOB
from hypothesis import settings
from matplotlib import pyplot

import mpi_compress
from mpi_compress.core.registry import registries

mpl.use("agg")
settings.register_profile("same", deadline=None, derandomize=True)  # the first call of a kernel may compile it
settings.register_profile("drawn", deadline=None)  # examples that are drawn anew: pytest --hypothesis-profile drawn
settings.load_profile("same")

FIRST = (
    "test_run_fixtures.py",  # compiles most kernels; by a second process, meanwhile, tests that need few of them
    *("test_house.py", "test_run_id_fixtures.py", "figures", "test_package.py", "cluster", "core", "job"),
    *("engine/test_layouts.py", "test_docs.py", "cli", "engine", "guard", "saving", "exchange", "test_shipped_jobs.py"),  # which take longest
)

_CACHE = tempfile.TemporaryDirectory(prefix="mpi-compress-tests-")
os.environ["MPI_COMPRESS_CACHE"] = _CACHE.name
os.environ["MPI_COMPRESS_COMPILING"] = "silent"  # what commands print is compared, by whichever test compiles a kernel first
os.environ.pop("COLUMNS", None)  # pytest-xdist tells its workers how wide its terminal is, and commands break their lines there


def pytest_configure(config: pytest.Config) -> None:
    """Compile the package's Python once, where processes would not keep it: those that tests start take a third less time then."""
    if sys.dont_write_bytecode and not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(mpi_compress.__file__).parent, quiet=2)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many tests were skipped, by the reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"skipped {count}: {reason}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Kernels are compiled once, not by two processes at the same time."""
    folder = Path(__file__).parent
    places = [folder / name for name in FIRST]

    @cache  # a file has up to a thousand items
    def turn(file: Path) -> int:
        return next((i for i, place in enumerate(places) if file.is_relative_to(place)), len(places))

    items.sort(key=lambda item: turn(item.path))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets."""
    folder = os.environ.get("MPI_COMPRESS_DATA")
    if not folder:
        pytest.skip("real data sets are needed: set MPI_COMPRESS_DATA to their folder")
    return Path(folder)


@contextmanager
def _without_new_parts() -> Iterator[None]:
    before, modules = [dict(registry._parts) for registry in registries], set(sys.modules)
    yield
    for registry, parts in zip(registries, before, strict=True):
        registry._parts = parts | {name: part for name, part in registry._parts.items() if isinstance(parts.get(name), str)}
    for name in {*sys.modules} - modules:  # those of users, as a test wrote them
        if "pytest-of-" in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def registered_for_one_test_only() -> Iterator[None]:
    """Parts that a test registers are gone after it."""
    with _without_new_parts():
        yield


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Parts that the tests of a file register, and figures that they open, are gone after them."""
    with _without_new_parts():
        yield
    pyplot.close("all")


@pytest.fixture(autouse=True)
def ended_by_sigterm() -> Iterator[None]:
    """A command that was asked to end ignores SIGTERM from then on; this process, and what later tests start, do not."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def small_job(tmp_path: Path) -> Path:
    """A job of a second: GD, top-k and CAT on 120 generated samples."""
    file = tmp_path / "small.toml"
    file.write_text(SMALL_JOB)
    return file
