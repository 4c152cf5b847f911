"""What small functions say at the edge of their case, by hand: ties, zeros, ends of ranges, one item among several."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.plays import play, problem

import mpi_compress as mc
from mpi_compress.algorithms.regimes import Regime
from mpi_compress.algorithms.tuning.schemes import Stochastically
from mpi_compress.algorithms.tuning.search import Improvement, alistarh_budget
from mpi_compress.cli.main import main
from mpi_compress.core import arrays
from mpi_compress.core.arrays import finite_where
from mpi_compress.evidence.comparison import Cell
from mpi_compress.evidence.levels import round_targets
from mpi_compress.job.loading import Job, parse_job
from mpi_compress.job.tables import LogTable
from mpi_compress.job.trials import _shortened
from mpi_compress.messages.kinds import Dense, Projections, SignSparse, Sparse, WithScalar, no_coordinates, stacked
from mpi_compress.messages.link import Arrived
from mpi_compress.planning.pool import measures_seconds
from mpi_compress.problem.models.deep.network import Network
from mpi_compress.problem.penalties.base import _number
from mpi_compress.results.bounds import BoundsTable
from mpi_compress.results.files import job_name
from mpi_compress.results.targets import Target
from mpi_compress.results.tidy import _job_of


def test_signs_of_zeros_are_not_sent():
    top = stacked([Sparse(4, np.array([0, 1, 2], dtype=np.uint32), np.array([1.0, 0.0, -2.0])), no_coordinates(4)])
    sent = SignSparse.of(top, np.array([3.0, 1.0]))
    assert (sent[0].indices.tolist(), sent[0].negative.tolist(), sent[0].magnitude) == ([0, 2], [False, True], 3.0)
    assert sent[1].elements == 0


def test_the_variance_that_qsgd_states_is_the_smaller_of_two_for_the_largest_magnitude_too():
    """(b − 1)/(4s²) and √(b − 1)/(2s), for buckets of b coordinates and s levels."""
    C = mc.compressors["qsgd"]
    assert [C(levels=s, norm="max").omega(17) for s in (1, 2, 4)] == [2.0, 1.0, 1 / 4]
    assert [C(levels=s).omega(16) for s in (1, 2, 4)] == [4.0, 1.0, 1 / 4]


def test_a_regime_in_which_nothing_moves_is_not_critical():
    """It is critical up to the end of the first epoch, here of 2 rounds, and again where ‖Δ‖ changes."""
    regime, still = Regime(np.zeros(4)), Dense(np.zeros(4))
    for k in range(6):
        regime.hear(SimpleNamespace(eta=0.5, every=1), still, k, 2, False)
        assert regime.critical == (k == 0)
    seldom = Regime(np.zeros(4))  # the first epoch is a test, whatever `every` says
    seldom.hear(SimpleNamespace(eta=0.5, every=3), still, 1, 2, False)
    assert not seldom.critical
    regime.hear(SimpleNamespace(eta=0.5, every=1), Dense(np.ones(4)), 6, 2, False)
    regime.hear(SimpleNamespace(eta=0.5, every=1), Dense(np.ones(4)), 7, 2, False)
    assert regime.critical


def test_the_mean_of_a_stochastic_method_is_times_the_least_of_the_scalars():
    sent = stacked([WithScalar(ω, Dense(np.full(3, v))) for ω, v in ((0.5, 2.0), (0.25, 4.0), (0.75, 6.0))])
    ups = Arrived(sent, np.arange(3), 3, WithScalar(0.0, no_coordinates(3)))
    sent = Stochastically.answer(SimpleNamespace(n=3), lambda vectors: Dense(np.mean([v.dense() for v in vectors], axis=0)), ups)
    assert sent.dense().tolist() == [1.0] * 3


def test_alistarhs_budget_is_the_least_that_reaches_the_norm():
    """4 ≥ √(16 + 1 + 1 + 1)? No: 5 ≥ √19 takes two; of four equal ones √4 = 2 takes two."""
    assert [alistarh_budget(np.array(g)) for g in ([4.0, 1, 1, 1], [1.0, 1, 1, 1], [3.0, 0, 0, 0], [0.0, 0, 0, 0])] == [2, 2, 1, 1]


def test_the_improvement_of_what_is_not_finite_is_not_known_and_of_zero_is_1():
    g = np.array([[0.0, np.inf], [0.0, 0.0], [0.0, 2.0]])
    top = Sparse(2, np.array([1, 1, 1], dtype=np.uint32), g[:, 1], np.array([1, 2, 3]))
    for improvement in Improvement:
        np.testing.assert_array_equal(improvement.of(g, top), [np.nan, 1.0, 1.0])


def test_the_gap_of_double_encoding_is_what_the_direction_is_off_over_what_it_may_be():
    p, seen = problem(mu=0.1), []
    run = play(p, {"name": "iade", "level": 5.0, "rate": 0.9}, {"name": "lattice"}, 6, lambda k, node, workers: seen.append((node.x.copy(), node.v.copy())), codec="lattice", down={"name": "lattice"})  # fmt: skip
    for k in range(1, 7):
        true = np.mean([f.value_and_gradient(seen[k - 1][0])[1] for f in p.fs], axis=0)
        assert run.trace["gap"][k] == pytest.approx(np.linalg.norm(seen[k][1] - true) / run.method.budget(k - 1), rel=1e-6)


def test_targets_are_shares_of_the_way_and_on_an_axis_of_decades_shares_of_its_decades():
    values = [np.array([8.0, 4.0, 0.0])]
    assert round_targets(values, rising=False, falls=False, asked=[]) == [4.0, 1.6, 0.4]
    assert round_targets([np.array([0.1, 0.5, 0.9])], rising=True, falls=False, asked=[0.88]) == [0.5, 0.74, 0.86, 0.88]
    assert round_targets([np.array([1e4, 1.0])], rising=False, falls=True, asked=[]) == [1e3, 1e2, 1e1]
    assert round_targets([np.array([1.0, 2.0])], rising=False, falls=False, asked=[0.5]) == []


def test_labels_of_a_job_are_all_within_100_letters_and_whole_ones_beyond():
    """Labels of 9 letters: nine of them and their commas take 97, ten 108."""
    jobs = [["a"], ["a", "b", "a"], ["nine-long"[:8] + str(i) for i in range(9)], ["nine-long"[:8] + str(i) for i in range(10)]]
    shown = [repr(Job("it", "", "", [SimpleNamespace(label=label) for label in labels])) for labels in jobs]
    nine = ", ".join(jobs[2])
    assert shown == ["Job('it', 1 run: a)", "Job('it', 3 runs: a, b)", f"Job('it', 9 runs: {nine})", f"Job('it', 10 runs: {nine}, …)"]


def test_a_job_measures_seconds_by_its_figure_or_by_one_of_its_claims(tmp_path):
    tables = {"data": {"generator": "gspar"}, "algorithm": {"name": "gd"}, "stop": {"rounds": 1}}
    claims = [{"id": name, "says": "so", "value": value, "holds": "> 0"} for name, value in (("A", "round('job')"), ("B", "seconds('job')"))]
    jobs = [{}, {"claim": claims[:1]}, {"claim": claims}, {"figure": {"x": "seconds"}}]
    assert [measures_seconds(parse_job({**tables, **more}, "job", tmp_path, {})) for more in jobs] == [False, False, True, True]


def test_table_1_is_shown_for_powers_of_ten_below_the_first_square_of_the_gradient_that_were_reached():
    rows = 4
    theory = {name: np.full((rows, 3), 0.3) for name in ("alpha", "beta", "omega")} | {"improvement": np.full(rows, 0.5), "variance": np.zeros(rows)}
    trace = {"round": np.arange(rows), "loss": np.ones(rows), "suboptimality": np.ones(rows), "grad_norm": np.array([4.0, 2.0, 1.0, 0.1])}
    trace |= {"distance": np.ones(rows), "elements_up": np.arange(rows)}
    attrs = {"label": "x", "status": "complete", "L": 2.0, "mu": 0.0, "f_star": 0.0, "curve": "alpha", "dim": 50, "n_workers": 1}
    table = BoundsTable.of(mc.Run(Path("x.h5"), attrs, trace, {}, {"seconds": np.zeros(rows)}, None, theory))
    assert [(row.kind, row.eps, row.needed) for row in table.rows()] == [("non-convex", pytest.approx(16 * 10.0**-k), need) for k, need in ((1, 2), (2, 3), (3, 3))]


def test_results_are_listed_with_their_ages(tmp_path, capsys):
    for days, job in ((0, "new"), (3 / 24, "hours"), (4, "days")):
        tables = {"name": job, "data": {"generator": "gspar", "samples": 8, "dim": 3}, "algorithm": {"name": "gd"}, "stop": {"rounds": 1}}
        (run,) = mc.run(tables, out=tmp_path)
        written = time.time() - 86400 * days
        os.utime(run.file, (written, written))
    assert main(["results", "ls", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert [age in said for age in ("0 min", "3 h", "4 d")] == [True] * 3, said



def test_a_sample_of_one_row_is_the_least():
    assert LogTable(evaluate=1).evaluate == 1
    with pytest.raises(ValueError, match="at least 1 sample"):
        LogTable(evaluate=0)


def test_a_shorter_trial_may_spend_its_share_of_all_budgets_and_rounds_are_whole():
    stop = {"rounds": 100, "seconds": "1 min", "wire_bits_up": 900.0}
    assert _shortened(stop, 1 / 3, Target.of("loss", 0.5)) == {"rounds": 34, "seconds": pytest.approx(20), "wire_bits_up": pytest.approx(300), "loss": 0.5}
    assert _shortened({"rounds": 2, "loss": 0.7}, 1 / 9, Target.of("loss", 0.5)) == {"rounds": 1, "loss": 0.7}


@pytest.mark.parametrize(("shape", "m"), [((5, 7), 5), ((3, 3, 4, 8), 36), ((1, 6), 1)])
def test_a_block_of_a_network_starts_at_he_s_numbers_and_a_vector_at_0(shape, m):
    """N(0, 2/m), m the product of all axes but the last."""
    found, wanted = (np.random.default_rng(3) for _ in range(2))
    assert Network.start_of_block(None, "w", shape, found) == pytest.approx(wanted.standard_normal(shape) * np.sqrt(2 / m), rel=1e-15)
    assert not Network.start_of_block(None, "b", (9,), found).any()


@pytest.mark.parametrize("given", [[-5, 3], [3, 50], [-5, 50]])
def test_whole_numbers_are_within_both_bounds(given):
    assert arrays.whole([0, 10], (2,), "levels", 0, 10).tolist() == [0, 10]
    with pytest.raises(ValueError, match=f"levels go from {given[0]} to {given[1]}; they should be from 0 to 10"):
        arrays.whole(given, (2,), "levels", 0, 10)


def test_a_job_is_named_by_its_path_below_the_innermost_folder_of_jobs_and_its_results_alike():
    assert [job_name(f"/a/{path}.toml") for path in ("jobs/cat/fig1", "jobs/b/jobs/c/d", "e", "jobs/f")] == ["cat/fig1", "c/d", "e", "f"]
    assert [_job_of(Path(f"/a/results/{path}/x.h5")) for path in ("cat/fig1", "b/results/c/d")] == ["cat/fig1", "c/d"]
    assert _job_of(Path("/a/cat/fig1/x.h5")) == "fig1"


def test_a_penalty_may_be_nan_only_where_x_is_not_finite():
    assert np.isnan(_number(np.nan, np.array([np.inf, 1.0])))
    with pytest.raises(ValueError, match="NaN"):
        _number(np.nan, np.ones(2))
    assert np.isnan(finite_where(np.array([np.inf, 1.0]), np.array([np.nan, 1.0]), "coordinate")[0])
    with pytest.raises(ValueError, match="coordinate is NaN at 1,"):
        finite_where(np.ones(2), np.array([1.0, np.nan]), "coordinate")


def test_a_seed_has_32_bits():
    for seed in (0, 2**32 - 1):
        assert Projections(3, np.ones(2), seed).checked(3).seed == seed
    for seed in (-1, 2**32):
        with pytest.raises(ValueError, match=f"seed = {seed}; it should have 32 bits"):
            Projections(3, np.ones(2), seed).checked(3)


def test_a_cell_has_the_median_the_least_and_the_most_of_its_seeds_and_shows_a_range_where_they_differ():
    assert Cell([30.0, 10.0, 20.0], "round").numbers == ["20", "10", "30", "3"]
    assert Cell([np.inf, 5.0], "round").numbers == ["", "5", "", "1"]
    assert ["…" in Cell(took, "round").short for took in ([30.0, 10.0, 20.0], [7.0, 7.0], [7.0])] == [True, False, False]
