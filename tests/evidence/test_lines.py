"""The lines of figures, by hand: labels, seeds of which some end before others, points of a grid, and levels that not all reach."""

import itertools
import json
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpi_compress as mc
from mpi_compress.evidence import lines as made
from mpi_compress.results.targets import Target

files = itertools.count()


def run(label="a", seed=0, status="complete", written="", rounds=None, **columns):
    """A result with some columns; what is written in its job decides, with the seed, which runs are alike."""
    rows = len(next(iter(columns.values())))
    trace = {"round": np.arange(rows) if rounds is None else np.array(rounds)} | {name: np.array(values) for name, values in columns.items()}
    attrs = {"label": label, "status": status, "job": f"seed = {seed}\n{written}"}
    return mc.Run(Path(f"made-up/{next(files)}.h5"), attrs, trace, {}, {"seconds": np.arange(float(rows))}, None)


def test_a_line_is_named_by_its_label_what_was_overridden_and_what_was_tuned():
    plain, changed = run("GD", loss=[1.0]), run("GD", loss=[1.0])
    changed.attrs["overridden"] = json.dumps({"algorithm.step": 0.5, "seed": 3})
    changed.attrs["tuned"] = json.dumps(
        {"parameter": "algorithm.a", "value": 4, "merit": "loss", "tried": [[1, 3.0], [2, 2.0], [4, 1.0]], "settled": False}
    )
    assert made.name_of(plain) == made.name_in_paper(plain) == "GD"
    assert made.name_of(changed) == "GD, step = 0.5, tuned a = 4 (not settled)"
    assert made.name_in_paper(changed) == "GD, step = 0.5 (not settled)"
    changed.attrs["tuned"] = json.dumps({"parameter": "algorithm.a", "value": 2, "merit": "loss", "tried": [[1, 3.0], [2, 1.0], [4, 2.0]], "settled": True})
    assert made.name_of(changed) == "GD, step = 0.5, tuned a = 2"
    assert made.name_in_paper(changed) == "GD, step = 0.5"
    plain.attrs["tuned"] = json.dumps({"parameter": "algorithm.step", "value": "2 (1/(L + mu))", "merit": "loss", "tried": [], "settled": True})
    plain.attrs["settled"] = json.dumps({"step": 0.12345})
    assert made.name_of(plain) == "GD, tuned step = 0.123", "no formula of the job's own is a name"


def test_runs_that_differ_in_their_seed_alone_are_together_and_a_second_one_of_a_seed_is_not():
    a, b, other, named, again = (
        run(label, seed, written=text, loss=[1.0])
        for label, seed, text in (("a", 0, ""), ("a", 1, ""), ("a", 2, "mu = 1\n"), ("b", 2, ""), ("a", 1, ""))
    )
    assert made.by_seed([a, b, other, named, again]) == [[a, b], [other], [named], [again]]
    unknown = [mc.Run(Path("made-up.h5"), {"label": "a"}, {}, {}, {}, None) for _ in range(2)]
    assert made.by_seed(unknown) == [[unknown[0]], [unknown[1]]]


def test_a_line_of_seeds_is_their_median_and_range_at_equal_x():
    seeds = [run(seed=i, loss=[1.0, y, y, y], wire_bits_up=10 * (i + 1) * np.arange(4)) for i, y in enumerate((0.5, 0.25, 0.4))]
    (line,) = made.lines(seeds, "wire_bits_up", "loss", lambda r: "name")
    assert (line.label, line.x.tolist()) == ("name", [0, 10, 20, 30, 40, 60, 90])
    np.testing.assert_allclose(line.y, [1, 0.625, 0.5, 0.4, 0.4, 0.4, nan])
    np.testing.assert_allclose(line.least, [1, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25])
    np.testing.assert_allclose(line.most, [1, 0.8, 0.6, 0.5, 0.5, 0.5, 0.5])
    alone, *_ = made.lines(seeds[:1], "wire_bits_up", "loss")
    assert (alone.x.tolist(), alone.y.tolist(), alone.least, alone.most) == ([0, 10, 20, 30], [1, 0.5, 0.5, 0.5], None, None)
    cut = line.rows(np.arange(7) == 3)
    assert [values.tolist() for values in (cut.x, cut.y, cut.least, cut.most)] == [[30], [0.4], [0.25], [0.5]]


def test_few_rows_of_seeds_are_points_by_rounds():
    seeds = [run(seed=i, loss=[1.0, y], wire_bits_up=[0, 10 * (i + 1)]) for i, y in enumerate((0.5, 0.2, 0.4))]
    (line,) = made.lines(seeds, "wire_bits_up", "loss")
    assert (line.x.tolist(), line.y.tolist(), line.least.tolist(), line.most.tolist()) == ([0, 20], [1, 0.4], [1, 0.2], [1, 0.5])


STEPS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=4, max_size=7)


@given(st.lists(STEPS, min_size=3, max_size=3), st.integers(0, 60))
def test_a_median_of_seeds_comes_to_a_level_where_the_median_of_what_they_took_does(steps, level):
    seeds = [
        run(seed=i, loss=100 - np.cumsum([0, *(down for _, down in each)]), wire_bits_up=np.cumsum([0, *(bits for bits, _ in each)]))
        for i, each in enumerate(steps)
    ]  # fmt: skip
    (line,) = made.lines(seeds, "wire_bits_up", "loss")
    took = sorted((Target("loss", 100 - level, False).took(each, "wire_bits_up"), i) for i, each in enumerate(seeds))
    reached = np.flatnonzero(line.y <= 100 - level)
    assert bool(reached.size) == (took[1][0] < inf)
    if reached.size:
        assert line.x[reached[0]] <= took[1][0]
        before = [seeds[i].column("wire_bits_up") for _, i in took[1:]]
        assert line.x[reached[0]] > min(own[own < x][-1] if (own < x).any() else -1 for own, (x, _) in zip(before, took[1:], strict=True) if x < inf)


def test_a_line_of_seeds_ends_where_its_median_does_and_its_band_goes_on():
    seeds = [run(seed=i, loss=[4, 3.5, 3.0, 1.0, 0.5][:rows], wire_bits_up=[0, 5, 8, 10, 20][:rows]) for i, rows in enumerate((4, 4, 5))]
    (line,) = made.lines(seeds, "wire_bits_up", "loss")
    np.testing.assert_array_equal(line.y, [4, 3.5, 3, 1, nan])
    assert (line.x.tolist(), line.least.tolist(), line.most.tolist()) == ([0, 5, 8, 10, 20], [4, 3.5, 3, 1, 0.5], [4, 3.5, 3, 1, 1])


@pytest.mark.parametrize("stop", ["rounds = 100\nloss = 1", "rounds = 3", "rounds = 100\nwire_bits_up = 3", "rounds = 100\nseconds = 60"])
def test_a_line_of_seeds_ends_where_the_median_one_does_whatever_ended_them(stop):
    """What the others come to later moves the median of all, of which most have ended: that is no plateau of the method."""
    losses = [8, 4, 2, 0.9], [8, 6, 4, 2, 0.95], [8, 7, 6, 4, 2, 0.8], [8, 7, 6, 5, 4, 2, 0.7], [8, 7, 6, 5, 4, 3, 2, 0.6]
    seeds = [run(seed=i, loss=y, written=f"[stop]\n{stop}", wire_bits_up=np.arange(len(y))) for i, y in enumerate(losses)]
    (line,) = made.lines(seeds, "wire_bits_up", "loss")
    assert line.x[np.isfinite(line.y)][-1] == 5
    assert (line.x[-1], line.least[-1]) == (7, 0.6)


def test_where_x_does_not_grow_a_line_of_seeds_goes_by_rounds():
    seeds = [run(seed=i, rounds=[0, 5], loss=[1.0, y], distance=[4.0, 2.0 + i]) for i, y in enumerate((0.5, 0.2, 0.4))]
    (line,) = made.lines(seeds, "distance", "loss")
    assert (line.x.tolist(), line.y.tolist()) == ([4, 3], [1, 0.4])


def test_a_seed_that_has_ended_stays_where_it_ended_and_another_one_ends_the_line():
    long, short = run(rounds=[0, 2, 4, 6], loss=[1, 2, 3, 4]), run(seed=1, rounds=[0, 2, 3], loss=[5, 6, 7])
    (line,) = made.lines([long, short], "round", "loss")
    assert (line.x.tolist(), line.least.tolist(), line.most.tolist()) == ([0, 2, 3, 4, 6], [1, 2, 2.5, 3, 4], [5, 6, 7, 7, 7])
    stopped = run(seed=1, rounds=[0, 2, 3], status="stopped", loss=[5, 6, 7])
    assert made.lines([long, stopped], "round", "loss")[0].x.tolist() == [0, 2, 3]


def test_where_y_falls_a_seed_lies_on_a_straight_line_of_a_logarithmic_axis():
    gaps = [[1.0, 0.1, 0.01, 0.0], [1.0, 0.5, 0.2, 0.1], [1.0, 0.5, 0.2, inf]]
    seeds = [run(seed=i, loss=gap, suboptimality=gap, wire_bits_up=[0, 2 + i, 4 + i, 6 + i]) for i, gap in enumerate(gaps)]
    (line,) = made.lines(seeds, "wire_bits_up", "suboptimality")
    at = line.x.tolist().index
    np.testing.assert_allclose([line.least[at(3)], line.least[at(5)], line.least[at(6)]], [10**-1.5, 0.01, 0])


def test_a_stopped_seed_is_left_out_where_others_have_ended():
    seeds = [run(seed=i, status=status, loss=[1.0]) for i, status in enumerate(("complete", "stopped", "diverged", "failed"))]
    assert made.ended(seeds) == [seeds[0], seeds[2]]
    assert made.ended(seeds[1:2]) == seeds[1:2], "nothing else is there"


def test_a_line_of_runs_that_did_not_end_says_where_it_ends():
    stopped, failed = (run(seed=i, status=status, rounds=[0, n], loss=[2, 1]) for i, (status, n) in enumerate((("stopped", 1837), ("failed", 2000))))
    assert [made.lines(each, "round", "loss")[0].entry for each in ([stopped], [failed], [failed, stopped])] == [
        "a (stopped at round 1,837)", "a (failed at round 2,000)", "a (stopped at round 1,837)"
    ]  # fmt: skip


def test_a_seed_that_diverges_is_infinite_from_its_end_on():
    seeds = [run(seed=i, loss=[4.0, 2.0, 1.0]) for i in range(2)] + [run(seed=2, status="diverged", loss=[4.0, 9.0])]
    (line,) = made.lines(seeds, "round", "loss")
    assert (line.y.tolist(), line.most.tolist()) == ([4, 2, 1], [4, inf, inf])
    assert line.entry == "a (1 of 3 seeds diverged)"
    (alone,) = made.lines(seeds[2:], "round", "loss")
    assert (alone.y.tolist(), alone.entry) == ([4, inf], "a (diverged)")


def test_what_a_level_took_over_a_key_of_the_job_is_a_line_for_all_else_that_differs():
    grid = [run(f"top, k = {k}, step = {step}", written=f"up.compressor.k = {k!r}".replace("'", '"'), loss=[1, 0.1], bits=[0, bits])
            for k, step, bits in ((5, 1, 50), ("20%", 1, 7), (2, 1, 20), (2, 4, 30))]  # fmt: skip
    plain = run("GD", loss=[1, 0.1], bits=[0, 99])
    found = {line.label: line for line in made.levels([*grid, plain], "up.compressor.k", "bits", {"loss": 0.5})}
    assert {label: None if line.x is None else (line.x.tolist(), line.y.tolist()) for label, line in found.items()} == {
        "top, step = 1": ([0.2, 2, 5], [7, 20, 50]), "top, step = 4": ([2], [30]), "GD": None,
    }  # fmt: skip


def test_a_line_over_a_key_says_which_values_and_seeds_do_not_reach_the_level():
    ends = {1: (0.9, 0.9, 0.1), 2: (0.1, 0.1, 0.1), 5: (0.9, 0.1, 0.1), 11: (0.9, 0.9, 0.9)}
    grid = [run(f"top, k = {k}", seed, written=f"up.compressor.k = {k}", loss=[1, end], bits=[0, 10 * k])
            for k, each in ends.items() for seed, end in enumerate(each)]  # fmt: skip
    plain = [run("GD", seed, loss=[1, end], bits=[0, 9]) for seed, end in enumerate((0.1, 0.1, 0.9))]
    top, gd = made.levels([*grid, *plain], "up.compressor.k", "bits", {"loss": 0.5})
    assert (top.entry, top.x.tolist()) == ("top (not reached: k = 1, 11; 2 of 3 seeds reach it: k = 5)", [1, 2, 5, 11])
    np.testing.assert_array_equal([top.y, top.least, top.most], [[nan, 20, 50, nan], [10, 20, 50, nan], [nan, 20, inf, nan]])
    assert gd.entry == "GD (2 of 3 seeds reach it)"
    (none,) = made.levels(grid[:3], "up.compressor.k", "bits", {"loss": 0.05})
    assert none.entry == "top (not reached)"


def test_points_of_runs_whose_trials_missed_their_target_say_so():
    grid = [run(f"top, k = {k}", written=f"up.compressor.k = {k}", loss=[1, 0.1], k=[0, k], bits=[0, 10 * k]) for k in (1, 2, 5)]
    for each, took in zip(grid, (None, 7, None), strict=True):
        each.attrs["tuned"] = json.dumps({"parameter": "algorithm.step", "value": 1, "took": [took], "settled": True})
    (reached,), (last,) = made.levels(grid, "up.compressor.k", "bits", {"loss": 0.5}), made.last_points(grid, "k", "loss")
    assert reached.entry == "top (trials missed the target: k = 1, 5)"
    assert (last.entry, [*last.of]) == (reached.entry, [each.label for each in grid])


def test_a_grid_s_last_rows_are_one_line_in_the_order_of_x():
    grid = [run(f"top, k = {k}", seed, loss=[9.0, y], density=[0.0, k]) for k, seed, y in ((3, 0, 0.5), (1, 0, 0.2), (1, 1, 0.6), (1, 2, 0.3))]
    (line,) = made.last_points([*grid], "density", "loss")
    assert (line.label, line.x.tolist(), line.y.tolist()) == ("top", [1, 3], [0.3, 0.5])
    assert (line.least.tolist(), line.most.tolist()) == ([0.2, 0.5], [0.6, 0.5])
    begun = run("top, k = 2", status="running", loss=[9.0, 0.4], density=[0.0, 2])
    (line,) = made.last_points([*grid, begun], "density", "loss")
    np.testing.assert_array_equal(line.y, [0.3, nan, 0.5], "it is no point yet")
    assert line.entry == "top (running at round 1: density = 2)"


def test_what_a_level_took_is_the_entry_of_the_first_row_that_reached_it():
    """At T = 2 three seeds take 20, 40 and 10 bits; of T = 1 only one comes down to the level, so that its median is no number."""
    two = [run("cat, budget = 2", s, budget=[0, 2, 2], loss=each, bits=[0, b, 2 * b]) for s, (each, b) in enumerate(
        (([1, 0.5, 0.1], 20), ([1, 0.9, 0.5], 20), ([1, 0.5, 0.5], 10))
    )]  # fmt: skip
    one = [run("cat, budget = 1", s, budget=[0, 1, 1], loss=[1, 0.9, last], bits=[0, 7, 8]) for s, last in enumerate((0.4, 0.9, 0.9))]
    (line,) = made.levels([*two, *one], "budget", "bits", {"loss": 0.5})
    assert (line.label, line.x.tolist()) == ("cat", [1, 2])
    np.testing.assert_array_equal([line.y, line.least, line.most], [[nan, 20], [8, 10], [nan, 40]])


@pytest.mark.parametrize("budget", [{"budget": [0, 2, 3]}, {}, {"budget": [7]}])
def test_a_run_without_an_x_of_its_own_is_a_line_at_every_x(budget):
    rows = len(budget.get("budget", [0, 0, 0]))
    found = made.levels([run("adaptive, c = 1", loss=[1, 0.5, 0.1][:rows], bits=[0, 3, 4][:rows], **budget)], "budget", "bits", {"loss": 0.2})
    assert [(line.label, line.x) for line in found] == [("adaptive, c = 1", None)]
    np.testing.assert_array_equal(found[0].y, [4 if rows == 3 else nan])


def test_a_level_of_an_accuracy_is_one_that_is_risen_to():
    (line,) = made.levels([run(test_accuracy=[0.1, 0.8, 0.95], bits=[0, 3, 4])], "budget", "bits", {"test_accuracy": 0.9})
    assert line.y.tolist() == [4]


def test_labels_lose_what_all_of_a_grid_share():
    assert made.stem("top, k = 3, mu = 2") == "top"
    assert made.stem("top-3, scaled") == "top-3, scaled"
    labels = ["GD, n = 2, mu = 1", "EF, n = 4, mu = 1"]
    assert made.without_common(labels) == {labels[0]: "GD, n = 2", labels[1]: "EF, n = 4"}
    assert made.without_common([]) == {}


def test_points_that_an_axis_does_not_have_are_not_drawn():
    x, y = np.array([1.0, 0.0, 2.0, 3.0, -1.0]), np.array([1.0, 1.0, inf, 0.0, 2.0])
    assert made.shown(x, y, "linear", "linear").tolist() == [True, True, False, True, True]
    assert made.shown(x, y, "log", "linear").tolist() == [True, False, False, True, False]
    assert made.shown(x, y, "linear", "log").tolist() == [True, True, False, False, True]
