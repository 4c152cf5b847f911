"""The notebook of docs/ runs: its cells one by one in this process, and in Jupyter's kernel where that is installed."""

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import mpi_compress as mc

DOCS = Path(__file__).parent.parent / "docs"
NOTEBOOK = DOCS / "notebook.ipynb"


def cells(notebook: Path = NOTEBOOK) -> list[str]:
    """The source of each cell of code."""
    return ["".join(cell["source"]) for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def played(source: str, names: dict) -> object:
    """The value that a cell shows: that of its last line, if it is an expression without a semicolon."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";") else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)


def test_its_cells_run_and_show_tables_and_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    job, runs, bits, plot = (played(source, names) for source in cells())
    assert repr(job) == "Job('in-a-notebook', 2 runs: gradient descent, top 4)"
    assert runs._repr_html_().startswith("<")
    assert "top 4" in runs._repr_html_()
    assert [run.status for run in runs] == ["complete", "complete"]
    assert bits["top 4"] < bits["gradient descent"]
    assert plot is None
    lines = capsys.readouterr().err.splitlines()
    assert sum(": complete" in line for line in lines) == 2  # quiet=False


def test_a_notebook_shows_a_bar(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    names: dict = {}
    for source in cells()[:2]:
        played(source, names)
    err = capsys.readouterr().err
    assert "\rtop 4 (run 2 of 2)" in err
    assert "150" in err


def test_the_answers_to_the_exercises_of_a_message_are_what_the_package_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for source in cells(DOCS / "message.ipynb"):
        played(source, names)
    worst, coder = names["worst"], names["coder"]
    lost = worst - coder.decode(coder.encode(worst), worst.size)
    assert lost @ lost == (1 - 3 / 16) * (worst @ worst)
    top_100 = mc.coder("top-k", k=100, codec="fixed", float=32)
    assert (names["by_paper"], names["by_fixed"]) == (top_100.paper_bits(names["long"]), top_100.bits(names["long"]))
    np.testing.assert_allclose(names["virtual"], names["plain"])
    (run,) = mc.run({**names["job"], "up": {"compressor": {"name": "top-k", "k": 2}}})
    assert run.trace["wire_bits_up"][-1] == names["bits_of_two"]


@pytest.mark.parametrize("name", ["notebook", "message"])
def test_it_holds_no_outputs(name):
    notebook = json.loads((DOCS / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert not [cell for cell in notebook["cells"] if cell.get("outputs") or cell.get("execution_count")]


@pytest.mark.slow
def test_it_runs_in_jupyters_kernel(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="Jupyter's kernel is tried where nbclient and ipykernel are installed")
    pytest.importorskip("ipykernel")
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert sum("text/html" in output.get("data", {}) for output in shown) == 1  # the results
    assert "run 2 of 2" in "".join(output.get("text", "") for output in shown)  # the bar
