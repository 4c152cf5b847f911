"""CAT's table 1 as a picture."""

import pytest

import mpi_compress as mc
from mpi_compress.cli.main import main
from mpi_compress.figures.of_run import draw_bounds
from mpi_compress.job.loading import parse_job
from mpi_compress.results.bounds import HEADS, BoundsTable


def played(tmp_path, theory):
    tables = {
        "data": {"generator": "gspar", "samples": 40, "dim": 12},
        "objective": {"mu": "1e-2 L"},
        "algorithm": {"name": "cat", "budget": 4},
        "stop": {"rounds": 300},
        "log": {"theory": theory},
    }
    return mc.run(parse_job(tables, "bounds", tmp_path, {}), out=tmp_path, quiet=True)[0]


def test_its_cells_are_the_bounds_and_the_rounds_that_were_needed(tmp_path, capsys):
    run = played(tmp_path, True)
    (drawn,) = draw_bounds(run).axes[0].tables
    cells = {place: cell.get_text().get_text() for place, cell in drawn.get_celld().items()}
    assert [cells[0, column] for column in range(6)] == [*HEADS]
    table = BoundsTable.of(run)
    rows = list(table.rows())
    assert {row.kind for row in rows} == {"µ-convex", "convex", "non-convex"}
    for i, (kind, eps, needed, (plain, data, worst)) in enumerate(rows, 1):
        assert [cells[i, column] for column in range(6)] == [kind, f"{eps:.2g}", f"{needed}", f"{plain:.3g}", f"{data:.3g}", f"{worst:.3g}"]
        values = run.trace["grad_norm"] ** 2 if kind == "non-convex" else run.trace["suboptimality"]
        assert values[needed] <= eps < values[needed - 1]
        assert needed <= data * (1 + 1e-12) <= worst * (1 + 1e-12)
        assert worst == pytest.approx(3 * plain)  # d/T
    picture = tmp_path / "table1.png"
    assert main(["show", str(run.file), "--bounds", str(picture)]) == 0
    assert capsys.readouterr().out == f"{picture}\n"
    assert picture.stat().st_size > 1000


def test_a_run_without_bounds_is_refused(tmp_path):
    with pytest.raises(mc.UserError, match="has no bounds of CAT's table 1"):
        draw_bounds(played(tmp_path, False))
