"""The table of least bits by problem."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.core.tables import markdown
from mpi_compress.evidence.comparison import amount
from mpi_compress.evidence.outcomes import outcomes
from mpi_compress.evidence.problems import HEADS, differing, fewest
from mpi_compress.figures.plotting import draw
from mpi_compress.job.tables import FigureTable, PanelTable
from mpi_compress.report.text import table
from mpi_compress.results.columns import column_of

JOB = """
data = { generator = "gspar", samples = 40, dim = 12 }
objective = { penalty = { name = "ratio", weight = 0.1 }, f_star = "skip" }
workers.count = 2
stop.rounds = 40
cost.model = "udp-ethernet"
figure = { y = "squared_grad_norm", to = { squared_grad_norm = 1e-3 } }
[[run]]
label = "GD"
algorithm = { name = "gd" }
[[run]]
label = "short floats"
algorithm = { name = "gd" }
up = { codec = { name = "dense", float = 16 } }
[[run]]
label = "short floats, slow"
algorithm = { name = "gd", step = "0.01/L" }
up = { codec = { name = "dense", float = 16 } }
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Two jobs of one problem, the second one with a run on more workers."""
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "one.toml").write_text(JOB)
    more = '[[run]]\nlabel = "three"\nalgorithm = { name = "gd" }\nworkers.count = 3\n'
    (folder / "two.toml").write_text(JOB.split("[[run]]")[0] + '[[run]]\nlabel = "32 bits"\nalgorithm = { name = "gd" }\n'
                                     'up = { codec = { name = "dense", float = 32 } }\n' + more)  # fmt: skip
    files = [folder / "one.toml", folder / "two.toml"]
    for file in files:
        mc.run(mc.load_job(file), out=folder)
    return outcomes(files, folder)


def up(found):
    """The rows by bits up, half of all: every problem has one by both directions, too."""
    rows = fewest(found)
    assert sorted(row.problem for row in rows if row.comparison.by == "wire_bits") == sorted(row.problem for row in rows)[::2]
    return [row for row in rows if row.comparison.by == "wire_bits_up"]


def test_runs_of_one_problem_are_compared_across_jobs(found):
    two, three = sorted(up(found), key=lambda row: row.problem)
    assert two.problem == "logistic + 0.1 ratio, gspar, d = 12, n = 2"
    cells = dict(zip(HEADS, two.cells, strict=True))
    bits = {label: run.to("squared_grad_norm", 1e-3)["wire_bits_up"] for o in found for run in o.runs
            if (label := run.label) in ("GD", "short floats", "32 bits")}  # fmt: skip
    assert (cells["method"], cells["reached by"]) == ("short floats", "3 of 4")
    assert bits["short floats"] < bits["32 bits"] < bits["GD"]
    assert cells["then"].startswith("32 bits, ")
    assert cells["then"].split("; ")[1].startswith("GD, ")
    both = next(row for row in fewest(found) if (row.comparison.by, row.problem) == ("wire_bits", two.problem))
    down = {run.label: run.to("squared_grad_norm", 1e-3)["wire_bits_down"] for run in found[0].runs if run.label == "short floats"}
    assert both.cells[2] == amount(bits["short floats"] + down["short floats"], "wire_bits")
    assert three.cells[3] == "three"
    assert three.cells[-1] == "1 of 1"


def test_in_which_parts_the_problems_of_two_jobs_differ_is_said_in_a_line(found, tmp_path, capsys):
    """Beside their data, as where tables and figures put results together; not what each of the jobs has several of."""
    first, second = (o.runs for o in found)
    assert differing(first) == differing([*first, *second[:1]]) == []
    assert differing([*first, *second]) == ["the jobs' problems differ: workers: 2 (one, two) and 3 (two)"]
    (tmp_path / "other.toml").write_text('start.at = "random"\n' + JOB.replace("weight = 0.1", "weight = 0.2"))
    other = mc.run(mc.load_job(tmp_path / "other.toml", only="GD"), out=tmp_path, quiet=True)
    said = "the jobs' problems differ: penalty: 0.1 ratio (one) and 0.2 ratio (other); start: zero (one) and at = random (other)"
    assert differing([*first, *other]) == [said]
    files, made = [str(run.file) for run in (*first[:1], *other)], [tmp_path / name for name in ("t.md", "t.tex", "screen.svg", "paper.svg")]
    for options in ([], ["--to", "squared_grad_norm=1e-3", *(f"-o{file}" for file in made[:2])]):
        assert main(["table", *files, *options]) == 0
        assert f"\n{said}\n" in capsys.readouterr().out
    for style in ("screen", "paper"):
        assert main(["plot", *files, "--style", style, "-o", str(tmp_path / f"{style}.svg")]) == 0
        assert f"mpi-compress: {said}\n" in capsys.readouterr().err
    for file in made:
        words = " ".join(re.sub("<[^>]*>", " ", file.read_text()).split())
        assert said in words, file
    drawn = draw([*first, *other], FigureTable("round", panel=[PanelTable(), PanelTable(x="wire_bits_up")]))
    assert any(said in " ".join(text.get_text().split()) for text in drawn.findobj(Text))
    plt.close("all")


def test_a_run_tuned_to_its_theorems_step_stands_once_beside_the_run_of_that_step(tmp_path):
    file = tmp_path / "tuned.toml"
    tune = '[run.tune]\nparameter = "algorithm.step"\nvalues = ["theory", "0.01 theory"]\nto = { loss = 1e-9 }\nbeside = "theory"\n'
    file.write_text(JOB.split("[[run]]")[0] + '[[run]]\nlabel = "GD"\nalgorithm = { name = "gd" }\n' + tune)
    assert len(mc.run(mc.load_job(file), out=tmp_path)) == 2
    (row,) = up(outcomes([file], tmp_path))
    assert row.cells[3:] == [name := "GD, tuned step = theory (trials missed the target)", "–", f"{name}, {row.cells[2]}", "–", "1 of 1"]


def test_costs_of_two_models_are_two_problems_and_have_their_units(tmp_path):
    file = tmp_path / "costs.toml"
    packets = '[[run]]\nlabel = "packets"\nalgorithm = { name = "gd" }\ncost = { model = "packet", c1 = "8 B", c0 = "8 B", pmax = "8 B" }\n'
    file.write_text(JOB.replace('1e-3 } }', '1e-3 }, by = "cost_up" }') + packets)
    runs = mc.run(mc.load_job(file), out=tmp_path)
    by_packet, by_udp = sorted(fewest(outcomes([file], tmp_path)), key=lambda row: row.problem)
    assert [row.problem.rpartition(", costs by ")[2] for row in (by_packet, by_udp)] == ["packet, c1 = 8 B, c0 = 8 B, pmax = 8 B", "udp-ethernet"]
    assert (by_packet.cells[3], by_udp.cells[-1]) == ("packets", "2 of 3")
    cost = next(run for run in runs if run.label == "packets").to("squared_grad_norm", 1e-3)["cost_up"]
    assert by_packet.cells[2] == amount(cost, "cost_up", "bit")


def test_the_data_itself_has_a_column(tmp_path):
    file = tmp_path / "sent.toml"
    runs = [f'[[run]]\nlabel = "{label}"\nalgorithm = {{ name = "{label}" }}\n' for label in ("gd", "ship-data")]
    file.write_text(JOB.split("[[run]]")[0] + "".join(runs))
    results = {run.label: run for run in mc.run(mc.load_job(file), out=tmp_path)}
    (row,) = up(outcomes([file], tmp_path))
    cells = dict(zip(HEADS, row.cells, strict=True))
    assert cells["sending the data"] == amount(results["ship-data"].trace["wire_bits_up"][-1], "wire_bits_up")
    assert cells["not compressed"].startswith("gd, ")


def test_the_table_is_in_markdown_and_nowhere_without_a_target(found, tmp_path):
    assert f"## Least {column_of('wire_bits_up').label}, by problem\n\n{markdown(HEADS, [row.cells for row in up(found)])}" in table(found)
    assert fewest([o for o in found if o.job is None]) == []


def test_a_target_that_no_run_reaches_is_said(found):
    """The bounds of the table: no run, and one alone."""
    (row,) = [row for row in up(found) if row.problem.endswith("n = 3")]
    assert row.cells[4:6] == ["–", row.cells[5]]
    slow = [r for o in found for r in o.runs if r.label == "short floats, slow"]
    (never,) = up([replace(found[0], runs=slow)])
    assert never.cells[2:4] == ["no run reaches it", "–"]


def test_a_method_that_some_seeds_do_not_bring_to_the_target_is_said_to_be_one(tmp_path):
    file = tmp_path / "seeds.toml"
    run = '[[run]]\nlabel = "random"\ngrid.seed = [0, 1, 2, 3, 4]\nalgorithm.name = "diana"\n'
    text = JOB.split("[[run]]")[0] + run + 'up.compressor = { name = "random-k", k = 2 }\n'
    file.write_text(text)
    median = sorted(run.column("squared_grad_norm")[-1] for run in mc.run(mc.load_job(file), out=tmp_path))[2]
    file.write_text(text.replace("squared_grad_norm = 1e-3", f"squared_grad_norm = {median!r}"))
    for row in fewest(outcomes([file], tmp_path)):
        cells = dict(zip(HEADS, row.cells, strict=True))
        assert cells["method"] == "random"
        assert cells[HEADS[2]].endswith(" (3 of 5 seeds reach it)")
