"""Runs as they have always gone: each column of their results has the bytes that it had, on any layout."""

import pytest
from fixtures import places, played, runs

import mpi_compress as mc

STORED = places.load(places.RUNS)
RANKS = 3


@pytest.fixture(autouse=True)
def same_machine():
    if why := places.why_not(STORED["made on"]):
        pytest.skip(why)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What is kept of all runs, played in this process."""
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


@pytest.mark.parametrize("name", runs.RUNS)
def test_a_run_gives_the_bytes_that_it_always_gave(name, alone):
    assert differing(name, alone[name]) == []


@pytest.mark.slow
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
    return {part if isinstance(part, str) else part["name"] for part in parts if part is not None}


def test_every_part_is_played():
    assert set(STORED["runs"]) == set(runs.RUNS)
    assert names_of("algorithm") == set(mc.algorithms.algorithms)
    assert names_of("up", "compressor") == set(mc.compressors.compressors)
    assert names_of("cost", "model") | {"payload"} == set(mc.costs.costs)
    data = [run.get("data", runs.DENSE) for run in runs.RUNS.values()]
    assert {table["generator"] for table in data if "generator" in table} == set(mc.datasets.generators)
    assert names_of("up", "codec") | {"gspar-hybrid", "ternary"} == set(mc.codecs.codecs)
