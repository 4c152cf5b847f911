"""What each method needed to reach a few targets: the numbers of the command `table`, round targets, and who won."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import mpi_compress as mc
from mpi_compress.evidence.comparison import compare
from mpi_compress.evidence.levels import round_targets
from mpi_compress.evidence.outcomes import outcomes
from mpi_compress.evidence.problems import fewest
from mpi_compress.job.tables import FigureTable
from mpi_compress.report import render
from mpi_compress.report.curves import curves
from mpi_compress.report.needed import headline, needed, target_of, winner
from mpi_compress.results.targets import Target, first_row

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


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("needed")
    (folder / "one.toml").write_text(JOB)
    mc.run(mc.load_job(folder / "one.toml"), out=folder, quiet=True)
    return outcomes([folder / "one.toml"], folder)


def test_the_table_has_the_numbers_of_the_command_at_targets_of_the_figure_s_column(found):
    table = needed(found[0].shown, found[0].job.figure)
    assert {target.column for target in table.targets} == {"suboptimality"}
    wanted = compare(found[0].runs, table.targets, "round")
    assert table.cells == wanted.cells
    html = render.page(found)
    assert all(f">{cell}</td>" in html for cells in wanted.cells for cell in cells[1:])


def test_targets_that_the_figure_names_are_among_them_and_say_what_is_counted(found):
    table = needed(found[0].shown, FigureTable("round", "loss", to={"loss": 0.66}, by="wire_bits_up"))
    assert 0.66 in [target.level for target in table.targets]
    assert table.by == "wire_bits_up"


def test_the_winner_needed_the_least_to_the_hardest_target_that_any_method_reaches(found):
    table = needed(found[0].shown, found[0].job.figure)
    hardest = max(i for i in range(len(table.targets)) if any(m.cells[i].median < math.inf for m in table.methods))
    best = min(table.methods, key=lambda m: m.cells[hardest].median)
    said = winner(table)
    assert re.search(rf"to {re.escape(str(table.targets[hardest]))}.* – {best.label}: ", said)
    out_of_reach = replace(table, methods=[replace(m, cells=[replace(c, took=[math.inf]) for c in m.cells]) for m in table.methods])
    assert winner(out_of_reach) == ""


def test_a_method_that_misses_the_target_with_some_seeds_is_named_with_how_many_reach_it(found):
    table = needed(found[0].shown, found[0].job.figure)
    one = replace(table.methods[0].cells[0], took=[7.0, 7.0, math.inf])
    both = [replace(m, label=label, cells=[replace(one, took=took)]) for m, label, took in zip(table.methods, "AB", ([7.0, 7.0, math.inf], [9.0] * 3), strict=True)]
    assert winner(replace(table, targets=table.targets[:1], methods=both)).endswith(" – A (2 of 3 seeds reach it): 7; then B, 9.")


def test_where_no_run_gets_better_there_is_no_table(found):
    still = [replace(run, trace={name: np.full_like(values, values[0]) for name, values in run.trace.items()}) for run in found[0].runs]
    assert needed(still, FigureTable("round", "loss")) is None


def test_the_first_row_at_a_level_knows_no_nan_and_may_rise():
    values = np.array([0.1, 0.5, 0.4, np.nan, 0.9])
    assert [first_row(values, level, rising=True) for level in (0.1, 0.45, 0.9, 0.95)] == [0, 1, 4, None]
    assert [first_row(np.array([np.nan, 3, 1, 2]), level) for level in (np.inf, 3, 2, 0)] == [1, 1, 2, None]
    assert first_row(np.full(2, np.nan), 1.0) is None
    assert round_targets([values], True, False, []) == pytest.approx([0.5, 0.74, 0.86])


def test_fixed_targets_are_round_and_lie_between_start_and_best():
    decades = np.array([1.0, 1e-7])
    assert round_targets([decades], False, True, []) == pytest.approx([1e-1, 1e-3, 1e-5])
    assert round_targets([np.array([0.7, 0.2])], False, False, []) == pytest.approx([0.45, 0.3, 0.225])
    assert round_targets([decades], False, True, [3e-3, 5.0]) == pytest.approx([1e-1, 3e-3, 1e-3, 1e-5])
    assert round_targets([np.array([1.0, 2.0])], False, True, []) == []
    widest = round_targets([np.array([1e300, 5e-324])], False, True, [])
    assert widest == pytest.approx([1e297, 1e294, 1e291])


def test_targets_where_a_run_starts_at_the_optimum():
    """Its gap is 0, or below 0 by rounding, beside runs whose gap falls; or nothing lies between the start and 0."""
    falling = np.array([1.0, 0.1, 0.01])
    for at_optimum in (np.zeros(3), np.full(3, -1e-17)):
        assert round_targets([at_optimum, falling], False, True, []) == [0.4, 0.1, 0.04]
    assert round_targets([np.array([1.0, 0.0])], False, True, []) == [0.0]


def test_costs_in_bits_are_written_as_bits(found):
    run = found[0].runs[0]
    (cells,) = compare([run], [Target.of("loss", 0.68)], "cost_up").cells
    assert re.fullmatch(r"[\d.]+ k?bit", cells[1])
    assert math.isfinite(run.trace["cost_up"][-1])


COSTS = """
title = "costs"
data = { generator = "gspar", samples = 60, dim = 12 }
objective.mu = "1e-2 L"
algorithm.name = "gd"
stop.rounds = 100
figure = { x = "cost_up", to = { loss = 0.6 }, by = "cost_up" }
[[run]]
label = "GD, packets"
cost = { model = "packet", c1 = "8 B", c0 = "8 B", pmax = "8 B" }
[[run]]
label = "GD"
[[run]]
label = "GD by fifths, packets"
algorithm = { name = "gd", step = "0.2/L" }
cost = { model = "packet", c1 = "8 B", c0 = "8 B", pmax = "8 B" }
[[run]]
label = "GD by fifths"
algorithm = { name = "gd", step = "0.2/L" }
"""


def test_costs_of_two_models_are_ranked_apart_and_on_no_common_axis(tmp_path):
    """The chart opens on the cost of the first model, as the table begins, with the lines of this model alone."""
    (tmp_path / "costs.toml").write_text(COSTS)
    runs, figure = mc.run(tmp_path / "costs.toml", out=tmp_path, quiet=True), mc.load_job(tmp_path / "costs.toml").figure
    table = needed(runs, figure)
    assert [method.label for method in table.methods] == ["GD, packets", "GD by fifths, packets", "GD", "GD by fifths"]
    packets, payload = winner(table, {"loss": 0.6}).split(". ")
    assert re.fullmatch(r"Least .*cost.* to loss ≤ 0.6, costs by packet, .* – GD, packets: \S+ k?bit; then GD by fifths, packets, \S+ k?bit", packets)
    assert re.fullmatch(r"Least .*cost.* to loss ≤ 0.6, costs by payload – GD: \S+ k?bit; then GD by fifths, \S+ k?bit\.", payload)
    chart = curves(runs, figure)
    packets, payload, *_ = chart["labels"]
    assert chart["labels"][packets] == "uplink cost, by the papers' formula [bit], packet, c1 = 8 B, c0 = 8 B, pmax = 8 B"
    assert chart["labels"][payload] == "uplink cost, by the papers' formula [bit], payload"
    assert [[packets in line["x"], payload in line["x"]] for line in chart["lines"]] == [[True, False], [False, True]] * 2
    for line, run in zip(chart["lines"], runs, strict=True):
        x = next(values for key, values in line["x"].items() if key.startswith("cost_up"))
        assert x[-1] == pytest.approx(run.trace["cost_up"][-1])
        assert len(x) == len(line["y"].get(packets, line["y"].get(payload)))
    assert "cost_up" in curves([run for run in runs if "packets" in run.label], figure)["labels"]


def test_the_target_of_stop_is_the_job_s_own_and_the_winner_says_who_does_not_reach_it(tmp_path):
    job = {
        "data": {"generator": "gspar", "samples": 60, "dim": 12}, "objective": {"mu": "1e-2 L"}, "stop": {"rounds": 60},
        "run": [{"label": label, "algorithm": {"name": "gd", "step": step}} for label, step in (("GD", "1/L"), ("slow", "0.01/L"))],
    }  # fmt: skip
    level = float(mc.run({**job, "title": "whole"}, out=tmp_path, quiet=True)[0].trace["loss"][40])
    runs = mc.run({**job, "title": "stops", "stop": {"rounds": 60, "loss": level}}, out=tmp_path, quiet=True)
    assert target_of(runs, FigureTable("round", "loss")) == {"loss": level}
    said = headline(runs, FigureTable("round", "loss"))
    assert said.startswith(f"Least round to loss ≤ {level:g} (1 of 2 methods reach it, 1 cut off before; not 'slow') – GD: 40")


def test_the_winner_is_that_of_the_job_s_own_target_where_a_method_reaches_it(found):
    tuned = replace(found[0].shown[0], attrs=found[0].shown[0].attrs | {"job": 'seed = 0\n[tune]\nto = { suboptimality = 0.08 }\n'})
    assert target_of([tuned], FigureTable("round", "loss")) == {"suboptimality": 0.08}
    figure = FigureTable("round", "suboptimality", at={"suboptimality": 0.08})
    table = needed(found[0].shown, figure)
    assert "to suboptimality ≤ 0.08" in winner(table, target_of([tuned], figure))
    assert str(table.targets[-1]) in winner(table), "a harder one"
    out_of_reach = {"suboptimality": 1e-12}
    missed = needed(found[0].shown, replace(figure, at=out_of_reach))
    assert winner(missed, out_of_reach) == f"No method reaches the job's own target, suboptimality ≤ 1e-12. {winner(table)}"


def test_a_method_that_was_tuned_to_several_targets_counts_once_and_is_named_by_them(tmp_path):
    """The better line of each is ranked; whose trials all missed their target is said."""
    (tmp_path / "job.toml").write_text("""
data = { generator = "gspar", samples = 60, dim = 12 }
objective.mu = "1e-2 L"
workers.count = 2
stop.rounds = 60
tune = { parameter = "algorithm.step", values = ["theory", "2 theory"] }
figure = { x = "round", y = "suboptimality", to = { suboptimality = 0.05 }, by = "round" }
grid = { "tune.to" = [{ suboptimality = 0.1 }, { suboptimality = 0.05 }] }
[[run]]
label = "GD"
algorithm.name = "gd"
[[run]]
label = "EF21"
algorithm.name = "ef21"
up.compressor = { name = "top-k", k = 1 }
stop.rounds = 5
""")
    runs, figure = mc.run(tmp_path / "job.toml", out=tmp_path, quiet=True), mc.load_job(tmp_path / "job.toml").figure
    assert sorted({run.label for run in runs}) == [f"{name}, suboptimality = {to}" for name in ("EF21", "GD") for to in (0.05, 0.1)]
    table = needed(runs, figure)
    assert {method.label for method in table.methods} == {f"{name}, tuned to suboptimality = {to}" for name in ("EF21", "GD") for to in (0.05, 0.1)}
    said = winner(table, figure.to)
    assert said.startswith("Least round to suboptimality ≤ 0.05 (1 of 2 methods reach it, 1 cut off before; not 'EF21, tuned to suboptimality = ")
    assert re.search(r" – GD, tuned to suboptimality = 0.05: \d+; tuning found no value that reaches its target for 1 of 2 methods\.$", said)
    (row, *_) = fewest(outcomes([tmp_path / "job.toml"], tmp_path))
    assert row.cells[-1] == "1 of 2"
    assert "tuned to" in str(mc.plot(runs).get_legend_handles_labels()[1])
