"""Runs as they have always gone: each column of their results has the bytes that it had, on any layout."""

import numpy as np
import pytest
from fixtures import places, played, runs

import mpi_compress as mc
from mpi_compress.algorithms.hosted import HostedWorkers

STORED, VALUES = places.load(places.RUNS), places.load(places.VALUES)
RANKS = 3


EXACT = ("round", "bits", "elements", "budget", "silent")
"""What the names of columns of whole numbers hold: they are compared as they are."""


ROUNDED = {"iade, floor": "trace/gap"}
"""What rounding decides: a quotient of differences that are rounding alone."""


@pytest.fixture
def same_machine():
    places.skip_elsewhere(STORED["made on"])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """All runs, played in this process."""
    return played.in_this_process(tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def on_ranks(tmp_path_factory):
    """The folder of what was played on ranks."""
    folder = tmp_path_factory.mktemp("ranks")
    done = played.on_ranks(folder, RANKS)
    assert done.returncode == 0, done.stderr
    return folder


def differing(name, found, left_out=()):
    """Which entries of a run are not what they were: each with its run and its column."""
    was = STORED["runs"][name]
    columns = sorted({*was, *found} - set(left_out))
    return [
        f"{name}: {column}: {was.get(column)} → {found.get(column)}" for column in columns if was.get(column) != found.get(column)
    ]


def apart(found, was, exactly):
    """True if numbers are not those that were kept, within 1e-9 of the largest of them where they are no counts."""
    found, was = np.array(found), np.array(was)
    if found.shape != was.shape:
        return True
    finite = np.abs(was[np.isfinite(was)])
    near = 0.0 if exactly else 1e-9 * max(finite, default=0.0) + 1e-15
    return not np.allclose(found, was, rtol=0.0, atol=near, equal_nan=True)


@pytest.mark.usefixtures("same_machine")
@pytest.mark.parametrize("share", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_runs_give_the_same_bytes_where_workers_send_one_by_one_and_the_last_one_first(share, tmp_path, monkeypatch):
    monkeypatch.setattr(HostedWorkers, "parts", lambda self, awake: (slice(i, i + 1) for i in reversed(awake.tolist())))
    names = [*runs.RUNS][::share]
    found = played.in_this_process(tmp_path, names)
    assert [line for name in names for line in differing(name, played.kept(found[name]))] == []


@pytest.mark.parametrize("name", runs.RUNS)
def test_a_run_gives_the_numbers_that_it_always_gave_and_their_bytes_on_processors_of_one_kind(name, alone):
    found, was = played.values(alone[name]), VALUES[name]
    assert set(found) == set(was)
    if name in ROUNDED and places.why_not(STORED["made on"]):
        pytest.skip(f"rounding decides {ROUNDED[name]}")
    assert [c for c in was if apart(found[c], was[c], any(word in c for word in EXACT))] == []
    places.skip_elsewhere(STORED["made on"])
    assert differing(name, played.kept(alone[name])) == []


@pytest.mark.slow
@pytest.mark.usefixtures("same_machine")
@pytest.mark.parametrize("layout", runs.LAYOUTS)
def test_runs_give_the_same_bytes_on_ranks(layout, on_ranks):
    left_out = runs.OF_MESSAGES_DOWN if layout == "allgather" else ()
    found = played.results(on_ranks / layout)
    assert set(found) == set(runs.LAYOUTS[layout][1])
    assert {run.attrs["n_ranks"] for run in found.values()} == {RANKS}
    assert [line for name, run in found.items() for line in differing(name, played.kept(run), left_out)] == []


def names_of(key, inner="name"):
    """The parts that the runs name in a table."""
    tables = [run.get(key, {}) for run in runs.RUNS.values()] + [run.get("down", {}) for run in runs.RUNS.values()]
    parts = [table.get(inner) for table in tables]
    return {part if isinstance(part, str) else part.get("name", "auto") for part in parts if part is not None}


def test_every_part_is_played():
    assert set(STORED["runs"]) == set(runs.RUNS)
    assert names_of("algorithm") == set(mc.algorithms.algorithms)
    assert names_of("up", "compressor") == set(mc.compressors.compressors)
    assert names_of("cost", "model") | {"payload"} == set(mc.costs.costs)
    data = [run.get("data", runs.DENSE) for run in runs.RUNS.values()]
    assert {table["generator"] for table in data if "generator" in table} == set(mc.datasets.generators)
    assert names_of("up", "codec") | {"gspar-hybrid", "ternary"} == set(mc.codecs.codecs)
