"""Every verdict is what a short script finds in the .h5 files alone; intervals, windows, and what is no test of a claim."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import by_hand

import mpi_compress as mc
from mpi_compress.core.errors import UserError
from mpi_compress.evidence import verdicts
from mpi_compress.evidence.answers import at_edge
from mpi_compress.evidence.outcomes import Outcome, counted
from mpi_compress.evidence.verdicts import Verdict, median_interval
from mpi_compress.job.claims import divides, meets
from mpi_compress.job.tables import Claim

JOBS = Path(__file__).parents[2] / "jobs"
TINY = {
    "aiade/condition": {"stop.rounds": 60},
    "gspar/fig1-sparse": {"stop.rounds": 48, "data.samples": 64, "data.dim": 20, "tune.values": [1, 4]},
}
SIX = """
data = { generator = "gspar", samples = 60, dim = 30 }
objective = { mu = "1e-2 L" }
workers = { count = 3 }
stop = { rounds = 40 }
[[run]]
label = "SGD"
algorithm = { name = "sgd", batch = 2 }
[[run]]
label = "GD"
algorithm = { name = "gd" }
seed = 7
[[run]]
label = "top, k = 1"
algorithm = { name = "sgd", batch = 2 }
up = { compressor = { name = "top-k", k = 1 } }
[[run]]
label = "top, k = 3"
algorithm = { name = "sgd", batch = 2 }
up = { compressor = { name = "top-k", k = 3 } }
[[run]]
label = "top, k = 30"
algorithm = { name = "sgd", batch = 2 }
up = { compressor = { name = "top-k", k = 30 } }
[grid]
seed = [0, 1, 2, 3, 4, 5]
"""
CLAIM = '[[claim]]\nid = "{id}"\nsays = "so"\nvalue = """{value}"""\nholds = "{holds}"\n'


SLOW = ("gspar/fig1-sparse",)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in TINY])
def test_a_short_script_finds_every_verdict_in_the_files_alone(name, tmp_path):
    job = mc.load_job(JOBS / f"{name}.toml", TINY[name])
    runs = mc.run(job, out=tmp_path)
    folder = runs[0].file.parent
    whole = replace(job, runs=[replace(spec, rounds_of_job=0) for spec in job.runs])  # as if no run were shorter than the job's
    found = verdicts.check(whole, mc_read(folder))
    expected = list(by_hand.judged(JOBS / f"{name}.toml", folder))
    assert [v.claim.id for v in found] == [claim for claim, _, _ in expected]
    for verdict, (_, values, word) in zip(found, expected, strict=True):
        np.testing.assert_allclose(verdict.values, values, rtol=1e-12)
        assert verdict.outcome == word


def mc_read(folder):
    return [mc.read(file) for file in sorted(folder.glob("*.h5"))]


@pytest.fixture(scope="module")
def six(tmp_path_factory):
    file = tmp_path_factory.mktemp("six") / "six.toml"
    file.write_text(SIX)
    return file, mc.run(mc.load_job(file), out=file.parent)


def judged(six, value, holds, more=""):
    file, runs = six
    file.write_text(SIX + CLAIM.format(id="X", value=value, holds=holds) + more)
    (found,) = verdicts.check(mc.load_job(file), runs)
    return found


def test_the_files_give_every_form_of_claim_its_verdict(six):
    file, runs = six
    ends = [float(r.trace["suboptimality"][-1] / runs[6].trace["suboptimality"][-1]) for r in runs[:6]]
    split, below = sorted(ends)[1], 0.9 * min(ends)
    forms = [
        ("suboptimality('SGD') / suboptimality('GD')", f"<= {1.01 * split!r}"), ("suboptimality('SGD') / suboptimality('GD')", f"< {below!r}"),
        ("suboptimality('SGD') / suboptimality('GD')", f"in [{below!r}, {2 * max(ends)!r}]"),
        ("mean('suboptimality', 'SGD', round=(20, 40)) / mean('suboptimality', 'GD', round=(20, 40))", "> 0"),
        ("largest('suboptimality / loss', 'SGD', epoch=(0, 0.5)) - smallest('loss', 'top, k = *')", "<= 0"),
        ("wire_bits_up('top, k = *', suboptimality=0.35)", ">= 1"), ("log(kappa('GD')) + wire_bits('SGD')", "> 3"),
    ]  # fmt: skip
    file.write_text(SIX + "".join(CLAIM.format(id=str(i), value=v, holds=h) for i, (v, h) in enumerate(forms)))
    found = verdicts.check(mc.load_job(file), runs)
    for verdict, (_, values, word) in zip(found, by_hand.judged(file, runs[0].file.parent), strict=True):
        np.testing.assert_allclose(verdict.values, values, rtol=1e-12)
        assert verdict.outcome == word
    assert [v.outcome for v in found[:3]] == ["undecided", "does not hold", "holds"]
    assert found[0].holds is None
    assert "undecided: the interval holds values that meet the claim" in str(found[0])


def test_a_window_takes_the_rows_above_its_low_end_up_to_its_high_end(six):
    rows = six[1][0].trace["suboptimality"]
    assert judged(six, "mean('suboptimality', 'SGD', round=(0, 2))", "> 0").values[0] == np.mean(rows[1:3])
    missing = judged(six, "mean('suboptimality', 'SGD', round=(90, 99))", "> 0")
    assert (missing.outcome, missing.why) == ("not run", "'SGD' has no record with 90 < round <= 99 of seed 0")
    with pytest.raises(UserError, match="no record has 5 < round <= 4"):
        judged(six, "mean('loss', 'SGD', round=(5, 4))", "> 0")


def test_an_interval_holds_the_median_with_nine_tenths():
    assert median_interval([3.0, 1.0, 2.0, 4.0]) is None
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) == (1.0, 5.0)
    assert median_interval([*map(float, range(8))]) == (1.0, 6.0)
    assert median_interval([1.0, 2.0, 3.0, 4.0, np.nan]) is None
    draws = np.random.default_rng(1).exponential(size=(4000, 8))
    held = [low <= np.log(2) <= high for low, high in map(median_interval, draws)]
    assert np.mean(held) == pytest.approx(1 - 2 * 9 / 256, abs=5 * np.sqrt(0.07 * 0.93 / 4000))


def test_a_condition_divides_an_interval_if_it_holds_within_it_and_does_not():
    conditions, grid = ("<= 2", "> 1", "in [1, 2]", ">= 3"), np.linspace(0, 4, 17)
    for condition, (low, high) in itertools.product(conditions, itertools.combinations(grid, 2)):
        inside = [meets(condition, v) for v in (low, high, *np.linspace(low, high, 83))]
        assert divides(condition, low, high) == (any(inside) and not all(inside))
    assert not divides("< 2", 2.0, 2.0)


def test_the_best_of_a_grid_at_its_edge_is_said(six):
    assert [at_edge(run, runs) for runs in [_grid(k=[10, 1, "0.05", 3])] for run in runs] == [True, False, True, False]
    assert at_edge((qsgd := _grid(levels=[2, 20, 5], bits=[3, 6, 4]))[1], qsgd), "numbers that rise together"
    assert at_edge((falling := _grid(levels=[1, 2, 3], bits=[6, 4, 3]))[0], falling), "or fall"
    assert not at_edge((crossed := _grid(levels=[2, 20, 5], bits=[4, 3, 6]))[1], crossed)
    assert not any(at_edge(runs[0], runs) for runs in (_grid(name=["a", "b", "c"]), _grid(k=[1, 2]), _grid(k=[1, "2/L", 3]), _grid(k=[1] * 3)))
    verdict = judged(six, "wire_bits_up('top, k = *')", "> 0")
    assert verdict.notes["edges"] == ["'top, k = 1' is best, at the edge of its grid"]
    assert "at the edge of its grid" in str(verdict)


def _grid(**values):
    """Runs of these settings of a compressor."""
    points = [dict(zip(values, point, strict=True)) for point in zip(*values.values(), strict=True)]
    jobs = ["[up.compressor]\n" + "\n".join(f"{key} = {value!r}" for key, value in point.items()) for point in points]
    return [mc.Run(Path(f"{i}.h5"), {"label": f"run {i}", "job": job}, {}, {}, {}, None) for i, job in enumerate(jobs)]


def test_cores_are_a_number_and_in_results_of_earlier_versions_words(six):
    run = six[1][0]
    assert run.cores == run.attrs["cores"] >= 1
    words = {"label": "a", "host": "node-7 cores (x86_64, 48 cores)"}
    earlier = [mc.Run(run.file, attrs, {}, {}, {}, None).cores for attrs in (words, {"label": "a", "host": "node"}, {"label": "a"})]
    assert earlier == [48, 0, 0]


def test_a_level_that_no_run_comes_down_to_is_no_test(six):
    verdict = judged(six, "round('GD', loss=-2) / round('GD', loss=-1)", "> 0")
    assert verdict.outcome == "not tested"
    assert verdict.reason.endswith(" target")
    assert judged(six, "round('GD', loss=-1) / round('SGD')", "<= 3").outcome == "does not hold"


def test_a_claim_may_ask_for_what_was_tuned(six, tmp_path):
    file = tmp_path / "tuned.toml"
    head = SIX[: SIX.index("[[run]]")].replace("rounds = 40", "rounds = 5")
    run = '[[run]]\nlabel = "a"\nalgorithm = { name = "gd" }\n'
    run += 'tune = { parameter = "algorithm.step", values = ["0.1/L", "0.5/L"], to = { loss = 0.1 } }\n'
    file.write_text(head + run + CLAIM.format(id="X", value="tuned('a') * L('a')", holds=">= 0.09"))
    (found,) = verdicts.check(mc.load_job(file), mc.run(mc.load_job(file), out=tmp_path))
    assert found.outcome == "holds"
    assert found.median == pytest.approx(2.5, rel=1e-4), "the grid goes on where its end is best"
    assert judged(six, "tuned('GD')", "> 0").why == "'GD' has no tuned parameter of seed 0"


def test_a_claim_stands_with_the_papers_elsewhere_or_with_ours(six):
    groups = {basis: Outcome(Path("a.toml"), "a", "", None).group(Verdict(Claim("X", "so", "1", "> 0", basis), [1.0]))
              for basis in ("paper", "other data", "ours")}  # fmt: skip
    assert groups == {"paper": "paper", "other data": "elsewhere", "ours": "ours"}
    with pytest.raises(UserError, match="basis"):
        judged(six, "loss('SGD')", "> 0", 'basis = "theirs"\n')
    claim = Claim("X", "so", "1", "<= 2")
    several = [Verdict(claim, [1.0]), Verdict(claim, [3.0]), Verdict(claim, [1.0, 1.0, 1.0, 1.0, 3.0]), Verdict(claim, [])]
    assert counted(each.outcome for each in several) == "1 of 4 holds, 1 does not, 1 undecided, 1 not run"


@pytest.mark.parametrize(("values", "between", "ours"), [
    ([np.inf], [(170.0, np.inf)], "≥ 170"), ([np.inf], [(np.inf, np.inf)], "inf"), ([np.inf], [], "inf"), ([5.0], [(4.0, 6.0)], "5"),
    ([np.nan], [], "–"), ([], [], "–"), ([1.0, np.inf, np.inf], [(0.5, 2.0), (3.0, np.inf), (4.0, np.inf)], "≥ 3"),
])  # fmt: skip
def test_a_value_that_is_only_known_to_be_no_less_says_so(values, between, ours):
    assert Verdict(Claim("X", "so", "1", "> 0"), values, between=between).ours == ours


def test_the_spread_of_few_seeds_is_their_range_and_of_many_an_interval_of_the_median():
    claim = Claim("X", "so", "1", "> 0")
    assert Verdict(claim, [1.0]).spread == ""
    assert Verdict(claim, [3.0, 1.0, 2.0]).spread == "1 … 3 over 3 seeds"
    assert Verdict(claim, [5.0, 1.0, 3.0, 2.0, 4.0]).spread == "interval 1 … 5 over 5 seeds", "1 − 2/2⁵ is nine tenths or more"
    assert Verdict(claim, [np.inf, np.inf]).spread == ""
    assert Verdict(claim, [1.0, np.nan]).spread == ""
