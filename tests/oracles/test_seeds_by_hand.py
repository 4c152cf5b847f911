"""Tables, verdicts and tuning over several seeds, from made-up rows: what is a median, what all seeds must do, and what half of them."""

import itertools
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import plain_literature as plain

import mpi_compress as mc
from mpi_compress.algorithms import algorithms
from mpi_compress.evidence.comparison import compare
from mpi_compress.evidence.crossings import statements
from mpi_compress.evidence.problems import fewest
from mpi_compress.evidence.verdicts import check
from mpi_compress.job.loading import parse_job
from mpi_compress.results.targets import Target

nan = np.nan
files = itertools.count()


def run(label, seed=0, status="complete", links="", **columns):
    """A result whose columns are given, of which `seconds` is in /timing."""
    rows = len(next(iter(columns.values())))
    counts = dict.fromkeys(("wire_bits_up", "wire_bits_down", "paper_bits_up", "cost_up"), np.zeros(rows))
    trace = {"round": np.arange(rows), "loss": np.zeros(rows), "suboptimality": np.zeros(rows), "grad_norm": np.ones(rows), **counts}
    trace |= {name: np.array(values, dtype=float) for name, values in columns.items()}
    attrs = {
        "label": label, "status": status, "job": f"seed = {seed}\n[algorithm]\nname = 'gd'\n[data]\ngenerator = 'gspar'\n",
        "run_id": f"{next(files)}", "n_workers": 2, "n_samples": 9, "dim": 12, "L": 1.0, "mu": 0.1, "f_star": 0.0, "data": "gspar",
        "links": links, "follows_link": False, "host": "here (x86_64, 8 cores)", "n_ranks": 1,
    }  # fmt: skip
    return mc.Run(Path(f"made-up/{attrs['run_id']}.h5"), attrs, trace, {}, {"seconds": np.arange(float(rows))}, None)


def order(runs, target, by="wire_bits_up"):
    return [method.label for method in compare(runs, [target], by).methods]


def test_methods_that_reach_a_rising_target_come_first_and_of_the_others_the_nearest():
    bits = [0, 10, 20]
    runs = [
        run("far", test_accuracy=[0.1, 0.2, 0.3], wire_bits_up=bits), run("near", test_accuracy=[0.1, 0.5, 0.8], wire_bits_up=bits),
        run("late", test_accuracy=[0.1, 0.5, 0.9], wire_bits_up=bits), run("soon", test_accuracy=[0.1, 0.95, 0.9], wire_bits_up=bits),
    ]  # fmt: skip
    assert order(runs, Target("test_accuracy", 0.9, True)) == ["soon", "late", "near", "far"]
    falling = [run(r.label, test_loss=1 - r.trace["test_accuracy"], wire_bits_up=bits) for r in runs]
    assert order(falling, Target.of("test_loss", 0.101)) == ["soon", "late", "near", "far"]


def test_what_a_method_took_is_the_median_over_its_seeds_and_infinite_where_half_of_them_miss():
    level, bits = Target.of("loss", 0.5), [0, 10, 20, 30]
    falls = {1: [1, 0.5, 0, 0], 2: [1, 1, 0.5, 0], 3: [1, 1, 1, 0.5], 0: [1, 1, 1, 0.9]}

    def method(name, *ends):
        return [run(name, seed, loss=falls[end], wire_bits_up=bits) for seed, end in enumerate(ends)]

    table = compare([*method("a", 1, 3, 2), *method("b", 1, 0, 0), *method("c", 1, 0), *method("d", 3, 3, 0)], [level], "wire_bits_up")
    cells = {each.label: each.cells[0] for each in table.methods}
    assert [cells[name].median for name in "abcd"] == [20, np.inf, np.inf, 30]
    assert "reached by 1 of 3 seeds" in cells["b"].why


def test_a_level_cannot_be_said_only_where_no_seed_knows_it():
    """f* may be known late, or with one seed alone: its rows count."""
    level, bits = Target.of("suboptimality", 0.5), [0, 10, 20]
    known, late, unknown = (
        run("GD", seed, suboptimality=values, wire_bits_up=bits)
        for seed, values in enumerate(([1, 1, 0.4], [nan, 0.5, 0.4], [nan, nan, nan]))
    )
    assert [level.is_unknown(each) for each in (known, late, unknown)] == [False, False, True]
    (one,) = compare([known, late, unknown], [level], "wire_bits_up").methods
    assert not one.cells[0].unknown
    assert list(one.cells[0].took) == [20, 10, np.inf]
    (none,) = compare([unknown], [level], "wire_bits_up").methods
    assert none.cells[0].unknown


def test_the_fewest_bits_are_those_of_methods_that_reach_the_target_with_more_than_half_of_their_seeds():
    falls = {True: [1, 0.4, 0.4], False: [1, 1, 1]}

    def method(name, bits, *reached):
        return [run(name, seed, loss=falls[each], wire_bits_up=[0, bits, 2 * bits]) for seed, each in enumerate(reached)]

    runs = [*method("cheap, with one of three", 1, True, False, False), *method("with two of three", 5, True, True, False), *method("dear", 9, True, True, True)]
    figure = SimpleNamespace(to={"loss": 0.5}, by="wire_bits_up")
    row = next(r for r in fewest([SimpleNamespace(job=SimpleNamespace(figure=figure), runs=runs)]) if r.comparison.by == "wire_bits_up")
    assert [method.label for method in row.reached] == ["with two of three", "dear"]
    assert row.cells[2:4] == ["5 bit (2 of 3 seeds reach it)", "with two of three"]
    assert row.cells[-1] == "2 of 3"


def test_a_crossing_is_that_of_the_medians_over_seeds():
    """Dense: 3 s at 1 s and 2e6 bits; sparse: 5 s at 4 s and 1e6 bits; so sparse wins below (2e6 − 1e6)/(4 − 1) bit/s."""
    medians = {"dense": (3, 1, 2e6), "sparse": (5, 4, 1e6)}
    runs = [
        run(label, seed, links="1 Mbit/s", loss=[1, 0.5], **{c: [0, share * v] for c, v in zip(("model_seconds", "model_fixed", "model_bits"), own, strict=True)})
        for label, own in medians.items() for seed, share in enumerate((1, 0.01, 50))
    ]  # fmt: skip
    first, second = statements(runs, Target.of("loss", 0.5))
    assert first == "on links of 1 Mbit/s, by the model: dense is fastest to loss ≤ 0.5, in 3 s in the median"
    assert second == "  sparse takes 5 s; it wins below 333.3 kbit/s, against dense; their ranges overlap"


def test_who_was_cut_off_is_not_said_to_be_slow_and_to_spend_a_budget_first_is_no_merit():
    """The short run falls by a half a round until its job ends it, at 1 s; the long one comes to the target at 3 s."""
    clock, level = {"model_fixed": [0] * 9, "model_bits": range(9), "links": "1 Mbit/s"}, Target.of("loss", 0.1)
    falls = [2.0**-i for i in range(9)]
    short = run("short", loss=[8 * v + 1 for v in falls], model_seconds=np.linspace(0, 1, 9), wire_bits=range(9), **clock)
    long = run("long", loss=falls, model_seconds=np.linspace(0, 6, 9), wire_bits=range(9), **clock)
    first, second = statements([short, long], level)
    assert "long is fastest of those that reach it to loss ≤ 0.1, in 3 s" in first
    assert second == "  short was cut off at 1 s"
    assert [*statements([short, long], Target.of("wire_bits", 3))] == []
    missed = [run("most", seed, loss=falls if seed else [1.0] * 9, model_seconds=np.linspace(0, 7, 9), wire_bits=range(9), **clock) for seed in range(3)]
    assert [*statements([long, *missed], level)][1] == "  most (2 of 3 seeds) takes 3.5 s"
    twin = run("twin", loss=falls, model_seconds=np.linspace(0, 6, 9), wire_bits=range(9), **clock)
    assert [*statements([long, twin], level)][1] == "  twin takes 3 s"


@pytest.mark.parametrize(
    ("cores", "ranks", "outcome"), [(8, 8, "holds"), (4, 4, "holds"), (2, 8, "not tested"), (8, 2, "not tested"), (3, 4, "not tested")]
)
def test_a_claim_about_workers_that_run_alone_takes_a_core_and_a_rank_for_each_of_them(cores, ranks, outcome, tmp_path):
    claim = {"id": "X", "says": "it is so", "value": "seconds('GD')", "holds": "> 0", "alone": True}
    tables = {"data": {"generator": "gspar", "samples": 8, "dim": 3}, "workers": {"count": 4}, "stop": {"rounds": 1}, "claim": [claim]}
    job = parse_job({**tables, "run": [{"label": "GD", "algorithm": {"name": "gd"}}]}, "alone", tmp_path, {})
    done = run("GD", loss=[1.0, 0.5])
    done.attrs.update(host=f"here (x86_64, {cores} cores)", n_ranks=ranks, n_workers=4, run_id=job.runs[0].run_id)
    (verdict,) = check(job, [done])
    assert verdict.outcome == outcome
    said = f"a rank and a core for each worker; the 4 of 'GD' had {ranks} on {cores}"
    assert (said in verdict.reason) == (outcome == "not tested")


def test_a_value_reaches_a_level_in_tuning_only_with_all_seeds(tmp_path, registered_for_one_test_only):
    """The long step is quick with two of three seeds and stands still with the third; the short one is slow, and wins."""

    of_seed_2 = {plain.stream(2, plain.SHARED, 0, k).random() for k in range(41)}

    @algorithms.register("luck")
    class Luck(algorithms["gd"]):
        def all_hear(self, node, down, t):
            if self.step < 0.5 or t.shared.random() not in of_seed_2:
                super().all_hear(node, down, t)

    data = {"generator": "least-squares", "samples": 12, "dim": 3, "condition": 1.0}
    tune = {"parameter": "algorithm.step", "values": [0.9, 0.3], "by": "round", "seeds": [1, 2, 3]}
    tables = {"data": data, "objective": {"loss": "least-squares"}, "start": {"offset": 2.0}, "stop": {"rounds": 40, "suboptimality": 1e-3}}
    (done,) = mc.run({"name": "luck", **tables, "seed": 1, "algorithm": {"name": "luck"}, "tune": tune}, out=tmp_path)
    assert done.tuned["value"] == 0.3
    tried = [value for value, _ in done.tuned["tried"]]
    assert done.tuned["took"][tried.index(0.9)] is None
    assert done.tuned["took"][tried.index(0.3)] > 5
    assert done.tuned["tried"][tried.index(0.9)][1] == pytest.approx(0, abs=1e-3), "its median would win"
