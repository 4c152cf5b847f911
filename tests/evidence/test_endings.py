"""How runs that miss a target ended, on curves that are made up: cut off while still falling, at a floor, or diverged."""

import numpy as np
import pytest
from helpers.losses import written

from mpi_compress.evidence.comparison import compare
from mpi_compress.evidence.endings import comes_nearer, ending, still_falls
from mpi_compress.results.targets import Target

K = np.arange(201)
GRADIENT = Target.of("squared_grad_norm", 1e-4)
NOISE = np.random.default_rng(0).uniform(0.7, 1.3, K.size)


def falls(values, target=GRADIENT):
    return still_falls(np.arange(len(values)), np.asarray(values, dtype=float), target)


def test_momentum_that_is_cut_off_on_an_upswing_or_between_two_has_no_floor():
    swings = np.exp(-0.04 * K) * (1.0 - 0.7 * np.sin(0.15 * K))
    assert 0.0 not in [falls(swings[:end]) for end in range(15, 151)]


@pytest.mark.parametrize(("values", "still"), [
    (0.97**K, True), (0.998**K, True), (1 / (1 + K), True), (1 / np.sqrt(1 + K), True), (0.97**K * NOISE, True),
    (np.maximum(0.9**K, 0.01), False), (np.maximum(0.97**K, 0.97**110), False), (0.01 * NOISE, False), (0.01 + 0.9**K, False),
    (np.where(K < 100, 1.0, 0.01) * np.ones(K.size), False), (0.01 + 0.2**K, False), ((0.01 * NOISE)[::12], False), (0.71 - 6e-5 * K, True),
])  # fmt: skip
def test_slow_is_still_falling_and_flat_is_a_floor(values, still):
    assert falls(values) == still


def test_a_column_that_does_not_fall_to_zero_is_judged_by_what_is_left_to_the_level():
    """f falls to its least value, 0.3: a level above it comes nearer, one below it does not."""
    loss = 0.3 + 0.95**K
    assert falls(loss, Target.of("loss", 0.3)) == 1.0
    assert falls(loss, Target.of("loss", 0.2)) == 0.0
    accuracy = 0.8 - 0.5 * 0.95**K
    assert falls(accuracy, Target("test_accuracy", 0.8, True)) == 1.0
    assert falls(accuracy, Target("test_accuracy", 0.9, True)) == 0.0


def test_several_seeds_are_judged_by_most_of_them_and_a_rise_or_few_rows_by_nothing(tmp_path):
    curves, low = (0.97**K, np.full(K.size, 0.5), 1.01**K, np.ones(3)), Target.of("loss", 1e-9)
    down, flat, rises, few = (written(tmp_path, f"{i}", list(curve)) for i, curve in enumerate(curves))
    assert [comes_nearer([down, *others], low) for others in ([down, flat], [flat, flat], [rises], [few])] == [True, False, None, None]


def test_a_table_tells_runs_that_were_cut_off_from_floors_and_from_runs_that_diverged(tmp_path):
    k = np.arange(41)
    runs = [
        written(tmp_path, "cut off", list(0.95**k)), written(tmp_path, "floor", list(np.maximum(0.7**k, 0.05))),
        written(tmp_path, "wild", [1.0, 9.0], status="diverged"),
    ]  # fmt: skip
    target = Target.of("grad_norm", 1e-3)
    found = compare(runs, [target])
    assert dict(found.cells) == {"floor": "not reached ¹", "cut off": "not reached ²", "wild": "not reached ³"}
    assert [method.cells[0].why for method in found.methods] == (whys := [
        "not reached (plateaus at 0.05)", "not reached in 40 kbit (0.129, still falling)", "not reached (diverged in round 1)",
    ])  # fmt: skip
    assert found.notes == [f"{mark} {why}" for mark, why in zip("¹²³", whys, strict=True)]
    assert compare(runs[:1], [target], "round").whys == ["not reached in 40 rounds (0.129, still falling)"]
    assert compare(runs[:1], [target], "seconds").whys == ["not reached in 80 s (0.129, still falling)"]
    above = written(tmp_path, "above", [1.0, *(50 * 0.96 ** k[1:])])
    assert compare([above], [target]).whys == ["not reached in 40 kbit (9.77, above its start)"]
    rising = written(tmp_path, "up", list(1 - 0.95**k))
    assert compare([rising], [Target("loss", 1.0, True)]).whys == ["not reached in 40 kbit (0.871, still rising)"]


def test_a_run_that_goes_on_leaves_all_of_its_method_open(tmp_path):
    k = np.arange(41)
    over, open_ = (written(tmp_path, "a", list(0.95**k), seed, status) for seed, status in enumerate(("complete", "stopped")))
    target = Target.of("grad_norm", 1e-3)
    assert ending([over, open_], target).startswith("(0.129 so far, stopped")
    assert ending([open_, over], target).startswith("(0.129 so far, ")
    wild = written(tmp_path, "a", [1.0, 0.1285], 2, "diverged")
    assert ending([over, wild], target, "9 bit") == "in 9 bit (0.129, still falling, 1 diverged)"
    apart = written(tmp_path, "a", list(0.9**k), 3)
    assert ending([over, apart], target) == "(0.0716, 0.015 … 0.13, still falling)"
