"""Tables to a target: the numbers of the command `table`, at fixed targets and at each level of a slider, of a job and across jobs."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.evidence import levels
from mpi_compress.evidence.comparison import compare
from mpi_compress.evidence.outcomes import outcomes
from mpi_compress.evidence.problems import by_problem
from mpi_compress.report import reach, render
from mpi_compress.report.tables import Tables
from mpi_compress.results.targets import Target

JOB = """
title = "one"
data = { generator = "gspar", samples = 60, dim = 12 }
objective = { mu = "1e-2 L" }
workers.count = 2
stop.rounds = 25
figure = { x = "round", y = "suboptimality" }
[grid]
seed = [0, 1, 2]
[[run]]
label = "GD"
algorithm = { name = "gd" }
[[run]]
label = "SGD"
algorithm = { name = "sgd", batch = 3 }
"""
OTHER = """
title = "two"
data = { generator = "gspar", samples = 60, dim = 12 }
workers.count = 2
stop.rounds = 20
[[run]]
label = "GD"
algorithm = { name = "gd", step = "0.5/L" }
objective = { mu = "1e-2 L" }
[[run]]
label = "without µ"
algorithm = { name = "gd" }
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Two jobs; the second has one run on the first one's problem, and one on another."""
    folder = tmp_path_factory.mktemp("reach")
    for name, text in (("one", JOB), ("two", OTHER)):
        (folder / f"{name}.toml").write_text(text)
        mc.run(mc.load_job(folder / f"{name}.toml"), out=folder, quiet=True)
    return outcomes([folder / "one.toml", folder / "two.toml"], folder)


@pytest.fixture(scope="module")
def table(found):
    return reach.of_job(found[0], "t", 30)


def test_fixed_targets_have_the_numbers_of_the_command(found, table):
    """What a page without scripts shows: the first column of the figure, counted in its x."""
    column = table.columns[0]
    assert (column.name, table.by[0]) == ("suboptimality", "round")
    wanted = compare(found[0].runs, [column.target(level) for level in column.targets], "round")
    assert [cells for _, cells in table.rows] == [cells[1:] for cells in wanted.cells]
    html = render.page(found[:1], "")
    for cells in wanted.cells:
        assert all(f">{cell}</td>" in html for cell in cells[1:])


def test_each_level_of_the_slider_has_the_row_that_reaches_it(table):
    """What the script looks up is what `Target.row_of` finds, for every run, column, level and count."""
    data = json.loads(json.dumps(reach.data([table])))
    own = data["tables"]["t"]
    assert [column["name"] for column in own["columns"]][:3] == ["suboptimality", "loss", "grad_norm"]
    for column in own["columns"]:
        assert len(column["levels"]) > 10
        for method, those in zip(table.methods, own["methods"], strict=True):
            for run, number in zip(method.runs, those["runs"], strict=True):
                for level, place in zip(column["levels"] + column["targets"], column["at"][str(number)], strict=True):
                    row = Target(column["name"], level).row_of(run)
                    assert (row is None) == (place is None)
                    if row is not None:
                        assert data["runs"][number]["by"]["wire_bits_up"][place] == run.trace["wire_bits_up"][row]
                        assert data["runs"][number]["by"]["round"][place] == run.trace["round"][row]


def test_a_target_that_rises_is_reached_from_below():
    values = np.array([0.1, 0.5, 0.4, np.nan, 0.9])
    column = reach.Column("test_accuracy", True, [0.95], [0.1, 0.45, 0.9])
    run = type("R", (), {"has": lambda self, name: True, "column": lambda self, name: values})()
    assert column.rows_of(run).tolist() == [0, 1, 4, -1]
    assert levels.levels([values], True, False, 10) == [0.1, 0.5, 0.9]
    assert levels.round_targets([values], True, False, []) == pytest.approx([0.5, 0.74, 0.86])


def test_levels_are_those_that_were_logged_in_four_digits_and_few():
    values = np.array([1.0, 0.123456, 0.2, 0.0123451, np.inf, 0.0123450, np.nan])
    assert levels.levels([values], False, True, 10) == [1.0, 0.1235, 0.01235]
    many = np.exp(-np.arange(1000.0) / 50)
    few = levels.levels([many], False, True, 50)
    assert 40 < len(few) <= 52
    assert few[0] == 1.0
    assert few[-1] >= many[-1] > 0.999 * few[-1]
    assert np.ptp(np.diff(np.log(few))) < 0.1
    assert levels.levels([np.array([5.0, 0.0])], False, True, 10) == [5.0, 0.0]


def test_fixed_targets_are_round_and_lie_between_start_and_best():
    decades = np.array([1.0, 1e-7])
    assert levels.round_targets([decades], False, True, []) == pytest.approx([1e-1, 1e-3, 1e-5])
    assert levels.round_targets([np.array([0.7, 0.2])], False, False, []) == pytest.approx([0.45, 0.3, 0.225])
    assert levels.round_targets([decades], False, True, [3e-3, 5.0]) == pytest.approx([1e-1, 3e-3, 1e-3, 1e-5])
    assert levels.round_targets([np.array([1.0, 2.0])], False, True, []) == []
    widest = levels.round_targets([np.array([1e300, 5e-324])], False, True, [])
    assert widest == pytest.approx([1e297, 1e294, 1e291])


def test_targets_where_a_run_starts_at_the_optimum():
    """Its gap is 0, or below 0 by rounding, beside runs whose gap falls; or nothing lies between the start and 0."""
    falling = np.array([1.0, 0.1, 0.01])
    for at_optimum in (np.zeros(3), np.full(3, -1e-17)):
        assert levels.round_targets([at_optimum, falling], False, True, []) == [0.4, 0.1, 0.04]
    assert levels.round_targets([np.array([1.0, 0.0])], False, True, []) == [0.0]


def test_levels_and_targets_are_finite_up_to_the_greatest_float():
    most = np.finfo(np.float64).max
    values = np.array([most, 1.0, -most])
    assert [f"{level:g}" for level in levels.round_targets([values], False, False, [])] == ["0", "-1.08e+308", "-1.62e+308"]
    assert levels.levels([values], False, False, 10) == [most, 1.0, -1.797e308]
    with np.errstate(all="raise"):
        assert levels.levels([values], False, False, 2) == [-1.797e308]


def test_methods_of_several_jobs_on_one_problem_stand_in_one_table(found):
    """Those on another objective do not; they are named beside it."""
    shared, alone = sorted(by_problem(found), key=lambda problem: -len(problem.jobs))
    assert shared.jobs == ["one", "two"]
    assert "µ = 1e-2 L" in shared.words
    assert alone.jobs == ["two"]
    ids = render.ids_of(found)
    (of_data,) = Tables.of(found, ids).of_data
    (problem,) = of_data.problems
    assert [(method.name, method.job, len(method.runs)) for method in sorted(problem.table.methods, key=lambda m: (m.job, m.name))] == [
        ("GD", "one", 3), ("SGD", "one", 3), ("GD", "two", 1),
    ]  # fmt: skip
    assert of_data.others == [(alone.words, ids[found[1]], "two")]
    html = render.page(found, "")
    assert 'data-across="yes"' in html
    assert "All jobs on gspar" in html
    assert not Tables.of(found[:1], ids).of_data


def test_two_methods_of_one_name_in_a_job_are_told_apart(found):
    gd = found[1].runs[0]
    again = replace(gd, file=gd.file.with_name("again-0123456789ab.h5"))
    both = reach.table("t", [(gd, "two"), (again, "two")], [found[1]], 10)
    assert len({method.name for method in both.methods}) == 2


def test_what_sliders_need_has_fewer_levels_where_it_would_be_too_large(found, monkeypatch):
    ids = render.ids_of(found)
    whole = Tables.of(found, ids).data
    monkeypatch.setattr("mpi_compress.report.tables.LARGEST", len(whole) - 1)
    fewer = Tables.of(found, ids).data
    assert len(fewer) < len(whole)
    assert json.loads(fewer)["tables"].keys() == json.loads(whole)["tables"].keys()


def test_costs_in_bits_are_written_as_bits(found):
    run = found[0].runs[0]
    (cells,) = compare([run], [Target("loss", 0.68)], "cost_up").cells
    assert re.fullmatch(r"[\d.]+ k?bit", cells[1])
    assert math.isfinite(run.trace["cost_up"][-1])
