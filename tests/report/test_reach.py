"""Tables to a target: the numbers of the command `table`, at fixed targets and at each level of a slider, of a job and across jobs."""

import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.evidence import levels
from mpi_compress.evidence.comparison import compare
from mpi_compress.evidence.outcomes import outcomes
from mpi_compress.evidence.problems import by_problem
from mpi_compress.report import reach, render
from mpi_compress.report.reach import Tables
from mpi_compress.results.columns import column_of
from mpi_compress.results.targets import Target, first_rows

HELPERS = Path(__file__).parents[1] / "helpers"

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
    return reach.table("t", [(run, "one") for run in found[0].runs], found[:1])


def test_fixed_targets_have_the_numbers_of_the_command(found, table):
    """What a page without scripts shows: the first column of the figure, counted in its x."""
    column = table.columns[0]
    assert (column.name, table.by[0]) == ("suboptimality", "round")
    wanted = compare(found[0].runs, column.targets, "round")
    assert [cells for _, cells in table.rows] == [cells[1:] for cells in wanted.cells]
    html = render.page(found[:1], "")
    for cells in wanted.cells:
        assert all(f">{cell}</td>" in html for cell in cells[1:])


def test_each_level_of_the_slider_has_the_cells_and_the_order_of_the_command(table):
    """For every column, way of counting and level: the texts, the soonest method first, and bars of those that reach it."""
    data = json.loads(json.dumps(reach.data([table])))["t"]
    assert [column.name for column in table.columns][:3] == ["suboptimality", "loss", "grad_norm"]
    names = [method["name"] for method in data["methods"]]
    for column, shown in zip(table.columns, data["columns"], strict=True):
        levels = column.levels(table.runs, reach.LEVELS[1])
        assert len(levels) > 10
        assert (shown["levels"], shown["targets"]) == ([*map(str, levels)], [*map(str, column.targets)])
        for by, view in zip(table.by, shown["views"], strict=True):
            for k, target in enumerate([*levels, *column.targets]):
                wanted = compare(table.runs, [target], by)
                assert {name: data["texts"][own[k]] for name, own in zip(names, view["cells"], strict=True)} == dict(wanted.cells)
                took = {method.label: method.cells[0].median for method in wanted.methods}
                if k < len(levels):
                    assert [took[names[i]] for i in view["order"][k]] == sorted(took.values())
                bars = {name: own[k] for name, own in zip(names, view["bars"], strict=True)}
                assert {name for name, long in bars.items() if not long} == {name for name in took if took[name] == math.inf}
                assert (max(bars.values()) == 100) == any(0 < bits < math.inf for bits in took.values())


@pytest.mark.skipif(shutil.which("node") is None, reason="the script of the slider is played where Node.js is installed")
def test_the_script_shows_the_cells_of_the_command_in_its_order(table):
    given = {"script": (resources.files("mpi_compress.report") / "slider.js").read_text(), "tables": reach.data([table])}
    played = subprocess.run(["node", HELPERS / "page.js"], input=json.dumps(given), capture_output=True, text=True, check=True)
    seen = json.loads(played.stdout)
    assert len(seen) == sum(len(own["levels"]) * len(own["views"]) for own in given["tables"]["t"]["columns"])
    for each in seen[::7]:
        column, by = table.columns[each["column"]], table.by[each["by"]]
        target = column.levels(table.runs, reach.LEVELS[1])[[*map(str, column.levels(table.runs, reach.LEVELS[1]))].index(each["heads"][1])]
        wanted = compare(table.runs, [target, *column.targets], by)
        assert each["heads"] == ["Method", *wanted.heads[1:]]
        assert {name: cells for name, *cells in each["rows"]} == {name: cells for name, *cells in wanted.cells}
        took = {method.label: method.cells[0].median for method in wanted.methods}
        assert [took[name] for name, *_ in each["rows"]] == sorted(took.values())
        assert each["caption"] == f"{column_of(by).label}; of seeds"


def test_the_slider_begins_at_the_hardest_level_that_half_of_the_methods_reach(table):
    for column, shown in zip(table.columns, reach.data([table])["t"]["columns"], strict=True):
        levels, view = column.levels(table.runs, reach.LEVELS[1]), shown["views"][0]
        hardest = [max(k for k, t in enumerate(levels) if compare(m.runs, [t]).methods[0].cells[0].median < math.inf) for m in table.methods]
        assert view["begin"] == sorted(hardest)[len(hardest) // 2]


def test_the_first_row_at_a_level_knows_no_nan_and_may_rise():
    values = np.array([0.1, 0.5, 0.4, np.nan, 0.9])
    assert first_rows(values, [0.1, 0.45, 0.9, 0.95], rising=True).tolist() == [0, 1, 4, -1]
    assert first_rows(np.array([np.nan, 3, 1, 2]), [np.inf, 3, 2, 0]).tolist() == [1, 1, 2, -1]
    assert first_rows(np.full(2, np.nan), [1.0]).tolist() == [-1]
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
    ((_, table),) = of_data.problems
    assert [(method.name, method.job, len(method.runs)) for method in sorted(table.methods, key=lambda m: (m.job, m.name))] == [
        ("GD", "one", 3), ("SGD", "one", 3), ("GD", "two", 1),
    ]  # fmt: skip
    assert of_data.others == [alone]
    html = render.page(found, "")
    assert 'data-across="yes"' in html
    assert "All jobs on gspar" in html
    assert not Tables.of(found[:1], ids).of_data


def test_two_methods_of_one_name_in_a_job_are_told_apart(found):
    gd = found[1].runs[0]
    again = replace(gd, file=gd.file.with_name("again-0123456789ab.h5"))
    both = reach.table("t", [(gd, "two"), (again, "two")], [found[1]])
    assert len({method.name for method in both.methods}) == 2


def test_what_sliders_need_has_fewer_levels_where_it_would_be_too_large(found, monkeypatch):
    ids = render.ids_of(found)
    whole = Tables.of(found, ids).data
    monkeypatch.setattr("mpi_compress.report.reach.CELLS", 1000)
    fewer = Tables.of(found, ids).data
    assert len(fewer) < len(whole)
    assert json.loads(fewer).keys() == json.loads(whole).keys()
    assert all(len(column["levels"]) > 1 for own in json.loads(fewer).values() for column in own["columns"])


def test_costs_in_bits_are_written_as_bits(found):
    run = found[0].runs[0]
    (cells,) = compare([run], [Target.of("loss", 0.68)], "cost_up").cells
    assert re.fullmatch(r"[\d.]+ k?bit", cells[1])
    assert math.isfinite(run.trace["cost_up"][-1])
