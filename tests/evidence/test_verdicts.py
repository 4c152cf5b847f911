"""Claims are figures taken from results, seed by seed, and conditions on them."""

import json
import math
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from helpers.refusals import naming

import mpi_compress as mc
from mpi_compress import UserError
from mpi_compress.cli.main import main
from mpi_compress.evidence import verdicts
from mpi_compress.evidence.outcomes import results_of
from mpi_compress.job import claims
from mpi_compress.job.claim_functions import FUNCTIONS, Function, _at_row
from mpi_compress.job.claims import meets
from mpi_compress.job.loading import load_job, parse_job
from mpi_compress.job.tables import Claim

JOB = """
data = { generator = "gspar", samples = 60, dim = 30 }
objective = { mu = "1e-2 L" }
workers = { count = 3 }
stop = { rounds = 40 }
[[run]]
label = "GD"
algorithm = { name = "gd" }
[[run]]
label = "top"
algorithm = { name = "gd" }
up = { compressor = { name = "top-k", k = 3 } }
[[run]]
label = "later"
algorithm = { name = "gd", step = "0.5/L" }
[grid]
seed = [0, 1]
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    file = tmp_path_factory.mktemp("claims") / "job.toml"
    file.write_text(JOB)
    for label in ("GD", "top"):
        mc.run(load_job(file, only=label), out=file.parent)
    return file


def judged(job, value, holds, unit="", **attrs):
    text = f'[[claim]]\nid = "X"\nsays = "it is so"\nvalue = """{value}"""\nunit = "{unit}"\nholds = "{holds}"\n'
    job.with_name("claimed.toml").write_text(JOB + text)
    claimed = load_job(job.with_name("claimed.toml"))
    done = results_of(load_job(job), job.parent)
    for run in done:
        run.attrs.update(attrs)
    return verdicts.check(claimed, done)[0]


def test_a_claim_about_gradients_says_which_runs_may_be_at_other_stationary_points(job):
    value = "grad_norm('top') / grad_norm('GD')"
    assert not judged(job, value, "> 0").remarks, "f* is known"
    (said,) = judged(job, value, "> 0", f_star=np.nan).remarks
    assert re.fullmatch(r"perhaps at other stationary points: the loss ends at up to \S+, the least at \S+: top", said)


def test_a_claim_says_which_of_its_runs_were_tuned_for_something_else(job):
    tuned = json.dumps({"parameter": "algorithm.step", "value": 1, "by": "wire_bits_up", "to": "loss ≤ 0.5", "tried": [], "settled": True})
    value = "{0}('top', loss=0.5) / {0}('GD', loss={1})"
    assert not judged(job, value.format("wire_bits_up", 0.5), "> 0", tuned=tuned).remarks
    said = "tuned for uplink bits on the wire to loss ≤ 0.5, so another value may need less here: {}"
    assert said.format("GD") in judged(job, value.format("wire_bits_up", 0.6), "> 0", tuned=tuned).remarks
    assert said.format("top; GD") in str(judged(job, value.format("round", 0.5), "> 0", tuned=tuned))
    assert not judged(job, "smallest('loss', 'GD')", "> 0", tuned=tuned).remarks


def test_of_factors_beyond_a_million_no_digit_is_printed():
    def text(*values, unit="× ‖∇f‖²"):
        verdict = verdicts.Verdict(Claim("X", "so it is", "1", "> 1", unit=unit), [*values])
        return verdict.ours, verdict.spread

    assert text(1.019e6, 2263.0, 4.556e26, 1e7, 1e5) == ("> 10⁶", "interval 2263 … > 10⁶ over 5 seeds")
    assert text(6.6e-16) == ("< 10⁻⁶", "")
    assert text(1.019e6, unit="‖e‖²") == ("1.019e+06", "")


def test_copies_of_a_run_are_no_seeds():
    def spread(*values, is_random=False):
        return verdicts.Verdict(Claim("X", "so it is", "1", "> 1"), [*values], is_random=is_random).spread

    assert spread(*[1.005] * 5) == "5 seeds, equal: 1 run"
    assert spread(*[1.005] * 2) == "2 seeds, equal: 1 run"
    assert spread(*[1.005] * 5, is_random=True) == "interval 1.005 … 1.005 over 5 seeds", "as many rounds by chance"


def test_a_factor_of_a_target_that_is_missed_is_no_value():
    def said(*values, unit="× bits up"):
        return str(verdicts.Verdict(Claim("X", "so it is", "1", "> 1", unit=unit), [*values])).splitlines()[1].strip()

    assert said(0.0, 0.0, 3.927, 0.0, 2.0).startswith("ours no value (3 of 5 seeds miss the target) (interval no value … 3.927 over 5 seeds); ")
    assert said(0.0, 0.0, 0.0, 0.0, 0.0).startswith("ours no value (5 of 5 seeds miss the target); ")
    assert said(math.inf) == "ours no value (the target is missed); required > 1: holds"
    assert said(0.0, unit="bits") == "ours 0 bits; required > 1: does not hold", "no factor"


def test_a_claim_about_costs_says_which_bits_they_are_of(job):
    assert judged(job, "cost_up('top') / cost_up('GD')", "> 0").remarks == ["cost_up is by the papers' formula"]
    assert not judged(job, "wire_bits_up('top') / wire_bits_up('GD')", "> 0").remarks


@pytest.mark.parametrize("column", ["cost", "paper_bits"])
def test_a_ratio_by_formula_says_that_on_the_wire_where_they_are_a_fifth_apart(job, column):
    ratio = "{0}_up('top') * {0}_up('top') / {0}_up('GD') / {0}_up('GD')"
    on_wire, by_formula = (judged(job, ratio.format(name), "> 0", "× bits") for name in ("wire_bits", column))
    assert on_wire.median / by_formula.median > 1.2, "each message has the 32 bits of its length"
    assert by_formula.remarks[-1] == f"by bits on the wire {on_wire.median:.4g} ×"
    assert f"({'; '.join(by_formula.remarks)})" in str(by_formula)
    silent = (f"{column}_up('GD') / {column}_up('GD')", "× bits"), ("wire_bits_up('top') / wire_bits_up('GD')", "× bits"), (f"{column}_up('top')", "bit")
    for value, unit in silent:
        assert "on the wire" not in str(judged(job, value, "> 0", unit).remarks)
    assert "on the wire" not in str(judged(job, f"{column}_up('top', loss=-1) / {column}_up('GD')", "> 0", "× bits").remarks)


def test_a_column_is_its_last_entry_or_that_where_a_level_is_reached(job):
    gd, top = (r for r in mc.run(load_job(job).only(index=0), out=job.parent) + mc.run(load_job(job).only(index=2), out=job.parent))
    level = float(gd.trace["loss"][20])
    row = int(np.argmax(top.trace["loss"] <= level))
    assert judged(job, "elements_up('GD') / 2", "> 0").values == [40 * 3 * 30 / 2] * 2
    assert judged(job, f"round('GD', loss={level!r})", "> 0").values[0] == 20
    wanted = top.trace["wire_bits_up"][row] / gd.trace["wire_bits_up"][20] if row else np.inf
    assert judged(job, f"wire_bits_up('top', loss={level!r}) / wire_bits_up('GD', loss={level!r})", "> 0").values[0] == wanted
    assert judged(job, "largest('loss', 'GD')", "> 0").values[0] == gd.trace["loss"][0]
    assert judged(job, "largest('loss / round', 'GD')", "> 0").values[0] == np.max(gd.trace["loss"][1:] / gd.trace["round"][1:])
    assert judged(job, "round('GD', loss=-1)", "> 5").values[0] == np.inf
    assert judged(job, "round('GD')\n  + round('top')", "> 5").values[0] == 80


@pytest.mark.parametrize(
    ("condition", "value", "met"),
    [(">= 3", 3.0, True), ("> 3", 3.0, False), ("< 1e-2", 0.0, True), ("in [0.5, 2]", 2.0, True), ("in [0.5, 2]", 2.1, False),
     (">= 3", np.nan, False), ("<= 3", np.nan, False), ("in [0, 1]", np.nan, False)],
)  # fmt: skip
def test_a_condition_is_met_by_its_bounds_and_never_by_nan(condition, value, met):
    assert meets(condition, value) is met


def test_what_has_not_been_run_neither_holds_nor_fails(job):
    unlogged = judged(job, "error_norm('GD')", "> 1")
    assert (unlogged.outcome, "'error_norm'" in unlogged.reason, "'grad_norm'?" in unlogged.reason) == ("not tested", True, True)
    verdict = judged(job, "loss('later')", "< 1")
    assert verdict.holds is None
    assert "'later' has no result" in str(verdict)


def test_a_function_of_claims_is_one_row_of_one_table(job, monkeypatch, capsys):
    median = Function("median('loss', 'GD')", "the median over the rows", np.nanmedian)
    monkeypatch.setitem(FUNCTIONS, "median", median)
    monkeypatch.setitem(FUNCTIONS, "rows", Function("rows('GD')", "how many rows there are", of_run=lambda run: float(len(run.trace["round"]))))
    (gd, _) = mc.run(load_job(job, only="GD"), out=job.parent)
    assert judged(job, "median('loss', 'GD', round=(0, 4)) * rows('GD')", "> 0").values[0] == np.median(gd.trace["loss"][1:5]) * 41
    assert main(["list", "claims"]) == 0
    assert "  median('loss', 'GD')                   the median over the rows" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("value", "holds", "complaint"),
    [("loss('GD')", "=> 1", "claim X: holds = '=> 1' is no condition; write '>= 3'"), ("loss('GD')", "in [2, 1]", "X holds in [2 1]"),
     ("loss('GD')", "> nan", "claim X: holds = '> nan' is no condition"), ("loss(a)", "> 1", "'a' should be a run's label in quotes"),
     ("loss()", "> 1", "'loss()' should be column('label')"), ("loss", "> 1", "loss"), ("a.loss('GD')", "> 1", "column('label')"),
     ("loss('GC')", "> 1", "X value loss('GC') GC GD"), ("loss('B*')", "> 1", "B*"),
     ("largest('loss', 'GC')", "> 1", "GC"), ("largest('loss /', 'GD')", "> 1", "cannot be read as a formula"),
     ("largest('3', 'GD')", "> 1", "'3' names no column"), ("largest('loss', 'GD', loss=1)", "> 1", "column('label')"),
     ("loss('GD', round=loss('GC'))", "> 1", "GC"), ("loss('GD')\n  + loss('GC')", "> 1", "loss('GD') + loss('GC')"),
     ("loss('GD'", "> 1", "never closed"), ("loss('GD')", "nearly 3", "is no condition"), ("loss(3)", "> 1", "label in quotes"),
     ("min()", "> 1", "min()"), ("(0 - 1)**0.5", "> 1", "not a real number"), ("__import__('os')", "> 1", "os"),
     ("los('GD')", "> 1", "no column called 'los'; did you mean 'loss'?"), ("smallest('a / b', 't*')", "> 1", "no column called 'a'"),
     ("loss('GD', loss=1, round=2)", "> 1", "loss=1, round=2 are several targets")],
)  # fmt: skip
def test_what_a_claim_cannot_mean_is_refused_with_the_job(value, holds, complaint, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(f'{JOB}[[claim]]\nid = "X"\nsays = "so"\nvalue = """{value}"""\nholds = "{holds}"\n')
    with pytest.raises(UserError, match=naming(complaint)):
        load_job(file)


@pytest.mark.parametrize(
    "value",
    ["error_norm('GD')", "1 / (loss('GD') - loss('top'))", "log(round('GD') - 40)", "(loss('GD') - 9)**0.5", "smallest('spa', 't*')"],
)
def test_what_only_results_can_show_is_left_to_them(value, tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(f'{JOB}[[claim]]\nid = "X"\nsays = "so"\nvalue = "{value}"\nholds = "< inf"\n')
    assert len(load_job(file).claims) == 1


def test_a_claim_may_name_runs_that_are_not_taken(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(f"""{JOB}[[claim]]\nid = "X"\nsays = "so"\nvalue = "loss('GD') / loss('top')"\nholds = "> 1"\n""")
    for taken in ({"only": "later"}, {"index": 5}, {"only": "later", "overrides": {"stop.rounds": 2}}):
        assert len(load_job(file, **taken).claims) == 1


def test_a_value_that_is_no_number_is_no_verdict(job):
    for value in ("exp(1000)", "1 / 0", "elements_up('GD', round=0) / elements_up('top', round=0)"):
        verdict = judged(job, value, "> 1")
        assert (verdict.outcome, verdict.reason, verdict.ours) == ("not tested", "its value is no number", "–")
    above = judged(job, "wire_bits_up('GD', loss=9) / wire_bits_up('top', loss=0.6)", ">= 2")
    assert (above.outcome, above.reason) == ("not tested", "loss = 9 lies above the start of 'GD'")
    assert "\n    ours – " in str(above), "it takes no bits to come there: that is no result"


def test_the_round_or_epoch_of_a_claim_is_the_first_row_there(job):
    gd = next(run for run in results_of(load_job(job), job.parent) if run.label == "GD")
    assert judged(job, "round('GD', round=3)", "> 0").values == [3.0, 3.0]
    assert judged(job, "loss('GD', round=0)", "> 0").values[0] == gd.trace["loss"][0]
    row = int(np.argmax(gd.trace["epoch"] >= 7))
    assert judged(job, "loss('GD', epoch=7)", "> 0").values[0] == gd.trace["loss"][row]


def test_a_column_without_a_number_and_a_tuned_zero(tmp_path, recwarn):
    tables = {
        "title": "zero", "data": {"generator": "gspar", "samples": 60, "dim": 8}, "workers": {"count": 3}, "stop": {"rounds": 200},
        "objective": {"mu": 0.01},
        "run": [{"label": "x", "algorithm": {"name": "ef", "step": 3.0}, "up": {"compressor": {"name": "top-k", "k": 4}},
                 "tune": {"parameter": "algorithm.momentum", "values": [0.0, 0.3, 0.6], "to": {"loss": 1e-9}}},
                {"label": "y", "algorithm": {"name": "gd"}, "stop": {"rounds": 0}}],
        "claim": [{"id": "a", "says": "s", "value": "tuned('x')", "holds": "<= 0.1"},
                  {"id": "b", "says": "s", "value": "largest('bits_up', 'y')", "holds": "<= 0.1"}],
    }  # fmt: skip
    job = parse_job(tables, "zero", tmp_path, {})
    runs = mc.run(job, out=tmp_path)
    assert runs[0].tuned["value"] == 0.0
    tuned, largest = verdicts.check(job, runs)
    assert tuned.reason == "trials are too far apart: the best value of 'x' lies between 0 and 0.3"
    assert (tuned.ours, largest.outcome, largest.ours) == ("0", "not tested", "–")
    assert not recwarn.list


def test_a_run_that_is_cut_off_decides_only_what_its_further_rounds_cannot_change(job):
    ratio = "round('GD', suboptimality=1e-9) / round('top', suboptimality=0.2)"
    cut = judged(job, ratio, ">= 1e6")
    assert (cut.outcome, cut.reason) == ("not tested", "'GD' was cut off before suboptimality = 1e-09")
    assert judged(job, ratio, ">= 1").outcome == "holds"
    below = judged(job, "round('top', suboptimality=0.2) / round('GD', suboptimality=1e-9)", "> 1")
    assert (below.outcome, below.ours[:2]) == ("does not hold", "≤ "), "GD took all its rounds at least"
    assert judged(job, "round('top', suboptimality=1e-9) / round('GD', suboptimality=1e-9)", "> 1").reason == (
        "no run reaches the target: 'GD' was cut off before suboptimality = 1e-09; 'top' was cut off before suboptimality = 1e-09"
    )
    assert "does not hold ('GD' was cut off before suboptimality = 1e-09)" in str(judged(job, f"1 / ({ratio})", "> 1"))
    assert judged(job, "round('[Gt]*', suboptimality=1e-9)", "> 99").reason == "2 runs of '[Gt]*' were cut off before suboptimality = 1e-09"
    floors = judged(job, "round('GD', loss=1e-9) / round('top', loss=0.69)", ">= 1e6")
    assert (floors.outcome, floors.notes["unreached"]) == ("holds", ["'GD' never comes down to loss = 1e-09"])


@pytest.mark.parametrize(("tried", "holds", "outcome"), [
    ([4, 8, 16], "in [0.6, 2]", "undecided"), ([4, 8, 16], "> 0.4", "holds"), ([7, 8, 9], "in [0.5, 2]", "holds"), ([7, 8, 9], "> 2", "does not hold"),
    ([4, 8], "> 0.4", "holds"), ([4, 8], "< 9", "undecided"), (["1/L", "2/L", "4/L"], "> 0", "holds"),
])  # fmt: skip
def test_a_margin_of_tuned_numbers_is_as_wide_as_their_grid(tried, holds, outcome, job):
    file = job.with_name("tuned.toml")
    file.write_text(JOB + f'[[claim]]\nid = "X"\nsays = "so"\nvalue = "tuned(\'GD\') / 8"\nholds = "{holds}"\n')
    done = list(mc.run(load_job(job).only("GD"), out=job.parent))
    for run in done:
        run.attrs["tuned"] = json.dumps({"parameter": "tried", "value": tried[1], "tried": [[value, 1.0] for value in tried]})
    (found,) = verdicts.check(load_job(file), done)
    assert found.outcome == outcome
    if outcome == "undecided":
        assert found.reason.startswith("trials are too far apart: the best value of 'GD' lies between ")


def test_the_command_prints_each_claim_and_ends_with_1_where_one_fails(job, capfd):
    claimed = job.with_name("two.toml")
    good = '[[claim]]\nbasis = "paper"\nid = "A"\nsays = "three a message"\nvalue = "elements_up(\'top\')"\nholds = "in [360, 360]"\npaper = 360\n'
    bad = '[[claim]]\nbasis = "paper"\nid = "B"\nsays = "no loss"\nvalue = "loss(\'GD\')"\nholds = "<= 0"\n'
    later = '[[claim]]\nbasis = "paper"\nid = "C"\nsays = "of a run to come"\nvalue = "loss(\'later\')"\nholds = "<= 0"\n'
    claimed.write_text(JOB + good + later)
    mc.run(load_job(claimed).only("top"), out=job.parent)
    assert main(["check", str(claimed), "--out", str(job.parent)]) == 0
    assert "not run" in capfd.readouterr().out
    claimed.write_text(JOB + good + bad)
    mc.run(load_job(claimed).only("GD"), out=job.parent)
    assert main(["check", str(claimed), "--out", str(job.parent)]) == 1
    said = capfd.readouterr().out
    assert "A: three a message\n    paper 360; ours 360 (2 seeds, equal: 1 run); required in [360, 360]: holds" in said
    assert "required <= 0: does not hold" in said
    known = good.replace("in [360, 360]", ">= 9").replace("top", "GD").replace('"A"', '"D"')
    over = bad.replace("loss('GD')", "1 / largest('loss', 'GD')").replace('"B"', '"E"')
    claimed.write_text(JOB + good + bad + 'why = "of 40 rounds"\n' + bad.replace("loss(", "error_norm(").replace('"B"', '"C"') + known + over)
    assert main(["check", str(claimed), "--out", str(job.parent)]) == 1
    said = capfd.readouterr().out
    assert "required <= 0: does not hold: the job says: of 40 rounds" in said
    assert "required <= 0: not tested: a column is not logged: " in said
    mc.run(load_job(claimed, {"stop.rounds": 4}).only("GD"), out=job.parent)
    choice = [str(claimed), "--out", str(job.parent), "--set", "stop.rounds=4", "--only", "GD"]
    assert (main(["check", *choice]), main(["report", *choice, "-o", str(job.with_name("r.html"))])) == (0, 0)
    said = capfd.readouterr().out
    ended = "required <= 0: not tested: 'GD' ends after 4 of the job's 40 rounds\n"
    assert re.search(f"B: no loss \\[with stop.rounds = 4\\]\n.* {ended}", said)  # without the reason of 40 rounds
    assert re.search("D: .*\n.* required >= 9: holds\n", said)  # what is spent only grows
    assert re.search(f"E: .*\n.* {ended}", said)
    assert re.search("^two +done, with stop.rounds = 4; 1 of 5 claims left out by --only; claims: ", said, re.MULTILINE)
    assert re.findall("The papers' claims, (.*):", said) == ["on other data or with other settings"]


def test_a_claim_with_a_grid_is_one_for_each_of_its_points(job):
    text = """[[claim]]
id = "X"
says = "{label} ends"
value = "round('{label}') - {n}"
holds = "<= 0"
grid = { label = ["GD", "top"], n = [10, 40] }
"""
    file = job.with_name("many.toml")
    file.write_text(JOB + text)
    many = load_job(file)
    assert [c.says for c in many.claims] == ["GD ends"] * 2 + ["top ends"] * 2
    found = verdicts.check(many, results_of(load_job(job), job.parent))
    assert [v.values for v in found] == [[30, 30], [0, 0]] * 2
    file.write_text(JOB + text.replace("[10, 40]", "10"))
    with pytest.raises(UserError, match="claim 1: grid"):
        load_job(file)
    file.write_text(JOB + text.replace("ends", "ends at {m}"))
    with pytest.raises(UserError, match=r"claim 1\.says: '\{m\}': no list in grid called 'm'"):
        load_job(file)


def test_a_run_of_one_seed_stands_beside_each_seed_of_the_others(tmp_path):
    file = tmp_path / "seeds.toml"
    run = '[[run]]\nlabel = "{}"\nup = {{ compressor = {{ name = "random-k", k = 3 }} }}\n{}\n'
    claim = '[[claim]]\nid = "X"\nsays = "so"\nvalue = "{}"\nholds = "> 0"\n'
    head = JOB[: JOB.index("[[run]]")].replace("rounds = 40", "rounds = 4") + 'algorithm = { name = "gd", step = 0.1 }\n'
    runs = run.format("one", "seed = 7") + run.format("two", "grid = { seed = [1, 2] }") + run.format("three", "seed = 3")
    values = ["loss('one') / loss('two')", "loss('one') / loss('three')", "loss('two')"]
    file.write_text(head + runs + "".join(map(claim.format, values)))
    done = mc.run(load_job(file), out=tmp_path)
    one, two, other, three = (r.trace["loss"][-1] for r in done)
    found = verdicts.check(load_job(file), done)
    assert [v.values for v in found] == [[one / two, one / other], [one / three], [two, other]]
    file.write_text(head + runs + claim.format(f"round('two', loss={(two + other) / 2})"))
    (cut,) = verdicts.check(load_job(file), done)[0].notes["cut"]
    assert cut.startswith("'two' was cut off before loss = ")
    assert cut.endswith(" with 1 of 2 seeds")
    file.write_text(head + runs + "".join(map(claim.format, values)))
    without = verdicts.check(load_job(file), [r for r in done if r is not done[2]])
    assert [v.why for v in without] == ["'two' has no result of seed 2", "", "'two' has no result of seed 2"]


@pytest.mark.parametrize("seeds", [[1, 2, 3], [4, 5, 6]])
def test_a_claim_has_the_median_over_unequal_seeds_and_three_decide_nothing(seeds, tmp_path):
    file = tmp_path / "median.toml"
    head = JOB[: JOB.index("[[run]]")].replace("rounds = 40", "rounds = 4") + 'algorithm = { name = "gd", step = 0.1 }\n'
    run = f'[[run]]\nlabel = "a"\nup = {{ compressor = {{ name = "random-k", k = 3 }} }}\ngrid = {{ seed = {seeds} }}\n'
    file.write_text(head + run)
    losses = [float(r.trace["loss"][-1]) for r in mc.run(load_job(file), out=tmp_path)]
    median, mean = sorted(losses)[1], sum(losses) / 3
    between = (median + mean) / 2
    claim = f'[[claim]]\nid = "X"\nsays = "so"\nvalue = "loss(\'a\')"\nholds = "< {between!r}"\n'
    file.write_text(head + run + claim)
    (found,) = verdicts.check(load_job(file), results_of(load_job(file), tmp_path))
    assert found.values == losses
    assert found.median == median != mean
    assert found.outcome == "undecided"
    assert meets(found.claim.holds, found.median) == (median < mean)


def test_the_smallest_over_runs_is_a_number_where_one_has_diverged(tmp_path):
    file = tmp_path / "nan.toml"
    head = JOB[: JOB.index("[[run]]")].replace("rounds = 40", "rounds = 400")
    run = '[[run]]\nlabel = "{}"\nalgorithm = {{ name = "gd", step = {} }}\n'
    claim = '[[claim]]\nid = "X"\nsays = "so"\nvalue = "grad_norm(\'step *\')"\nholds = "> 0"\n'
    for steps in ("1e200", '"1/L"'), ('"1/L"', "1e200"):
        file.write_text(head + "".join(run.format(f"step {i}", step) for i, step in enumerate(steps)) + claim)
        done = mc.run(load_job(file), out=tmp_path)
        good = next(r for r in done if r.status == "complete")
        assert verdicts.check(load_job(file), done)[0].values == [good.trace["grad_norm"][-1]]


def test_values_outside_a_functions_domain_are_no_numbers_and_levels_never_reached_are_reported(job):
    verdict = judged(job, "log(loss('GD') - loss('GD'))", "> 0")
    assert (np.isnan(verdict.median), verdict.outcome) == (True, "not tested")
    with pytest.raises(UserError, match=r"'log\(0 - 1\)': "):
        judged(job, "log(0 - 1) * loss('GD')", "> 0")
    unreached = judged(job, "round('GD', loss=1e-9) / round('top', loss=0.69)", ">= 3")
    assert "holds ('GD' never comes down to loss = 1e-09)" in str(unreached)
    for formula, says in (("+".join(["loss('GD')"] * 5000), "characters is too long"), ("-" * 900 + "loss('GD')", "more than 50 levels")):
        with pytest.raises(UserError, match=says):
            judged(job, formula, "> 0")


def test_a_claim_about_a_gap_to_an_unknown_optimum_says_that_it_is_not_known(job, tmp_path):
    file = tmp_path / "unknown.toml"
    file.write_text(
        JOB.replace('{ mu = "1e-2 L" }', '{ mu = "1e-2 L", f_star = "skip" }').replace("rounds = 40", "rounds = 2")
        + '[[claim]]\nid = "X"\nsays = "so"\nvalue = "round(\'GD\', suboptimality=0.1)"\nholds = ">= 1"\n'
    )
    claimed = load_job(file, only="GD")
    (verdict,) = verdicts.check(claimed, mc.run(claimed, out=tmp_path))
    assert verdict.outcome == "not tested"
    assert verdict.reason == "f* of 'GD' is not known, and so its suboptimality is not"
    assert verdicts.answerable(claimed) == claimed.claims
    assert verdicts.answerable(load_job(file, only="top")) == []


def test_a_row_with_one_number_that_is_none_has_no_value():
    assert _at_row("loss/epoch", {"loss": 1.0, "epoch": 2.0}) == 0.5
    assert all(np.isnan(_at_row("loss/epoch", {"loss": 1.0, "epoch": bad})) for bad in (np.inf, np.nan, 0.0))


@pytest.mark.parametrize(
    ("says", "bar", "words"),
    [
        ("6 times", ">= 3", "at least half of the paper's 6"), ("1.7 times", "> 1", "more than 1, where the paper has 1.7"),
        ("2 times", "> 1", "more than half of the paper's 2"), ("about 2", "in [1, 4]", "from half of the paper's 2 to twice that"),
        ("about 0.26", "in [0.13, 0.52]", "from half of the paper's 0.26 to twice that"),
        ("3 orders", ">= 316.2", "at least the paper's 3 orders of magnitude less a half"),
        ("1 order", ">= 3.162", "at least the paper's 1 order of magnitude less a half"), ("<= 1.1", "<= 1.1", ""),
    ],
)  # fmt: skip
def test_a_bar_follows_from_what_the_paper_says_and_a_reader_has_it_in_words(says, bar, words):
    assert claims.bar(says) == (bar, words)
    assert claims.required(says) == (f"{words} ({bar})" if words else bar)
    low = float(bar.strip("in [").split(",")[0].lstrip("><= "))
    assert meets(says, low) == (bar != "> 1")
    assert meets(says, low * 1.001) != bar.startswith("<")
    assert meets(says, low * 0.99) == bar.startswith("<")


RANDOM = JOB.replace('name = "top-k", k = 3', 'name = "random-k", k = 3')


def test_random_runs_take_five_seeds(tmp_path):
    claim = '[[claim]]\nid = "X"\nsays = "it is so"\nvalue = "{value}"\nholds = "> 0"\n'
    for seeds, outcome in ((4, "undecided"), (5, "holds")):
        text = RANDOM.replace("[0, 1]", str([*range(seeds)])).replace("rounds = 40", "rounds = 3")
        (tmp_path / "random.toml").write_text(text + claim.format(value="loss('top')") + claim.format(value="loss('GD')"))
        job = load_job(tmp_path / "random.toml")
        of_random, of_exact = verdicts.check(job, mc.run(job, out=tmp_path))
        assert (of_random.outcome, of_exact.outcome) == (outcome, "holds")
    assert of_random.reason == ""


def test_a_reference_that_is_off_judges_nothing_and_the_unit_is_said(job):
    text = """[[claim]]
    id = "X"
    says = "it is so"
    value = "loss('GD') - 9"
    holds = "<= 0"
    unit = "nats"
    reference = "{off}"
    """
    for off, outcome in (("1 + loss('GD')", "not judged"), ("0 * loss('GD')", "holds")):
        job.with_name("claimed.toml").write_text(JOB + text.format(off=off))
        (verdict,) = verdicts.check(load_job(job.with_name("claimed.toml")), results_of(load_job(job), job.parent))
        assert verdict.outcome == outcome
        assert " nats (" in str(verdict)
        assert verdict.reason.startswith("its reference is off by 1.") == (outcome == "not judged")


def test_no_number_of_a_paper_has_a_bar_that_follows_from_nothing():
    """A sentence with "times", "×", "orders" or "%" has its bar by the rule, or by a bound that the paper prints."""
    found = []
    for file in sorted((Path(__file__).parents[2] / "jobs").rglob("*.toml")):
        for claim in tomllib.loads(file.read_text(encoding="utf-8")).get("claim", []):
            words, of_paper = claim.get("words", ""), claim.get("basis", "ours") != "ours"
            named = re.search(r"\d\s*×(?! *10)|\btimes\b|orders? of magnitude|\d\s*%", words)
            printed = re.search(r"less than|≤|[<>] ?\d", words) or claim["holds"].startswith("in [")
            if of_paper and isinstance(claim.get("paper"), int | float) and named and not printed and claims.bar(claim["holds"])[0] == claim["holds"]:
                found.append((file.stem, claim["id"], claim["holds"]))
    assert found == []
