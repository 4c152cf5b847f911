"""[tune]: ranges of powers, budgets, seeds, the run beside, and the warning at the end of a grid."""

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.cli.show import summary
from mpi_compress.evidence.lines import name_in_paper, name_of
from mpi_compress.evidence.verdicts import check
from mpi_compress.job.tuning import powers
from mpi_compress.results.tuning import at_end

JOB = """
data = { generator = "gspar", samples = 40, dim = 12 }
objective.mu = "1e-1 L"
workers.count = 2
algorithm = { name = "gd", batch = 2 }
stop.rounds = 8
tune = { parameter = "algorithm.step", values = "2^-7..2^-5 theory", merit = "squared_grad_norm", seeds = [3, 4], beside = "theory" }
[[run]]
label = "SGD"
[[claim]]
id = "X"
says = "the tuned step, over 1/L"
value = "tuned('SGD') * L('SGD')"
holds = "in [0.0312, 0.0313]"
"""


def test_a_range_of_powers_is_a_list_of_formulas():
    assert powers("2^-2..2^1 theory") == ["1/4 theory", "1/2 theory", "theory", "2 theory"]
    assert powers("2^-1..0 1/L") == ["1/2 (1/L)", "(1/L)"]
    assert powers("10^1..10^2 L") == ["10 L", "100 L"]
    assert len(powers("2^-6..2^10 theory")) == 17


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("theory", "range of powers"), ("2^1..3^2 theory", "range of powers"), ("2^3..2^1 theory", "the least first"),
        ("2^0..2^64 theory", "from 1 to 64"), ("1^0..1^2 theory", "powers of 2 or more"), ("2^0..2^1 1/(", "cannot be read"),
    ],
)  # fmt: skip
def test_a_wrong_range_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        powers(text)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ("rounds = 5, wire_bits_up = 1e3", "one budget"), ("wire_bits_up = 0", "at least 1"), ("seed = 1", "give one of them"),
        ("beside = [1]", "beside"),
    ],
)  # fmt: skip
def test_wrong_keys_are_refused(changed, says, tmp_path):
    (tmp_path / "job.toml").write_text(JOB.replace("seeds = [3, 4]", f"seeds = [3, 4], {changed}"))
    with pytest.raises(mc.UserError, match=says):
        mc.load_job(tmp_path / "job.toml")


def test_what_overrides_the_tuning_leaves_the_run_beside_as_it_is(tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    tuned, beside = mc.load_job(tmp_path / "job.toml", {"tune.rounds": 3, "stop.rounds": 4}).runs
    assert (tuned.tune.rounds, beside.tune) == (3, None)
    assert beside.written["algorithm"]["step"] == "theory"
    assert beside.stop.rounds == 4


def test_a_level_of_stop_is_what_trials_without_a_budget_race_for(tmp_path):
    """The fewest rounds to it win, and `show` and the result say them; a figure for a paper leaves the step to its text."""
    file = tmp_path / "job.toml"
    file.write_text(
        'data = { generator = "gspar", samples = 40, dim = 12 }\nobjective.mu = "1e-1 L"\nalgorithm.name = "gd"\n'
        "stop = { rounds = 60, suboptimality = 1e-3 }\n"
        'tune = { parameter = "algorithm.step", values = ["1e-3/L", "1/2 (1/L)", "1/L", "3/L", "1e3/L"] }\n'
    )
    (run,) = mc.run(file, out=tmp_path)
    trials = {t.label.partition(" = ")[2]: t for t in (mc.read(f) for f in (tmp_path / "job" / "tuning").glob("*.h5"))}
    reached = [trials[value].trace["suboptimality"][-1] <= 1e-3 for value, _ in run.tuned["tried"]]
    rounds = [trials[value].trace["round"][-1] for value, _ in run.tuned["tried"]]
    assert reached[0] is np.False_
    assert sum(reached) >= 2
    assert run.tuned["rounds"] == [k if own else None for k, own in zip(rounds, reached, strict=True)]
    assert run.tuned["value"] == run.tuned["tried"][int(np.argmin(np.where(reached, rounds, np.inf)))][0]
    (line,) = (text for text in summary(run) if text.startswith("  tuned"))
    assert "by rounds to a level of [stop]: 1e-3/L: –, " in line
    assert name_in_paper(run) == run.label
    (budgeted,) = mc.run(mc.load_job(file, {"tune.rounds": 5}), out=tmp_path)
    assert "rounds" not in budgeted.tuned, "a trial with a budget of its own knows no level"


def test_seeds_share_a_budget_and_the_median_wins(tmp_path, capsys):
    """The run beside has no tuning; a winner at the end of the grid is named in the figure, by `check`, `show` and `run`."""
    file = tmp_path / "job.toml"
    file.write_text(JOB.replace("seeds = [3, 4]", "seeds = [3, 4], wire_bits_up = 5000"))
    job = mc.load_job(file)
    assert [spec.label for spec in job.runs] == ["SGD", "SGD, step = theory"]
    assert [spec.seed for spec in job.runs[0].trials] == [3, 4, 3, 4, 3, 4]
    tuned, beside = mc.run(job, out=tmp_path, quiet=False)
    assert beside.tuned is None
    trials = [mc.read(f) for f in (tmp_path / "job" / "tuning").glob("*.h5")]
    for value, merit in tuned.tuned["tried"]:
        own = [t.column("squared_grad_norm")[-1] for t in trials if t.label == f"SGD, algorithm.step = {value}"]
        assert len(own) == 2
        assert merit == np.median(own)
    assert tuned.tuned["value"] == "1/32 theory"
    assert "SGD: tuned to 1/32 theory, the end of the grid" in capsys.readouterr().err
    assert name_of(tuned) == "SGD, tuned step = 1/32 theory (the end of the grid)"
    assert name_in_paper(tuned) == "SGD (the end of the grid)"
    (verdict,) = check(job, [tuned, beside])
    assert verdict.outcome == "holds"
    assert verdict.edges == ["'SGD' is tuned to 1/32 theory, the end of the grid"]
    text = "\n".join(summary(tuned))
    assert "= 1/32 theory (the end of the grid), by squared_grad_norm: 1/128 theory: " in text
    assert "; after 5,000 wire bits up, seeds 3, 4" in text


@pytest.mark.parametrize(
    ("values", "won", "ends"),
    [
        (["1/2 theory", "theory", "2 theory"], "theory", False), (["2 theory", "1/2 theory", "theory"], "2 theory", True),
        ([1, 2, 3], 1, True), ([1, 2], 1, False), (["1/L", 0.5, 0.1], 0.1, False), (["a b", "c", "d"], "c", False),
        ([[[0, 1]], 2, 3], 3, False),
    ],
)  # fmt: skip
def test_the_end_of_a_grid_is_the_least_or_the_largest_number_of_one_unit(values, won, ends):
    assert at_end({"value": won, "tried": [[value, 0.0] for value in values]}) is ends
